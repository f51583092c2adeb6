//! One conversation, by its transcript.

use super::inside::Inside;
use super::transcript::{Line, Tokens, parse};
use super::turn::{Sums, Turn};
use crate::clock::Moment;
use crate::files::Stamp;
use crate::observe::facts::{Evidence, Usage};
use crate::observe::records::tail::{Budget, Options, Piece, Progress, Tail, Unreadable};
use std::path::{Path, PathBuf};

/// How much of a transcript's end is read to see what goes on now, before all of it is read.
const PEEK: u64 = 64 << 10;

/// How much of it at the most, where less shows nothing of a turn.
const FURTHEST_PEEK: u64 = 2 << 20;

/// The transcript of a conversation.
#[derive(Debug)]
pub struct Conversation {
    whole: Tail,
    turn: Turn,
    sums: Sums,
    progress: Result<Progress, Unreadable>,
    /// Whether all of it has been read once.
    through: bool,
    /// The end of the transcript, until all of it has been read.
    end: Option<Recent>,
    /// The agents that run inside it.
    pub inside: Inside,
}

impl Conversation {
    /// The conversation with this transcript; nothing is read yet.
    pub fn new(transcript: PathBuf) -> Self {
        let inside = transcript.with_extension("").join("subagents");
        let end = Some(Recent::new(transcript.clone(), PEEK));
        let whole = Tail::new(transcript, Options { first: None, ..Options::default() });
        let (turn, sums) = (Turn::default(), Sums::default());
        Self { whole, turn, sums, progress: Ok(Progress::Behind), through: false, end, inside: Inside::new(inside) }
    }

    /// Where its transcript is.
    pub fn path(&self) -> &Path {
        self.whole.path()
    }

    /// Whether it has no transcript.
    pub fn is_missing(&self) -> bool {
        self.progress.as_ref().is_err_and(|why| why.missing)
    }

    /// How much is to be read until all of it is.
    pub fn behind(&self) -> u64 {
        self.whole.behind()
    }

    /// Whether not all of it is read.
    pub fn is_behind(&self) -> bool {
        self.progress == Ok(Progress::Behind)
    }

    /// Reads what goes on now: what is new, or of a long transcript that is new itself the end.
    pub fn glance(&mut self, budget: &mut Budget, now: Moment) {
        match &mut self.end {
            Some(end) if self.whole.behind() > PEEK => end.read(budget, now),
            _ => self.read_on(budget, now),
        }
    }

    /// Looks further back in the end of a long transcript, as long as it shows nothing of a turn: its lines may be long.
    pub fn look_further(&mut self, budget: &mut Budget, now: Moment) {
        while let Some(end) = self.end.as_mut().filter(|end| end.is_empty() && end.first < FURTHEST_PEEK) {
            *end = Recent::new(self.whole.path().to_owned(), end.first * 2);
            end.read(budget, now);
        }
    }

