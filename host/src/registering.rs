//! Declaring an agent, as the command line and MCP clients do it alike.

use crate::names::{AgentName, SessionId};
use crate::observe::processes::Sampler;
use crate::setup::Setup;
use crate::store::StoreError;
use crate::store::registry::{Registered, RegisteredProcess, Registration};
use std::path::Path;

/// What is declared.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The agent's name.
    pub agent_name: AgentName,
    /// What it is for.
    pub specialization: Option<String>,
    /// The root of its process tree, if it is on this machine.
    pub process_id: Option<u32>,
    /// What to call the session.
    pub session_name: Option<String>,
    /// The session's top folder.
    pub root_path: Option<String>,
    /// Who declares it.
    pub registered_by: String,
}

/// Why an agent cannot be declared.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// No process has this id.
    #[error(
        "no process {0} runs here: give the id of a living one, or none for an agent that has no process on this machine"
    )]
    NoProcess(u32),
    /// Whose folder it would be depends on who reads it.
    #[error("root_path {0:?} is not absolute")]
    RelativePath(String),
    /// The processes cannot be looked at.
    #[error("the processes cannot be looked at: {0}")]
    Processes(#[from] crate::observe::processes::ListError),
    /// The registry cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Declares an agent; its process is pinned by its whole identity, so that a later one with its pid is not taken for it.
///
/// # Errors
/// When the process does not exist or the registry cannot be written.
pub fn register(setup: &Setup, what: Declaration) -> Result<Registered, RegisterError> {
    if let Some(path) = what.root_path.as_ref().filter(|path| !Path::new(path).is_absolute()) {
        return Err(RegisterError::RelativePath(path.clone()));
    }
    let process = what.process_id.map(|pid| identify(setup.sampler(), pid)).transpose()?;
    Ok(setup.store.register(&Registration {
        session_id: what.session_id,
        session_name: what.session_name,
        root_path: what.root_path,
        agent_name: what.agent_name,
        specialization: what.specialization,
        process,
        owner: setup.user.clone(),
        registered_by: what.registered_by,
        registered_at_ms: setup.clock.now().unix_ms,
    })?)
}

fn identify(mut sampler: Sampler, pid: u32) -> Result<RegisteredProcess, RegisterError> {
    sampler.refresh()?;
    let id = sampler.get(pid).ok_or(RegisterError::NoProcess(pid))?.id;
    let machine = sampler.machine();
    Ok(RegisteredProcess {
        pid,
        start: id.start,
        boot_id: machine.boot_id.clone(),
        pid_namespace: machine.pid_namespace.clone(),
    })
}
