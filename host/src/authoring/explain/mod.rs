//! Which facts led to which check. A policy is a pure function and says nothing of how it came to its verdict, so that is
//! found out by trying, for any policy in any language: one fact is taken away at a time, and it is asked to judge again. A
//! fact without which a check is gone or comes out otherwise has led to it; one without which its value is another has a part
//! in it.

mod facts;

use super::trial::{Trial, answer};
use crate::judge::{AgentVerdict, Check, Verdict};
use crate::observe::facts::Snapshot;
use crate::report::{self, ActivityState, AgentStatus, CheckResult, SessionHealth, clean};
use facts::{Fact, facts, shown};
use serde::Serialize;
use serde_json::Value;

/// Agents that are explained at the most.
const MAX_AGENTS: usize = 20;
/// Judgements that are made at the most.
const MAX_JUDGEMENTS: usize = 2_000;

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
    /// Whether all was tried; otherwise there may be more facts that led to it.
    pub complete: bool,
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

/// Explains the verdict that the policy on trial came to.
///
/// # Errors
/// None that is known: facts can be written as JSON.
pub fn explain(trial: &Trial, facts: &Snapshot, verdict: &Verdict) -> serde_json::Result<Explanation> {
    let view = report::verdict(facts, verdict);
    let mut search = Search { trial, facts: facts.clone(), judgements: 0, without_verdict: 0 };
    let noteworthy: Vec<usize> = (0..facts.agents.len()).filter(|&n| is_noteworthy(&verdict.agents[n])).collect();
    let mut agents = Vec::new();
    for &n in noteworthy.iter().take(MAX_AGENTS) {
        let Some(found) = search.agent(n, &verdict.agents[n])? else { break };
        let view = &view.agents[n];
        let checks = view.check_results.iter().cloned().zip(found.checks);
        agents.push(AgentExplanation {
            agent_id: view.agent_id.clone(),
            agent_name: clean(&facts.agents[n].name),
            status: view.status,
            activity: view.activity.state,
            reason: view.activity.reason.clone(),
            because: found.state,
            checks: checks.map(|(check, causes)| causes.explain(check)).collect(),
        });
    }
    let (found, tried_all) = search.session(verdict);
    let checks = view.session_checks.into_iter().zip(found.checks);
    let agents_left_out = noteworthy.len() - agents.len();
    Ok(Explanation {
        schema: "headcount.explanation/1",
        session_id: facts.session.id.clone(),
        session_health: view.session_health,
        session_score: view.session_score,
        because: found.state,
        session_checks: checks.map(|(check, causes)| causes.explain(check)).collect(),
        agents,
        agents_left_out,
        judgements: search.judgements,
        without_verdict: search.without_verdict,
        complete: tried_all && agents_left_out == 0,
    })
}

fn is_noteworthy(agent: &AgentVerdict) -> bool {
    agent.status != crate::judge::Status::Active || !agent.checks.is_empty()
}

/// What led to an agent's or a session's state and to each of its checks.
struct Found {
    state: Vec<Because>,
    checks: Vec<Causes>,
}

/// What led to a check, and what has a part in its value.
#[derive(Clone, Default)]
struct Causes {
    because: Vec<Because>,
    together: Vec<Because>,
}

impl Causes {
    fn explain(self, check: CheckResult) -> Explained {
        let Self { because, together } = self;
        let together = if because.is_empty() { together } else { Vec::new() };
        Explained { check, because, together }
    }
}

impl Found {
    fn of(checks: &[Check]) -> Self {
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

struct Search<'t> {
    trial: &'t Trial,
    facts: Snapshot,
    judgements: usize,
    without_verdict: usize,
}

impl Search<'_> {
    fn left(&self) -> usize {
        MAX_JUDGEMENTS - self.judgements
    }

    /// What the policy says of the facts as they are now; `None`: nothing.
    fn judge(&mut self) -> Option<Verdict> {
        self.judgements += 1;
        let judgement = self.trial.judge(&self.facts).ok();
        let judgement = judgement.filter(|judgement| answer(judgement).is_ok());
        self.without_verdict += usize::from(judgement.is_none());
        judgement?.verdict
    }

    /// What led to the verdict on one agent; `None` where that would take more judgements than are left.
    fn agent(&mut self, n: usize, before: &AgentVerdict) -> serde_json::Result<Option<Found>> {
        let all = facts(&self.facts.agents[n])?;
        if all.len() > self.left() {
            return Ok(None);
        }
        let mut found = Found::of(&before.checks);
        for Fact { path, value, without } in all {
            let with = std::mem::replace(&mut self.facts.agents[n], without);
            let after = self.judge();
            self.facts.agents[n] = with;
            if let Some(after) = after.as_ref().and_then(|verdict| verdict.agents.get(n)) {
                let differs = (before.status, before.activity) != (after.status, after.activity);
                let shown = shown(&path, &value, self.facts.now_ms);
                found.note(&Because { fact: path, value, shown }, differs, &before.checks, &after.checks);
            }
        }
        Ok(Some(found))
    }

    /// Which agents, and which sources that failed, led to the session's health and checks; and whether all were tried.
    fn session(&mut self, before: &Verdict) -> (Found, bool) {
        let mut found = Found::of(&before.checks);
        for n in 0..self.facts.agents.len() {
            if self.left() == 0 {
                return (found, false);
            }
            let agent = self.facts.agents.remove(n);
            let after = self.judge();
            let because = Because {
                fact: format!("agents[{n}]"),
                value: agent.id.as_str().into(),
                shown: format!("{} ({})", clean(&agent.name), agent.id),
            };
            self.facts.agents.insert(n, agent);
            note_session(&mut found, &because, before, after);
        }
        for n in 0..self.facts.sources.len() {
            let Some(error) = self.facts.sources[n].error.take() else { continue };
            if self.left() == 0 {
                return (found, false);
            }
            let after = self.judge();
            let shown = format!("{}: {}", clean(&self.facts.sources[n].name), clean(&error));
            let because = Because { fact: format!("sources[{n}].error"), value: clean(&error).into(), shown };
            self.facts.sources[n].error = Some(error);
            note_session(&mut found, &because, before, after);
        }
        (found, true)
    }
}

fn note_session(found: &mut Found, because: &Because, before: &Verdict, after: Option<Verdict>) {
    if let Some(after) = after {
        found.note(because, before.health != after.health, &before.checks, &after.checks);
    }
}
