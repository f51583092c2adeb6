//! `headcount status`: one look, two samples.

use super::interrupt::INTERRUPTED;
use super::look::{Look, look};
use super::{Noted, note, printer, table};
use crate::authoring::snapshot;
use crate::monitor::{Seen, Tick};
use crate::query::{self, QueryError};
use crate::report::{self, AttentionReport, Filter, Report, SessionHealth, SourceReport, View};
use crate::setup::{Rosters, Setup};
use crate::store::audit::Outcome;
use anyhow::{anyhow, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = table::LEGEND)]
pub struct Args {
    /// The session's id, or its name where that is unique [default: all sessions]
    session: Option<String>,
    /// Print JSON (schema headcount.report/1, or headcount.reports/1 without a session)
    #[arg(long)]
    json: bool,
    /// Read this roster too; may be given several times
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
    /// List only agents with this status or activity; may be given several times
    #[arg(long, value_name = "WORD", ignore_case = true,
          value_parser = PossibleValuesParser::new(Filter::words()).try_map(|word| word.parse::<Filter>()))]
    only: Vec<Filter>,
    /// List this many agents of a session at the most, up to 5000
    #[arg(long, value_name = "N", default_value_t = report::DEFAULT_LIMIT as u64,
          value_parser = clap::value_parser!(u64).range(1..=report::MAX_LIMIT as u64))]
    limit: u64,
    /// Show only who needs somebody; exit code 1 if anyone does or it is not known, 0 if nobody (JSON: schema headcount.attention/1, or
    /// headcount.attentions/1 without a session)
    #[arg(long, conflicts_with_all = ["only", "limit"])]
    attention: bool,
    /// Save the facts of the session to this file, to try policies on (schema headcount.snapshot/1)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Make a policy that cannot be loaded an error
    #[arg(long)]
    strict: bool,
    /// Say how long each part took
    #[arg(long)]
    timings: bool,
}

/// All sessions.
#[derive(Serialize)]
struct Reports {
    schema: &'static str,
    reports: Vec<Report>,
    sources: Vec<SourceReport>,
}

/// Who needs somebody, in all sessions where anyone does, or where that is not known.
#[derive(Serialize)]
struct Attentions {
    schema: &'static str,
    sessions: Vec<AttentionReport>,
    sources: Vec<SourceReport>,
}

pub fn run(setup: Setup, args: Args) -> anyhow::Result<ExitCode> {
    let setup = &setup.strict(args.strict);
    let view = View { only: args.only, limit: View::check_limit(args.limit)?, ..View::default() };
    let started = setup.clock.now().steady;
    let rosters = Rosters { files: args.roster, ..Rosters::default() };
    let Some(Look { tick, .. }) = &look(setup, rosters)? else { return Ok(ExitCode::from(INTERRUPTED)) };
    let asked = args.session.as_deref();
    let found = find(tick, asked);
    let reporting = setup.clock.now().steady;
    let found = found.map(|seen| {
        let report = |s: &&Arc<Seen>| report::report(&s.facts, &s.judgement, &view, 0);
        (seen.iter().map(report).collect::<Vec<_>>(), seen)
    });
    let now = setup.clock.now().steady;
    let count = |reports: &[Report]| reports.iter().map(|r| r.agents.len()).sum::<usize>();
    let recorded = match (&args.record, &found) {
        (Some(file), Ok((_, seen))) => record(file, seen),
        _ => Ok(()),
    };
    let noted = Noted {
        command: "status",
        session: asked.map(report::clean),
        outcome: match (&found, &recorded) {
            (Err(error), _) => error.outcome(),
            (_, Err(_)) => Outcome::Failed,
            (Ok((reports, _)), Ok(())) => outcome(reports),
        },
        agents: u32::try_from(found.as_ref().map_or(0, |(reports, _)| count(reports))).unwrap_or(u32::MAX),
        micros: query::micros(Some(tick), now - reporting, now - started),
    };
    note(setup, noted);
    let (reports, seen) = found?;
    recorded?;
    let code = if args.attention {
        attention(tick, &seen, &reports, args.json, asked.is_some())?
    } else {
        let code = exit_code(tick, &reports, asked.is_some());
        print(tick, reports, args.json, asked.is_some(), &view)?;
        code
    };
    if args.timings {
        printer::line(&table::timings(tick, now - reporting, now - started))?;
    }
    Ok(code)
}

