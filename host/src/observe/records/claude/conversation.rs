//! One conversation: the agent's own thread, and those of the agents that run inside it.

use super::inside::Inside;
use super::thread::{Thread, Whose};
use super::transcript::Tokens;
use super::turn::{Ledger, Sums};
use crate::clock::Moment;
use crate::observe::facts::{Evidence, Gap, Usage};
use crate::observe::records::Calls;
use crate::observe::records::follow::not_understood;
use crate::observe::records::tail::{Budget, Unreadable};
use std::path::{Path, PathBuf};

/// How names of models end that say how large their context is, and how large that is, in tokens. Nothing else tells.
const WINDOWS: [(&str, u64); 1] = [("[1m]", 1_000_000)];

/// A conversation, by its transcripts.
#[derive(Debug)]
pub struct Conversation {
    main: Thread,
    inside: Inside,
    /// What all of them have cost.
    ledger: Ledger,
}

impl Conversation {
    /// The conversation with this transcript; nothing is read yet.
    pub fn new(transcript: PathBuf) -> Self {
        let inside = Inside::new(transcript.with_extension("").join("subagents"));
        Self { main: Thread::new(transcript, Whose::Main), inside, ledger: Ledger::default() }
    }

    /// Where its transcript is.
    pub fn path(&self) -> &Path {
        self.main.path()
    }

    /// Whether it has no transcript.
    pub fn is_missing(&self) -> bool {
        self.main.is_missing()
    }

    /// How much is to be read until all of it is.
    pub fn behind(&self) -> u64 {
        self.inside.behind().saturating_add(self.main.behind())
    }

    /// Whether not all of it is read.
    pub fn is_behind(&self) -> bool {
        self.main.is_behind() || self.inside.is_behind()
    }

    /// Reads what goes on now: what is new, or of a long transcript that is new itself the end.
    pub fn glance(&mut self, budget: &mut Budget, now: Moment) {
        self.main.glance(budget, now, &mut self.ledger);
        if self.main.is_replaced() || self.inside.is_replaced() {
            // Read anew, as by who looks for the first time: what was in it is counted no more, and nothing twice.
            *self = Self::new(self.path().to_owned());
            self.main.glance(budget, now, &mut self.ledger);
        }
    }

    /// Looks further back in the end of a long transcript, as long as it shows nothing of a turn: its lines may be long.
    pub fn look_further(&mut self, budget: &mut Budget, now: Moment) {
        self.main.look_further(budget, now);
    }

    /// Reads what goes on now with the agents inside it. `started_at_ms` is when the process started.
    pub fn glance_inside(&mut self, budget: &mut Budget, now: Moment, started_at_ms: u64) {
        self.inside.glance(budget, now, started_at_ms, &mut self.ledger);
    }

    /// Reads on from the beginning.
    pub fn read_on(&mut self, budget: &mut Budget, now: Moment) {
        if self.main.is_behind() {
            self.main.read_on(budget, now, &mut self.ledger);
        }
        self.inside.read_on(budget, now, &mut self.ledger);
    }

    /// Why it says nothing of a turn, where that may still be found in it.
    pub fn doubt(&self) -> Option<&'static str> {
        let main = &self.main;
        let unread = main.unreadable().is_none() && !main.is_through() && main.turn().last_ms().is_none();
        unread.then_some("its record is still being read")
    }

    /// When something was written last, Unix milliseconds.
    pub fn last_ms(&self) -> Option<u64> {
        self.main.turn().last_ms()
    }

    /// What it says of a process that started then. One that cannot be read any more says nothing.
    pub fn evidence(&self, started_at_ms: u64) -> Vec<Evidence> {
        if self.main.unreadable().is_some() { Vec::new() } else { self.main.turn().evidence(started_at_ms) }
    }

    /// Its calls of tools, where all of the last turn is known.
    pub fn calls(&self, started_at_ms: u64) -> Option<Calls> {
        let conversation = self.path().file_stem()?.to_str()?.to_owned();
        let (open, last_ms) = self.main.turn().calls(started_at_ms).filter(|_| self.main.unreadable().is_none())?;
        Some(Calls { conversation, open, last_ms })
    }

    /// What it has cost, and what is not known of that.
    pub fn usage(&self, started_at_ms: u64) -> (Option<Usage>, Vec<Gap>) {
        let gap = |field: &'static str, reason: String| Gap::new(field, reason);
        if let Some(why) = self.main.unreadable() {
            let why =
                if why.missing { "there is no transcript of it yet".into() } else { format!("its transcript: {why}") };
            return (None, vec![gap("usage", why)]);
        }
        if !self.main.is_through() {
            return (None, vec![gap("usage", format!("still reading, {} KiB to go", self.main.behind() >> 10))]);
        }
        let of_inside = |why: Unreadable| format!("transcripts of its subagents: {why}");
        let subagents = self.inside.open(started_at_ms).map_err(of_inside);
        let tokens = self.inside.unnamed().map_err(of_inside);
        let tokens = tokens.map(|inside| self.ledger.sum.plus(self.main.sums().unnamed).plus(inside));
        let context = self.context();
        let lost = self.main.lost() + self.inside.lost();
        let lost = not_understood(lost).map(|gap| gap.reason);
        let unpaid = tokens == Ok(Tokens::default());
        let unpaid = unpaid.then(|| "there is no answer in its transcript yet".to_owned());
        let reasons = [subagents.as_ref().err().cloned(), tokens.as_ref().err().cloned(), lost, unpaid];
        let mut reasons: Vec<String> = reasons.into_iter().flatten().collect();
        reasons.dedup();
        let tokens = tokens.unwrap_or_default();
        let turn = self.main.turn();
        let tool = turn.current_tool().filter(|_| turn.is_open_since(started_at_ms));
        let usage = Usage {
            model: self.main.sums().model.clone(),
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            cache_read_tokens: tokens.cache_read,
            cache_write_tokens: tokens.cache_write,
            context_used_percent: context.and_then(Result::ok),
            current_tool: tool.map(str::to_owned),
            subagents: subagents.ok(),
            ..Usage::default()
        };
        let mut gaps: Vec<Gap> = (!reasons.is_empty()).then(|| gap("usage", reasons.join("; "))).into_iter().collect();
        gaps.extend(context.and_then(Result::err).map(|why| gap("context-used-percent", why.to_owned())));
        (Some(usage), gaps)
    }

    /// How full its context was at the last answer, in percent; `None`: nothing was answered.
    fn context(&self) -> Option<Result<f64, &'static str>> {
        let Sums { model: Some(model), context: Some(used), .. } = self.main.sums() else { return None };
        let window = WINDOWS.iter().find(|(ending, _)| model.ends_with(ending)).map(|(_, window)| *window);
        let percent = |window: u64| (*used as f64 / window as f64 * 100.0).min(100.0);
        Some(window.map(percent).ok_or("how large its model's context is, is not recorded"))
    }
}
