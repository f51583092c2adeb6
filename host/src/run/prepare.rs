//! From what the user said to what is to be run: the session and the name where none were chosen.

use super::backoff::Backoff;
use super::order::Order;
use super::{signals, terminal};
use crate::names::{AgentName, SessionId};
use crate::observe::agents::Kinds;
use crate::observe::processes::{Program, identify};
use crate::observe::sessions::top_folder;
use crate::observe::{folder_name, free, session_id, unplaced_id};
use crate::setup::Setup;
use crate::text::clean;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// What the user said.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The session that the agent is to belong to; that of the working directory where none is said.
    pub session: Option<SessionId>,
    /// The agent's name; its kind, or its program's file name, where none is said.
    pub name: Option<AgentName>,
    /// What the agent is for.
    pub specialization: Option<String>,
    /// When it is to be started again.
    pub restart: Option<Backoff>,
    /// The command, as it was typed.
    pub command: Vec<OsString>,
}

/// What is to be run.
///
/// # Errors
/// When the configuration has a kind that cannot be used, or this process cannot be looked at.
pub fn order(setup: &Setup, wanted: &Wanted) -> anyhow::Result<Order> {
    let proc =
        fs::read_link("/proc/self").map_err(|error| anyhow::anyhow!("/proc is needed and is not there: {error}"))?;
    anyhow::ensure!(
        proc == Path::new(&std::process::id().to_string()),
        "/proc is that of another pid namespace: whose process is whose cannot be seen"
    );
    let (session, found) = match &wanted.session {
        Some(chosen) => (chosen.clone(), None),
        None => folders_session(setup)?,
    };
    let (terminal, terminal_stderr) = terminal::callers();
    let (me, _) = identify(std::process::id())?;
    let kind = kind_of(setup, &wanted.command)?;
    Ok(Order {
        state: setup.dirs.state.clone(),
        session,
        found,
        name: match &wanted.name {
            Some(chosen) => chosen.clone(),
            None => default_name(kind.as_deref(), &wanted.command)?,
        },
        kind,
        chosen: wanted.name.is_some(),
        specialization: wanted.specialization.clone(),
        owner: setup.user.clone(),
        tag: format!("run-{:x}-{}-{:x}", setup.clock.now().unix_ms, me.pid, me.start),
        blocked: signals::blocked()?,
        ignored: signals::ignored()?,
        restart: wanted.restart.clone(),
        terminal,
        terminal_stderr,
    })
}

/// The session that an agent of the working directory is in, and its name and top folder.
fn folders_session(setup: &Setup) -> anyhow::Result<(SessionId, Option<(String, String)>)> {
    // As agents are that are found in a folder that has been deleted meanwhile.
    let Ok(here) = fs::canonicalize(".") else { return Ok((SessionId::parse(&unplaced_id(&setup.user))?, None)) };
    let top = top_folder(&here, setup.config().sessions.worktrees);
    let found = top.to_str().map(|path| (clean(&folder_name(&top)), path.to_owned()));
    // What cannot be read here is told by whoever writes it.
    let registered = setup.store.list().unwrap_or_default();
    let is_theirs = |id: &str| registered.iter().any(|one| one.session_id.as_str() == id && one.owner != setup.user);
    let id = free(&session_id(&top, None), &setup.user, |id| !is_theirs(id));
    Ok((SessionId::parse(&id)?, found))
}

/// What kind of agent the command starts, where it is one that is known.
fn kind_of(setup: &Setup, command: &[OsString]) -> anyhow::Result<Option<String>> {
    let argv = command.iter().map(|slot| slot.to_string_lossy().into_owned()).collect();
    let unknown = || "not looked at".to_owned();
    let program = Program { exe: Err(unknown()), argv: Ok(argv), cwd: Err(unknown()), env: Err(unknown()), uid: None };
    let recognised = Kinds::new(&setup.config().kinds)?.recognise(&program, "");
    Ok(recognised.map(|recognised| recognised.kind.to_string()))
}

fn default_name(kind: Option<&str>, command: &[OsString]) -> anyhow::Result<AgentName> {
    let file = command.first().map(|program| clean(&folder_name(Path::new(program)))).unwrap_or_default();
    // What a file is called may be no name.
    let name = kind.into_iter().chain([file.as_str()]).find_map(|name| AgentName::parse(name).ok());
    Ok(name.map_or_else(|| AgentName::parse("agent"), Ok)?)
}
