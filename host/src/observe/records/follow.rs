//! Records that are followed: each is a file that grows, and what its lines have said so far.

use super::tail::{Budget, Options, Piece, Progress, Tail};
use crate::clock::Moment;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How much all records of one kind may have read in one tick. Values made of it are three times as large.
const TICK: u64 = 8 << 20;

/// What takes up the lines of a record, one by one.
pub(super) trait Parser: Default {
    /// How much of a record's end is enough to know all of it; `None`: what it says is summed up from its beginning.
    const END: Option<u64>;

    /// Takes up one line. `now_ms` is the time now, Unix milliseconds, for lines that have none.
    fn line(&mut self, line: &[u8], now_ms: u64);
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
    /// Whether it was asked for in this tick.
    wanted: bool,
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

    /// What a record has said so far, read to its end.
    ///
    /// # Errors
    /// It cannot be read, or is longer than can be read in one tick.
    pub(super) fn read(&mut self, path: &Path, now: Moment) -> Result<&P, String> {
        let first_seen = || {
            let options = Options { first: P::END, ..Options::default() };
            Record { tail: Tail::new(path.to_owned(), options), parser: P::default(), wanted: true }
        };
        let record = self.records.entry(path.to_owned()).or_insert_with(first_seen);
        record.wanted = true;
        let parser = &mut record.parser;
        let read = record.tail.read(&mut self.budget, now, |piece| match piece {
            Piece::Restart => *parser = P::default(),
            Piece::Line(line) => parser.line(line, now.unix_ms),
        });
        match read {
            Ok(Progress::Unchanged | Progress::Read) => Ok(&record.parser),
            Ok(Progress::Behind) => Err("its record is still being read".to_owned()),
            Err(why) => Err(format!("its record cannot be read: {why}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    /// Counts lines.
    #[derive(Debug, Default)]
    struct Lines(usize);

    impl Parser for Lines {
        const END: Option<u64> = None;

        fn line(&mut self, _line: &[u8], _now_ms: u64) {
            self.0 += 1;
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
        assert_eq!(followed.read(&file, at(0)).unwrap().0, 2);
        followed.begin();
        fs::write(&file, "1\n2\n3\n").unwrap();
        assert_eq!(followed.read(&file, at(1)).unwrap().0, 3);
        followed.begin();
        followed.begin();
        assert!(followed.records.is_empty());
        followed.begin();
        assert_eq!(followed.read(&file, at(2)).unwrap().0, 3, "all of it anew");
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
        assert_eq!(followed.read(&file, at(0)).unwrap_err(), "its record is still being read");
    }
}
