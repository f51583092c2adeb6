//! Reports as a person likes to read them.

use super::work::work;
use crate::config::Mode;
use crate::monitor::{FIRST_INTERVAL, Tick};
use crate::report::{
    ActivityState, AgentReport, AgentStatus, AttentionReport, CheckOutcome, MetricsReport, PolicyRow, Report,
    RunReport, SessionHealth, Sessions, SourceReport, View, word,
};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, presets};
use owo_colors::OwoColorize as _;
use std::fmt::Write as _;
use std::time::Duration;
use terminal_size::{Height, Width};
use unicode_width::UnicodeWidthStr as _;

/// What is said where no agent runs.
const NOBODY: &str = "No agent runs here: none was found and none is declared.\n\
    `headcount demo` shows what it looks like when some do; `headcount doctor` says what can be seen on this machine.";

/// What is said where none is seen, but not everything could be read.
const NOBODY_SEEN: &str = "No agent is seen here, but not everything could be read:";

/// What the table's signs mean, for the help text.
pub const LEGEND: &str = "In the table: the number after a session's health is its score, 100 at best; ~ before what an agent does was \
    concluded from its processes and not told, ~ before memory is an estimate; ? could not be measured; FDS open descriptors, THR threads, \
    PROC processes, all of the agent's whole process tree; in tokens that went to the model anew, cached those that it had read before, out \
    those that came back; −25 the points that a check costs; ! who needs somebody.";

/// Below this width a table loses its counts, and says why on a line of its own.
const NARROW: u16 = 110;

/// From this width on a table has a column for what agents say of their work; below it that stands on lines of its own.
const WIDE: u16 = 180;

/// Below this width no table can be arranged: it is printed as wide as it is.
const TOO_NARROW: u16 = 40;

/// One session with its agents.
pub fn report(report: &Report, view: &View) -> String {
    arranged(report, view, plain().width())
}

/// The same for a terminal of this width; without one nothing is broken.
fn arranged(report: &Report, view: &View, width: Option<u16>) -> String {
    let mut out = headline(report);
    if !report.agents.is_empty() {
        for line in agents(report, width).lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    } else if report.agent_count > 0 {
        let _ = writeln!(out, "  none of them matches --only");
    }
    for check in report.session_checks.iter().filter(|c| matches!(c.outcome, CheckOutcome::Fail | CheckOutcome::Warn)) {
        let _ = writeln!(out, "  {} {}", "·".yellow(), check.detail);
    }
    for attention in &report.attention {
        let agent = report.agents.iter().find(|a| Some(&a.agent_id) == attention.agent_id.as_ref());
        let who = match (agent, &attention.agent_id) {
            (Some(agent), _) => agent.label(),
            (None, None) => "the session".to_owned(),
            // Of an agent that the view leaves out, nothing is said here either.
            (None, Some(_)) if !view.only.is_empty() => continue,
            (None, Some(id)) => id.clone(),
        };
        let _ = writeln!(out, "  {} {}: {} → {}", "!".yellow(), who.bold(), attention.why, attention.action.dimmed());
    }
    if report.truncated {
        let (shown, all) = (report.agents.len(), report.agent_count);
        let _ = writeln!(out, "  {shown} of {all} agents shown: raise --limit or narrow with --only");
    }
    out.push_str(&judges(report));
    out
}

/// Who needs somebody, in each session where anyone does, or where nobody can say. `known`: whether all could be read and
/// judged.
pub fn attention(all: &[AttentionReport], reports: &[Report], known: bool) -> String {
    let mut out = String::new();
    for (attention, report) in all.iter().zip(reports) {
        if attention.needs.is_empty() && report.session_health != SessionHealth::Unknown {
            continue;
        }
        out.push_str(&headline(report));
        for need in &attention.needs {
            let who = need.who();
            let since = need.since.as_deref().map(|since| format!(" since {since}")).unwrap_or_default();
            let _ = writeln!(out, "  {} {}{since}: {} → {}", "!".yellow(), who.bold(), need.why, need.action.dimmed());
        }
        out.push_str(&judges(report));
    }
    if !known {
        out.push_str("Whether anybody else needs you is not known.\n");
    } else if out.is_empty() {
        out.push_str("Nobody needs you.\n");
    }
    out
}

