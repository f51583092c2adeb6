//! `headcount policy test`.

use crate::authoring::MANIFEST;
use crate::authoring::build::for_trial;
use crate::authoring::cases::{CaseResult, Tested, Tester, find};
use crate::authoring::trial::{must_exist, place};
use crate::cli::printer;
use crate::report::clean;
use crate::setup::Setup;
use anyhow::bail;
use owo_colors::OwoColorize as _;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// What a case is, for the help text.
const LEGEND: &str = "A case is a folder with `snapshot.json` (what `headcount status --record` saves), `expected.json` and, where the policy takes \
    settings, `settings.json`. The policy judges the snapshot after the built-in policy with its default settings, or alone where the snapshot has `\"alone\": true` \
    beside its `\"schema\"`. `expected.json` holds what `headcount policy run --json` is to say: members that it leaves out are not \
    compared, lists are compared whole, numbers need be within 0.005. One that compares nothing fails.";

#[derive(Debug, clap::Args)]
#[command(after_help = LEGEND)]
pub struct Args {
    /// A project with a `policy.toml`, whose cases are in its folder `cases`; or a folder of cases
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Try this policy, a component's file or `builtin`, instead of building the project's
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Write what the policy says as what is expected from now on
    #[arg(long)]
    update: bool,
    /// Print JSON (schema headcount.policy-test/1)
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    ok: bool,
    cases: Vec<Tested>,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let is_project = args.folder.join(MANIFEST).exists();
    let cases = find(&if is_project { args.folder.join("cases") } else { args.folder.clone() })?;
    let built;
    let policy = match &args.policy {
        Some(policy) => {
            must_exist(&place(setup, policy, serde_json::Map::new())?)?;
            policy.as_path()
        }
        None if is_project => {
            built = for_trial(&args.folder)?;
            built.path()
        }
        None => {
            let folder = clean(&args.folder.display().to_string());
            bail!("{folder} has no {MANIFEST}, so say which policy to try: --policy FILE")
        }
    };
    let mut tester = Tester::new(setup, policy)?;
    let mut tested = Vec::new();
    for case in &cases {
        let case = tester.test(case, args.update);
        if !args.json {
            print(&case)?;
        }
        tested.push(case);
    }
    let bad = tested.iter().filter(|case| !case.result.is_well()).count();
    if args.json {
        printer::json(&Report { schema: "headcount.policy-test/1", ok: bad == 0, cases: tested })?;
    } else {
        let count = tested.len();
        printer::line(&format!("{count} case{}, {bad} failed", if count == 1 { "" } else { "s" }))?;
    }
    Ok(ExitCode::from(u8::from(bad > 0)))
}

fn print(case: &Tested) -> std::io::Result<()> {
    let name = &case.name;
    match &case.result {
        CaseResult::Passed => printer::line(&format!("{}         {name}", "ok".green())),
        CaseResult::Updated { no_verdict } => {
            let said = no_verdict.as_ref().map_or(String::new(), |said| format!("  ({})", clean(said)));
            printer::line(&format!("{}    {name}{said}", "updated".yellow()))
        }
        CaseResult::Unchanged => printer::line(&format!("unchanged  {name}")),
        CaseResult::Error { error } => {
            printer::line(&format!("{}      {name}\n             {}", "error".red(), clean(error)))
        }
        CaseResult::Failed { differences } => {
            printer::line(&format!("{}     {name}", "failed".red()))?;
            let mut lines = differences.iter().map(|d| format!("             {}: {}", d.path, d.message));
            lines.try_for_each(|line| printer::line(&line))
        }
    }
}