    /// Why it says nothing of a turn, where that may still be found in it.
    pub fn doubt(&self) -> Option<&'static str> {
        let unread = self.progress.is_ok() && !self.through && self.recent().last_ms().is_none();
        unread.then_some("its record is still being read")
    }

    /// Reads on from the beginning.
    pub fn read_on(&mut self, budget: &mut Budget, now: Moment) {
        let Self { whole, turn, sums, through, .. } = self;
        self.progress = whole.read(budget, now, |piece| match piece {
            Piece::Restart => (*turn, *sums, *through) = (Turn::default(), Sums::default(), false),
            Piece::Line(line) => match parse(line) {
                Ok(line) => {
                    turn.take(&line);
                    sums.take(&line);
                }
                Err(_) => sums.strange += 1,
            },
        });
        self.through |= matches!(self.progress, Ok(Progress::Read | Progress::Unchanged));
        if self.through {
            self.end = None;
        } else {
            let new = || Recent::new(self.whole.path().to_owned(), PEEK);
            self.end.get_or_insert_with(new);
        }
    }

    /// When something was written last, Unix milliseconds.
    pub fn last_ms(&self) -> Option<u64> {
        self.recent().last_ms()
    }

    /// What it says of a process that started then. One that cannot be read any more says nothing.
    pub fn evidence(&self, started_at_ms: u64) -> Vec<Evidence> {
        if self.progress.is_err() { Vec::new() } else { self.recent().evidence(started_at_ms) }
    }

    fn recent(&self) -> &Turn {
        self.end.as_ref().map_or(&self.turn, |end| &end.turn)
    }

    /// What it has cost, and what is not known of that.
    pub fn usage(&self, started_at_ms: u64) -> (Option<Usage>, Vec<String>) {
        match &self.progress {
            Err(why) if why.missing => return (None, vec!["there is no transcript of it yet".to_owned()]),
            Err(why) => return (None, vec![format!("its transcript: {why}")]),
            Ok(_) if !self.through => return (None, vec![format!("still reading, {} KiB to go", self.behind() >> 10)]),
            Ok(_) => {}
        }
        let tokens = self.sums.tokens();
        let (subagents, reason) = match self.inside.open(started_at_ms) {
            Ok(open) => (Some(open), None),
            Err(why) => (None, Some(format!("transcripts of its subagents: {why}"))),
        };
        let tool = self.turn.current_tool().filter(|_| self.turn.is_open_since(started_at_ms));
        let usage = Usage {
            model: self.sums.model.clone(),
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            cache_read_tokens: tokens.cache_read,
            cache_write_tokens: tokens.cache_write,
            current_tool: tool.map(str::to_owned),
            subagents,
            ..Usage::default()
        };
        let lost = self.sums.strange + self.whole.too_long();
        let lost = (lost > 0).then(|| format!("{lost} lines of its transcript are not understood"));
        let unpaid = (tokens == Tokens::default()).then(|| "there is no answer in its transcript yet".to_owned());
        (Some(usage), [reason, lost, unpaid].into_iter().flatten().collect())
    }
}

/// The end of a transcript, for what goes on now.
#[derive(Debug)]
pub struct Recent {
    tail: Tail,
    /// How much of the end is read, bytes.
    first: u64,
    /// The last turn that shows in it.
    pub turn: Turn,
    /// Whether it is that of an agent inside another: there all lines are marked as such.
    inside: bool,
    progress: Result<Progress, Unreadable>,
}

impl Recent {
    /// The last so many bytes of a transcript, and what comes after them.
    pub fn new(transcript: PathBuf, first: u64) -> Self {
        let tail = Tail::new(transcript, Options { first: Some(first), ..Options::default() });
        Self { tail, first, turn: Turn::default(), inside: false, progress: Ok(Progress::Behind) }
    }

    /// The same for an agent inside another.
    pub fn inside(transcript: PathBuf, first: u64) -> Self {
        Self { inside: true, ..Self::new(transcript, first) }
    }

    /// Whether not all of that is read.
    pub fn is_behind(&self) -> bool {
        self.progress == Ok(Progress::Behind)
    }

    /// Whether all of that is read, and shows nothing of a turn.
    fn is_empty(&self) -> bool {
        matches!(self.progress, Ok(Progress::Read | Progress::Unchanged)) && self.turn.last_ms().is_none()
    }

    /// When the transcript was written last, Unix milliseconds.
    pub fn written_ms(&self) -> Option<u64> {
        Stamp::of_itself(self.tail.path()).ok()?.modified_ms()
    }

    /// Reads what is new.
    pub fn read(&mut self, budget: &mut Budget, now: Moment) {
        let Self { tail, turn, inside, progress, .. } = self;
        *progress = tail.read(budget, now, |piece| match piece {
            Piece::Restart => *turn = Turn::default(),
            // A line that nobody understands is counted where all of the file is read.
            Piece::Line(line) => {
                if let Ok(line) = parse(line) {
                    turn.take(&Line { aside: line.aside && !*inside, ..line });
                }
            }
        });
    }
}
