//! The session's verdict: its agents', their sums, its health and who needs somebody.

use crate::checks::{ELSEWHERE, STALLED, STOPPED, WAITING_TOO_LONG};
use crate::score::{Assessment, assess};
use crate::settings::Settings;
use crate::text::Clean;
use crate::{
    Activity, Advice, Agent, AgentVerdict, Check, Health, Outcome, ProcessState, SessionVerdict, Snapshot, SourceState,
    Status, Totals,
};

/// Judges all agents of `facts`, and the session by them.
pub(crate) fn judge(facts: &Snapshot, settings: &Settings) -> SessionVerdict {
    let assessments: Vec<_> = facts.agents.iter().map(|agent| assess(agent, facts.now_ms, settings)).collect();
    let advice = advice(&assessments);
    let agents: Vec<_> = assessments.into_iter().map(|assessment| assessment.verdict).collect();
    let totals = totals(&facts.agents, &agents);
    let (checks_passed, checks) = checks(&totals, &facts.sources, settings);
    SessionVerdict {
        health: health(&totals, settings),
        score: score(&agents),
        checks_passed,
        checks,
        advice,
        totals,
        agents,
    }
}

/// The agents that are not offline; all shares are of them.
fn present(totals: &Totals) -> u32 {
    totals.active + totals.degraded + totals.failed + totals.unknown
}

/// Whether `part` of `whole` is more than `percent`.
fn exceeds(part: u32, whole: u32, percent: u64) -> bool {
    u64::from(part) * 100 > u64::from(whole) * percent
}

fn health(totals: &Totals, settings: &Settings) -> Health {
    let present = present(totals);
    if present + totals.offline == 0 {
        Health::Empty
    } else if exceeds(totals.failed, present, settings.failed_share) {
        Health::Critical
    } else if totals.failed > 0 || exceeds(totals.degraded, present, settings.degraded_share) {
        Health::Degraded
    } else if present > 0 && totals.unknown == present {
        Health::Unknown
    } else {
        Health::Healthy
    }
}

/// The mean score of the agents that are not offline, rounded down; 100 if there are none.
fn score(agents: &[AgentVerdict]) -> u8 {
    let present = agents.iter().filter(|agent| agent.status != Status::Offline);
    let (sum, count) = present.fold((0_u64, 0_u64), |(sum, count), agent| (sum + u64::from(agent.score), count + 1));
    sum.checked_div(count).and_then(|mean| u8::try_from(mean).ok()).unwrap_or(100)
}

/// The session's own checks: how many passed, and those that did not.
fn checks(totals: &Totals, sources: &[SourceState], settings: &Settings) -> (u32, Vec<Check>) {
    let share = |name, are, part, limit| share(name, are, part, totals, limit);
    let failed = share("failed-share", "failed", totals.failed, settings.failed_share);
    let degraded = share("degraded-share", "are degraded", totals.degraded, settings.degraded_share);
    let made = [failed, degraded, source_errors(sources)];
    let all = made.len();
    let listed: Vec<_> = made.into_iter().flatten().collect();
    (u32::try_from(all - listed.len()).unwrap_or_default(), listed)
}

/// A check that fails when `part` of those that are there is above `limit` percent, and warns when there is any. The limit is
/// told only where it decides.
fn share(name: &str, are: &str, part: u32, totals: &Totals, limit: u64) -> Option<Check> {
    let whole = present(totals);
    let exceeds = exceeds(part, whole, limit);
    let notes =
        [(totals.offline > 0).then(|| "of those not offline".to_owned()), exceeds.then(|| format!("limit {limit} %"))];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    (part > 0).then(|| Check {
        name: name.to_owned(),
        outcome: if exceeds { Outcome::Fail } else { Outcome::Warn },
        detail: format!("{part} of {whole} agents {are}{notes}"),
        value: Some(f64::from(part) * 100.0 / f64::from(whole)),
        limit: Some(limit as f64),
    })
}

/// A check that warns when a source has failed; it names the first few.
fn source_errors(sources: &[SourceState]) -> Option<Check> {
    const NAMED: usize = 3;
    let mut failed = sources.iter().filter_map(|source| Some((&source.name, source.error.as_ref()?)));
    let count = failed.clone().count();
    let mut named: Vec<_> =
        failed.by_ref().take(NAMED).map(|(name, error)| format!("{}: {}", Clean(name), Clean(error))).collect();
    if count > NAMED {
        named.push(format!("{} more", count - NAMED));
    }
    (count > 0).then(|| Check {
        name: "sources".to_owned(),
        outcome: Outcome::Warn,
        detail: named.join("; "),
        value: Some(count as f64),
        limit: None,
    })
}

