//! `headcount run`, and the commands that it starts itself.

use super::register::session_name;
use crate::config::Span;
use crate::names::AgentName;
use crate::setup::Setup;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: the agent's own, or as if its signal had ended this command; 64 an agent of this session and name lives; \
                  125 it cannot be started; 126 the command cannot be executed; 127 there is no such command."
)]
pub struct Args {
    /// The session it belongs to: its id, or its name where that is unique; made if there is none [default: that of the
    /// working directory]
    #[arg(long, value_parser = session_name)]
    session: Option<String>,
    /// The agent's name, its own within the session [default: its kind, or the command's file name]
    #[arg(long, value_parser = AgentName::parse)]
    name: Option<AgentName>,
    /// What it is for
    #[arg(long)]
    specialization: Option<String>,
    /// Whether to start it again when it has ended with an exit code other than 0, or by a signal that is no request to end
    #[arg(long, value_enum, default_value_t = Restart::Never)]
    restart: Restart,
    /// How often in a row; who has run for a minute begins anew
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_restarts: u32,
    /// How long to wait before the first restart; at least 100ms; each further wait is twice as long, up to a minute
    #[arg(long, value_name = "TIME", default_value_t = Span::from_millis(1000), value_parser = backoff)]
    backoff: Span,
    /// The command
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A wait that is long enough for the machine to do something else meanwhile.
fn backoff(text: &str) -> Result<Span, String> {
    let least = Span::from_millis(100);
    let wait: Span = text.parse().map_err(|error| format!("{error}"))?;
    if wait < least { Err(format!("must be at least {least}")) } else { Ok(wait) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Restart {
    OnFailure,
    Never,
}

#[derive(Debug, clap::Args)]
pub struct KeepArgs {
    state: PathBuf,
    order: String,
    front: u32,
    news: i32,
    hints: i32,
    #[arg(long)]
    witness: Vec<i32>,
    #[arg(last = true)]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct StageArgs {
    gate: i32,
    report: i32,
    #[arg(long)]
    terminal: bool,
    #[arg(long)]
    blocked: Vec<i32>,
    #[arg(last = true)]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct AnchorArgs {
    part: String,
    agent: u32,
}

/// What goes wrong here is no exit code of the agent's.
#[cfg(target_os = "linux")]
pub fn run(setup: anyhow::Result<Setup>, args: Args) -> anyhow::Result<ExitCode> {
    setup.and_then(|setup| start(&setup, args)).or_else(|error| {
        crate::stderr::line(&format!("headcount: {error}"));
        Ok(crate::run::cannot_start())
    })
}

#[cfg(target_os = "linux")]
fn start(setup: &Setup, args: Args) -> anyhow::Result<ExitCode> {
    use crate::registering::{self, Declarer};
    use crate::run::{Backoff, Wanted, front, order};
    let restart = (args.restart == Restart::OnFailure).then(|| Backoff::new(args.backoff.0, args.max_restarts));
    let Args { session, name, specialization, command, .. } = args;
    let session = session.map(|asked| registering::session(setup, &[], &Declarer::of(setup), &asked)).transpose()?;
    let wanted = Wanted { session, name, specialization, restart, command };
    Ok(front::run(order(setup, &wanted)?, wanted.command)?)
}

#[cfg(target_os = "linux")]
pub fn keep(args: KeepArgs) -> anyhow::Result<ExitCode> {
    use crate::run::keeper::{self, Lines};
    crate::run::take_name(c"headcount")?;
    let KeepArgs { state, order, front, news, hints, witness, command } = args;
    let order = crate::run::Order { state, ..serde_json::from_str(&order)? };
    Ok(keeper::run(order, command, front, &Lines { news, hints, witness: witness.try_into().ok() }))
}

#[cfg(target_os = "linux")]
pub fn stage(args: &StageArgs) -> anyhow::Result<ExitCode> {
    use crate::run::stage::{self, Lines};
    crate::run::take_name(c"headcount")?;
    let lines = Lines { gate: args.gate, report: args.report };
    Ok(stage::run(&lines, args.terminal, &args.blocked, &args.command))
}

#[cfg(target_os = "linux")]
pub fn witness() -> anyhow::Result<ExitCode> {
    // Not the program's: who signals all that have it is to miss this one.
    crate::run::take_name(c"witness")?;
    crate::run::witness::run()?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(target_os = "linux")]
pub fn anchor(args: &AnchorArgs) -> anyhow::Result<ExitCode> {
    use crate::run::anchor::{self, Part};
    crate::run::take_name(c"headcount")?;
    let part = Part::ALL.into_iter().find(|(word, _)| *word == args.part);
    let (_, part) = part.ok_or_else(|| anyhow::anyhow!("an anchor has no part {}", args.part))?;
    anchor::run(part, args.agent)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(target_os = "linux"))]
pub fn run(_setup: anyhow::Result<Setup>, _args: Args) -> anyhow::Result<ExitCode> {
    unsupported()
}

#[cfg(not(target_os = "linux"))]
pub fn keep(_args: KeepArgs) -> anyhow::Result<ExitCode> {
    unsupported()
}

#[cfg(not(target_os = "linux"))]
pub fn stage(_args: &StageArgs) -> anyhow::Result<ExitCode> {
    unsupported()
}

#[cfg(not(target_os = "linux"))]
pub fn anchor(_args: &AnchorArgs) -> anyhow::Result<ExitCode> {
    unsupported()
}

#[cfg(not(target_os = "linux"))]
pub fn witness() -> anyhow::Result<ExitCode> {
    unsupported()
}

#[cfg(not(target_os = "linux"))]
fn unsupported() -> anyhow::Result<ExitCode> {
    anyhow::bail!(
        "headcount run works on Linux only: elsewhere start the agent yourself, and declare it with `headcount register --pid`"
    )
}
