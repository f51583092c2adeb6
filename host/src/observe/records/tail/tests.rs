//! However the bytes arrive, each whole line is handed once.

use super::*;
use proptest::prelude::*;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::time::SystemTime;

const PLENTY: u64 = 1 << 30;

/// A file that grows, and its reader.
struct Scene {
    dir: tempfile::TempDir,
    tail: Tail,
    now: Moment,
    /// The lines since the last restart.
    lines: Vec<Vec<u8>>,
    restarts: usize,
}

impl Scene {
    fn new(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tail = Tail::new(dir.path().join("log.jsonl"), options);
        let now = Moment { unix_ms: 0, steady: Duration::ZERO };
        Self { dir, tail, now, lines: Vec::new(), restarts: 0 }
    }

    fn append(&self, bytes: impl AsRef<[u8]>) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.tail.path()).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
    }

    fn write(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.tail.path(), bytes).unwrap();
    }

    fn read_within(&mut self, bytes: u64) -> Result<Progress, Unreadable> {
        let Self { tail, now, lines, restarts, .. } = self;
        tail.read(&mut Budget::new(bytes), *now, |piece| match piece {
            Piece::Restart => {
                lines.clear();
                *restarts += 1;
            }
            Piece::Line(line) => lines.push(line.to_vec()),
        })
    }

    fn read(&mut self) -> Result<Progress, Unreadable> {
        self.read_within(PLENTY)
    }

    fn text(&self) -> Vec<&str> {
        self.lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
    }
}

fn whole() -> Options {
    Options { first: None, longest_line: 100, retry: Duration::from_secs(10) }
}

#[test]
fn lines_are_handed_as_they_become_whole() {
    let mut scene = Scene::new(whole());
    scene.append("one\r\ntwo\u{2028}still two\nth");
    assert_eq!(scene.read(), Ok(Progress::Read));
    assert_eq!(scene.text(), ["one", "two\u{2028}still two"]);
    assert_eq!(scene.read(), Ok(Progress::Unchanged));
    // A letter of two bytes arrives in two halves.
    scene.append(b"r\xc3");
    assert_eq!(scene.read(), Ok(Progress::Read));
    scene.append(b"\xa9e\n\n\nfour\n");
    assert_eq!(scene.read(), Ok(Progress::Read));
    assert_eq!(scene.text(), ["one", "two\u{2028}still two", "thrée", "four"]);
    assert_eq!(scene.restarts, 1);
}

#[test]
fn of_a_long_file_only_the_end_is_read_first() {
    for (first, expected) in [(9, vec!["three"]), (10, vec!["two", "three"]), (13, vec!["two", "three"])] {
        let mut scene = Scene::new(Options { first: Some(first), ..whole() });
        scene.append("one\ntwo\nthree\n");
        assert_eq!(scene.read(), Ok(Progress::Read));
        assert_eq!(scene.text(), expected, "{first}");
        scene.append("four\n");
        scene.read().unwrap();
        assert_eq!(*scene.text().last().unwrap(), "four");
    }
}

#[test]
fn what_has_not_changed_is_not_even_opened() {
    let mut scene = Scene::new(whole());
    scene.append("one\n");
    scene.read().unwrap();
    let written = fs::metadata(scene.tail.path()).unwrap().modified().unwrap();
    scene.write("eno\n");
    let set = |time: SystemTime| {
        let file = OpenOptions::new().write(true).open(scene.tail.path()).unwrap();
        file.set_modified(time).unwrap();
    };
    set(written);
    assert_eq!(scene.read(), Ok(Progress::Unchanged));
    assert_eq!(scene.text(), ["one"]);
}

#[test]
fn a_file_that_was_written_anew_starts_over() {
    let mut scene = Scene::new(whole());
    scene.append("one\ntwo\n");
    scene.read().unwrap();
    scene.write("1\n");
    scene.read().unwrap();
    assert_eq!((scene.text(), scene.restarts), (vec!["1"], 2), "it has shrunk");
    scene.write("eins\nzwei\n");
    scene.read().unwrap();
    assert_eq!((scene.text(), scene.restarts), (vec!["eins", "zwei"], 3), "it has grown in place");
    let other = scene.dir.path().join("other");
    fs::write(&other, "eins\nzwei\ndrei\n").unwrap();
    fs::rename(&other, scene.tail.path()).unwrap();
    scene.read().unwrap();
    assert_eq!((scene.text(), scene.restarts), (vec!["eins", "zwei", "drei"], 4), "it is another one");
}

#[test]
fn a_missing_file_is_looked_for_again_only_so_often() {
    let mut scene = Scene::new(whole());
    let missing = scene.read().unwrap_err();
    assert!(missing.missing);
    scene.append("one\n");
    scene.now.steady = Duration::from_secs(9);
    assert_eq!(scene.read().unwrap_err(), missing);
    scene.now.steady = Duration::from_secs(10);
    assert_eq!(scene.read(), Ok(Progress::Read));
    assert_eq!(scene.text(), ["one"]);
}

