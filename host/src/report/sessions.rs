//! The list of sessions.

use super::assemble::{session_health, source, status_and_activity, time};
use super::view::word;
use super::{SessionHealth, SourceReport, clean};
use crate::judge::Judgement;
use crate::observe::facts::{Snapshot, SourceState};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// All sessions, a line each.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Sessions {
    /// `headcount.sessions/1`.
    pub schema: &'static str,
    /// The sessions, by id.
    pub sessions: Vec<SessionRow>,
    /// Where agents come from: what could not be read may have more.
    pub sources: Vec<SourceReport>,
}

/// One session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionRow {
    /// Its id.
    pub session_id: String,
    /// Its name.
    pub session_name: String,
    /// The project's top folder; empty where it is not known.
    pub root_path: String,
    /// Whose it is.
    pub owner: String,
    /// When its first agent started or it was declared, RFC 3339 in UTC.
    pub created_at: Option<String>,
    /// How many agents it has.
    pub agent_count: usize,
    /// How many of them wait for a person; null where no policy came to a verdict.
    pub waiting_agents: Option<u32>,
    /// Its health.
    pub session_health: SessionHealth,
    /// 0 (worst) to 100; null where nobody can say.
    pub session_score: Option<u8>,
}

/// The list of `seen` sessions.
pub fn sessions<'a>(seen: impl Iterator<Item = (&'a Snapshot, &'a Judgement)>, sources: &[SourceState]) -> Sessions {
    Sessions {
        schema: "headcount.sessions/1",
        sessions: seen.map(|(facts, judgement)| row(facts, judgement)).collect(),
        sources: sources.iter().map(source).collect(),
    }
}

fn row(facts: &Snapshot, judgement: &Judgement) -> SessionRow {
    let verdict = judgement.verdict.as_ref();
    SessionRow {
        session_id: facts.session.id.clone(),
        session_name: clean(&facts.session.name),
        root_path: clean(&facts.session.root_path),
        owner: clean(&facts.session.owner),
        created_at: facts.session.created_at_ms.map(time),
        agent_count: facts.agents.len(),
        waiting_agents: verdict.map(|v| v.totals.waiting),
        session_health: judgement.health().map_or(SessionHealth::Unknown, session_health),
        session_score: judgement.score(),
    }
}

/// How many there are of everything, without names.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Sessions, by health.
    pub sessions: BTreeMap<String, u64>,
    /// Agents, by kind, status and activity.
    pub agents: BTreeMap<(String, String, String), u64>,
}

impl Numbers {
    /// Of these sessions.
    pub fn of<'a>(seen: impl Iterator<Item = (&'a Snapshot, &'a Judgement)>) -> Self {
        let mut numbers = Self::default();
        for (facts, judgement) in seen {
            let health = judgement.health().map_or(SessionHealth::Unknown, session_health);
            *numbers.sessions.entry(word(&health)).or_default() += 1;
            for (i, agent) in facts.agents.iter().enumerate() {
                let (status, activity) = status_and_activity(judgement.verdict.as_ref(), i);
                let of = (clean(&agent.kind), word(&status), word(&activity));
                *numbers.agents.entry(of).or_default() += 1;
            }
        }
        numbers
    }
}
