//! The search itself: what is taken away, in which order, and when it is enough.

use super::facts::{facts, shown};
use super::{Because, Explained, Stopped};
use crate::clock::Clock;
use crate::judge::{AgentVerdict, Check, Verdict};
use crate::observe::facts::Snapshot;
use crate::report::{CheckResult, clean};
use std::time::Duration;
use std::vec::IntoIter;

/// Judgements that are made at the most.
const MAX_JUDGEMENTS: usize = 2_000;
/// For how long they are made at the most.
pub const MAX_TIME: Duration = Duration::from_secs(20);

/// What led to an agent's or a session's state and to each of its checks.
pub(super) struct Found {
    pub state: Vec<Because>,
    pub checks: Vec<Causes>,
}

/// What led to a check, and what has a part in its value.
#[derive(Clone, Default)]
pub(super) struct Causes {
    because: Vec<Because>,
    together: Vec<Because>,
}

impl Causes {
    pub fn explain(self, check: CheckResult) -> Explained {
        let Self { because, together } = self;
        let together = if because.is_empty() { together } else { Vec::new() };
        Explained { check, because, together }
    }
}

impl Found {
    pub fn of(checks: &[Check]) -> Self {
        Self { state: Vec::new(), checks: vec![Causes::default(); checks.len()] }
    }

    /// Notes what is otherwise without a fact. Of a fact that holds others, only where none of those decides by itself.
    fn note(&mut self, because: &Because, state_differs: bool, before: &[Check], after: &[Check]) {
        let add = |list: &mut Vec<Because>| {
            let is_inside = |known: &Because| {
                known.fact.strip_prefix(&because.fact).is_some_and(|rest| rest.starts_with(['.', '[']))
            };
            if !list.iter().any(is_inside) {
                list.push(because.clone());
            }
        };
        if state_differs {
            add(&mut self.state);
        }
        for (check, causes) in before.iter().zip(&mut self.checks) {
            if named(before, &check.name, |check| check.outcome) != named(after, &check.name, |check| check.outcome) {
                add(&mut causes.because);
            } else if named(before, &check.name, |check| check.value) != named(after, &check.name, |check| check.value)
            {
                add(&mut causes.together);
            }
        }
    }
}

/// Something of the checks that have this name; most often there is but one.
fn named<T>(checks: &[Check], name: &str, of: impl Fn(&Check) -> T) -> Vec<T> {
    checks.iter().filter(|check| check.name == name).map(of).collect()
}

/// What the policy on trial says of facts; `None`: nothing.
pub type Ask<'t> = &'t dyn Fn(&Snapshot) -> Option<Verdict>;

/// What of a session is taken away whole.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// One of its agents.
    Agent(usize),
    /// That one of its sources could not be read.
    Source(usize),
}

/// A policy that is asked again and again, until that has been often or long enough.
pub(super) struct Search<'t> {
    ask: Ask<'t>,
    clock: &'t dyn Clock,
    start: Duration,
    facts: Snapshot,
    pub judgements: usize,
    pub without_verdict: usize,
}

impl<'t> Search<'t> {
    pub fn new(ask: Ask<'t>, clock: &'t dyn Clock, facts: &Snapshot) -> Self {
        let start = clock.now().steady;
        Self { ask, clock, start, facts: facts.clone(), judgements: 0, without_verdict: 0 }
    }

    /// Why no more is asked, where one `share` of so many of what may be asked is used up.
    pub fn stopped(&self, share: u32) -> Option<Stopped> {
        if self.judgements >= MAX_JUDGEMENTS / share as usize {
            Some(Stopped::Judgements)
        } else if self.clock.now().steady.saturating_sub(self.start) >= MAX_TIME / share {
            Some(Stopped::Time)
        } else {
            None
        }
    }

    /// What the policy says of the facts as they are now.
    fn judge(&mut self) -> Option<Verdict> {
        self.judgements += 1;
        let verdict = (self.ask)(&self.facts);
        self.without_verdict += usize::from(verdict.is_none());
        verdict
    }

    /// What led to the verdict on one agent, and how many of its facts have not been tried.
    pub fn agent(&mut self, n: usize, before: &AgentVerdict) -> serde_json::Result<(Found, usize)> {
        let mut json = serde_json::to_value(&self.facts.agents[n])?;
        let (all, mut left_out) = facts(&json);
        let mut found = Found::of(&before.checks);
        for (tried, fact) in all.iter().enumerate() {
            if self.stopped(1).is_some() {
                left_out += all.len() - tried;
                break;
            }
            let Some(without) = fact.without(&mut json) else { continue };
            let with = std::mem::replace(&mut self.facts.agents[n], without);
            let after = self.judge();
            self.facts.agents[n] = with;
            if let Some(after) = after.as_ref().and_then(|verdict| verdict.agents.get(n)) {
                let differs = (before.status, before.activity) != (after.status, after.activity);
                let value = fact.value(&json);
                let shown = shown(&fact.path, value, self.facts.now_ms);
                let because = Because { fact: fact.path.clone(), value: value.clone(), shown };
                found.note(&because, differs, &before.checks, &after.checks);
            }
        }
        Ok((found, left_out))
    }

    /// Which of these parts led to the session's health and checks, until one `share` of so many of what may be asked is used up.
    pub fn session(&mut self, before: &Verdict, parts: &mut IntoIter<Part>, share: u32, found: &mut Found) {
        while parts.len() > 0 && self.stopped(share).is_none() {
            let Some(part) = parts.next() else { break };
            let (because, after) = self.without(part);
            if let Some(after) = after {
                found.note(&because, before.health != after.health, &before.checks, &after.checks);
            }
        }
    }

    /// A part of the session, and what the policy says without it.
    fn without(&mut self, part: Part) -> (Because, Option<Verdict>) {
        match part {
            Part::Agent(n) => {
                let agent = self.facts.agents.remove(n);
                let after = self.judge();
                let (id, shown) = (agent.id.as_str().into(), format!("{} ({})", clean(&agent.name), agent.id));
                self.facts.agents.insert(n, agent);
                (Because { fact: format!("agents[{n}]"), value: id, shown }, after)
            }
            Part::Source(n) => {
                let error = self.facts.sources[n].error.take();
                let after = self.judge();
                let said = clean(error.as_deref().unwrap_or_default());
                let shown = format!("{}: {said}", clean(&self.facts.sources[n].name));
                self.facts.sources[n].error = error;
                (Because { fact: format!("sources[{n}].error"), value: said.into(), shown }, after)
            }
        }
    }
}