#[cfg(unix)]
#[test]
fn a_link_and_a_pipe_are_refused() {
    for make in [
        (|path: &Path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap()) as fn(&Path),
        crate::files::make_pipe,
        |path| fs::create_dir(path).unwrap(),
    ] {
        let mut scene = Scene::new(whole());
        make(scene.tail.path());
        let refused = scene.read().unwrap_err();
        assert_eq!((refused.missing, refused.to_string().as_str()), (false, "is not a regular file"));
        assert_eq!((scene.lines.len(), scene.restarts), (0, 0));
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped_whole_and_counted() {
    let mut scene = Scene::new(whole());
    let fits = "x".repeat(100);
    scene.append(format!("one\nx{fits}\n{fits}\ntwo\nx{fits}"));
    scene.read().unwrap();
    scene.append("and so on");
    scene.read().unwrap();
    scene.append("\nthree\n");
    scene.read().unwrap();
    assert_eq!(scene.text(), ["one", &fits, "two", "three"]);
    assert_eq!(scene.tail.too_long(), 2);
}

#[test]
fn a_tick_reads_no_more_than_its_budget() {
    let mut scene = Scene::new(whole());
    scene.append("line\n".repeat(100));
    assert_eq!((scene.read_within(0), scene.tail.behind()), (Ok(Progress::Behind), 500));
    for left in [400, 300, 200, 100, 0] {
        assert_eq!((scene.read_within(100), scene.tail.behind()), (Ok(Progress::Behind), left));
    }
    assert_eq!(scene.read_within(100), Ok(Progress::Read));
    assert_eq!((scene.lines.len(), scene.restarts), (100, 1));
    let mut all = Budget::new(10);
    let part = all.part(4);
    assert_eq!((part.left(), all.left(), all.part(100).left()), (4, 6, 6));
    all.put_back(part);
    assert_eq!(all.left(), 4);
}

/// What should be handed of a file that was read from its beginning.
fn expected(content: &[u8], longest: usize) -> Vec<Vec<u8>> {
    let mut lines: Vec<&[u8]> = content.split(|&byte| byte == b'\n').collect();
    lines.pop();
    let fitting = lines.into_iter().filter(|line| line.len() <= longest);
    let trimmed = fitting.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    trimmed.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Bytes that are often an end of a line.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![2 => Just(b'\n'), 1 => Just(b'\r'), 8 => any::<u8>()], 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn however_the_bytes_arrive_each_whole_line_is_handed_once(
        steps in prop::collection::vec((bytes(), 0_u64..80), 1..20),
        longest in 1_usize..20,
    ) {
        let mut scene = Scene::new(Options { longest_line: longest, ..whole() });
        let mut content = Vec::new();
        scene.append("");
        for (bytes, budget) in steps {
            scene.append(&bytes);
            content.extend_from_slice(&bytes);
            scene.read_within(budget).unwrap();
            let so_far = expected(&content, longest);
            prop_assert!(so_far.starts_with(&scene.lines), "{:?} begins {so_far:?}", scene.lines);
        }
        scene.read().unwrap();
        prop_assert_eq!(&scene.lines, &expected(&content, longest));
        prop_assert_eq!(scene.restarts, 1);
    }

    #[test]
    fn the_end_of_a_file_is_whole_lines(content in bytes(), first in 0_u64..60) {
        let mut scene = Scene::new(Options { first: Some(first), ..whole() });
        scene.append(&content);
        scene.read().unwrap();
        let all = expected(&content, 100);
        prop_assert!(all.ends_with(&scene.lines), "{:?} ends {all:?}", scene.lines);
        let end = &content[content.len().saturating_sub(usize::try_from(first).unwrap())..];
        let whole = end.iter().filter(|&&byte| byte == b'\n').count();
        prop_assert!(scene.lines.len() <= whole);
    }
}

/// What zstd makes of a text.
fn packed(text: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(text, 1).unwrap()
}

fn zst() -> Scene {
    let mut scene = Scene::new(whole());
    scene.tail.path.set_extension("jsonl.zst");
    scene
}

#[test]
fn a_compressed_file_is_unpacked_whatever_arrives_of_it() {
    let text: String = (0..5000).map(|n| format!("line {n}\n")).collect();
    let bytes = packed(text.as_bytes());
    let mut scene = zst();
    for piece in bytes.chunks(97) {
        scene.append(piece);
        scene.read().unwrap();
    }
    assert_eq!(scene.lines.len(), 5000);
    assert_eq!((scene.restarts, scene.text()[4999]), (1, "line 4999"));
    assert_eq!(scene.read(), Ok(Progress::Unchanged));
    scene.append(packed(b"one more frame\n"));
    assert_eq!((scene.read(), scene.lines.len(), scene.tail.behind()), (Ok(Progress::Read), 5001, 0));
}

#[test]
fn a_compressor_that_still_writes_is_read_as_far_as_its_blocks_are_whole() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.write_all(b"first\nsecond\n").unwrap();
    encoder.flush().unwrap();
    let mut scene = zst();
    scene.write(encoder.get_ref());
    assert_eq!((scene.read(), scene.text()), (Ok(Progress::Read), vec!["first", "second"]));
    encoder.write_all(b"third\n").unwrap();
    let bytes = encoder.finish().unwrap();
    scene.write(&bytes[..bytes.len() - 6]);
    scene.read().unwrap();
    assert_eq!(scene.restarts, 1, "it has only grown");
    scene.write(&bytes);
    assert_eq!((scene.read(), scene.text()), (Ok(Progress::Read), vec!["first", "second", "third"]));
}

#[test]
fn what_unpacks_to_much_costs_no_more_than_the_budget_and_is_given_up() {
    let bomb = packed(&vec![b'x'; 64 << 20]).repeat(160);
    assert!(bomb.len() < 2 << 20, "{} bytes unpack to ten gigabytes", bomb.len());
    let mut scene = zst();
    scene.write(&bomb);
    assert!(scene.tail.behind() > 1 << 30, "nobody can see how much it is");
    let mut ticks = 0;
    let why = loop {
        let mut budget = Budget::new(8 << 20);
        let read = scene.tail.read(&mut budget, scene.now, |piece| assert_eq!(piece, Piece::Restart));
        ticks += 1;
        match read {
            Ok(progress) => assert_eq!((progress, budget.left()), (Progress::Behind, 0)),
            Err(why) => break why,
        }
    };
    assert_eq!((ticks, why.to_string()), (65, "cannot be unpacked: unpacks to more than 512 MiB".to_owned()));
    assert_eq!(scene.read(), Err(why), "for good");
}

#[test]
fn who_does_not_grow_is_kept_ready_for_a_while_only() {
    let mut scene = zst();
    scene.write(packed(b"one\n"));
    assert_eq!((scene.read(), scene.tail.unpack.is_some()), (Ok(Progress::Read), true));
    scene.now.steady += UNPACKED_FOR / 2;
    assert_eq!((scene.read(), scene.tail.unpack.is_some()), (Ok(Progress::Unchanged), true));
    scene.now.steady += UNPACKED_FOR;
    assert_eq!((scene.read(), scene.tail.unpack.is_some()), (Ok(Progress::Unchanged), false));
    scene.append(packed(b"two\n"));
    assert_eq!((scene.read(), scene.text()), (Ok(Progress::Read), vec!["one", "two"]));
    assert_eq!(scene.restarts, 2);
}

#[test]
fn what_cannot_be_unpacked_is_not_tried_again_before_it_changes() {
    let mut scene = zst();
    scene.write("{\"type\":\"session_meta\"}\n");
    let why = scene.read().unwrap_err();
    assert!(why.to_string().starts_with("cannot be unpacked: "), "{why}");
    scene.now.steady = Duration::from_secs(60);
    assert_eq!(scene.read(), Err(why));
    assert!(scene.tail.file.is_none());
    scene.now.steady = Duration::from_secs(120);
    scene.write(packed(b"well\n"));
    assert_eq!((scene.read(), scene.text()), (Ok(Progress::Read), vec!["well"]));
}

#[test]
fn who_asks_for_much_memory_gets_none() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
    let mut scene = zst();
    scene.write(encoder.finish().unwrap());
    let why = scene.read().unwrap_err().to_string();
    assert!(why.contains("memory"), "{why}");
}