/// One piece of advice for each agent that needs somebody: those that wait first, then failed, stalled and otherwise
/// degraded ones, each in the session's order.
fn advice(assessments: &[Assessment]) -> Vec<Advice> {
    let mut advice = Vec::new();
    for urgency in Urgency::ALL {
        for (index, assessment) in assessments.iter().enumerate() {
            if urgency_of(&assessment.verdict) == Some(urgency) {
                let (why, action) = need(assessment);
                let agent = u32::try_from(index).ok();
                advice.push(Advice { agent, why, action: action.to_owned() });
            }
        }
    }
    advice
}

/// Why an agent needs somebody, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Urgency {
    Waits,
    Failed,
    Stalled,
    Degraded,
}

impl Urgency {
    const ALL: [Urgency; 4] = [Urgency::Waits, Urgency::Failed, Urgency::Stalled, Urgency::Degraded];
}

fn urgency_of(verdict: &AgentVerdict) -> Option<Urgency> {
    match (verdict.status, verdict.activity) {
        (Status::Failed, _) => Some(Urgency::Failed),
        (_, Activity::WaitingForInput) => Some(Urgency::Waits),
        (_, Activity::Stalled) => Some(Urgency::Stalled),
        // It is started again by itself.
        (_, Activity::Dead) => None,
        (Status::Degraded, _) => Some(Urgency::Degraded),
        _ => None,
    }
}

/// What somebody should know of an agent, and do.
fn need(&Assessment { ref verdict, worst, stopped, elsewhere }: &Assessment) -> (String, &'static str) {
    let failure =
        worst.and_then(|worst| Some((worst.rule, verdict.checks.get(worst.index)?.detail.get(..worst.said)?)));
    let (why, action) = match (verdict.status, verdict.activity, failure) {
        (Status::Failed, _, Some((rule, detail))) => (format!("failed: {detail}"), rule.action),
        (_, Activity::WaitingForInput, _) if verdict.reason.is_empty() => {
            ("waits for input".to_owned(), WAITING_TOO_LONG.action)
        }
        (_, Activity::WaitingForInput, _) => (format!("waits for input: {}", verdict.reason), WAITING_TOO_LONG.action),
        (_, Activity::Stalled, _) => {
            (format!("stalled: {}", verdict.reason), if stopped { STOPPED } else { STALLED.action })
        }
        (_, _, Some((rule, detail))) => (format!("{}: {detail}", rule.name), rule.action),
        (_, _, None) => (verdict.reason.clone(), STALLED.action),
    };
    (why, if elsewhere { ELSEWHERE.action } else { action })
}

/// The sums over what was measured, and how many agents are what.
fn totals(agents: &[Agent], verdicts: &[AgentVerdict]) -> Totals {
    let mut cpu: Vec<f64> = Vec::with_capacity(agents.len());
    let (mut memory, mut fds, mut threads, mut processes) = (0_u128, 0_u64, 0_u64, 0_u64);
    let mut unmeasured = 0;
    for agent in agents {
        let metrics = &agent.metrics;
        let over = matches!(agent.process, ProcessState::Gone | ProcessState::Zombie);
        if over && metrics.processes.unwrap_or_default() == 0 {
            continue;
        }
        let percent = metrics.cpu_percent.filter(|percent| percent.is_finite() && *percent >= 0.0);
        cpu.extend(percent);
        memory += u128::from(metrics.memory_bytes.unwrap_or_default());
        fds += u64::from(metrics.file_descriptors.unwrap_or_default());
        threads += u64::from(metrics.threads.unwrap_or_default());
        processes += u64::from(metrics.processes.unwrap_or_default());
        let counts = [metrics.file_descriptors, metrics.threads, metrics.processes];
        let measured = percent.is_some() && metrics.memory_bytes.is_some() && counts.iter().all(Option::is_some);
        unmeasured += u32::from(!measured && !over && agent.process != ProcessState::NotLocal);
    }
    // Sums of floats depend on the order; sorted, they do not depend on the order of the agents.
    cpu.sort_unstable_by(f64::total_cmp);
    let are = |status| count(verdicts, |verdict| verdict.status == status);
    Totals {
        // Summed from 0, for the empty sum of floats is -0. Finite numbers may add up to infinity, which the host refuses.
        cpu_percent: cpu.iter().fold(0.0, |sum, percent| sum + percent).min(f64::MAX),
        memory_bytes: memory as f64,
        file_descriptors: fds as f64,
        threads: threads as f64,
        processes: processes as f64,
        active: are(Status::Active),
        degraded: are(Status::Degraded),
        failed: are(Status::Failed),
        offline: are(Status::Offline),
        unknown: are(Status::Unknown),
        waiting: count(verdicts, |verdict| verdict.activity == Activity::WaitingForInput),
        unmeasured,
    }
}

fn count(verdicts: &[AgentVerdict], which: impl Fn(&AgentVerdict) -> bool) -> u32 {
    verdicts.iter().map(|verdict| u32::from(which(verdict))).sum()
}

#[cfg(test)]
mod tests;
