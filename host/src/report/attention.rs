//! Who in a session needs somebody: an agent that waits for input, has failed, stalls or has finished, and what the policies
//! advise beside. It follows from the report alone; nothing here judges.

use super::mark::Mark;
use super::{ActivityState, AgentReport, AgentStatus, Attention, CheckResult, Report, SessionHealth};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The name and version of the format.
pub const ATTENTION_SCHEMA: &str = "headcount.attention/1";

/// Who of a session needs somebody.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Attention")]
pub struct AttentionReport {
    /// `headcount.attention/1`.
    pub schema: &'static str,
    /// The session's id.
    pub session_id: String,
    /// The session's health.
    pub session_health: SessionHealth,
    /// When the figures were read, RFC 3339 in UTC.
    pub observed_at: String,
    /// All that stands at this moment, also what `needs` leaves out: whoever asks with it as `since` is told only of what has
    /// begun after it.
    pub mark: Mark,
    /// Who needs somebody, most urgent first.
    pub needs: Vec<Need>,
}

/// Somebody who needs somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Need {
    /// Whom it is about; null = the session.
    pub agent_id: Option<String>,
    /// What people call it.
    pub agent_name: Option<String>,
    /// In one word.
    pub kind: NeedKind,
    /// Since when, RFC 3339 in UTC; null where that is not known.
    pub since: Option<String>,
    /// Why.
    pub why: String,
    /// What to do.
    pub action: String,
    /// What it is called where it is shown; empty: the session.
    #[serde(skip)]
    pub label: String,
    /// What it is known by in a [`Mark`]; who has left is in none.
    #[serde(skip)]
    pub(super) key: u32,
}

/// Why somebody is needed, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// An agent waits for input.
    Waiting,
    /// It has ended badly.
    Failed,
    /// It says it works, and does not.
    Stalled,
    /// Something else that a policy advises, of an agent or of the session.
    Advice,
    /// It has ended well.
    Finished,
    /// It is in the session no more, and how it ended is not known.
    Left,
}

impl Need {
    /// Whom it is about, as it is shown everywhere.
    pub fn who(&self) -> &str {
        if self.label.is_empty() { "the session" } else { &self.label }
    }
}

impl NeedKind {
    fn of(agent: &AgentReport) -> Option<Self> {
        match (agent.status, agent.activity.state) {
            (AgentStatus::Failed, _) => Some(Self::Failed),
            (_, ActivityState::WaitingForInput) => Some(Self::Waiting),
            (_, ActivityState::Stalled) => Some(Self::Stalled),
            (_, ActivityState::Finished) => Some(Self::Finished),
            _ => None,
        }
    }

    /// What to do where no policy says more.
    fn action(self) -> &'static str {
        match self {
            Self::Waiting => "answer it in its terminal",
            Self::Failed => "look at its terminal or log; start it again",
            Self::Stalled => "look at its terminal; interrupt it or start it again",
            Self::Advice => "look at it",
            Self::Finished => "look at what it has done",
            Self::Left => "look at what it has left behind",
        }
    }
}

/// How a session stands at one moment. Made once for each tick, for all who wait or watch.
#[derive(Debug)]
pub struct Standing {
    session_id: String,
    session_health: SessionHealth,
    observed_at: String,
    /// Most urgent first.
    needs: Vec<Need>,
    /// Its agents' ids, names and what they are called where they are shown.
    roll: Vec<(String, String, String)>,
    working: usize,
    outline: u64,
}

impl Standing {
    /// How the session of `report` stands. The report must be whole (see [`View::whole`](super::View::whole)).
    pub fn of(report: &Report) -> Self {
        let needs = needs(report);
        let working = report.agents.iter().filter(|agent| agent.activity.state == ActivityState::Working).count();
        Self {
            session_id: report.session_id.clone(),
            session_health: report.session_health,
            observed_at: report.observed_at.clone(),
            roll: report.agents.iter().map(|a| (a.agent_id.clone(), a.agent_name.clone(), a.label())).collect(),
            working,
            outline: outline(report, &needs),
            needs,
        }
    }

    /// Who needs somebody now. Who has finished needs nobody for ever after: that is news only to those who have waited for it.
    pub fn pressing(&self) -> Vec<Need> {
        self.needs.iter().filter(|need| need.kind != NeedKind::Finished).cloned().collect()
    }

    /// Who has come to need somebody since `mark`.
    pub fn begun_since(&self, mark: &Mark) -> Vec<Need> {
        self.needs.iter().filter(|need| !mark.contains(need.key)).cloned().collect()
    }

    /// Whether an agent with this id is there.
    pub fn has(&self, id: &str) -> bool {
        self.roll.iter().any(|(here, ..)| here == id)
    }

    /// Who was there `before` and is there no more; of those that had failed or finished that was told already.
    pub fn left_since(&self, before: &Self) -> Vec<Need> {
        if self.roll == before.roll {
            return Vec::new();
        }
        let here: BTreeSet<&str> = self.roll.iter().map(|(id, ..)| id.as_str()).collect();
        let over = |need: &&Need| matches!(need.kind, NeedKind::Failed | NeedKind::Finished);
        let over: BTreeSet<&str> =
            before.needs.iter().filter(over).filter_map(|need| need.agent_id.as_deref()).collect();
        let left = before.roll.iter().filter(|(id, ..)| !here.contains(id.as_str()) && !over.contains(id.as_str()));
        left.map(|(id, name, label)| Need {
            agent_id: Some(id.clone()),
            agent_name: Some(name.clone()),
            kind: NeedKind::Left,
            since: None,
            why: "is in the session no more".to_owned(),
            action: NeedKind::Left.action().to_owned(),
            label: label.clone(),
            key: 0,
        })
        .collect()
    }

