//! What a chain made of one snapshot.

use super::call::Called;
use super::link::{Place, State};
use super::{Health, Outcome, Verdict};
use crate::config::{Mode, OnError};
use std::sync::Arc;
use std::time::Duration;

/// What the chain made of one snapshot.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    /// The last sound verdict of those that count; `None` where no policy came to one.
    pub verdict: Option<Verdict>,
    /// Why nobody can say how the session is, although there may be a verdict: the first policy that failed and must not.
    pub withheld: Option<String>,
    /// How each policy fared, in the chain's order.
    pub policies: Vec<Evaluation>,
}

/// How one policy fared.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The policy's name, or its file where it has not told.
    pub name: String,
    /// Its version; empty where it has not told.
    pub version: String,
    /// SHA-256 of its file; empty where it was not loaded.
    pub digest: String,
    /// Its settings, a JSON object; empty = none.
    pub settings: Arc<str>,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// What its failure means.
    pub on_error: OnError,
    /// Since when a newer file of it has been refused, and why.
    pub stale: Option<Stale>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
    /// The memory it had at the end, bytes.
    pub memory: usize,
    /// The verdict of a policy that is only shown.
    pub shadow: Option<Verdict>,
}

/// A policy works on with its last good file, because the newer one is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// Since when, Unix milliseconds.
    pub since_ms: u64,
    /// What is wrong with the newer file.
    pub reason: String,
}

impl Judgement {
    /// How the session is; `None` where nobody can say.
    pub fn health(&self) -> Option<Health> {
        self.sure().map(|verdict| verdict.health)
    }

    /// The session's score; `None` where nobody can say how the session is.
    pub fn score(&self) -> Option<u8> {
        self.sure().map(|verdict| verdict.score)
    }

    fn sure(&self) -> Option<&Verdict> {
        self.verdict.as_ref().filter(|_| self.withheld.is_none())
    }

    /// Puts in what one policy made of it.
    pub(super) fn add(&mut self, place: &Place, state: State, called: Called<Verdict>, took: Duration) {
        let mut evaluation = state.evaluation(place);
        evaluation.took = took;
        evaluation.memory = called.memory;
        match (called.answer, place.mode) {
            (Ok(verdict), Mode::Enforce) => self.verdict = Some(verdict),
            (Ok(verdict), Mode::Shadow) => evaluation.shadow = Some(verdict),
            (Err(outcome), mode) => {
                if mode == Mode::Enforce && place.on_error == OnError::Closed && self.withheld.is_none() {
                    self.withheld = Some(format!("policy {}: {outcome}", evaluation.name));
                }
                evaluation.outcome = outcome;
            }
        }
        self.policies.push(evaluation);
    }
}
