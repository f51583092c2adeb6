//! One thread of a conversation, by its transcript: that of the agent itself, or of one that runs inside it.
//!
//! A long transcript is read from both ends: its end says what goes on now, and all of it what it has cost.

use super::transcript::{Line, parse};
use super::turn::{Ledger, Sums, Turn};
use crate::clock::Moment;
use crate::files::Stamp;
use crate::observe::records::tail::{Budget, Options, Piece, Progress, Tail, Unreadable};
use std::path::{Path, PathBuf};

/// How much of a transcript's end is read to see what goes on now, before all of it is read.
const PEEK: u64 = 64 << 10;

/// How much of it at the most, where less shows nothing of a turn.
const FURTHEST_PEEK: u64 = 2 << 20;

/// Whose transcript it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The agent's.
    Main,
    /// That of an agent inside another: there all lines are marked as such.
    Inside,
}

/// A transcript, and what was found in it.
#[derive(Debug)]
pub struct Thread {
    whole: Tail,
    whose: Whose,
    turn: Turn,
    sums: Sums,
    progress: Result<Progress, Unreadable>,
    /// Whether all of it has been read once.
    through: bool,
    /// Whether anything of it was read.
    begun: bool,
    /// Whether another one has taken its place since.
    replaced: bool,
    /// The end of the transcript, until all of it has been read.
    end: Option<Recent>,
}

impl Thread {
    /// The thread with this transcript; nothing is read yet.
    pub fn new(transcript: PathBuf, whose: Whose) -> Self {
        let end = Some(Recent::new(transcript.clone(), PEEK, whose));
        let whole = Tail::new(transcript, Options { first: None, ..Options::default() });
        let (turn, sums) = (Turn::default(), Sums::default());
        let progress = Ok(Progress::Behind);
        Self { whole, whose, turn, sums, progress, through: false, begun: false, replaced: false, end }
    }

    /// Where its transcript is.
    pub fn path(&self) -> &Path {
        self.whole.path()
    }

    /// When the transcript was written last, Unix milliseconds.
    pub fn written_ms(&self) -> Option<u64> {
        Stamp::of_itself(self.path()).ok()?.modified_ms()
    }

    /// Why the transcript cannot be read, where it cannot.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.progress.as_ref().err()
    }

    /// Whether it has no transcript.
    pub fn is_missing(&self) -> bool {
        self.unreadable().is_some_and(|why| why.missing)
    }

    /// How much is to be read until all of it is.
    pub fn behind(&self) -> u64 {
        self.whole.behind()
    }

    /// Whether not all of it is read.
    pub fn is_behind(&self) -> bool {
        self.progress == Ok(Progress::Behind)
    }

    /// Whether another one has taken the transcript's place, or it was written anew: what it had cost stands in the ledger still.
    pub fn is_replaced(&self) -> bool {
        self.replaced
    }

    /// Whether all of it has been read once: only then its sums are whole.
    pub fn is_through(&self) -> bool {
        self.through
    }

    /// Whether enough of it is read to know what goes on now.
    pub fn is_known(&self) -> bool {
        self.end.as_ref().is_none_or(|end| end.progress != Ok(Progress::Behind))
    }

    /// Reads what goes on now: what is new, or of a long transcript that is new itself the end.
    pub fn glance(&mut self, budget: &mut Budget, now: Moment, ledger: &mut Ledger) {
        match &mut self.end {
            Some(end) if self.whole.behind() > PEEK => end.read(budget, now),
            _ => self.read_on(budget, now, ledger),
        }
    }

    /// Looks further back in the end of a long transcript, as long as it shows nothing of a turn: its lines may be long.
    pub fn look_further(&mut self, budget: &mut Budget, now: Moment) {
        while let Some(end) = self.end.as_mut().filter(|end| end.is_empty() && end.first < FURTHEST_PEEK) {
            *end = Recent::new(self.whole.path().to_owned(), end.first * 2, self.whose);
            end.read(budget, now);
        }
    }

    /// Reads on from the beginning, and enters into the ledger what it has cost.
    pub fn read_on(&mut self, budget: &mut Budget, now: Moment, ledger: &mut Ledger) {
        let Self { whole, whose, turn, sums, through, begun, replaced, .. } = self;
        self.progress = whole.read(budget, now, |piece| match piece {
            Piece::Restart => {
                *replaced |= std::mem::replace(begun, true);
                (*turn, *sums, *through) = (Turn::default(), Sums::default(), false);
            }
            Piece::Line(line) => match parse(line) {
                Ok(line) => {
                    turn.take(&own(&line, *whose));
                    sums.take(&line, ledger);
                }
                Err(why) => sums.strange += u64::from(!why.breaks_off),
            },
        });
        self.through |= matches!(self.progress, Ok(Progress::Read | Progress::Unchanged));
        if self.through {
            self.end = None;
        } else {
            let new = || Recent::new(self.whole.path().to_owned(), PEEK, self.whose);
            self.end.get_or_insert_with(new);
        }
    }

    /// Its last turn, as far as is known.
    pub fn turn(&self) -> &Turn {
        self.end.as_ref().map_or(&self.turn, |end| &end.turn)
    }

    /// What it has used, as far as it is read.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// How many lines were not understood.
    pub fn lost(&self) -> u64 {
        self.sums.strange + self.whole.too_long()
    }
}

/// A line as the thread itself sees it.
fn own(line: &Line, whose: Whose) -> Line {
    Line { aside: line.aside && whose == Whose::Main, ..line.clone() }
}

/// The end of a transcript, for what goes on now.
#[derive(Debug)]
struct Recent {
    tail: Tail,
    /// How much of the end is read, bytes.
    first: u64,
    /// The last turn that shows in it.
    turn: Turn,
    whose: Whose,
    progress: Result<Progress, Unreadable>,
}

impl Recent {
    /// The last so many bytes of a transcript, and what comes after them.
    fn new(transcript: PathBuf, first: u64, whose: Whose) -> Self {
        let tail = Tail::new(transcript, Options { first: Some(first), ..Options::default() });
        Self { tail, first, turn: Turn::default(), whose, progress: Ok(Progress::Behind) }
    }

    /// Whether all of that is read, and shows nothing of a turn.
    fn is_empty(&self) -> bool {
        matches!(self.progress, Ok(Progress::Read | Progress::Unchanged)) && self.turn.last_ms().is_none()
    }

    fn read(&mut self, budget: &mut Budget, now: Moment) {
        let Self { tail, turn, whose, progress, .. } = self;
        *progress = tail.read(budget, now, |piece| match piece {
            Piece::Restart => *turn = Turn::default(),
            // A line that nobody understands is counted where all of the file is read.
            Piece::Line(line) => {
                if let Ok(line) = parse(line) {
                    turn.take(&own(&line, *whose));
                }
            }
        });
    }
}