fn find<'t>(tick: &'t Tick, asked: Option<&str>) -> Result<Vec<&'t Arc<Seen>>, QueryError> {
    match asked {
        Some(asked) => Ok(vec![query::find(tick, asked)?]),
        None => Ok(tick.sessions.iter().collect()),
    }
}

/// Saves the facts of the only session.
fn record(file: &Path, seen: &[&Arc<Seen>]) -> anyhow::Result<()> {
    let shown = report::clean(&file.display().to_string());
    match seen {
        [only] => snapshot::record(file, &only.facts).map_err(|error| anyhow!("{shown} cannot be written: {error}")),
        [] => bail!("there is no session to record; `headcount demo` shows what one looks like"),
        several => {
            let ids: Vec<_> = several.iter().map(|seen| seen.facts.session.id.as_str()).collect();
            bail!("--record saves one session, so name one of them: {}", ids.join(", "))
        }
    }
}

fn outcome(reports: &[Report]) -> Outcome {
    if reports.iter().any(|r| r.partial) { Outcome::Partial } else { Outcome::Ok }
}

fn print(tick: &Tick, mut reports: Vec<Report>, json: bool, one: bool, view: &View) -> anyhow::Result<()> {
    match (json, one) {
        (true, true) => printer::json(&reports.remove(0)),
        (true, false) => printer::json(&Reports { schema: "headcount.reports/1", reports, sources: sources(tick) }),
        (false, _) if tick.sessions.is_empty() => Ok(printer::write(&table::nobody(&sources(tick)))?),
        (false, _) => {
            let sources = concerned(tick, &reports, one);
            printer::write(&reports.iter().map(|r| table::report(r, view)).collect::<Vec<_>>().join("\n"))?;
            Ok(printer::write(&table::unread(&sources))?)
        }
    }
}

/// Who needs somebody now.
fn attention(tick: &Tick, seen: &[&Arc<Seen>], reports: &[Report], json: bool, one: bool) -> anyhow::Result<ExitCode> {
    let needs = |seen: &&Arc<Seen>| seen.standing().attention(seen.standing().pressing());
    let mut all: Vec<AttentionReport> = seen.iter().map(needs).collect();
    let anybody = all.iter().any(|attention| !attention.needs.is_empty());
    let judged = all.iter().all(|attention| attention.session_health != SessionHealth::Unknown);
    let sources_concerned = concerned(tick, reports, one);
    let known = judged && all_read(&sources_concerned);
    if json && one {
        printer::json(&all.remove(0))?;
    } else if json {
        all.retain(|attention| !attention.needs.is_empty() || attention.session_health == SessionHealth::Unknown);
        printer::json(&Attentions { schema: "headcount.attentions/1", sessions: all, sources: sources(tick) })?;
    } else {
        printer::write(&table::attention(&all, reports, known))?;
        printer::write(&table::unread(&sources_concerned))?;
    }
    Ok(ExitCode::from(u8::from(anybody || !known)))
}

fn sources(tick: &Tick) -> Vec<SourceReport> {
    tick.sources.iter().map(report::source).collect()
}

/// The sources that may have agents of what was asked for: all, unless it was a single session.
fn concerned(tick: &Tick, reports: &[Report], one: bool) -> Vec<SourceReport> {
    match reports {
        [only] if one => only.sources.clone(),
        _ => sources(tick),
    }
}

fn all_read(sources: &[SourceReport]) -> bool {
    sources.iter().all(|source| source.ok)
}

/// 0 only where all is known to be well: what could not be read may have agents that are not.
fn exit_code(tick: &Tick, reports: &[Report], one: bool) -> ExitCode {
    let well = |r: &Report| matches!(r.session_health, SessionHealth::Healthy | SessionHealth::Empty);
    ExitCode::from(u8::from(!(all_read(&concerned(tick, reports, one)) && reports.iter().all(well))))
}
