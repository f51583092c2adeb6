//! Reports as a person likes to read them.

use crate::monitor::{FIRST_INTERVAL, Tick};
use crate::report::{
    ActivityState, AgentReport, AgentStatus, CheckOutcome, Report, SessionHealth, Sessions, SourceReport, View, word,
};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use owo_colors::OwoColorize as _;
use std::fmt::Write as _;
use std::time::Duration;
use unicode_width::UnicodeWidthStr as _;

/// What is said where no agent runs.
const NOBODY: &str = "No agent runs here: none was found and none is declared.\n\
    `headcount demo` shows what it looks like when some do; `headcount doctor` says what can be seen on this machine.";

/// One session with its agents.
pub fn report(report: &Report, view: &View) -> String {
    let mut out = headline(report);
    if !report.agents.is_empty() {
        for line in agents(report).lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    let shown: Vec<&str> = report.agents.iter().map(|a| a.agent_id.as_str()).collect();
    for attention in &report.attention {
        let who = attention.agent_id.as_deref().unwrap_or("the session");
        // Of an agent that the view leaves out, nothing is said here either.
        if view.only.is_empty() || attention.agent_id.is_none() || shown.contains(&who) {
            let _ =
                writeln!(out, "  {} {}: {}. {}", "!".yellow(), who.bold(), attention.why, attention.action.dimmed());
        }
    }
    if report.truncated {
        let _ = writeln!(out, "  … more agents: raise --limit or narrow with --only");
    }
    out.push_str(&unread(&report.sources));
    for policy in report.policies.iter().filter(|p| p.outcome != "verdict") {
        let detail = policy.detail.as_deref().unwrap_or(policy.outcome);
        let _ = writeln!(out, "  {} policy {}: {detail}", "not judged:".red(), policy.name);
    }
    out
}

/// What is said where there is no session.
pub fn nobody(sources: &[SourceReport]) -> String {
    format!("{NOBODY}\n{}", unread(sources))
}

/// The sources that could not be read.
pub fn unread(sources: &[SourceReport]) -> String {
    let failed = sources.iter().filter(|s| !s.ok);
    let line = |s: &SourceReport| {
        format!("  {} {}: {}\n", "not read:".yellow(), s.name, s.error.as_deref().unwrap_or_default())
    };
    failed.map(line).collect()
}

fn headline(report: &Report) -> String {
    let health = word(&report.session_health);
    let health = match report.session_health {
        SessionHealth::Healthy => health.green().to_string(),
        SessionHealth::Degraded => health.yellow().to_string(),
        SessionHealth::Critical => health.red().to_string(),
        SessionHealth::Empty | SessionHealth::Unknown => health.dimmed().to_string(),
    };
    let mut line = format!("{}  {health}", report.session_id.bold());
    if let Some(score) = report.session_score {
        let _ = write!(line, " {score}");
    }
    let _ = write!(line, "  {}", plural(report.agent_count, "agent"));
    if let Some(m) = &report.session_metrics {
        if m.waiting_agents > 0 {
            let _ = write!(line, ", {}", format!("{} waiting for you", m.waiting_agents).yellow());
        }
        let _ = write!(line, "  {:.1} % CPU  {}", m.total_cpu_percent, mebibytes(m.total_memory_mb));
    }
    if !report.root_path.is_empty() {
        let _ = write!(line, "  {}", report.root_path.dimmed());
    }
    line.push('\n');
    line
}

fn agents(report: &Report) -> String {
    let mut table = plain();
    table.set_header(header(&["", "AGENT", "STATUS", "DOING", "CPU %", "MEMORY", "FDS", "THR", "PROC", "WHY"]));
    for column in 4..=8 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for agent in &report.agents {
        table.add_row(row(agent));
    }
    table.to_string()
}

fn row(agent: &AgentReport) -> Vec<Cell> {
    let m = agent.metrics.as_ref();
    let color = match agent.status {
        AgentStatus::Active => Color::Green,
        AgentStatus::Degraded => Color::Yellow,
        AgentStatus::Failed => Color::Red,
        AgentStatus::Offline | AgentStatus::Unknown => Color::DarkGrey,
    };
    let count = |n: Option<u32>| Cell::new(n.map_or_else(|| "?".to_owned(), |n| n.to_string()));
    vec![
        Cell::new("●").fg(color),
        Cell::new(name(agent)),
        Cell::new(word(&agent.status)).fg(color),
        doing(agent),
        Cell::new(m.and_then(|m| m.cpu_percent).map_or_else(|| "?".to_owned(), |cpu| format!("{cpu:.1}"))),
        Cell::new(m.and_then(|m| m.memory_mb).map_or_else(|| "?".to_owned(), mebibytes)),
        count(m.and_then(|m| m.file_descriptors)),
        count(m.and_then(|m| m.thread_count)),
        count(m.and_then(|m| m.process_count)),
        Cell::new(why(agent)),
    ]
}

/// The name, and the id where the name does not say it already.
fn name(agent: &AgentReport) -> String {
    let specialization = agent.specialization.as_deref().map(|s| format!(" ({s})")).unwrap_or_default();
    match agent.process_id {
        Some(pid) => format!("{}{specialization} {pid}", agent.agent_name),
        None => format!("{}{specialization}", agent.agent_name),
    }
}

/// A `~` marks what was concluded and not told.
fn doing(agent: &AgentReport) -> Cell {
    let inferred = if agent.activity.inferred { "~" } else { "" };
    let text = format!("{inferred}{}", word(&agent.activity.state).replace('_', " "));
    match agent.activity.state {
        ActivityState::WaitingForInput => Cell::new(text).fg(Color::Yellow).add_attribute(Attribute::Bold),
        ActivityState::Stalled | ActivityState::Dead => Cell::new(text).fg(Color::Red),
        _ => Cell::new(text),
    }
}

/// Why it does what it does, and the checks that it failed for another reason than that.
fn why(agent: &AgentReport) -> String {
    let reason = agent.activity.reason.as_str();
    let checks = agent.health.iter().flat_map(|h| &h.check_results);
    let failed = checks.filter(|c| matches!(c.outcome, CheckOutcome::Fail | CheckOutcome::Warn));
    let others = failed.map(|c| c.detail.as_str()).filter(|detail| reason.is_empty() || !detail.starts_with(reason));
    [reason].into_iter().filter(|r| !r.is_empty()).chain(others).collect::<Vec<_>>().join("; ")
}

/// The list of sessions.
pub fn sessions(sessions: &Sessions) -> String {
    let mut table = plain();
    table.set_header(header(&["SESSION", "HEALTH", "SCORE", "AGENTS", "WAITING", "OWNER", "ROOT"]));
    for s in &sessions.sessions {
        table.add_row(vec![
            Cell::new(&s.session_id),
            Cell::new(word(&s.session_health)),
            Cell::new(s.session_score.map_or_else(|| "?".to_owned(), |n| n.to_string())),
            Cell::new(s.agent_count),
            Cell::new(s.waiting_agents.map_or_else(|| "?".to_owned(), |n| n.to_string())),
            Cell::new(&s.owner),
            Cell::new(&s.root_path),
        ]);
    }
    table.to_string()
}

/// How many rows of the terminal `text` takes, long lines wrapped; one for each line where the width is not known.
pub fn rows(text: &str) -> usize {
    let width = Table::new().width().map_or(usize::MAX, |w| usize::from(w.max(1)));
    let plain = anstream::adapter::strip_str(text).to_string();
    plain.lines().map(|line| line.width().div_ceil(width).max(1)).sum()
}

/// How long each part of one look took.
pub fn timings(tick: &Tick, report: Duration, total: Duration) -> String {
    let micros = |d: Duration| format!("{} µs", d.as_micros());
    let mut table = plain();
    let mut rows = vec![
        ("observing (second sample)".to_owned(), micros(tick.timings.observe)),
        ("judging all sessions".to_owned(), micros(tick.timings.judge)),
    ];
    rows.extend(tick.sessions.iter().map(|s| (format!("  judging {}", s.facts.session.id), micros(s.judging))));
    rows.push(("writing the report".to_owned(), micros(report)));
    rows.push(("waiting for the second sample".to_owned(), micros(FIRST_INTERVAL)));
    rows.push(("all, with starting up".to_owned(), micros(total)));
    for (what, took) in rows {
        table.add_row(vec![Cell::new(what), Cell::new(took).set_alignment(CellAlignment::Right)]);
    }
    table.to_string()
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).enforce_styling();
    table
}

fn header(names: &[&str]) -> Vec<Cell> {
    names.iter().map(|name| Cell::new(name).add_attribute(Attribute::Dim)).collect()
}

fn mebibytes(mb: f64) -> String {
    if mb >= 1024.0 { format!("{:.1} GiB", mb / 1024.0) } else { format!("{mb:.0} MiB") }
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