/// What there is to say of the policies: who has failed, who works with an old file, and what those in shadow mode would say.
fn judges(report: &Report) -> String {
    let mut out = String::new();
    for policy in &report.policies {
        let label = if policy.mode == Mode::Shadow { "shadow policy" } else { "policy" };
        if policy.outcome != "verdict" {
            let detail = policy.detail.as_deref().unwrap_or(policy.outcome);
            let _ = writeln!(out, "  {} {label} {} did not judge: {detail}", "!".red(), policy.name);
        }
        if let (Some(since), Some(reason)) = (&policy.stale_since, &policy.stale_reason) {
            let _ = writeln!(out, "  {} {label} {} since {since}: {reason}", "stale:".yellow(), policy.name);
        }
    }
    for shadow in &report.shadow {
        let health = word(&shadow.session_health);
        let _ = writeln!(out, "  {} {} would say {health} {}", "shadow:".dimmed(), shadow.policy, shadow.session_score);
        for check in shadow.session_checks.iter().filter(|check| check.outcome != CheckOutcome::Pass) {
            let _ = writeln!(out, "    · {}", check.detail);
        }
        for agent in &shadow.agents {
            let (status, activity) = (word(&agent.status), word(&agent.activity.state));
            let failed = agent.check_results.iter().map(|check| format!("; {}: {}", check.name, check.detail));
            let failed: String = failed.collect();
            let _ = writeln!(out, "    {} {status} {activity} {}{failed}", agent.agent_id, agent.score);
        }
    }
    out
}

