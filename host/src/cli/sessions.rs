//! `headcount sessions`.

use super::{printer, table};
use crate::report;
use crate::setup::{Rosters, Setup};
use std::path::PathBuf;
use std::process::ExitCode;

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
    let mut watcher = setup.watcher(Rosters { files: args.roster.clone(), given: None })?;
    let tick = watcher.look()?;
    let sessions = report::sessions(tick.sessions.iter().map(|s| (&s.facts, &s.judgement)));
    if args.json {
        printer::json(&sessions)?;
    } else if sessions.sessions.is_empty() {
        printer::line(table::NOBODY)?;
    } else {
        printer::line(&table::sessions(&sessions))?;
    }
    Ok(ExitCode::SUCCESS)
}
