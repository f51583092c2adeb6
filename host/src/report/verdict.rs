//! A verdict by itself, in the report's words: what a policy's tests are written against. Times, digests and whatever else
//! differs from run to run are not in it.

use super::assemble::{activity, agent_status, attention, check, session_health, session_metrics};
use super::{ActivityReport, AgentStatus, Attention, CheckResult, MAX_LIMIT, SessionHealth, SessionMetrics};
use crate::judge::Verdict;
use crate::observe::facts::Snapshot;
use serde::Serialize;

/// What one policy made of a snapshot.
#[derive(Debug, Clone, Serialize)]
pub struct VerdictView {
    /// `headcount.verdict/1`.
    pub schema: &'static str,
    /// `verdict`.
    pub outcome: &'static str,
    /// The session's health.
    pub session_health: SessionHealth,
    /// 0 (worst) to 100.
    pub session_score: u8,
    /// Checks of the whole session that did not pass.
    pub session_checks: Vec<CheckResult>,
    /// How many of them passed.
    pub checks_passed: u32,
    /// Figures of the whole session.
    pub session_metrics: SessionMetrics,
    /// Who needs somebody.
    pub attention: Vec<Attention>,
    /// Its agents, in the snapshot's order.
    pub agents: Vec<AgentVerdictView>,
}

/// What one policy made of one agent.
#[derive(Debug, Clone, Serialize)]
pub struct AgentVerdictView {
    /// The agent.
    pub agent_id: String,
    /// Whether it can be relied upon.
    pub status: AgentStatus,
    /// What it does.
    pub activity: ActivityReport,
    /// 0 (worst) to 100.
    pub score: u8,
    /// How many checks passed.
    pub checks_passed: u32,
    /// Those that did not.
    pub check_results: Vec<CheckResult>,
}

/// The verdict on `facts`, as a report would show it.
pub fn verdict(facts: &Snapshot, verdict: &Verdict) -> VerdictView {
    let agents = facts.agents.iter().zip(&verdict.agents).map(|(agent, judged)| AgentVerdictView {
        agent_id: agent.id.clone(),
        status: agent_status(judged.status),
        activity: activity(judged),
        score: judged.score,
        checks_passed: judged.checks_passed,
        check_results: judged.checks.iter().map(check).collect(),
    });
    VerdictView {
        schema: "headcount.verdict/1",
        outcome: "verdict",
        session_health: session_health(verdict.health),
        session_score: verdict.score,
        session_checks: verdict.checks.iter().map(check).collect(),
        checks_passed: verdict.checks_passed,
        session_metrics: session_metrics(&verdict.totals),
        attention: attention(facts, verdict, MAX_LIMIT),
        agents: agents.collect(),
    }
}
