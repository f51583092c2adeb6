//! What another headcount tells: its reports are understood as they are. They may be of a later version, so that what is not
//! known in them is passed over.

use super::Taker;
use super::answer::form;
use super::listing::{Listing, Statement, ToldAgent};
use super::when::unix_ms;
use crate::names::{Identity, Instance};
use crate::observe::facts::{Claim, Usage};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An agent that has come through so many headcounts is passed on no more.
const HOPS_MAX: usize = 8;

/// Checks of another headcount whose outcome follows from what it says of the activity: they are made here again.
const MADE_HERE: [&str; 4] = ["exit", "known", "stalled", "waiting-too-long"];

/// The check of those whom an upstream tells of. What it says is passed on as it was said first.
const PASSED_ON: &str = "elsewhere";

/// What another headcount answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// One session.
    Report,
    /// Several of them.
    Reports,
    /// The list of sessions.
    Sessions,
}

impl Schema {
    /// What `answer` says that it is.
    pub fn of(answer: &Value) -> Option<Self> {
        match answer["schema"].as_str()? {
            crate::report::SCHEMA => Some(Self::Report),
            "headcount.reports/1" => Some(Self::Reports),
            "headcount.sessions/1" => Some(Self::Sessions),
            _ => None,
        }
    }
}

/// What was taken of a report.
#[derive(Debug)]
pub struct Part {
    /// Its session in the listing, if that has agents there: all of them may have been left out.
    pub session: Option<usize>,
    /// What to ask for the next page with.
    pub next: Option<String>,
    /// How many agents it lists, whether they are taken up or not.
    pub listed: usize,
    /// Whether it says of itself that it leaves some out.
    truncated: bool,
    /// How many agents it says that there are.
    pub count: Option<usize>,
}

impl Part {
    /// Says of a last page what it says of itself: that there are more agents, without a way to ask for them.
    pub fn leave_out_the_rest(&self, listing: &mut Listing) {
        if self.truncated && self.next.is_none() {
            listing.leave_out("it says itself that it does not list all agents");
        }
    }

    /// Says that all pages of a report together list fewer agents than it says that there are.
    pub fn leave_out_beyond(listed: usize, count: Option<usize>, listing: &mut Listing) {
        if let Some(count) = count.filter(|count| *count > listed) {
            listing.leave_out(format!("it lists {listed} of its {count} agents"));
        }
    }
}

#[derive(Deserialize)]
struct Report {
    session_id: String,
    #[serde(default)]
    session_name: String,
    #[serde(default)]
    root_path: String,
    created_at: Option<Value>,
    instance: Option<String>,
    next_cursor: Option<String>,
    #[serde(default)]
    truncated: bool,
    agent_count: Option<usize>,
    agents: Vec<Value>,
}

#[derive(Deserialize)]
struct Agent {
    agent_id: String,
    #[serde(default)]
    agent_name: String,
    specialization: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    status: String,
    created_at: Option<Value>,
    process_id: Option<u32>,
    identity: Option<String>,
    #[serde(default)]
    via: Vec<String>,
    activity: Option<Activity>,
    work: Option<Work>,
    metrics: Option<Metrics>,
    health: Option<Health>,
}

#[derive(Deserialize, Default)]
struct Activity {
    #[serde(default)]
    state: String,
    #[serde(default)]
    reason: String,
    since: Option<Value>,
}

