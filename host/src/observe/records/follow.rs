//! Records that are followed: each is a file that grows, and what its lines have said so far.

use super::tail::{Budget, Options, Piece, Progress, Tail, Unreadable};
use crate::clock::Moment;
use crate::observe::facts::{ACTIVITY, Gap};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How much all records of one kind may have read in one tick. Values made of it are three times as large.
const TICK: u64 = 8 << 20;

/// So much of a long record's end is read in any case, also where others have used up the tick's budget.
const PEEK: u64 = 64 << 10;

/// Why nothing is known of a turn.
pub(super) const STILL_READ: &str = "its record is still being read";
const CUT: &str = "its turn began before what is read";

/// What takes up the lines of a record, one by one.
pub(super) trait Parser: Default {
    /// How much of a record's end is enough to know all of it; `None`: what it says is summed up from its beginning.
    const END: Option<u64>;

    /// Takes up one line. `now_ms` is the time now, Unix milliseconds, for lines that have none.
    fn line(&mut self, line: &[u8], now_ms: u64);

    /// How many lines were not understood, or not all of them.
    fn lost(&self) -> u64;
}

/// The records that a reader follows, by where they are.
#[derive(Debug)]
pub(super) struct Followed<P> {
    records: HashMap<PathBuf, Record<P>>,
    budget: Budget,
}

#[derive(Debug)]
struct Record<P> {
    tail: Tail,
    parser: P,
    /// The last lines, as long as the others are still being read.
    end: Option<(Tail, P)>,
    /// What nothing says.
    blank: P,
    /// Whether it was asked for in this tick.
    wanted: bool,
}

/// What a record has said so far.
#[derive(Debug)]
pub(super) struct Said<'a, P> {
    pub(super) parser: &'a P,
    /// Whether it is read to its end. If not, only its last lines are known, or nothing.
    pub(super) whole: bool,
    /// When it was written, Unix milliseconds; `None`: it is not read to its end.
    pub(super) modified_ms: Option<u64>,
    /// Whether its beginning was left out.
    pub(super) cut: bool,
    /// How many of its lines were not understood, or were too long.
    lost: u64,
}

impl<P> Said<'_, P> {
    /// What is not known for want of reading. `of_turn`: whether anything was said of a turn. As long as that is still to be
    /// read, what the processes show says nothing of what the agent does.
    pub(super) fn gaps(&self, of_turn: bool) -> Vec<Gap> {
        let gap = |field: &'static str, reason: &str| Gap::new(field, reason.to_owned());
        let why = if self.whole { self.cut.then_some(CUT) } else { Some(STILL_READ) };
        let turn = why.filter(|_| !of_turn).map(|why| gap("evidence", why));
        let activity = (!self.whole && !of_turn).then(|| gap(ACTIVITY, STILL_READ));
        let unread = (!self.whole).then(|| gap("usage", STILL_READ));
        turn.into_iter().chain(activity).chain(unread).chain(not_understood(self.lost)).collect()
    }
}

/// What is to be said where so many lines of a record were not understood: no sum is known to be whole.
pub(super) fn not_understood(lines: u64) -> Option<Gap> {
    let plural = if lines == 1 { " of its record is" } else { "s of its record are" };
    (lines > 0).then(|| Gap::new("usage", format!("{lines} line{plural} not understood")))
}

impl<P> Default for Followed<P> {
    fn default() -> Self {
        Self { records: HashMap::new(), budget: Budget::new(0) }
    }
}

impl<P: Parser> Followed<P> {
    /// Begins a tick: forgets what was not asked for in the last one.
    pub(super) fn begin(&mut self) {
        self.records.retain(|_, record| std::mem::take(&mut record.wanted));
        self.budget = Budget::new(TICK);
    }

    /// How much of a record is to be read: the least is to be asked for first, so that a long one keeps nobody else waiting.
    pub(super) fn behind(&self, path: &Path) -> u64 {
        let new = || Tail::new(path.to_owned(), Options::default()).behind();
        self.records.get(path).map_or_else(new, |record| record.tail.behind())
    }

    /// What a record has said so far: read to its end, or else its last lines; nothing, where these say nothing without the
    /// others.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(&mut self, path: &Path, now: Moment) -> Result<Said<'_, P>, String> {
        let first_seen = || {
            let options = Options { first: P::END, ..Options::default() };
            Record {
                tail: Tail::new(path.to_owned(), options),
                parser: P::default(),
                end: None,
                blank: P::default(),
                wanted: true,
            }
        };
        let record = self.records.entry(path.to_owned()).or_insert_with(first_seen);
        record.wanted = true;
        let parser = &mut record.parser;
        let read = record.tail.read(&mut self.budget, now, |piece| match piece {
            Piece::Restart => *parser = P::default(),
            Piece::Line(line) => parser.line(line, now.unix_ms),
        });
        match read {
            Ok(Progress::Unchanged | Progress::Read) => {
                record.end = None;
                let (cut, modified_ms) = (record.tail.is_cut(), record.tail.modified_ms());
                let lost = record.parser.lost() + record.tail.too_long();
                Ok(Said { parser: &record.parser, whole: true, modified_ms, cut, lost })
            }
            Ok(Progress::Behind) => {
                let parser = record.last_lines(now).map_err(|why| format!("its record cannot be read: {why}"))?;
                Ok(Said { parser, whole: false, modified_ms: None, cut: true, lost: 0 })
            }
            Err(why) => Err(format!("its record cannot be read: {why}")),
        }
    }
}

