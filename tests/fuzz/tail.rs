//! A script of what happens to a file that is followed, beside a model of what is to be read of it.
//!
//! Each step is a byte, with its number in the upper bits: something is appended, cut off, written anew in place, or put in the
//! file's place; the file goes; it is read, with much to read allowed or little.

use headcount::clock::Moment;
use headcount::observe::records::tail::{Budget, Options, Piece, Progress, Tail};
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// The longest line that is handed.
const LONGEST: usize = 12;

/// How many bytes before the place where reading stopped are looked at again.
const ANCHOR: usize = 64;

/// The most steps of a script.
const MOST_STEPS: usize = 200;

/// Runs a script. Its first byte says how much of the file's end is read first.
pub fn run(script: &[u8]) {
    let (first, steps) = script.split_first().map_or((0, &[][..]), |(first, steps)| (*first, steps));
    let mut scene = Scene::new((first > 0).then_some(u64::from(first)));
    for &step in steps.iter().take(MOST_STEPS) {
        scene.step(step);
    }
    scene.read(u64::MAX);
}

/// A file, who follows it, and what that one should know.
struct Scene {
    folder: TempDir,
    file: PathBuf,
    tail: Tail,
    now: u64,
    /// What is in the file; `None`: there is none.
    content: Option<Vec<u8>>,
    /// Which file it is: each one in another's place has a number of its own.
    generation: u64,
    handed: Vec<Vec<u8>>,
    model: Model,
}

/// What should have been read.
#[derive(Default)]
struct Model {
    /// How much of the end is read first.
    first: Option<u64>,
    generation: u64,
    /// What came before the place where reading began.
    left_out: usize,
    /// Whether it did not begin at the file's beginning: one byte is read more, to see whether a line ends there.
    is_cut: bool,
    /// What was read since.
    read: Vec<u8>,
}

impl Scene {
    fn new(first: Option<u64>) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let file = folder.path().join("log");
        let tail = Tail::new(file.clone(), Options { first, longest_line: LONGEST, retry: Duration::ZERO });
        let model = Model { first, ..Model::default() };
        Self { folder, file, tail, now: 0, content: None, generation: 0, handed: Vec::new(), model }
    }

    fn step(&mut self, step: u8) {
        let (what, number) = (step >> 5, usize::from(step & 31));
        match what {
            0 | 1 => self.append(&b"abc\ndefgh\r\n\n\nlonger than may be handed\nij"[..=number]),
            2 => self.append(&(0..number).flat_map(|n| format!("{n}\n").into_bytes()).collect::<Vec<_>>()),
            3 => {
                let mut content = self.content.clone().unwrap_or_default();
                content.truncate(content.len().saturating_sub(number));
                self.write(content);
            }
            4 => self.write(vec![b"\nx"[number % 2]; number * 4]),
            5 => self.replace(number),
            6 => self.read(number as u64),
            _ => self.read(u64::MAX),
        }
    }

    fn append(&mut self, more: &[u8]) {
        let mut content = self.content.clone().unwrap_or_default();
        content.extend_from_slice(more);
        self.write(content);
    }

    /// Writes the file in place.
    fn write(&mut self, content: Vec<u8>) {
        if self.content.is_none() {
            self.generation += 1;
        }
        fs::write(&self.file, &content).expect("the file can be written");
        self.content = Some(content);
        self.touch();
    }

    /// Puts another file in its place, or none.
    fn replace(&mut self, number: usize) {
        let Some(content) = self.content.take() else { return };
        // Kept, so that the next file cannot have its inode.
        let kept = self.folder.path().join(format!("old-{}", self.now));
        fs::rename(&self.file, kept).expect("the file can be renamed");
        if number > 0 {
            self.write(content[..content.len().min(number * 2)].to_vec());
        }
    }

    /// Dates the file: two writes within one tick of the file system's clock would have one date.
    fn touch(&mut self) {
        self.now += 1;
        let file = File::options().append(true).open(&self.file).expect("the file can be opened");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(self.now)).expect("the file can be dated");
    }

    fn read(&mut self, bytes: u64) {
        self.now += 1;
        let now = Moment { unix_ms: self.now * 1000, steady: Duration::from_secs(self.now) };
        let handed = &mut self.handed;
        let progress = self.tail.read(&mut Budget::new(bytes), now, |piece| match piece {
            Piece::Restart => handed.clear(),
            Piece::Line(line) => handed.push(line.to_vec()),
        });
        let Some(content) = &self.content else {
            return assert!(progress.is_err_and(|why| why.missing), "there is no file");
        };
        if bytes > 0 {
            self.model.read(content, self.generation, bytes);
        }
        let is_whole = progress.expect("the file can be read") != Progress::Behind;
        if is_whole {
            assert_eq!(self.tail.behind(), 0);
        }
        assert!(is_whole || bytes != u64::MAX, "there was nothing to wait for");
        assert_eq!(self.handed, self.model.lines(), "of {:?}", self.model.read.escape_ascii().to_string());
    }
}

impl Model {
    fn read(&mut self, content: &[u8], generation: u64, budget: u64) {
        let offset = self.left_out + self.read.len();
        let anchor = &self.read[self.read.len().saturating_sub(ANCHOR)..];
        let goes_on =
            self.generation == generation && content.get(..offset).is_some_and(|before| before.ends_with(anchor));
        if !goes_on {
            let before = self.first.and_then(|first| content.len().checked_sub(usize::try_from(first).ok()? + 1));
            let (left_out, is_cut) = (before.unwrap_or(0), before.is_some());
            *self = Self { first: self.first, generation, left_out, is_cut, read: Vec::new() };
        }
        let rest = &content[self.left_out + self.read.len()..];
        let most = usize::try_from(budget).unwrap_or(usize::MAX).min(rest.len());
        self.read.extend_from_slice(&rest[..most]);
    }

    /// The whole lines of what was read; where reading began in the midst of a file, the first one is torn.
    fn lines(&self) -> Vec<Vec<u8>> {
        let mut lines: Vec<&[u8]> = self.read.split(|&byte| byte == b'\n').collect();
        lines.pop();
        let whole = lines.into_iter().skip(usize::from(self.is_cut)).filter(|line| line.len() <= LONGEST);
        let whole = whole.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        whole.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    }
}
