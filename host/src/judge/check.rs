//! Whether a verdict can be true. The judge may be anyone's; what can be checked is checked before anybody sees it, and texts
//! are cut before they are kept.

use super::{Activity, Check, Health, Status, Verdict};
use crate::observe::facts::Snapshot;
use crate::text::clean;

/// More checks than this for one agent are a mistake, and would fill every screen.
const MAX_CHECKS: usize = 64;
/// So much advice for each agent, and for the session.
const MAX_ADVICE: usize = 8;

/// The verdict with its texts cut to a length that can be kept and handed on.
///
/// # Errors
/// The first thing that cannot be true.
pub(super) fn checked(facts: &Snapshot, mut verdict: Verdict) -> Result<Verdict, String> {
    check(facts, &verdict)?;
    let checks = |checks: &mut Vec<Check>| {
        for check in checks {
            cut(&mut check.name);
            cut(&mut check.detail);
        }
    };
    for agent in &mut verdict.agents {
        cut(&mut agent.reason);
        checks(&mut agent.checks);
    }
    checks(&mut verdict.checks);
    for advice in &mut verdict.advice {
        cut(&mut advice.why);
        cut(&mut advice.action);
    }
    Ok(verdict)
}

/// Longer than anything that is shown of it.
fn cut(text: &mut String) {
    const KEPT: usize = 16 * crate::text::MAX;
    if text.len() > KEPT {
        text.truncate(text.floor_char_boundary(KEPT));
        text.shrink_to_fit();
    }
}

fn check(facts: &Snapshot, verdict: &Verdict) -> Result<(), String> {
    let agents = facts.agents.len();
    if verdict.agents.len() != agents {
        return Err(format!("it has {} agents, the facts have {agents}", verdict.agents.len()));
    }
    for (agent, fact) in verdict.agents.iter().zip(&facts.agents) {
        if agent.activity == Activity::Dead && agent.status == Status::Active {
            return Err(format!("agent {}: it is dead and active", fact.id));
        }
        score(agent.score).map_err(|e| format!("agent {}: {e}", fact.id))?;
        finite("since", agent.since_ms).map_err(|e| format!("agent {}: {e}", fact.id))?;
        checks(&agent.checks).map_err(|e| format!("agent {}: {e}", fact.id))?;
    }
    if verdict.health == Health::Empty && agents > 0 {
        return Err(format!("health is empty with {agents} agents"));
    }
    score(verdict.score)?;
    checks(&verdict.checks)?;
    totals(verdict)?;
    if verdict.advice.len() > MAX_ADVICE * (agents + 1) {
        return Err(format!("{} advices for {agents} agents", verdict.advice.len()));
    }
    for advice in &verdict.advice {
        if let Some(index) = advice.agent.filter(|&index| index as usize >= agents) {
            return Err(format!("advice for agent {index} of {agents}"));
        }
    }
    Ok(())
}

fn score(score: u8) -> Result<(), String> {
    if score > 100 { Err(format!("score {score} is above 100")) } else { Ok(()) }
}

fn checks(checks: &[Check]) -> Result<(), String> {
    if checks.len() > MAX_CHECKS {
        return Err(format!("{} checks; {MAX_CHECKS} are allowed", checks.len()));
    }
    checks.iter().try_for_each(|c| {
        finite("value", c.value).and(finite("limit", c.limit)).map_err(|e| format!("check {:.64}: {e}", clean(&c.name)))
    })
}

fn totals(verdict: &Verdict) -> Result<(), String> {
    let t = &verdict.totals;
    let sums = [
        ("cpu-percent", t.cpu_percent),
        ("memory-bytes", t.memory_bytes),
        ("file-descriptors", t.file_descriptors),
        ("threads", t.threads),
        ("processes", t.processes),
    ];
    for (name, sum) in sums {
        finite(name, Some(sum))?;
        if sum < 0.0 {
            return Err(format!("total {name} is {sum}"));
        }
    }
    let count = |status| verdict.agents.iter().filter(|a| a.status == status).count();
    let counts = [
        ("active", t.active, count(Status::Active)),
        ("degraded", t.degraded, count(Status::Degraded)),
        ("failed", t.failed, count(Status::Failed)),
        ("offline", t.offline, count(Status::Offline)),
        ("unknown", t.unknown, count(Status::Unknown)),
    ];
    for (name, said, is) in counts {
        if said as usize != is {
            return Err(format!("it counts {said} {name} agents where its own list has {is}"));
        }
    }
    let agents = verdict.agents.len();
    if [t.waiting, t.unmeasured].iter().any(|&n| n as usize > agents) {
        return Err("it counts more agents waiting or unmeasured than there are".into());
    }
    Ok(())
}

fn finite(what: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(value) if !value.is_finite() => Err(format!("{what} is {value}")),
        _ => Ok(()),
    }
}
