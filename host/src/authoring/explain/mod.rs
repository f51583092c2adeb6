//! Which facts led to which check. A policy is a pure function and says nothing of how it came to its verdict, so that is
//! found out by trying, for any policy in any language: one fact is taken away at a time, and it is asked to judge again. A
//! fact without which a check is gone or comes out otherwise has led to it; one without which its value is another has a part
//! in it.

mod facts;
mod search;
#[cfg(test)]
mod tests;

pub use search::{Ask, MAX_TIME};

use crate::clock::Clock;
use crate::judge::{AgentVerdict, Status, Verdict};
use crate::observe::facts::Snapshot;
use crate::report::{self, ActivityState, AgentStatus, AgentVerdictView, CheckResult, SessionHealth, clean};
use search::{Found, Part, Search};
use serde::Serialize;
use serde_json::Value;

/// Agents that are explained at the most.
const MAX_AGENTS: usize = 20;

/// Why a verdict is as it is.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// `headcount.explanation/1`.
    pub schema: &'static str,
    /// The session.
    pub session_id: String,
    /// Its health.
    pub session_health: SessionHealth,
    /// Its score.
    pub session_score: u8,
    /// What its health depends on.
    pub because: Vec<Because>,
    /// Its checks that did not pass.
    pub session_checks: Vec<Explained>,
    /// The agents that are not active or have checks that did not pass.
    pub agents: Vec<AgentExplanation>,
    /// How many of those are not explained, because trying stopped before.
    pub agents_left_out: usize,
    /// How many judgements were made.
    pub judgements: usize,
    /// How many of them came to no verdict, so that they say nothing.
    pub without_verdict: usize,
    /// How many of the session's agents and sources were not taken away.
    pub session_facts_left_out: usize,
    /// Whether all was tried; otherwise there may be more facts that led to it.
    pub complete: bool,
    /// Why trying stopped before all agents were explained.
    pub stopped: Option<Stopped>,
}

/// Why an agent is judged as it is.
#[derive(Debug, Serialize)]
pub struct AgentExplanation {
    /// The agent.
    pub agent_id: String,
    /// Its name.
    pub agent_name: String,
    /// Its status.
    pub status: AgentStatus,
    /// What it does.
    pub activity: ActivityState,
    /// Why, in the policy's words.
    pub reason: String,
    /// The facts that its status and activity depend on.
    pub because: Vec<Because>,
    /// Its checks that did not pass.
    pub checks: Vec<Explained>,
    /// How many of its facts were not tried: it has too many, or trying stopped before.
    pub facts_left_out: usize,
}

/// Why trying stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// No more agents are explained.
    Agents,
    /// No more judgements are made.
    Judgements,
    /// It has taken long enough.
    Time,
}

/// Why a check came out as it did.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// The check.
    #[serde(flatten)]
    pub check: CheckResult,
    /// The facts that led to it; none where no single one decides.
    pub because: Vec<Because>,
    /// The facts that have a part in its value, where no single one decides.
    pub together: Vec<Because>,
}

/// A fact without which something would be judged otherwise.
#[derive(Debug, Clone, Serialize)]
pub struct Because {
    /// Where it stands: in its agent's facts, or in the session's.
    pub fact: String,
    /// What it is.
    pub value: Value,
    /// The same as people read it.
    pub shown: String,
}

/// Explains the verdict that a policy came to, by asking it again.
///
/// # Errors
/// None that is known: facts can be written as JSON.
pub fn explain(ask: Ask, clock: &dyn Clock, facts: &Snapshot, verdict: &Verdict) -> serde_json::Result<Explanation> {
    let view = report::verdict(facts, verdict);
    let mut search = Search::new(ask, clock, facts);
    let (noteworthy, others): (Vec<usize>, Vec<usize>) = worst_first(verdict);
    let in_order = noteworthy.iter().chain(&others).map(|&n| Part::Agent(n));
    let unread = (0..facts.sources.len()).filter(|&n| facts.sources[n].error.is_some()).map(Part::Source);
    let mut parts = unread.chain(in_order).collect::<Vec<_>>().into_iter();
    let mut found = Found::of(&verdict.checks);
    // The session comes first, and what is left for it when its agents have been explained.
    search.session(verdict, &mut parts, 2, &mut found);
    let mut agents = Vec::new();
    for &n in noteworthy.iter().take(MAX_AGENTS) {
        if search.stopped(1).is_some() {
            break;
        }
        let (found, facts_left_out) = search.agent(n, &verdict.agents[n])?;
        agents.push(agent(&view.agents[n], &facts.agents[n].name, found, facts_left_out));
    }
    search.session(verdict, &mut parts, 1, &mut found);
    let checks = view.session_checks.into_iter().zip(found.checks);
    let agents_left_out = noteworthy.len() - agents.len();
    let session_facts_left_out = parts.len();
    let cut_short = agents.len() < noteworthy.len().min(MAX_AGENTS) || session_facts_left_out > 0;
    let ran_out = search.stopped(1).filter(|_| cut_short || agents.last().is_some_and(|last| last.facts_left_out > 0));
    let stopped = ran_out.or((agents_left_out > 0).then_some(Stopped::Agents));
    Ok(Explanation {
        schema: "headcount.explanation/1",
        session_id: facts.session.id.clone(),
        session_health: view.session_health,
        session_score: view.session_score,
        because: found.state,
        session_checks: checks.map(|(check, causes)| causes.explain(check)).collect(),
        session_facts_left_out,
        judgements: search.judgements,
        without_verdict: search.without_verdict,
        complete: stopped.is_none() && agents.iter().all(|agent| agent.facts_left_out == 0),
        stopped,
        agents,
        agents_left_out,
    })
}

/// Which agents there is something to explain of, those in the worst state first; and the others.
fn worst_first(verdict: &Verdict) -> (Vec<usize>, Vec<usize>) {
    let (mut noteworthy, others): (Vec<usize>, Vec<usize>) =
        (0..verdict.agents.len()).partition(|&n| is_noteworthy(&verdict.agents[n]));
    noteworthy.sort_by_key(|&n| {
        let AgentVerdict { status, score, .. } = &verdict.agents[n];
        let rank = match status {
            Status::Failed => 0,
            Status::Degraded => 1,
            _ => 2,
        };
        (rank, *score)
    });
    (noteworthy, others)
}

fn agent(view: &AgentVerdictView, name: &str, found: Found, facts_left_out: usize) -> AgentExplanation {
    let checks = view.check_results.iter().cloned().zip(found.checks);
    AgentExplanation {
        agent_id: view.agent_id.clone(),
        agent_name: clean(name),
        status: view.status,
        activity: view.activity.state,
        reason: view.activity.reason.clone(),
        because: found.state,
        checks: checks.map(|(check, causes)| causes.explain(check)).collect(),
        facts_left_out,
    }
}

fn is_noteworthy(agent: &AgentVerdict) -> bool {
    agent.status != Status::Active || !agent.checks.is_empty()
}
