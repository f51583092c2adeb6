//! What is looked at in each agent, and what came of it.
//!
//! A check that passes is only counted. One that does not says what was seen and which limit it was held against, and
//! ends with the points it costs, so that the score can be added up from the checks. A check that has nothing to look
//! at is not made; it is unknown only where the facts say that, and why, its figure could not be measured.

mod evidence;
mod figures;

use std::fmt::{Arguments, Write as _};

pub(crate) use evidence::{ELSEWHERE, STALLED, STOPPED, WAITING_TOO_LONG};

use crate::activity::{Finding, State, gap};
use crate::settings::Settings;
use crate::text::Clean;
use crate::{Agent, Check, Outcome, ProcessState, Trend};

/// A check's name, and what to do when it fails; empty where it only warns or is unknown, which calls for nobody.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) action: &'static str,
}

/// The checks of one agent.
#[derive(Default)]
pub(crate) struct Sheet {
    /// Those that did not pass, in the order they were made.
    pub(crate) listed: Vec<Check>,
    pub(crate) passed: u32,
    /// The sum of all deductions; it may be more than there is to lose.
    pub(crate) points: u64,
    /// The failed check that costs most, with its place in `listed`.
    pub(crate) worst: Option<Failure>,
}

/// A failed check.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) rule: &'static Rule,
    pub(crate) index: usize,
    /// How many bytes of its detail are before the points.
    pub(crate) said: usize,
    points: u64,
}

/// What a check found wrong: how bad it is, the value that was seen and the limit it has reached.
#[derive(Clone, Copy)]
struct Found {
    outcome: Outcome,
    value: Option<u64>,
    limit: Option<u64>,
}

impl Sheet {
    fn add(&mut self, rule: &'static Rule, points: u64, found: Found, detail: Arguments<'_>) {
        let Found { outcome, value, limit } = found;
        let [value, limit] = [value, limit].map(|number| number.map(|number| number as f64));
        let mut detail = detail.to_string();
        if outcome == Outcome::Fail && self.worst.is_none_or(|worst| points > worst.points) {
            self.worst = Some(Failure { rule, index: self.listed.len(), said: detail.len(), points });
        }
        // Writing to a string cannot fail.
        let _ = write!(detail, ", −{points}");
        self.points += points;
        self.listed.push(Check { name: rule.name.to_owned(), outcome, detail, value, limit });
    }
}

/// What one agent is checked against.
struct Checker<'a> {
    agent: &'a Agent,
    known: &'a State<'a>,
    now_ms: u64,
    settings: &'a Settings,
    sheet: Sheet,
}

/// Checks `agent`, of which `finding` is known.
pub(crate) fn check(agent: &Agent, finding: &Finding<'_>, now_ms: u64, settings: &Settings) -> Sheet {
    let known = &finding.known;
    let mut checker = Checker { agent, known, now_ms, settings, sheet: Sheet::default() };
    checker.exit();
    if matches!(agent.process, ProcessState::Gone | ProcessState::Zombie) {
        // Nothing else is asked of the dead: their figures are those of what they left behind.
        checker.leftover_processes();
        return checker.sheet;
    }
    checker.known(finding.unknown_word);
    checker.stalled();
    checker.waiting_too_long();
    checker.evidence_conflict();
    checker.elsewhere();
    checker.cpu_runaway();
    checker.memory_high();
    checker.memory_growth();
    checker.fd_near_limit();
    checker.thread_count();
    checker.zombie_children();
    checker.sheet
}

impl Checker<'_> {
    /// Lists what was `found`, or counts the check as passed. A weight of 0 leaves it out.
    fn report(&mut self, rule: &'static Rule, weight: u64, found: Option<Found>, detail: Arguments<'_>) {
        match found {
            _ if weight == 0 => {}
            None => self.sheet.passed += 1,
            Some(found) => {
                let points = if found.outcome == Outcome::Warn { weight.div_ceil(2) } else { weight };
                self.sheet.add(rule, points, found, detail);
            }
        }
    }

    /// Lists the check as unknown if the facts say why one of `fields` could not be had. Where no process can be read
    /// there is one reason for all of them, and the check `known` says it.
    fn unmeasured(&mut self, rule: &'static Rule, weight: u64, fields: &[&str]) {
        let readable = !matches!(self.agent.process, ProcessState::Unreadable | ProcessState::NotLocal);
        if weight > 0
            && readable
            && let Some(reason) = gap(self.agent, fields)
        {
            self.sheet.add(
                rule,
                self.settings.unmeasured_weight,
                unknown(),
                format_args!("not measured: {}", Clean(reason)),
            );
        }
    }

    /// Percent of one core over the window, if that is long enough and lies wholly within the current activity: an
    /// agent that was at work a minute ago has rightly used CPU.
    fn mean_cpu(&self) -> Option<u64> {
        let trend = self.watched(self.settings.cpu_runaway_after)?;
        let lasted = self.now_ms.saturating_sub(self.known.since_ms?);
        trend
            .cpu_percent_mean
            .filter(|percent| lasted >= trend.window_ms && percent.is_finite())
            .map(|percent| percent as u64)
    }

    /// The trend, if it covers at least `after` milliseconds.
    fn watched(&self, after: u64) -> Option<&Trend> {
        self.agent.trend.as_ref().filter(|trend| trend.window_ms >= after)
    }
}

/// Which of two limits `value` has reached, if any.
fn over(value: u64, warn: u64, fail: u64) -> Option<Found> {
    let reached = |outcome, limit| Some(Found { outcome, value: Some(value), limit: Some(limit) });
    if value >= fail {
        reached(Outcome::Fail, fail)
    } else if value >= warn {
        reached(Outcome::Warn, warn)
    } else {
        None
    }
}

fn limit(found: Option<Found>) -> u64 {
    found.and_then(|found| found.limit).unwrap_or_default()
}

fn warning(value: Option<u64>) -> Found {
    Found { outcome: Outcome::Warn, value, limit: None }
}

fn unknown() -> Found {
    Found { outcome: Outcome::Unknown, value: None, limit: None }
}

fn failure() -> Found {
    Found { outcome: Outcome::Fail, value: None, limit: None }
}

#[cfg(test)]
mod tests;