#[test]
fn the_first_line_is_found_in_any_file() {
    let plain = Scene::new(whole());
    let line = |path: &Path| first_line(path, 1 << 20);
    plain.write("fir");
    assert_eq!(line(plain.tail.path()), Ok(None));
    plain.write(format!("first\n{}", "x\n".repeat(1 << 20)));
    assert_eq!(line(plain.tail.path()), Ok(Some(b"first".to_vec())));
    plain.write(format!("{}\nsecond\n", "x".repeat(2 << 20)));
    assert!(line(plain.tail.path()).unwrap_err().to_string().contains("more than 1048576 bytes"));
    let compressed = zst();
    compressed.write(packed(format!("first\n{}", "x\n".repeat(1 << 20)).as_bytes()));
    assert_eq!(line(compressed.tail.path()), Ok(Some(b"first".to_vec())));
    compressed.write(packed(&vec![b'x'; 64 << 20]));
    assert!(line(compressed.tail.path()).is_err(), "no more of it is unpacked than a line may have");
}

proptest! {
    #[test]
    fn no_compressed_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..2000), at in any::<usize>(), put in any::<u8>(), cut in any::<usize>()) {
        let mut bytes = packed(&text);
        let at = at % bytes.len();
        bytes[at] = put;
        bytes.truncate(cut % (bytes.len() + 1));
        let mut scene = zst();
        scene.write(&bytes);
        for _ in 0..20 {
            scene.now.steady += Duration::from_secs(60);
            let _ = scene.read_within(100);
        }
    }
}
