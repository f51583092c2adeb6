//! `headcount hook`: takes agents' events, and arranges that they send them.

use super::printer;
use crate::config::Environment;
use crate::hooks;
use crate::hooks::install::Plan;
use crate::observe::records::hooks::meaning::KINDS;
use crate::report::clean;
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use std::ffi::OsString;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The kind of agent, then the event unless it comes on stdin; it prints nothing and ends with 0 whatever happens
    #[arg(value_name = "KIND", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Has an agent send its events, and shows what that changes in its settings
    Install(Settings),
    /// Takes away again what install has put in
    Uninstall(Settings),
}

#[derive(Debug, clap::Args)]
struct Settings {
    /// The kind of agent
    #[arg(value_parser = PossibleValuesParser::new(KINDS))]
    kind: String,
    /// For the project in this folder only, and not for all of them
    #[arg(long)]
    project: bool,
    /// Only show it
    #[arg(long)]
    dry_run: bool,
}

/// The words of a command line that is an event's: they are no matter for the parser, which may complain.
pub fn event(command_line: &[OsString]) -> Option<&[OsString]> {
    let words = command_line.get(1..)?.strip_prefix(&["hook".into()] as &[OsString])?;
    let is_ours = |word: &OsString| ["install", "uninstall", "help", "--help", "-h"].iter().any(|ours| word == ours);
    (!words.first().is_some_and(is_ours)).then_some(words)
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => hooks::receive(&args.words),
        Some(Command::Install(settings)) => install(settings)?,
        Some(Command::Uninstall(settings)) => uninstall(settings)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn install(Settings { kind, project, dry_run }: &Settings) -> anyhow::Result<()> {
    let program = std::env::current_exe()?;
    anyhow::ensure!(program.exists(), "this program's file is gone: {}", clean(&program.display().to_string()));
    let plan = Plan::install(kind, *project, &Environment::of_process(), &program)?;
    show(&plan, *dry_run, "is installed already in", "installed in")?;
    if kind == "codex" && !dry_run {
        printer::line("codex runs hooks only once they are trusted: type /hooks in it")?;
    }
    Ok(())
}

fn uninstall(Settings { kind, project, dry_run }: &Settings) -> anyhow::Result<()> {
    let plan = Plan::uninstall(kind, *project, &Environment::of_process())?;
    show(&plan, *dry_run, "is not installed in", "removed from")
}

/// What is added, whole: of settings that are one line the difference is a line that is cut.
fn added(events: &[&str]) -> String {
    let plural = if events.len() == 1 { "" } else { "s" };
    format!("adds headcount to {} event{plural}: {}", events.len(), events.join(", "))
}

/// Shows what changes, and does it unless it is only to be shown.
fn show(plan: &Plan, dry_run: bool, nothing: &str, done: &str) -> anyhow::Result<()> {
    let name = clean(&plan.file.display().to_string());
    let link = match plan.file == plan.target {
        true => String::new(),
        false => format!(", a link to {}", clean(&plan.target.display().to_string())),
    };
    if !plan.changes() {
        return Ok(printer::line(&format!("{nothing} {name}{link}"))?);
    }
    for line in plan.difference().lines() {
        printer::line(&clean(line))?;
    }
    if !plan.events.is_empty() {
        printer::line(&added(&plan.events))?;
    }
    if dry_run {
        return Ok(printer::line(&format!("nothing was written to {name}{link}"))?);
    }
    plan.apply()?;
    Ok(printer::line(&format!("{done} {name}{link}; agents that run take it up when they start again"))?)
}
