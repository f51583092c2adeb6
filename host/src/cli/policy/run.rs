//! `headcount policy run`.

use super::{SETTINGS, explanation};
use crate::authoring::explain::explain;
use crate::authoring::snapshot::SnapshotFile;
use crate::authoring::trial::{Trial, answer, place, settings};
use crate::cli::{printer, table};
use crate::observe::facts::Snapshot;
use crate::query;
use crate::report::{self, View};
use crate::setup::{Rosters, Setup};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = explanation::LEGEND)]
pub struct Args {
    /// The policy: a component's file, or `builtin`
    #[arg(value_name = "FILE")]
    policy: PathBuf,
    /// Judge the facts in this file: what `headcount status --record` saves, or one line of the decision log
    #[arg(long, value_name = "FILE", required_unless_present = "live", conflicts_with = "live")]
    snapshot: Option<PathBuf>,
    /// Judge this session as it is now
    #[arg(long, value_name = "SESSION")]
    live: Option<String>,
    /// Read this roster too, to find that session; may be given several times
    #[arg(long, value_name = "FILE", requires = "live")]
    roster: Vec<PathBuf>,
    #[arg(long, value_name = "JSON|@FILE", help = SETTINGS)]
    settings: Option<String>,
    /// Give it the facts alone, and not the built-in policy's verdict too
    #[arg(long)]
    alone: bool,
    /// Print the verdict as JSON (schema headcount.verdict/1; with --explain headcount.explanation/1)
    #[arg(long)]
    json: bool,
    /// Say which facts each check and status depends on
    #[arg(long)]
    explain: bool,
}

pub fn run(setup: &Setup, args: Args) -> anyhow::Result<ExitCode> {
    let place = place(setup, &args.policy, settings(args.settings.as_deref())?)?;
    let (facts, alone) = match args.snapshot {
        Some(file) => {
            let snapshot = SnapshotFile::read(&file)?;
            (snapshot.facts, snapshot.alone)
        }
        None => (live(setup, args.live.as_deref().unwrap_or_default(), args.roster)?, false),
    };
    let trial = Trial::new(setup, setup.runtime()?, place, args.alone || alone);
    let judgement = trial.judge(&facts)?;
    let code = ExitCode::from(u8::from(answer(&judgement).is_err()));
    match (answer(&judgement), args.explain, args.json) {
        (_, false, false) => {
            let view = View { limit: report::MAX_LIMIT, ..View::default() };
            printer::write(&table::report(&report::report(&facts, &judgement, &view, 0), &view))?;
        }
        (Ok(verdict), false, true) => printer::json(&report::verdict(&facts, verdict))?,
        (Ok(verdict), true, true) => printer::json(&explain(&trial, &facts, verdict)?)?,
        (Ok(verdict), true, false) => printer::write(&explanation::text(&explain(&trial, &facts, verdict)?))?,
        (Err(outcome), _, true) => printer::json(&report::no_verdict(outcome))?,
        (Err(outcome), true, false) => {
            let none = report::no_verdict(outcome);
            printer::line(&format!("there is no verdict to explain: {}: {}", none.outcome, none.detail))?;
        }
    }
    Ok(code)
}

fn live(setup: &Setup, session: &str, roster: Vec<PathBuf>) -> anyhow::Result<Snapshot> {
    let tick = setup.watcher(Rosters { files: roster, given: None })?.look()?;
    Ok(query::find(&tick, session)?.facts.clone())
}
