//! What a server has told, cleaned and bounded, before it becomes facts.

use super::ids::{Taken, agent_name, session_id};
use crate::names::{AgentName, Identity, Instance, SessionId};
use crate::observe::facts::{Claim, Usage};
use crate::text::clean;
use std::collections::{BTreeSet, HashMap};

/// A server may tell of so many agents and sessions; what is beyond is left out.
pub const AGENTS_MAX: usize = 5_000;
pub const SESSIONS_MAX: usize = 200;

/// So many kinds of agents; what has another one beyond them is of no known kind. Each is a label of figures.
const KINDS_MAX: usize = 32;

/// A kind is as short as a program's name.
const KIND_MAX: usize = 32;

/// A line has room for so many characters, and for how many more there are: what is shown is cut beyond 256.
const LINE_MAX: usize = 230;

/// What a server has answered.
#[derive(Debug, Default)]
pub struct Listing {
    pub(super) sessions: Vec<ToldSession>,
    by_id: HashMap<SessionId, usize>,
    agents: usize,
    kinds: BTreeSet<String>,
    left_out: BTreeSet<String>,
    notes: BTreeSet<String>,
    is_own: bool,
}

/// A session that a server tells of.
#[derive(Debug)]
pub struct ToldSession {
    pub id: SessionId,
    pub name: Option<String>,
    pub root_path: Option<String>,
    pub created_at_ms: Option<u64>,
    pub agents: Vec<(AgentName, ToldAgent)>,
    taken: Taken,
}

/// An agent that a server tells of.
#[derive(Debug)]
pub struct ToldAgent {
    /// What tells it from all others of its session there.
    pub id: String,
    pub name: String,
    pub specialization: Option<String>,
    pub kind: Option<String>,
    pub created_at_ms: Option<u64>,
    /// Where its process is, or who knows.
    pub process: String,
    /// What it does, or why nobody knows.
    pub activity: Result<Statement, String>,
    /// Why it is degraded, beyond what follows from its activity.
    pub degraded: Option<String>,
    pub usage: Option<Usage>,
    pub identity: Option<Identity>,
    pub via: Vec<Instance>,
}

/// What a server says that an agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub claim: Claim,
    pub word: String,
    pub detail: Option<String>,
    pub since_ms: Option<u64>,
}

impl Listing {
    /// How many agents it tells of.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// What of the answer is not taken up, and why.
    pub fn left_out(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| in_line(&self.left_out))
    }

    /// Says that something is not taken up. What is said of many is said once.
    pub(super) fn leave_out(&mut self, why: impl Into<String>) {
        if self.left_out.len() < 8 {
            self.left_out.insert(clean(&why.into()));
        }
    }

    /// What is to be known of the answer, although all of it is taken up that is to be.
    pub fn note(&self) -> Option<String> {
        (!self.notes.is_empty()).then(|| in_line(&self.notes))
    }

    /// Says something that is no failure.
    pub(super) fn remark(&mut self, what: impl Into<String>) {
        self.notes.insert(clean(&what.into()));
    }

    /// Says that it is this very headcount that has answered.
    pub(super) fn be_own(&mut self) {
        self.is_own = true;
        self.remark("it is this very headcount: nothing of it is taken up");
    }

    /// Whether this very headcount has answered.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    /// Takes up a session, or finds it where it was told of before. `None`: there are too many.
    pub(super) fn session(
        &mut self,
        said: &str,
        upstream: &str,
        name: Option<&str>,
        root_path: Option<&str>,
        created_at_ms: Option<u64>,
    ) -> Option<usize> {
        let id = session_id(said, upstream).ok()?;
        if let Some(at) = self.by_id.get(&id) {
            return Some(*at);
        }
        if self.sessions.len() == SESSIONS_MAX {
            self.leave_out(format!("only the first {SESSIONS_MAX} sessions are taken up"));
            return None;
        }
        let text = |text: Option<&str>| text.map(clean).filter(|text| !text.trim().is_empty());
        self.by_id.insert(id.clone(), self.sessions.len());
        self.sessions.push(ToldSession {
            id,
            name: text(name),
            root_path: text(root_path),
            created_at_ms,
            agents: Vec::new(),
            taken: Taken::default(),
        });
        Some(self.sessions.len() - 1)
    }

    /// Takes up an agent of that session.
    pub(super) fn agent(&mut self, session: usize, upstream: &str, agent: ToldAgent) {
        if self.is_full() {
            return;
        }
        let kind = agent.kind.filter(|kind| is_kind(kind));
        let kind = kind.filter(|kind| self.kinds.contains(kind) || self.kinds.len() < KINDS_MAX);
        self.kinds.extend(kind.clone());
        let told = &mut self.sessions[session];
        let Ok(name) = agent_name(&told.taken.free(&agent.id), upstream) else { return };
        self.agents += 1;
        let text = |text: String| clean(&text);
        let agent = ToldAgent {
            id: String::new(),
            name: clean(if agent.name.trim().is_empty() { &agent.id } else { &agent.name }),
            specialization: agent.specialization.map(text).filter(|text| !text.trim().is_empty()),
            kind,
            process: clean(&agent.process),
            activity: agent.activity.map(Statement::cleaned).map_err(text),
            degraded: agent.degraded.map(text),
            usage: agent.usage.map(|usage| Usage {
                model: usage.model.map(text),
                current_tool: usage.current_tool.map(text),
                ..usage
            }),
            ..agent
        };
        told.agents.push((name, agent));
    }

    /// Whether no further agent is taken up. To be asked where there is one: then it is said.
    pub(super) fn is_full(&mut self) -> bool {
        let is_full = self.agents == AGENTS_MAX;
        if is_full {
            self.leave_out(format!("only the first {AGENTS_MAX} agents are taken up"));
        }
        is_full
    }

    /// Takes the session out again that came last, where nobody in it was taken up.
    pub(super) fn drop_if_nobody_is_left(&mut self, session: usize) {
        if session + 1 == self.sessions.len() && self.sessions[session].agents.is_empty() {
            self.sessions.truncate(session);
            self.by_id.retain(|_, at| *at != session);
        }
    }
}

impl Statement {
    fn cleaned(self) -> Self {
        let detail = self.detail.map(|detail| clean(&detail)).filter(|detail| !detail.is_empty());
        Self { word: clean(&self.word), detail, ..self }
    }
}

/// What is said, one after the other, as far as a line has room: each stands whole, or is only counted.
fn in_line(said: &BTreeSet<String>) -> String {
    let mut line = String::new();
    for (nth, one) in said.iter().enumerate() {
        if nth > 0 && line.chars().count() + one.chars().count() > LINE_MAX {
            return format!("{line}; and {} more", said.len() - nth);
        }
        line.push_str(if nth > 0 { "; " } else { "" });
        line.push_str(one);
    }
    line
}

fn is_kind(kind: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !kind.is_empty() && kind.len() <= KIND_MAX && kind.bytes().all(inner)
}
