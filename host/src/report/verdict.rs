//! A verdict by itself, in the report's words: what a policy's tests are written against. Times, digests and whatever else
//! differs from run to run are not in it.

use super::assemble::{activity, agent_status, attention, check, session_health, session_metrics};
use super::{ActivityReport, AgentStatus, Attention, CheckResult, MAX_LIMIT, SessionHealth, SessionMetrics, clean};
use crate::judge::{Outcome, SettingsProblem, Verdict};
use crate::observe::facts::Snapshot;
use serde::Serialize;

/// The name and version of the format.
const SCHEMA: &str = "headcount.verdict/1";

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

/// Why there is no verdict.
#[derive(Debug, Clone, Serialize)]
pub struct NoVerdictView {
    /// `headcount.verdict/1`.
    pub schema: &'static str,
    /// What happened instead: `declined`, `trap`, …
    pub outcome: &'static str,
    /// In a sentence; of a policy that declined, its own words.
    pub detail: String,
    /// What is wrong with its settings, if that is what happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ProblemView>,
}

/// What is wrong with one setting.
#[derive(Debug, Clone, Serialize)]
pub struct ProblemView {
    /// JSON pointer to the key.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

/// What is said in the place of a verdict where there is none.
pub fn no_verdict(outcome: &Outcome) -> NoVerdictView {
    let problem = |p: &SettingsProblem| ProblemView { path: clean(&p.path), message: clean(&p.message) };
    let (detail, problems) = match outcome {
        Outcome::Declined(why) => (clean(why), vec![]),
        Outcome::BadSettings(problems) => (clean(&outcome.to_string()), problems.iter().map(problem).collect()),
        other => (clean(&other.to_string()), vec![]),
    };
    NoVerdictView { schema: SCHEMA, outcome: outcome.name(), detail, problems }
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
        schema: SCHEMA,
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