#[derive(Deserialize)]
struct Metrics {
    #[serde(default)]
    unmeasured: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Health {
    #[serde(default)]
    check_results: Vec<Check>,
}

#[derive(Deserialize)]
struct Check {
    name: String,
    outcome: String,
    #[serde(default)]
    detail: String,
}

/// [`Usage`], as far as it is understood.
#[derive(Deserialize)]
struct Work {
    model: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    context_used_percent: Option<f64>,
    current_tool: Option<String>,
    subagents: Option<u32>,
    mcp_servers: Option<u32>,
}

/// Takes up one report, or one page of it. An agent of it that is not understood harms no other.
///
/// # Errors
/// In words, when it is no report.
pub fn take(report: &Value, taker: &Taker, listing: &mut Listing) -> Result<Part, String> {
    if Schema::of(report) != Some(Schema::Report) {
        return Err(format!("{} is no report of a headcount", form(report)));
    }
    let report = Report::deserialize(report).map_err(|_| "a report of another form than this version knows")?;
    let from = report.instance.as_deref().and_then(Instance::parse);
    if from == Some(taker.me) {
        listing.be_own();
        return Ok(Part { session: None, next: None, listed: 0, truncated: false, count: None });
    }
    let created_at_ms = report.created_at.as_ref().and_then(unix_ms);
    let (name, root) = (Some(report.session_name.as_str()), Some(report.root_path.as_str()));
    let session = listing.session(&report.session_id, &taker.upstream, name, root, created_at_ms);
    let part = |session, next| Part {
        session,
        next,
        listed: report.agents.len(),
        truncated: report.truncated,
        count: report.agent_count,
    };
    // Of a session too many nothing is gone on with, which is said already.
    let Some(session) = session else { return Ok(Part { truncated: false, count: None, ..part(None, None) }) };
    for agent in &report.agents {
        if listing.is_full() {
            break;
        }
        match Agent::deserialize(agent) {
            Ok(agent) => {
                if let Some(via) = way(&agent.via, from, taker.me) {
                    listing.agent(session, &taker.upstream, told(agent, via, from, &report.session_id, taker));
                }
            }
            Err(_) => listing.leave_out("an agent of another form than this version knows"),
        }
    }
    Ok(part((!report.agents.is_empty()).then_some(session), report.next_cursor.clone()))
}

/// The way by which an agent has come, `None` where it has been here already, or is too long.
fn way(via: &[String], from: Option<Instance>, me: Instance) -> Option<Vec<Instance>> {
    if via.len() >= HOPS_MAX {
        return None;
    }
    let via: Vec<Instance> = via.iter().filter_map(|one| Instance::parse(one)).chain(from).collect();
    (!via.contains(&me)).then_some(via)
}

fn told(agent: Agent, via: Vec<Instance>, from: Option<Instance>, session: &str, taker: &Taker) -> ToldAgent {
    let upstream = &taker.upstream;
    let unmeasured = agent.metrics.map(|metrics| metrics.unmeasured).unwrap_or_default();
    let process = match (agent.process_id, unmeasured.get("process")) {
        (Some(pid), _) => format!("process {pid} at {upstream}"),
        (None, Some(why)) => format!("{upstream}: {why}"),
        (None, None) => format!("known from {upstream}"),
    };
    let checks = agent.health.map(|health| health.check_results).unwrap_or_default();
    let activity = statement(agent.activity.unwrap_or_default(), &agent.status);
    // Who does not say which headcount it is tells of agents like any other list: which they are is nobody's word.
    let identity = from.map(|from| {
        let own = || Identity::of(&[from.to_string().as_bytes(), session.as_bytes(), agent.agent_id.as_bytes()]);
        agent.identity.as_deref().and_then(Identity::parse).unwrap_or_else(own)
    });
    ToldAgent {
        identity,
        degraded: degraded(&agent.status, &checks, activity.as_ref().ok()),
        id: agent.agent_id,
        name: agent.agent_name,
        specialization: agent.specialization,
        kind: agent.kind,
        created_at_ms: agent.created_at.as_ref().and_then(unix_ms),
        process,
        activity,
        usage: agent.work.map(usage),
        via,
    }
}

/// What the activity that another headcount has found is evidence of. Its words for what no claim stands for the judge knows.
fn statement(activity: Activity, status: &str) -> Result<Statement, String> {
    let failed = status == "FAILED";
    let (claim, word) = match activity.state.as_str() {
        "unknown" | "" => return Err(unknown(&activity.reason)),
        state if status == "UNKNOWN" => return Err(format!("cannot be told there: {state}, {}", activity.reason)),
        "dead" if failed => (Claim::Failed, "dead"),
        "dead" => (Claim::Failed, "starts again"),
        _ if failed => (Claim::Failed, "failed"),
        "working" => (Claim::Working, "working"),
        "waiting_for_input" => (Claim::Waiting, "waiting_for_input"),
        "idle" => (Claim::Idle, "idle"),
        "stalled" => (Claim::Working, "stalled"),
        "finished" => (Claim::Finished, "finished"),
        other => (Claim::Unknown, other),
    };
    let since_ms = activity.since.as_ref().and_then(unix_ms);
    let detail = Some(activity.reason).filter(|reason| reason != word);
    Ok(Statement { claim, word: word.to_owned(), detail, since_ms })
}

fn unknown(reason: &str) -> String {
    match reason.trim_start_matches("not measured: ") {
        "" => "not known there either".into(),
        reason => reason.to_owned(),
    }
}

/// Why it is degraded there, beyond what follows from its activity here too.
fn degraded(status: &str, checks: &[Check], activity: Option<&Statement>) -> Option<String> {
    if status != "DEGRADED" {
        return None;
    }
    let failed: Vec<&Check> = checks.iter().filter(|check| check.outcome == "fail").collect();
    let follows = activity.is_some_and(|said| ["stalled", "starts again"].contains(&said.word.as_str()))
        || failed.iter().any(|check| MADE_HERE.contains(&check.name.as_str()));
    let more = failed.iter().filter(|check| !MADE_HERE.contains(&check.name.as_str()));
    let said = |check: &&Check| match check.name.as_str() {
        PASSED_ON => check.detail.clone(),
        name => format!("{name}: {}", check.detail),
    };
    match more.map(said).collect::<Vec<_>>().join("; ") {
        more if !more.is_empty() => Some(more),
        _ if follows => None,
        _ => Some("is degraded there".into()),
    }
}

fn usage(work: Work) -> Usage {
    Usage {
        model: work.model,
        input_tokens: work.input_tokens,
        output_tokens: work.output_tokens,
        cache_read_tokens: work.cache_read_tokens,
        cache_write_tokens: work.cache_write_tokens,
        context_used_percent: work.context_used_percent,
        current_tool: work.current_tool,
        subagents: work.subagents,
        mcp_servers: work.mcp_servers,
    }
}