impl<P: Parser> Record<P> {
    /// What its last lines say. A compressed one shows them last of all.
    fn last_lines(&mut self, now: Moment) -> Result<&P, Unreadable> {
        if P::END.is_none() || self.tail.is_packed() {
            return Ok(&self.blank);
        }
        let options = Options { first: Some(PEEK), ..Options::default() };
        let new = || (Tail::new(self.tail.path().to_owned(), options), P::default());
        // What has grown by more than that since has another end.
        let stands = self.end.take().filter(|(tail, _)| tail.behind() <= 2 * PEEK);
        let (tail, parser) = self.end.insert(stands.unwrap_or_else(new));
        tail.read(&mut Budget::new(2 * PEEK), now, |piece| match piece {
            Piece::Restart => *parser = P::default(),
            Piece::Line(line) => parser.line(line, now.unix_ms),
        })?;
        Ok(parser)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::time::Duration;

    /// Counts lines.
    #[derive(Debug, Default)]
    struct Lines(usize);

    impl Parser for Lines {
        const END: Option<u64> = None;

        fn line(&mut self, _line: &[u8], _now_ms: u64) {
            self.0 += 1;
        }

        fn lost(&self) -> u64 {
            0
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment { unix_ms: seconds * 1000, steady: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_record_is_read_on_and_one_that_nobody_asks_for_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.jsonl");
        fs::write(&file, "1\n2\n3").unwrap();
        let mut followed = Followed::<Lines>::default();
        followed.begin();
        assert_eq!(followed.read(&file, at(0)).unwrap().parser.0, 2);
        followed.begin();
        fs::write(&file, "1\n2\n3\n").unwrap();
        assert_eq!(followed.read(&file, at(1)).unwrap().parser.0, 3);
        followed.begin();
        followed.begin();
        assert!(followed.records.is_empty());
        followed.begin();
        assert_eq!(followed.read(&file, at(2)).unwrap().parser.0, 3, "all of it anew");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let mut followed = Followed::<Lines>::default();
        followed.begin();
        let error = followed.read(&dir.path().join("none"), at(0)).unwrap_err();
        assert_eq!(error, "its record cannot be read: no such file");
        followed.budget = Budget::new(1);
        let file = dir.path().join("long");
        fs::write(&file, "1\n2\n3\n").unwrap();
        let said = followed.read(&file, at(0)).unwrap();
        assert_eq!((said.parser.0, said.whole, said.modified_ms), (0, false, None), "not half of it");
        assert_eq!(said.gaps(false).iter().map(|gap| &*gap.reason).collect::<Vec<_>>(), [STILL_READ; 3]);
    }

    /// Counts lines of a record whose end is enough.
    #[derive(Debug, Default)]
    struct Ends(usize);

    impl Parser for Ends {
        const END: Option<u64> = Some(200_000);

        fn line(&mut self, _line: &[u8], _now_ms: u64) {
            self.0 += 1;
        }

        fn lost(&self) -> u64 {
            0
        }
    }

    #[test]
    fn of_a_record_that_grows_too_fast_the_last_lines_are_those_of_now() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("long");
        fs::write(&file, format!("{}\n", "x".repeat(999)).repeat(300)).unwrap();
        let mut followed = Followed::<Ends>::default();
        let mut look = |seconds| {
            followed.begin();
            followed.budget = Budget::new(0);
            followed.read(&file, at(seconds)).unwrap().parser.0
        };
        assert_eq!(look(0), 65);
        let grown = fs::File::options().append(true).open(&file).unwrap();
        grown.set_len(10 << 30).unwrap();
        (&grown).write_all(b"\na\nb\n").unwrap();
        assert_eq!(look(1), 2, "ten gigabytes of nothing are not read");
    }

    #[test]
    fn of_a_record_that_has_to_wait_the_last_lines_are_known_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("long");
        fs::write(&file, format!("{}\n", "x".repeat(999)).repeat(300)).unwrap();
        let mut followed = Followed::<Ends>::default();
        followed.begin();
        followed.budget = Budget::new(0);
        let said = followed.read(&file, at(0)).unwrap();
        assert_eq!((said.parser.0, said.whole), (65, false));
        let fields = |gaps: Vec<Gap>| gaps.into_iter().map(|gap| (gap.field, gap.reason)).collect::<Vec<_>>();
        let still = |field: &'static str| (field.into(), STILL_READ.to_owned());
        assert_eq!(fields(said.gaps(false)), [still("evidence"), still("activity"), still("usage")]);
        assert_eq!(fields(said.gaps(true)), [still("usage")]);
        followed.begin();
        let said = followed.read(&file, at(1)).unwrap();
        assert_eq!((said.parser.0, said.whole), (200, true));
        assert_eq!(fields(said.gaps(false)), [("evidence".into(), CUT.to_owned())]);
        assert_eq!(fields(said.gaps(true)), []);
        assert_eq!(followed.behind(&file), 0);
    }
}
