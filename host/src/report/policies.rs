//! Who judged, how each policy fared, and what those in shadow mode would say.

use super::assemble::{activity, agent_status, attention, check, session_health, time};
use super::{ActivityReport, AgentStatus, Attention, CheckResult, SessionHealth, clean};
use crate::config::{Limits, Mode, OnError};
use crate::judge::{AgentVerdict, Evaluation, Link, Outcome, Verdict};
use crate::observe::facts::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a policy fared.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyReport {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its file.
    pub digest: String,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// What its failure means for the session.
    pub on_error: OnError,
    /// `verdict`, or what went wrong: `bad-verdict`, `declined`, `trap`, `deadline`, `memory`, `flood`, `bad-settings`,
    /// `wrong-version`, `not-a-policy`, `wrong-digest`, `compile`, `loading`.
    pub outcome: &'static str,
    /// What went wrong, in a sentence.
    pub detail: Option<String>,
    /// Since when a newer file of it has been refused, RFC 3339 in UTC: it works on with the last good one.
    pub stale_since: Option<String>,
    /// What is wrong with the newer file.
    pub stale_reason: Option<String>,
    /// Microseconds it took.
    pub micros: u64,
}

/// What a policy in shadow mode would say of the session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShadowReport {
    /// The policy's name.
    pub policy: String,
    /// The health it would give the session.
    pub session_health: SessionHealth,
    /// The score it would give the session.
    pub session_score: u8,
    /// Its checks of the whole session that did not pass.
    pub session_checks: Vec<CheckResult>,
    /// Whom it would call for.
    pub attention: Vec<Attention>,
    /// The agents that it judges otherwise than the report does.
    pub agents: Vec<ShadowAgent>,
}

/// What a policy in shadow mode would say of an agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShadowAgent {
    /// The agent.
    pub agent_id: String,
    /// Its status.
    pub status: AgentStatus,
    /// What it does.
    pub activity: ActivityReport,
    /// Its score.
    pub score: u8,
    /// Its checks that did not pass.
    pub check_results: Vec<CheckResult>,
}

/// The policy that has a place in the chain, whatever it is asked to judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRow {
    /// Its name, or its file where it has not told.
    pub name: String,
    /// Its version; empty where it has not told.
    pub version: String,
    /// Its file; null: built in.
    pub file: Option<String>,
    /// SHA-256 of the file that is in use; empty where none is.
    pub digest: String,
    /// Whether the configuration pins it.
    pub pinned: bool,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// What its failure means.
    pub on_error: OnError,
    /// Globs over the ids and names of the sessions that it judges; empty = all.
    pub sessions: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// Why it is not in use; null where it is.
    pub refused: Option<String>,
    /// Since when a newer file of it has been refused, RFC 3339 in UTC: it works on with the last good one.
    pub stale_since: Option<String>,
    /// What is wrong with the newer file.
    pub stale_reason: Option<String>,
}

/// Who has the places of a chain now.
pub fn policy_rows(chain: &[Link]) -> Vec<PolicyRow> {
    chain.iter().map(row).collect()
}

fn row(link: &Link) -> PolicyRow {
    let place = &link.place;
    let state = link.state();
    let refused = state.policy.as_ref().err().map(|outcome| clean(&outcome.to_string()));
    let evaluation = policy(&state.evaluation(place));
    PolicyRow {
        name: evaluation.name,
        version: evaluation.version,
        file: place.file.as_ref().map(|file| clean(&file.display().to_string())),
        digest: evaluation.digest,
        pinned: place.pinned.is_some(),
        mode: place.mode,
        on_error: place.on_error,
        sessions: place.globs.iter().map(|glob| clean(glob)).collect(),
        limits: place.limits.into(),
        refused,
        stale_since: evaluation.stale_since,
        stale_reason: evaluation.stale_reason,
    }
}

/// How a policy fared.
pub(super) fn policy(p: &Evaluation) -> PolicyReport {
    PolicyReport {
        name: clean(&p.name),
        version: clean(&p.version),
        digest: p.digest.clone(),
        mode: p.mode,
        on_error: p.on_error,
        outcome: p.outcome.name(),
        detail: (p.outcome != Outcome::Verdict).then(|| clean(&p.outcome.to_string())),
        stale_since: p.stale.as_ref().map(|stale| time(stale.since_ms)),
        stale_reason: p.stale.as_ref().map(|stale| clean(&stale.reason)),
        micros: u64::try_from(p.took.as_micros()).unwrap_or(u64::MAX),
    }
}

/// What the policies in shadow mode would say, beside `counts`, the verdict that counts; each list no longer than `limit`.
pub(super) fn shadow(
    facts: &Snapshot,
    policies: &[Evaluation],
    counts: Option<&Verdict>,
    limit: usize,
) -> Vec<ShadowReport> {
    let shadow = |p: &Evaluation| {
        let verdict = p.shadow.as_ref()?;
        let agents = facts.agents.iter().zip(&verdict.agents).enumerate();
        let otherwise = agents.filter(|(n, (_, judged))| counts.is_none_or(|v| differs(&v.agents[*n], judged)));
        Some(ShadowReport {
            policy: clean(&p.name),
            session_health: session_health(verdict.health),
            session_score: verdict.score,
            session_checks: verdict.checks.iter().map(check).collect(),
            attention: attention(facts, verdict, limit),
            agents: otherwise.take(limit).map(|(_, (agent, judged))| shadow_agent(&agent.id, judged)).collect(),
        })
    };
    policies.iter().filter_map(shadow).collect()
}

fn shadow_agent(id: &str, judged: &AgentVerdict) -> ShadowAgent {
    ShadowAgent {
        agent_id: id.to_owned(),
        status: agent_status(judged.status),
        activity: activity(judged),
        score: judged.score,
        check_results: judged.checks.iter().map(check).collect(),
    }
}

fn differs(one: &AgentVerdict, other: &AgentVerdict) -> bool {
    (one.status, one.activity, one.score) != (other.status, other.activity, other.score)
        || one.checks.len() != other.checks.len()
        || one.checks.iter().zip(&other.checks).any(|(a, b)| (&a.name, a.outcome) != (&b.name, b.outcome))
}
