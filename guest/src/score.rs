//! One agent's verdict: its status and score, from what is known of it and what the checks found.

use crate::activity::{Finding, Why, find};
use crate::checks::{Failure, Sheet, check};
use crate::settings::Settings;
use crate::{Activity, Agent, AgentVerdict, ProcessState, Source, Status};

/// An agent's verdict, and the failed check that matters most, which the advice goes by.
pub(crate) struct Assessment {
    pub(crate) verdict: AgentVerdict,
    pub(crate) worst: Option<Failure>,
    /// Whether a signal has stopped it.
    pub(crate) stopped: bool,
    /// Whether an upstream tells of it, and nobody can do anything for it from here.
    pub(crate) elsewhere: bool,
}

/// Judges one agent.
///
/// The score is what the checks leave of 100. A failed agent has 0 and one of which nothing is known at most 50 because
/// the checks `exit` and `known` cost that much: the deductions in the checks always explain the score.
pub(crate) fn assess(agent: &Agent, now_ms: u64, settings: &Settings) -> Assessment {
    let finding = find(agent, now_ms, settings);
    let sheet = check(agent, &finding, now_ms, settings);
    let status = status(agent, &finding, &sheet);
    let Finding { known, unknown_word } = finding;
    let stopped = matches!(known.why, Why::Stopped);
    let shown = unknown_word.map_or(known, |word| crate::activity::unknown(agent, word, now_ms));
    let verdict = AgentVerdict {
        activity: shown.activity,
        reason: shown.why.to_string(),
        since_ms: shown.since_ms.map(|ms| ms as f64),
        decided_by: shown.decided_by,
        inferred: shown.inferred,
        status,
        score: 100_u8.saturating_sub(u8::try_from(sheet.points).unwrap_or(u8::MAX)),
        checks_passed: sheet.passed,
        checks: sheet.listed,
    };
    let told = agent.evidence.iter().any(|evidence| evidence.source == Source::Upstream);
    let elsewhere = agent.process == ProcessState::NotLocal && told;
    Assessment { verdict, worst: sheet.worst, stopped, elsewhere }
}

/// Failed, then over, then unreadable, then with problems, then not understood; else active.
fn status(agent: &Agent, finding: &Finding<'_>, sheet: &Sheet) -> Status {
    let known = &finding.known;
    let understood = finding.unknown_word.is_none();
    if known.failed {
        Status::Failed
    } else if known.activity == Activity::Finished && understood {
        Status::Offline
    } else if agent.process == ProcessState::Unreadable {
        Status::Unknown
    } else if matches!(known.activity, Activity::Stalled | Activity::Dead) || sheet.worst.is_some() {
        Status::Degraded
    } else if known.activity == Activity::Unknown || !understood {
        Status::Unknown
    } else {
        Status::Active
    }
}

#[cfg(test)]
mod tests;
