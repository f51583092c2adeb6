//! `headcount policy run`.

use super::{SETTINGS, explanation};
use crate::authoring::cases;
use crate::authoring::explain::explain;
use crate::authoring::snapshot::SnapshotFile;
use crate::authoring::trial::{
    Trial, answer, builtin, bytes, configured_builtin, must_exist, place, settings, settings_in,
};
use crate::cli::look::{Look, look};
use crate::cli::{Noted, note, printer, table};
use crate::judge::{BUILTIN, Place};
use crate::observe::facts::Snapshot;
use crate::query;
use crate::report::{self, View};
use crate::setup::{Rosters, Setup};
use crate::store::audit::Outcome;
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = explanation::LEGEND, group = clap::ArgGroup::new("facts").required(true).args(["snapshot", "live"]))]
pub struct Args {
    /// The policy: a component's file, the project that it was built in, or `builtin`
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// Judge the facts in this file: what `headcount status --record` saves, a case's folder, or one line of the decision log,
    /// which is judged with the settings that it has; `-` is standard input. The built-in policy has in a case the default
    /// settings, and otherwise those of the configuration
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Judge this session as it is now; the built-in policy has the settings of the configuration, as in `status`
    #[arg(long, value_name = "SESSION")]
    live: Option<String>,
    /// Read this roster too, to find that session; may be given several times
    #[arg(long, value_name = "FILE", requires = "live", conflicts_with = "snapshot")]
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
    let mut place = place(setup, &args.policy, settings(args.settings.as_deref())?)?;
    must_exist(&place)?;
    let snapshot = match &args.snapshot {
        Some(file) => SnapshotFile::read(file)?,
        None => SnapshotFile::of(live(setup, args.live.as_deref().unwrap_or_default(), args.roster)?),
    };
    let file = args.snapshot.as_deref();
    if args.settings.is_none()
        && let Some(settings) = settings_with(setup, &snapshot, file, &place)?
    {
        place.settings = settings;
    }
    let before = match args.alone || snapshot.alone {
        true => None,
        false => Some(builtin(setup, &builtin_settings(setup, &snapshot, file)?)),
    };
    let facts = snapshot.facts;
    let trial = Trial::new(setup, setup.runtime()?, place, before);
    let judgement = trial.judge(&facts)?;
    let code = ExitCode::from(u8::from(answer(&judgement).is_err()));
    let explained = |verdict| explain(&|facts| trial.verdict(facts), setup.clock.as_ref(), &facts, verdict);
    match (answer(&judgement), args.explain, args.json) {
        (answered, false, false) => {
            if answered.is_err() {
                printer::line("It came to no verdict, for the reason below. Without it, it is as follows:")?;
            }
            let view = View { limit: report::MAX_LIMIT, ..View::default() };
            printer::write(&table::report(&report::report(&facts, &judgement, &view, 0), &view))?;
        }
        (Ok(verdict), false, true) => printer::json(&report::verdict(&facts, verdict))?,
        (Ok(verdict), true, true) => printer::json(&explained(verdict)?)?,
        (Ok(verdict), true, false) => printer::write(&explanation::text(&explained(verdict)?))?,
        (Err(outcome), _, true) => printer::json(&report::no_verdict(outcome))?,
        (Err(outcome), true, false) => {
            let none = report::no_verdict(outcome);
            printer::line(&format!("there is no verdict to explain: {}: {}", none.outcome, none.detail))?;
        }
    }
    Ok(code)
}

/// The settings that belong to the facts: those of a case, or those that the policy had when it decided.
fn settings_with(
    setup: &Setup,
    snapshot: &SnapshotFile,
    file: Option<&Path>,
    place: &Place,
) -> anyhow::Result<Option<Arc<str>>> {
    let case = file.map(|folder| folder.join(cases::SETTINGS)).filter(|file| file.exists());
    if let Some(file) = case {
        return Ok(Some(serde_json::Value::Object(settings_in(&file)?).to_string().into()));
    }
    if place.file.is_none() && snapshot.judged_by.is_empty() {
        return builtin_settings(setup, snapshot, file).map(Some);
    }
    let (bytes, _) = bytes(place).map_err(|outcome| anyhow::anyhow!("{outcome}"))?;
    let known = snapshot.settings_of(&bytes);
    if known.is_none() && !snapshot.judged_by.is_empty() {
        crate::stderr::line(
            "headcount: this file of the policy had no part in that decision; it judges without settings",
        );
    }
    Ok(known.map(Into::into))
}

/// The settings of the built-in policy that belong to the facts: those that it had when it decided, the defaults for a case,
/// which is to come out alike everywhere, and otherwise those that it has here.
fn builtin_settings(setup: &Setup, snapshot: &SnapshotFile, file: Option<&Path>) -> anyhow::Result<Arc<str>> {
    if !snapshot.judged_by.is_empty() || file.is_some_and(Path::is_dir) {
        return Ok(snapshot.settings_of(BUILTIN).unwrap_or_default().into());
    }
    configured_builtin(setup)
}

/// The facts of a session as they are now. The look is noted, as that of `status` is.
fn live(setup: &Setup, session: &str, roster: Vec<PathBuf>) -> anyhow::Result<Snapshot> {
    let started = setup.clock.now().steady;
    let rosters = Rosters { files: roster, ..Rosters::default() };
    let Some(Look { tick, .. }) = &look(setup, rosters)? else { bail!("it was interrupted") };
    let found = query::find(tick, session);
    let (outcome, agents) = match &found {
        Ok(seen) => {
            let report = report::report(&seen.facts, &seen.judgement, &View::default(), 0);
            (if report.partial { Outcome::Partial } else { Outcome::Ok }, seen.facts.agents.len())
        }
        Err(error) => (error.outcome(), 0),
    };
    let noted = Noted {
        command: "policy run",
        session: Some(report::clean(session)),
        outcome,
        agents: u32::try_from(agents).unwrap_or(u32::MAX),
        micros: query::micros(Some(tick), Duration::ZERO, setup.clock.now().steady - started),
    };
    note(setup, noted);
    Ok(found?.facts.clone())
}
