//! Checks of what an agent does and says: its end, its silence, its waiting, its contradictions.

use super::{Checker, Found, Rule, failure, limit, over, unknown, warning};
use crate::activity::Why;
use crate::text::{Clean, Span};
use crate::{Activity, Claim, Evidence, ProcessState, Source};

const EXIT: Rule = Rule { name: "exit", action: "read its last output, then start it again or remove it" };
const KNOWN: Rule = Rule { name: "known", action: "" };
pub(crate) const STALLED: Rule =
    Rule { name: "stalled", action: "look at its terminal; interrupt it or start it again" };
/// What to do for an agent that a signal has stopped; the host puts the process id in the place of `PID`.
pub(crate) const STOPPED: &str = "fg in its terminal, or kill -CONT PID";
pub(crate) const WAITING_TOO_LONG: Rule = Rule { name: "waiting-too-long", action: "answer it in its terminal" };
const EVIDENCE_CONFLICT: Rule = Rule { name: "evidence-conflict", action: "" };
/// What there is to do for an agent that an upstream tells of.
pub(crate) const ELSEWHERE: Rule = Rule { name: "elsewhere", action: "see to it where it runs" };

/// The word of an upstream for an agent that is degraded where it is, whatever it does.
const DEGRADED: &str = "degraded";

/// What a failed agent costs: all.
const ALL_POINTS: u64 = 100;

impl Checker<'_> {
    pub(super) fn exit(&mut self) {
        let over = matches!(self.agent.process, ProcessState::Gone | ProcessState::Zombie);
        if self.known.failed {
            self.sheet.add(&EXIT, ALL_POINTS, failure(), format_args!("{}", self.known.why));
        } else if self.known.activity == Activity::Dead {
            // It is started again by itself.
            self.sheet.add(&EXIT, ALL_POINTS / 2, warning(None), format_args!("{}", self.known.why));
        } else if over {
            self.sheet.passed += 1;
        }
    }

    pub(super) fn known(&mut self, unknown_word: Option<&Evidence>) {
        let why = match unknown_word {
            Some(word) => Some(&Why::UnknownWord(word)),
            None if self.known.activity == Activity::Unknown => Some(&self.known.why),
            None if self.agent.process == ProcessState::Unreadable => Some(&Why::Unreadable),
            None => None,
        };
        match why {
            Some(why) => self.sheet.add(&KNOWN, self.settings.known_weight, unknown(), format_args!("{why}")),
            None => self.sheet.passed += 1,
        }
    }

    pub(super) fn stalled(&mut self) {
        let found = (self.known.activity == Activity::Stalled).then(failure);
        self.report(&STALLED, self.settings.stalled_weight, found, format_args!("{}", self.known.why));
    }

    pub(super) fn waiting_too_long(&mut self) {
        let (Activity::WaitingForInput, Some(since_ms)) = (self.known.activity, self.known.since_ms) else {
            return;
        };
        let waited = self.now_ms - since_ms;
        let settings = self.settings;
        let found = over(waited, settings.waiting_too_long_warn, settings.waiting_too_long_fail);
        let detail = format_args!("asked for input {} ago (limit {})", Span(waited), Span(limit(found)));
        let seconds =
            found.map(|found| Found { value: Some(waited / 1000), limit: found.limit.map(|ms| ms / 1000), ..found });
        self.report(&WAITING_TOO_LONG, settings.waiting_too_long_weight, seconds, detail);
    }

    /// What an upstream that measures its agents has found wrong with one: nobody can see it from here.
    pub(super) fn elsewhere(&mut self) {
        let mut told = self.agent.evidence.iter().filter(|evidence| evidence.source == Source::Upstream).peekable();
        if told.peek().is_none() {
            return;
        }
        let degraded = told.find(|evidence| evidence.word == DEGRADED);
        let detail = degraded.and_then(|evidence| evidence.detail.as_deref()).unwrap_or_default();
        self.report(&ELSEWHERE, ALL_POINTS / 2, degraded.map(|_| failure()), format_args!("{}", Clean(detail)));
    }

    /// Two kinds of contradiction: the agent's record and its events disagree and leave it at that, or it has finished
    /// by its own account and goes on using CPU. An idle agent that does so is a matter of `cpu-runaway`.
    pub(super) fn evidence_conflict(&mut self) {
        let settings = self.settings;
        let newest = |source| {
            let by_source = self
                .agent
                .evidence
                .iter()
                .filter(move |evidence| evidence.source == source && evidence.claim != Claim::Unknown);
            by_source.max_by_key(|evidence| evidence.at_ms)
        };
        let weight = settings.evidence_conflict_weight;
        if let (Some(record), Some(event)) = (newest(Source::OwnRecord), newest(Source::Hook))
            && record.claim != event.claim
            && record.at_ms.abs_diff(event.at_ms) <= settings.evidence_conflict_within
            && self.now_ms.saturating_sub(record.at_ms.max(event.at_ms)) >= settings.evidence_conflict_within
        {
            let detail = format_args!(
                "its record says \"{}\", an event at the same time \"{}\"",
                Clean(&record.word),
                Clean(&event.word)
            );
            return self.report(&EVIDENCE_CONFLICT, weight, Some(warning(None)), detail);
        }
        let percent = self
            .mean_cpu()
            .filter(|percent| self.known.activity == Activity::Finished && *percent >= settings.cpu_runaway_fail);
        let found = percent.map(|percent| Found {
            value: Some(percent),
            limit: Some(settings.cpu_runaway_fail),
            ..warning(None)
        });
        let detail = format_args!(
            "finished, but uses {} % CPU (limit {} %)",
            percent.unwrap_or_default(),
            settings.cpu_runaway_fail
        );
        self.report(&EVIDENCE_CONFLICT, weight, found, detail);
    }
}