/// What is said where there is no session.
pub fn nobody(sources: &[SourceReport]) -> String {
    let all_read = sources.iter().all(|s| s.ok);
    format!("{}\n{}", if all_read { NOBODY } else { NOBODY_SEEN }, unread(sources))
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
    let mut line = report.session_id.bold().to_string();
    if report.session_name != report.session_id && !report.session_id.starts_with(&report.session_name) {
        let _ = write!(line, " “{}”", report.session_name);
    }
    let _ = write!(line, "  {health}");
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

/// The agents, a row each. What has no column of its own goes below: one of ten letters would take as many lines.
fn agents(report: &Report, width: Option<u16>) -> String {
    let is_table = |width: &u16| *width >= TOO_NARROW;
    let below = |limit: u16| width.is_some_and(|width| (TOO_NARROW..limit).contains(&width));
    let works = report.agents.iter().any(|agent| !work(agent).is_empty());
    let columns = Columns { counts: !below(NARROW), work: works && !below(WIDE) };
    let mut table = plain();
    if let Some(width) = width.filter(is_table) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    let mut names = vec!["", "AGENT", "STATUS", "DOING", "CPU %", "MEMORY"];
    names.extend(columns.counts.then_some(["FDS", "THR", "PROC"]).into_iter().flatten());
    names.extend(columns.work.then_some("WORK"));
    names.extend(columns.counts.then_some("WHY"));
    table.set_header(header(&names));
    for column in 4..=if columns.counts { 8 } else { 5 } {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for agent in &report.agents {
        table.add_row(row(agent, columns));
    }
    let mut out = table.to_string();
    for agent in &report.agents {
        let mut said = vec![(!columns.counts).then(|| why(agent)), (works && !columns.work).then(|| work(agent))];
        said.retain(|said| said.as_ref().is_some_and(|said| !said.is_empty()));
        for (n, said) in said.into_iter().flatten().enumerate() {
            let line = if n == 0 { format!("    {}: {said}", agent.label()) } else { format!("      {said}") };
            out.push('\n');
            out.push_str(&broken(&line, width));
        }
    }
    out
}

/// Which columns a table has beside those that each has.
#[derive(Debug, Clone, Copy)]
struct Columns {
    /// Descriptors, threads, processes, and the reason.
    counts: bool,
    /// What agents say of their work.
    work: bool,
}

/// A line, broken between words where it is wider than the terminal.
fn broken(line: &str, width: Option<u16>) -> String {
    let Some(width) = width.filter(|width| *width >= TOO_NARROW) else { return line.to_owned() };
    textwrap::fill(line, textwrap::Options::new(usize::from(width)).subsequent_indent("      "))
}

fn row(agent: &AgentReport, columns: Columns) -> Vec<Cell> {
    let m = agent.metrics.as_ref();
    let color = match agent.status {
        AgentStatus::Active => Color::Green,
        AgentStatus::Degraded => Color::Yellow,
        AgentStatus::Failed => Color::Red,
        AgentStatus::Offline | AgentStatus::Unknown => Color::DarkGrey,
    };
    let mut cells = vec![
        Cell::new("●").fg(color),
        Cell::new(agent.label()),
        Cell::new(word(&agent.status)).fg(color),
        doing(agent),
        Cell::new(m.and_then(|m| m.cpu_percent).map_or_else(|| "?".to_owned(), |cpu| format!("{cpu:.1}"))),
        Cell::new(m.map_or_else(|| "?".to_owned(), memory)),
    ];
    if columns.counts {
        let count = |n: Option<u32>| Cell::new(n.map_or_else(|| "?".to_owned(), |n| n.to_string()));
        cells.push(count(m.and_then(|m| m.file_descriptors)));
        cells.push(count(m.and_then(|m| m.thread_count)));
        cells.push(count(m.and_then(|m| m.process_count)));
    }
    cells.extend(columns.work.then(|| Cell::new(work(agent))));
    cells.extend(columns.counts.then(|| Cell::new(why(agent))));
    cells
}

/// A `~` marks what was estimated.
fn memory(m: &MetricsReport) -> String {
    let estimated = if m.memory_method == "pss" { "" } else { "~" };
    match m.memory_mb {
        Some(mb) if mb > 0.0 => format!("{estimated}{}", mebibytes(mb)),
        Some(mb) => mebibytes(mb),
        None => "?".to_owned(),
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

/// Why it does what it does, how it was started again, and the checks that it failed for another reason than that.
fn why(agent: &AgentReport) -> String {
    let reason = agent.activity.reason.as_str();
    let checks = agent.health.iter().flat_map(|h| &h.check_results);
    let failed = checks.filter(|c| matches!(c.outcome, CheckOutcome::Fail | CheckOutcome::Warn));
    let others = failed.map(|c| c.detail.as_str()).filter(|detail| reason.is_empty() || !detail.starts_with(reason));
    let run = agent.run.as_ref().and_then(RunReport::in_words);
    let all = [reason].into_iter().filter(|r| !r.is_empty()).chain(run.as_deref()).chain(others);
    all.collect::<Vec<_>>().join("; ")
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

/// A chain of policies.
pub fn policies(policies: &[PolicyRow]) -> String {
    let mut table = plain();
    table.set_header(header(&["POLICY", "VERSION", "MODE", "ON ERROR", "SHA-256", "SESSIONS", "LIMITS", "FILE"]));
    for p in policies {
        let pinned = if p.pinned { " (pinned)" } else { "" };
        let limits = &p.limits;
        table.add_row(vec![
            Cell::new(if p.refused.is_some() { "?" } else { &p.name }),
            Cell::new(&p.version),
            Cell::new(word(&p.mode)),
            Cell::new(word(&p.on_error)),
            Cell::new(format!("{:.12}{pinned}", p.digest)),
            Cell::new(if p.sessions.is_empty() { "all".to_owned() } else { p.sessions.join(", ") }),
            Cell::new(format!("{} {} {}", limits.deadline, limits.memory, limits.result)),
            Cell::new(p.file.as_deref().unwrap_or("built in")),
        ]);
    }
    format!("{table}\nLIMITS are the time for a judgement, memory, and the size of the answer.\n")
}

/// Whether `text`, long lines wrapped, can be shown again and again in one place; and how many rows it takes.
pub fn rows_on_screen(text: &str) -> Option<usize> {
    let (Width(width), Height(height)) = terminal_size::terminal_size()?;
    let plain = anstream::adapter::strip_str(text).to_string();
    let width = usize::from(width.max(1));
    let rows = plain.lines().map(|line| line.width().div_ceil(width).max(1)).sum();
    (rows < usize::from(height)).then_some(rows)
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

/// An empty table as all are.
pub fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).enforce_styling();
    if table.width().is_some_and(|width| width >= TOO_NARROW) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table
}

/// Keeps what stands in these columns in one piece where the terminal is narrow: it is to be copied, or read at a glance.
pub fn unbroken(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// A time as RFC 3339 has it, short: the minute where it is on the same day as `now`, else the day; UTC.
pub fn short(time: &str, now: &str) -> String {
    match (time.get(..10), time.get(11..16)) {
        (day, Some(minute)) if day == now.get(..10) => format!("{minute}Z"),
        (Some(day), _) => day.to_owned(),
        (None, _) => time.to_owned(),
    }
}

/// The cells of those columns that are shown.
pub fn kept(cells: Vec<Cell>, shown: &[bool]) -> impl Iterator<Item = Cell> {
    cells.into_iter().zip(shown).filter(|(_, shown)| **shown).map(|(cell, _)| cell)
}

/// The names of columns.
pub fn header(names: &[&str]) -> Vec<Cell> {
    names.iter().map(|name| Cell::new(name).add_attribute(Attribute::Dim)).collect()
}

fn mebibytes(mb: f64) -> String {
    match mb {
        mb if mb >= 1024.0 => format!("{:.1} GiB", mb / 1024.0),
        mb if mb >= 10.0 || mb == 0.0 => format!("{mb:.0} MiB"),
        mb => format!("{mb:.1} MiB"),
    }
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
