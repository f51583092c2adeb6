//! Facts and judgement to a report.

use super::policies::{policy, shadow};
use super::view::{Cursor, View};
use super::{
    ActivityReport, ActivityState, AgentReport, AgentStatus, Attention, CheckOutcome, CheckResult, DecidedBy,
    HealthReport, HealthStatus, MetricsReport, Report, RunReport, SCHEMA, SessionHealth, SessionMetrics, SourceReport,
    TerminalReport, clean,
};
use crate::config::Mode;
use crate::judge::{self, Evaluation, Judgement, Outcome, Verdict};
use crate::observe::facts::{self, MemoryMethod, Origin, ProcessState, Snapshot, Usage};
use std::fmt::Write as _;

/// The check that is there where a policy has failed that must not.
const WITHHELD: &str = "policy";

/// The report of one session as `view` wants it.
pub fn report(facts: &Snapshot, judgement: &Judgement, view: &View, age_ms: u64) -> Report {
    let verdict = judgement.verdict.as_ref();
    let page = Page::of(facts, verdict, view);
    let observed_at = time(facts.now_ms);
    let agents = page.agents.iter().map(|&i| agent(facts, judgement, i, view, &observed_at)).collect();
    Report {
        schema: SCHEMA,
        instance: facts.instance,
        success: true,
        session_id: facts.session.id.clone(),
        session_name: clean(&facts.session.name),
        root_path: clean(&facts.session.root_path),
        created_at: facts.session.created_at_ms.map(time),
        age_ms,
        agent_count: facts.agents.len(),
        partial: partial(facts, judgement),
        truncated: page.next.is_some(),
        next_cursor: page.next.map(|c| c.to_string()),
        session_metrics: verdict.map(|v| session_metrics(&v.totals)),
        session_health: judgement.health().map_or(SessionHealth::Unknown, session_health),
        session_score: judgement.score(),
        session_checks: session_checks(judgement),
        attention: session_attention(facts, judgement, view.limit),
        agents,
        sources: facts.sources.iter().map(source).collect(),
        policies: judgement.policies.iter().map(policy).collect(),
        shadow: shadow(facts, &judgement.policies, verdict, view.limit),
        observed_at,
    }
}

/// The agents that a view lists.
struct Page {
    agents: Vec<usize>,
    next: Option<Cursor>,
}

impl Page {
    fn of(facts: &Snapshot, verdict: Option<&Verdict>, view: &View) -> Self {
        let wanted = |&i: &usize| {
            let (status, activity) = status_and_activity(verdict, i);
            view.only.is_empty() || view.only.iter().any(|filter| filter.matches(status, activity))
        };
        let after = |&i: &usize| view.cursor.as_ref().is_none_or(|cursor| Cursor::at(&facts.agents[i]) > *cursor);
        let mut agents: Vec<usize> =
            (0..facts.agents.len()).filter(after).filter(wanted).take(view.limit.saturating_add(1)).collect();
        let next = if agents.len() > view.limit {
            agents.truncate(view.limit);
            agents.last().map(|&i| Cursor::at(&facts.agents[i]))
        } else {
            None
        };
        Self { agents, next }
    }
}

pub(super) fn status_and_activity(verdict: Option<&Verdict>, i: usize) -> (AgentStatus, ActivityState) {
    match verdict {
        Some(v) => (agent_status(v.agents[i].status), activity_state(v.agents[i].activity)),
        None => (AgentStatus::Unknown, ActivityState::Unknown),
    }
}

/// Ended agents have nothing left to measure, and those without processes of their own no figures. What an agent does not record
/// of its work, and what is never read by design, has not failed to be read. All else should have no gap.
fn partial(facts: &Snapshot, judgement: &Judgement) -> bool {
    let has_failed = |gap: &facts::Gap| !gap.by_design && !Usage::has(&gap.field);
    let has_gap = |a: &facts::Agent| match a.process {
        ProcessState::Gone | ProcessState::Zombie => false,
        ProcessState::NotLocal => a.unmeasured.iter().any(|gap| gap.field != "process" && has_failed(gap)),
        _ => a.unmeasured.iter().any(has_failed),
    };
    judgement.verdict.is_none()
        || judgement.policies.iter().any(|p| p.mode == Mode::Enforce && p.outcome != Outcome::Verdict)
        || facts.sources.iter().any(|s| s.error.is_some())
        || facts.agents.iter().any(has_gap)
}

