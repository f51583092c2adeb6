//! A report in words: for readers of text, people and models alike. Short, the urgent things first.

use super::{AgentReport, Report, word};
use crate::config::Mode;
use std::fmt::Write as _;

/// Agents that are named one by one; more would drown what matters.
const LINES: usize = 50;

/// The report in words.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_summary(&mut text, report);
    text
}

fn write_summary(out: &mut String, report: &Report) -> std::fmt::Result {
    write!(out, "Session {}: {}", report.session_id, word(&report.session_health))?;
    if let Some(score) = report.session_score {
        write!(out, ", score {score}")?;
    }
    write!(out, ", {}", count(report.agent_count, "agent"))?;
    if let Some(m) = &report.session_metrics {
        let parts = [
            (m.active_agents, "active"),
            (m.degraded_agents, "degraded"),
            (m.failed_agents, "failed"),
            (m.offline_agents, "offline"),
            (m.unknown_agents, "unknown"),
            (m.waiting_agents, "waiting for input"),
        ];
        let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if !parts.is_empty() {
            write!(out, " ({})", parts.join(", "))?;
        }
        write!(out, "; {:.1} % CPU, {:.0} MiB", m.total_cpu_percent, m.total_memory_mb)?;
    }
    writeln!(out, ".")?;
    for a in report.attention.iter().take(LINES) {
        writeln!(out, "! {}: {}. {}", a.agent_id.as_deref().unwrap_or("session"), a.why, a.action)?;
    }
    for agent in report.agents.iter().take(LINES) {
        write_agent(out, agent)?;
    }
    let left_out = report.agents.len().saturating_sub(LINES);
    if left_out > 0 {
        writeln!(out, "… and {left_out} more in the structured content.")?;
    }
    if let Some(cursor) = &report.next_cursor {
        writeln!(out, "There are more agents: ask again with cursor \"{cursor}\".")?;
    }
    for source in report.sources.iter().filter(|s| !s.ok) {
        writeln!(out, "Not read: {}: {}", source.name, source.error.as_deref().unwrap_or("no reason known"))?;
    }
    for policy in report.policies.iter().filter(|p| p.mode == Mode::Enforce) {
        if policy.outcome != "verdict" {
            writeln!(
                out,
                "Policy {} did not judge: {}",
                policy.name,
                policy.detail.as_deref().unwrap_or(policy.outcome)
            )?;
        }
        if let (Some(since), Some(reason)) = (&policy.stale_since, &policy.stale_reason) {
            writeln!(out, "Policy {} is stale since {since}: {reason}", policy.name)?;
        }
    }
    Ok(())
}

fn write_agent(out: &mut String, agent: &AgentReport) -> std::fmt::Result {
    write!(
        out,
        "- {} ({}): {}, {}",
        agent.agent_id,
        agent.agent_name,
        word(&agent.status),
        word(&agent.activity.state)
    )?;
    if agent.activity.inferred {
        write!(out, " (inferred)")?;
    }
    if !agent.activity.reason.is_empty() {
        write!(out, ": {}", agent.activity.reason)?;
    }
    if let Some(m) = &agent.metrics
        && let (Some(cpu), Some(memory)) = (m.cpu_percent, m.memory_mb)
    {
        write!(out, "; {cpu:.1} % CPU, {memory:.0} MiB")?;
    }
    writeln!(out)
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
