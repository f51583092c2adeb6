//! `headcount sessions`.

use super::interrupt::INTERRUPTED;
use super::look::{Look, look};
use super::{Noted, note, printer, table};
use crate::query;
use crate::report;
use crate::setup::{Rosters, Setup};
use crate::store::audit::Outcome;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON (schema headcount.sessions/1)
    #[arg(long)]
    json: bool,
    /// Read this roster too; may be given several times
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let started = setup.clock.now().steady;
    let rosters = Rosters { files: args.roster.clone(), ..Rosters::default() };
    let Some(Look { tick, .. }) = &look(setup, rosters)? else { return Ok(ExitCode::from(INTERRUPTED)) };
    let sessions = report::sessions(tick.sessions.iter().map(|s| (&s.facts, &s.judgement)), &tick.sources);
    let all_read = sessions.sources.iter().all(|s| s.ok);
    let noted = Noted {
        command: "sessions",
        session: None,
        outcome: if all_read { Outcome::Ok } else { Outcome::Partial },
        agents: 0,
        micros: query::micros(Some(tick), Duration::ZERO, setup.clock.now().steady - started),
    };
    note(setup, noted);
    if args.json {
        printer::json(&sessions)?;
    } else if sessions.sessions.is_empty() {
        printer::write(&table::nobody(&sessions.sources))?;
    } else {
        printer::line(&table::sessions(&sessions))?;
        printer::write(&table::unread(&sessions.sources))?;
    }
    Ok(ExitCode::SUCCESS)
}
