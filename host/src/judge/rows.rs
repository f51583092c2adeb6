//! From the host's facts to the rows that a policy gets, all borrowed: nothing is copied before wasmtime copies it.

use super::bindings::exports::headcount::policy::policy as wit;
use super::{AgentVerdict, Check, Verdict};
use crate::observe::facts;

/// Calls `with` with the rows of `facts`.
pub(super) fn with_snapshot<T>(facts: &facts::Snapshot, with: impl FnOnce(&wit::Snapshot<'_>) -> T) -> T {
    let evidence: Vec<Vec<_>> = facts.agents.iter().map(|a| a.evidence.iter().map(evidence).collect()).collect();
    let gaps: Vec<Vec<_>> = facts.agents.iter().map(|a| a.unmeasured.iter().map(gap).collect()).collect();
    let agents: Vec<_> =
        facts.agents.iter().zip(&evidence).zip(&gaps).map(|((a, evidence), gaps)| agent(a, evidence, gaps)).collect();
    let sources: Vec<_> =
        facts.sources.iter().map(|s| wit::SourceState { name: &s.name, error: s.error.as_deref() }).collect();
    let session = &facts.session;
    with(&wit::Snapshot {
        now_ms: facts.now_ms,
        cores: facts.cores,
        session: wit::Session {
            id: &session.id,
            name: &session.name,
            root_path: &session.root_path,
            owner: &session.owner,
            created_at_ms: session.created_at_ms,
        },
        agents: &agents,
        sources: &sources,
    })
}

fn agent<'a>(a: &'a facts::Agent, evidence: &'a [wit::Evidence<'a>], gaps: &'a [wit::Gap<'a>]) -> wit::Agent<'a> {
    wit::Agent {
        id: &a.id,
        name: &a.name,
        specialization: a.specialization.as_deref(),
        kind: &a.kind,
        created_at_ms: a.created_at_ms,
        process: process_state(a.process),
        exit_code: a.exit_code,
        metrics: metrics(&a.metrics),
        trend: a.trend.map(trend),
        usage: a.usage.as_ref().map(usage),
        evidence,
        unmeasured: gaps,
    }
}

fn metrics(m: &facts::Metrics) -> wit::Metrics {
    wit::Metrics {
        cpu_percent: m.cpu_percent,
        memory_bytes: m.memory_bytes,
        memory_method: match m.memory_method {
            facts::MemoryMethod::Pss => wit::MemoryMethod::Pss,
            facts::MemoryMethod::Estimate => wit::MemoryMethod::Estimate,
            facts::MemoryMethod::Resident => wit::MemoryMethod::Resident,
        },
        threads: m.threads,
        processes: m.processes,
        zombies: m.zombies,
        file_descriptors: m.file_descriptors,
        fullest_fds: m.fullest_fds,
        fd_limit: m.fd_limit,
        read_bytes: m.read_bytes,
        written_bytes: m.written_bytes,
    }
}

fn trend(t: facts::Trend) -> wit::Trend {
    wit::Trend {
        window_ms: t.window_ms,
        cpu_percent_mean: t.cpu_percent_mean,
        memory_bytes_per_minute: t.memory_bytes_per_minute,
        io_bytes: t.io_bytes,
        quiet_ms: t.quiet_ms,
    }
}

fn usage(u: &facts::Usage) -> wit::Usage<'_> {
    wit::Usage {
        model: u.model.as_deref(),
        input_tokens: u.input_tokens,
        output_tokens: u.output_tokens,
        cache_read_tokens: u.cache_read_tokens,
        cache_write_tokens: u.cache_write_tokens,
        context_used_percent: u.context_used_percent,
        current_tool: u.current_tool.as_deref(),
        subagents: u.subagents,
        mcp_servers: u.mcp_servers,
    }
}

fn process_state(state: facts::ProcessState) -> wit::ProcessState {
    match state {
        facts::ProcessState::Running => wit::ProcessState::Running,
        facts::ProcessState::Sleeping => wit::ProcessState::Sleeping,
        facts::ProcessState::Stopped => wit::ProcessState::Stopped,
        facts::ProcessState::Uninterruptible => wit::ProcessState::Uninterruptible,
        facts::ProcessState::Zombie => wit::ProcessState::Zombie,
        facts::ProcessState::Gone => wit::ProcessState::Gone,
        facts::ProcessState::Unreadable => wit::ProcessState::Unreadable,
        facts::ProcessState::NotLocal => wit::ProcessState::NotLocal,
    }
}

fn evidence(e: &facts::Evidence) -> wit::Evidence<'_> {
    wit::Evidence {
        source: match e.source {
            facts::Source::OwnRecord => wit::Source::OwnRecord,
            facts::Source::Hook => wit::Source::Hook,
            facts::Source::Transcript => wit::Source::Transcript,
            facts::Source::Process => wit::Source::Process,
            facts::Source::Upstream => wit::Source::Upstream,
        },
        claim: match e.claim {
            facts::Claim::Working => wit::Claim::Working,
            facts::Claim::Waiting => wit::Claim::Waiting,
            facts::Claim::Idle => wit::Claim::Idle,
            facts::Claim::Finished => wit::Claim::Finished,
            facts::Claim::Failed => wit::Claim::Failed,
            facts::Claim::Unknown => wit::Claim::Unknown,
        },
        word: &e.word,
        detail: e.detail.as_deref(),
        at_ms: e.at_ms,
    }
}

fn gap(gap: &facts::Gap) -> wit::Gap<'_> {
    wit::Gap { field: &gap.field, reason: &gap.reason }
}

/// Calls `with` with the verdict so far, as the next policy in the chain gets it.
pub(super) fn with_verdict<T>(
    so_far: Option<&Verdict>,
    with: impl FnOnce(Option<&wit::SessionVerdictParam<'_>>) -> T,
) -> T {
    let Some(v) = so_far else { return with(None) };
    let agent_checks: Vec<Vec<_>> = v.agents.iter().map(|a| a.checks.iter().map(check).collect()).collect();
    let agents: Vec<_> = v.agents.iter().zip(&agent_checks).map(|(a, checks)| agent_verdict(a, checks)).collect();
    let checks: Vec<_> = v.checks.iter().map(check).collect();
    let advice: Vec<_> =
        v.advice.iter().map(|a| wit::AdviceParam { agent: a.agent, why: &a.why, action: &a.action }).collect();
    with(Some(&wit::SessionVerdictParam {
        agents: &agents,
        totals: v.totals,
        health: v.health,
        score: v.score,
        checks_passed: v.checks_passed,
        checks: &checks,
        advice: &advice,
    }))
}

fn agent_verdict<'a>(a: &'a AgentVerdict, checks: &'a [wit::CheckParam<'a>]) -> wit::AgentVerdictParam<'a> {
    wit::AgentVerdictParam {
        activity: a.activity,
        reason: &a.reason,
        since_ms: a.since_ms,
        decided_by: a.decided_by,
        inferred: a.inferred,
        status: a.status,
        score: a.score,
        checks_passed: a.checks_passed,
        checks,
    }
}

fn check(c: &Check) -> wit::CheckParam<'_> {
    wit::CheckParam { name: &c.name, outcome: c.outcome, detail: &c.detail, value: c.value, limit: c.limit }
}
