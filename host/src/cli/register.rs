//! `headcount register` and `headcount unregister`.

use super::printer;
use crate::names::{AgentName, SessionId};
use crate::observe::processes::{ProcessId, may_live};
use crate::registering::{self, Declaration};
use crate::setup::Setup;
use crate::store::runs::RunRecord;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct RegisterArgs {
    /// The session it belongs to; made if there is none
    #[arg(long, value_parser = SessionId::parse)]
    session: SessionId,
    /// The agent's name, its own within the session
    #[arg(long, value_parser = AgentName::parse)]
    name: AgentName,
    /// What it is for
    #[arg(long)]
    specialization: Option<String>,
    /// The root of its process tree [default: none, an agent that runs elsewhere]
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// What to call the session
    #[arg(long)]
    session_name: Option<String>,
    /// The session's top folder
    #[arg(long, value_name = "DIR")]
    root_path: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub struct UnregisterArgs {
    /// The session it belongs to
    #[arg(long, value_parser = SessionId::parse)]
    session: SessionId,
    /// The agent's name
    #[arg(long, value_parser = AgentName::parse)]
    name: AgentName,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn register(setup: &Setup, args: RegisterArgs) -> anyhow::Result<ExitCode> {
    let declaration = Declaration {
        session_id: args.session,
        agent_name: args.name,
        specialization: args.specialization,
        process_id: args.pid,
        session_name: args.session_name,
        root_path: args
            .root_path
            .map(|path| std::path::absolute(&path))
            .transpose()?
            .map(|path| path.display().to_string()),
        registered_by: "headcount register".into(),
    };
    let session = declaration.session_id.clone();
    let done = registering::register(setup, declaration)?;
    if args.json {
        printer::json(&done)?;
    } else {
        let what = if done.replaced { "registered anew" } else { "registered" };
        printer::line(&format!("{what}: {} in session {session}", done.agent_id))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn unregister(setup: &Setup, args: &UnregisterArgs) -> anyhow::Result<ExitCode> {
    let is_kept = is_kept(setup, args)?;
    anyhow::ensure!(
        setup.store.unregister(&args.session, &args.name)?,
        "session {} has no registered agent {}",
        args.session,
        args.name
    );
    if args.json {
        printer::json(
            &serde_json::json!({ "session_id": args.session, "agent_id": args.name.agent_id(), "removed": true }),
        )?;
    } else {
        printer::line(&format!("unregistered: {} of session {}", args.name, args.session))?;
    }
    if is_kept {
        anstream::eprintln!("headcount: `headcount run` still stands by it: it goes on, and nothing of it is recorded");
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the agent is one that was started by `run`, and runs or is to be started again.
fn is_kept(setup: &Setup, args: &UnregisterArgs) -> anyhow::Result<bool> {
    let is_it = |run: &RunRecord| run.session_id == args.session && run.agent_name == args.name;
    let goes_on = |run: &RunRecord| run.running || run.next_start_at_ms.is_some();
    let lives = |run: &RunRecord| may_live(ProcessId { pid: run.keeper_pid, start: run.keeper_start });
    Ok(setup.store.runs()?.iter().any(|run| is_it(run) && goes_on(run) && lives(run)))
}
