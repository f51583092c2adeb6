//! `headcount register` and `headcount unregister`.

use super::printer;
use crate::names::{self, AgentName, BadName, SessionId};
use crate::observe::processes::{ProcessId, may_live};
use crate::registering::{self, Declaration, Declarer};
use crate::setup::Setup;
use crate::store::runs::RunRecord;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct RegisterArgs {
    /// The session it belongs to: its id, or its name where that is unique; made if there is none
    #[arg(long, value_parser = session_name)]
    session: String,
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
    /// The session it belongs to: its id, or its name where that is unique
    #[arg(long, value_parser = session_name)]
    session: String,
    /// The agent's name
    #[arg(long, value_parser = AgentName::parse)]
    name: AgentName,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A session's id or name, as far as that can be seen without looking for it.
pub fn session_name(text: &str) -> Result<String, BadName> {
    names::check_session_name(text).map(|()| text.to_owned())
}

pub fn register(setup: &Setup, args: RegisterArgs) -> anyhow::Result<ExitCode> {
    let declaration = Declaration {
        session: args.session,
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
    let done = registering::register(setup, &[], &Declarer::of(setup), declaration)?;
    if args.json {
        printer::json(&done.registered)?;
    } else {
        let what = if done.registered.replaced { "registered anew" } else { "registered" };
        printer::line(&format!("{what}: {} in session {}", done.registered.agent_id, done.session_id))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn unregister(setup: &Setup, args: &UnregisterArgs) -> anyhow::Result<ExitCode> {
    let kept = kept(setup)?;
    let done = registering::unregister(setup, &[], &Declarer::of(setup), &args.session, &args.name)?;
    if let Some(missing) = done.missing {
        anyhow::bail!("{missing}");
    }
    let session = done.session_id;
    let is_kept = kept.contains(&(session.clone(), args.name.clone()));
    if args.json {
        printer::json(
            &serde_json::json!({ "session_id": session, "agent_id": args.name.agent_id(), "removed": true }),
        )?;
    } else {
        printer::line(&format!("unregistered: {} of session {session}", args.name))?;
    }
    if is_kept {
        crate::stderr::line("headcount: `headcount run` still stands by it: it goes on, and nothing of it is recorded");
    }
    Ok(ExitCode::SUCCESS)
}

/// The agents that were started by `run`, and run or are to be started again.
fn kept(setup: &Setup) -> anyhow::Result<Vec<(SessionId, AgentName)>> {
    let goes_on = |run: &RunRecord| run.running || run.next_start_at_ms.is_some();
    let lives = |run: &RunRecord| may_live(ProcessId { pid: run.keeper_pid, start: run.keeper_start });
    let kept = setup.store.runs()?.into_iter().filter(|run| goes_on(run) && lives(run));
    Ok(kept.map(|run| (run.session_id, run.agent_name)).collect())
}