fn agent(facts: &Snapshot, judgement: &Judgement, i: usize, view: &View, observed_at: &str) -> AgentReport {
    let fact = &facts.agents[i];
    let verdict = judgement.verdict.as_ref().map(|v| &v.agents[i]);
    let iterm_tab_id = fact.terminal.as_ref().filter(|t| t.app == "iterm2").map(|t| clean(&t.id));
    AgentReport {
        agent_id: fact.id.clone(),
        agent_name: clean(&fact.name),
        specialization: fact.specialization.as_deref().map(clean),
        kind: clean(&fact.kind),
        status: verdict.map_or(AgentStatus::Unknown, |v| agent_status(v.status)),
        created_at: fact.created_at_ms.map(time),
        process_id: fact.process_id,
        identity: fact.identity,
        via: fact.via.clone(),
        iterm_tab_id,
        terminal: fact.terminal.as_ref().map(|t| TerminalReport { app: clean(&t.app), id: clean(&t.id) }),
        activity: verdict.map_or_else(|| not_judged(&judgement.policies), |verdict| dated(activity(verdict), fact)),
        work: fact.usage.as_ref().map(work),
        run: fact.run.map(RunReport::new),
        metrics: view.metrics.then(|| metrics(fact)),
        health: view.health.then(|| HealthReport {
            status: verdict.map_or(HealthStatus::Unknown, |v| health_status(v.status)),
            score: verdict.map(|v| v.score),
            last_check: observed_at.to_owned(),
            check_results: verdict.map(|v| v.checks.iter().map(check).collect()).unwrap_or_default(),
        }),
    }
}

pub(super) fn activity(v: &judge::AgentVerdict) -> ActivityReport {
    ActivityReport {
        state: activity_state(v.activity),
        reason: clean(&v.reason),
        since: v.since_ms.map(|ms| time(whole(ms))),
        decided_by: decided_by(v.decided_by),
        inferred: v.inferred,
        undated: false,
    }
}

/// What an agent does, marked where its own record has decided and does not say since when.
fn dated(activity: ActivityReport, fact: &facts::Agent) -> ActivityReport {
    let undated = fact.unmeasured.iter().any(|gap| gap.field == "since");
    let by_record = matches!(activity.decided_by, DecidedBy::OwnRecord | DecidedBy::Upstream);
    ActivityReport { undated: undated && by_record, ..activity }
}

/// What an agent does where no policy came to a verdict: nobody knows, and why.
fn not_judged(policies: &[Evaluation]) -> ActivityReport {
    let reason = match policies.iter().rev().find(|policy| policy.mode == Mode::Enforce) {
        Some(policy) => format!("not judged: policy {}: {}", policy.name, policy.outcome.name()),
        None => "not judged: there is no policy".to_owned(),
    };
    ActivityReport {
        state: ActivityState::Unknown,
        reason: clean(&reason),
        since: None,
        decided_by: DecidedBy::Process,
        inferred: false,
        undated: false,
    }
}

/// What an agent says of its work. It says it itself, so its words are cleaned as all others are.
fn work(usage: &Usage) -> Usage {
    Usage {
        model: usage.model.as_deref().map(clean),
        current_tool: usage.current_tool.as_deref().map(clean),
        ..usage.clone()
    }
}

fn metrics(fact: &facts::Agent) -> MetricsReport {
    let m = &fact.metrics;
    MetricsReport {
        cpu_percent: m.cpu_percent.map(hundredths),
        memory_mb: m.memory_bytes.map(|b| mebibytes(b as f64)),
        memory_method: match m.memory_method {
            MemoryMethod::Pss => "pss",
            MemoryMethod::Estimate => "estimate",
            MemoryMethod::Resident => "resident",
        },
        file_descriptors: m.file_descriptors,
        thread_count: m.threads,
        process_count: m.processes,
        read_mb: m.read_bytes.map(|b| mebibytes(b as f64)),
        written_mb: m.written_bytes.map(|b| mebibytes(b as f64)),
        unmeasured: fact.unmeasured.iter().map(|gap| (reported_name(&gap.field), clean(&gap.reason))).collect(),
        expected: fact.unmeasured.iter().filter(|gap| !gap.by_design).map(|gap| reported_name(&gap.field)).collect(),
    }
}

/// The name that a fact's field has in the report.
fn reported_name(field: &str) -> String {
    match field {
        "cpu-percent" => "cpu_percent",
        "memory-bytes" => "memory_mb",
        "file-descriptors" => "file_descriptors",
        "threads" => "thread_count",
        "processes" => "process_count",
        "read-bytes" => "read_mb",
        "written-bytes" => "written_mb",
        other => return clean(other).replace('-', "_"),
    }
    .to_owned()
}

pub(super) fn session_metrics(t: &judge::Totals) -> SessionMetrics {
    SessionMetrics {
        total_cpu_percent: hundredths(t.cpu_percent),
        total_memory_mb: mebibytes(t.memory_bytes),
        total_file_descriptors: whole(t.file_descriptors),
        total_threads: whole(t.threads),
        total_processes: whole(t.processes),
        active_agents: t.active,
        degraded_agents: t.degraded,
        failed_agents: t.failed,
        offline_agents: t.offline,
        unknown_agents: t.unknown,
        waiting_agents: t.waiting,
        unmeasured_agents: t.unmeasured,
    }
}

/// The session's checks; first of all that a policy which must judge has failed.
fn session_checks(judgement: &Judgement) -> Vec<CheckResult> {
    let withheld = judgement.withheld.as_ref().map(|why| CheckResult {
        name: WITHHELD.into(),
        outcome: CheckOutcome::Unknown,
        detail: clean(why),
        value: None,
        limit: None,
    });
    let checks = judgement.verdict.iter().flat_map(|verdict| verdict.checks.iter().map(check));
    withheld.into_iter().chain(checks).collect()
}