    /// All that stands now.
    pub fn mark(&self) -> Mark {
        self.needs.iter().map(|need| need.key).collect()
    }

    /// All that stands now and presses nobody.
    pub fn quiet_mark(&self) -> Mark {
        self.needs.iter().filter(|need| need.kind == NeedKind::Finished).map(|need| need.key).collect()
    }

    /// This moment's report, with these of the needs.
    pub fn attention(&self, needs: Vec<Need>) -> AttentionReport {
        AttentionReport {
            schema: ATTENTION_SCHEMA,
            session_id: self.session_id.clone(),
            session_health: self.session_health,
            observed_at: self.observed_at.clone(),
            mark: self.mark(),
            needs,
        }
    }

    /// How many agents there are, and how many of them are at work.
    pub fn counts(&self) -> (usize, usize) {
        (self.roll.len(), self.working)
    }

    /// What of the report matters to those who watch it, as a number that changes when that does: which agents there are, what
    /// each is, does, and how it and its checks fare; the session's health and checks; who needs somebody; what could be read
    /// and who could judge. Not: what moves all the time, as figures, scores, ages, and the reasons that tell of them.
    pub fn outline(&self) -> u64 {
        self.outline
    }
}

fn needs(report: &Report) -> Vec<Need> {
    let agents: HashMap<&str, &AgentReport> = report.agents.iter().map(|a| (a.agent_id.as_str(), a)).collect();
    let mut advised: HashMap<&str, &Attention> = HashMap::new();
    let mut needs = Vec::new();
    for advice in &report.attention {
        let agent = advice.agent_id.as_deref().and_then(|id| agents.get(id).copied());
        match agent.filter(|agent| NeedKind::of(agent).is_some() && !advised.contains_key(agent.agent_id.as_str())) {
            // The first that is said of an agent in need is said of that need.
            Some(agent) => drop(advised.insert(&agent.agent_id, advice)),
            None => needs.push(advice_need(report, advice, agent)),
        }
    }
    for agent in &report.agents {
        if let Some(kind) = NeedKind::of(agent) {
            needs.push(agent_need(report, agent, kind, advised.get(agent.agent_id.as_str()).copied()));
        }
    }
    needs.sort_by_key(|need| need.kind);
    needs
}

/// A need is known by what it is and by when it began, where the agent itself has told: what was concluded from figures has no
/// beginning that stays the same. Nothing else, for another process, which has seen the agent for a shorter time, may know less.
fn agent_need(report: &Report, agent: &AgentReport, kind: NeedKind, advice: Option<&Attention>) -> Need {
    let activity = &agent.activity;
    let told = activity.since.as_deref().filter(|since| is_told(report, agent, since)).unwrap_or_default();
    let why = match advice {
        Some(advice) => advice.why.clone(),
        None if activity.reason.is_empty() => super::word(&kind),
        None => format!("{}: {}", super::word(&kind), activity.reason),
    };
    Need {
        agent_id: Some(agent.agent_id.clone()),
        agent_name: Some(agent.agent_name.clone()),
        kind,
        since: activity.since.clone(),
        why,
        action: advice.map_or_else(|| kind.action().to_owned(), |advice| advice.action.clone()),
        label: agent.label(),
        key: Mark::key(&[&report.session_id, &agent.agent_id, &super::word(&kind), told]),
    }
}

/// Whether the agent itself has told this beginning. One that is not before the look is a date ahead, cut to the look's; and
/// where its record does not say since when, each process has its own first sight of it.
fn is_told(report: &Report, agent: &AgentReport, since: &str) -> bool {
    // Both are of one form, in which what is earlier is less.
    !agent.activity.inferred && !agent.activity.undated && since < report.observed_at.as_str()
}

/// Advice is known by what to do. Its reason tells of figures, and what to do may too.
fn advice_need(report: &Report, advice: &Attention, agent: Option<&AgentReport>) -> Need {
    let kind = NeedKind::Advice;
    let lasting: String = advice.action.chars().filter(|c| !c.is_ascii_digit()).collect();
    let about = advice.agent_id.as_deref().unwrap_or_default();
    Need {
        agent_id: advice.agent_id.clone(),
        agent_name: agent.map(|agent| agent.agent_name.clone()),
        kind,
        since: None,
        why: advice.why.clone(),
        action: advice.action.clone(),
        label: agent.map(AgentReport::label).or_else(|| advice.agent_id.clone()).unwrap_or_default(),
        key: Mark::key(&[&report.session_id, about, &super::word(&kind), &lasting]),
    }
}

fn outline(report: &Report, needs: &[Need]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let to = &mut hasher;
    let checks = |checks: &[CheckResult], to: &mut DefaultHasher| {
        checks.iter().for_each(|check| (&check.name, check.outcome).hash(to));
    };
    needs.iter().for_each(|need| need.key.hash(to));
    report.session_health.hash(to);
    checks(&report.session_checks, to);
    for agent in &report.agents {
        (&agent.agent_id, &agent.agent_name, &agent.specialization, &agent.kind, agent.process_id).hash(to);
        (agent.status, agent.activity.state).hash(to);
        agent.health.iter().for_each(|health| checks(&health.check_results, to));
    }
    report.sources.iter().for_each(|source| (&source.name, source.ok).hash(to));
    report.policies.iter().for_each(|policy| (&policy.name, &policy.outcome, &policy.stale_since).hash(to));
    hasher.finish()
}

#[cfg(test)]
mod tests;
