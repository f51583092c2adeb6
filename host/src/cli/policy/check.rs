//! `headcount policy check`.

use super::SETTINGS;
use crate::authoring::check::{Finding, check};
use crate::authoring::trial::{place, settings};
use crate::cli::printer;
use crate::config;
use crate::report::clean;
use crate::setup::Setup;
use owo_colors::OwoColorize as _;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The policy: a component's file, the project that it was built in, or `builtin`
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    #[arg(long, value_name = "JSON|@FILE", help = SETTINGS)]
    settings: Option<String>,
    /// Print JSON (schema headcount.policy-check/1)
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Checked {
    schema: &'static str,
    policy: String,
    ok: bool,
    findings: Vec<Finding>,
    limits: config::Limits,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let place = place(setup, &args.policy, settings(args.settings.as_deref())?)?;
    let findings = check(setup, &place)?;
    let ok = findings.iter().all(|finding| finding.ok == Some(true));
    let policy = clean(&args.policy.display().to_string());
    let checked = Checked { schema: "headcount.policy-check/1", policy, ok, findings, limits: setup.config().limits };
    if args.json {
        printer::json(&checked)?;
    } else {
        print(&checked)?;
    }
    Ok(ExitCode::from(u8::from(!ok)))
}

fn print(checked: &Checked) -> std::io::Result<()> {
    printer::line(&checked.policy.bold().to_string())?;
    for Finding { step, ok, detail } in &checked.findings {
        let mark = match ok {
            Some(true) => "ok".green().to_string(),
            Some(false) => "no".red().to_string(),
            None => "--".dimmed().to_string(),
        };
        printer::line(&format!("  {mark}  {step}: {detail}"))?;
    }
    let config::Limits { deadline, load, memory, result } = checked.limits;
    let limits = format!("deadline {deadline}, load {load}, memory {memory}, result {result}");
    printer::line(&format!("      limits: {limits}"))
}