fn session_attention(facts: &Snapshot, judgement: &Judgement, limit: usize) -> Vec<Attention> {
    let withheld = judgement.withheld.as_ref().map(|why| Attention {
        agent_id: None,
        why: clean(why),
        action: "see `headcount doctor`; mend the policy, or let its failures pass with `on_error = \"open\"`".into(),
    });
    let advice = judgement.verdict.iter().flat_map(|verdict| attention(facts, verdict, limit));
    withheld.into_iter().chain(advice).collect()
}

/// Urgent ones first, as the policy put them; not more than agents are listed.
pub(super) fn attention(facts: &Snapshot, verdict: &Verdict, limit: usize) -> Vec<Attention> {
    let row = |advice: &judge::Advice| Attention {
        agent_id: advice.agent.map(|i| facts.agents[i as usize].id.clone()),
        why: clean(&advice.why),
        action: to_do(&advice.action, &facts.session, advice.agent.map(|i| &facts.agents[i as usize])),
    };
    verdict.advice.iter().take(limit).map(row).collect()
}

/// An action that can be typed as it stands: no policy knows the process id, nor what was registered.
fn to_do(action: &str, session: &facts::Session, agent: Option<&facts::Agent>) -> String {
    let mut action = clean(action);
    let Some(agent) = agent else { return action };
    if let Some(pid) = agent.process_id {
        action = action.replace("PID", &pid.to_string());
    }
    if agent.origin == Origin::Registered && action.ends_with("remove it") {
        let name = shell_word(&clean(&agent.name));
        let _ = write!(action, ": headcount unregister --session {} --name {name}", session.id);
    }
    action
}

/// `text` as one word of a shell's command line.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/@+".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

pub(super) fn check(c: &judge::Check) -> CheckResult {
    CheckResult {
        name: clean(&c.name),
        outcome: match c.outcome {
            judge::CheckOutcome::Pass => CheckOutcome::Pass,
            judge::CheckOutcome::Warn => CheckOutcome::Warn,
            judge::CheckOutcome::Fail => CheckOutcome::Fail,
            judge::CheckOutcome::Unknown => CheckOutcome::Unknown,
        },
        detail: clean(&c.detail),
        value: c.value.map(hundredths),
        limit: c.limit.map(hundredths),
    }
}

/// One source as it is shown.
pub fn source(s: &facts::SourceState) -> SourceReport {
    SourceReport { name: clean(&s.name), ok: s.error.is_none(), error: s.error.as_deref().map(clean) }
}

pub(super) fn agent_status(status: judge::Status) -> AgentStatus {
    match status {
        judge::Status::Active => AgentStatus::Active,
        judge::Status::Degraded => AgentStatus::Degraded,
        judge::Status::Failed => AgentStatus::Failed,
        judge::Status::Offline => AgentStatus::Offline,
        judge::Status::Unknown => AgentStatus::Unknown,
    }
}

fn health_status(status: judge::Status) -> HealthStatus {
    match status {
        judge::Status::Active | judge::Status::Offline => HealthStatus::Healthy,
        judge::Status::Degraded => HealthStatus::Degraded,
        judge::Status::Failed => HealthStatus::Failed,
        judge::Status::Unknown => HealthStatus::Unknown,
    }
}

fn activity_state(activity: judge::Activity) -> ActivityState {
    match activity {
        judge::Activity::Working => ActivityState::Working,
        judge::Activity::WaitingForInput => ActivityState::WaitingForInput,
        judge::Activity::Idle => ActivityState::Idle,
        judge::Activity::Stalled => ActivityState::Stalled,
        judge::Activity::Finished => ActivityState::Finished,
        judge::Activity::Dead => ActivityState::Dead,
        judge::Activity::Unknown => ActivityState::Unknown,
    }
}

fn decided_by(source: judge::Source) -> DecidedBy {
    match source {
        judge::Source::OwnRecord => DecidedBy::OwnRecord,
        judge::Source::Hook => DecidedBy::Hook,
        judge::Source::Transcript => DecidedBy::Transcript,
        judge::Source::Process => DecidedBy::Process,
        judge::Source::Upstream => DecidedBy::Upstream,
    }
}

pub(super) fn session_health(health: judge::Health) -> SessionHealth {
    match health {
        judge::Health::Empty => SessionHealth::Empty,
        judge::Health::Healthy => SessionHealth::Healthy,
        judge::Health::Degraded => SessionHealth::Degraded,
        judge::Health::Critical => SessionHealth::Critical,
        judge::Health::Unknown => SessionHealth::Unknown,
    }
}

/// RFC 3339 in UTC, to the millisecond. Times beyond year 9999, which only a broken clock gives, stop there.
pub(crate) fn time(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    format!("{time:.3}")
}

/// Two decimals, where there can be any.
fn hundredths(value: f64) -> f64 {
    if value.abs() < 1e13 { (value * 100.0).round() / 100.0 } else { value }
}

fn mebibytes(bytes: f64) -> f64 {
    hundredths(bytes / f64::from(1 << 20))
}

/// The judge's counts and times are floats without a fraction; the check of verdicts keeps them finite.
fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}
