//! Declaring an agent, and the session that is meant by it, as the command line and MCP clients do it alike.

use crate::monitor::Find;
use crate::names::{AgentName, BadName, SessionId};
use crate::observe::facts::Session;
use crate::observe::processes::{Details, Process, Sampler};
use crate::observe::sessions::Owners;
use crate::observe::{KindError, is_found};
use crate::setup::Setup;
use crate::store::StoreError;
use crate::store::audit::Outcome;
use crate::store::registry::{Registered, RegisteredProcess, Registration};
use crate::text::clean;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// So many names are told of those that there are.
const NAMED: usize = 8;

/// Who declares. Sessions and agents that it declares are its user's.
#[derive(Debug, Clone)]
pub struct Declarer {
    /// Its user.
    pub user: String,
    /// Whether it comes over HTTP: it declares and withdraws in sessions of its own user alone, and processes of that user.
    /// Otherwise it runs here as the user of this program: it declares whose processes it likes, and withdraws what it likes.
    pub is_remote: bool,
}

/// What is declared.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The session it belongs to: an id, or a name that exactly one session has.
    pub session: String,
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

/// What became of a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The session that the agent belongs to.
    pub session_id: SessionId,
    /// The agent's id, and whether its name was declared before.
    pub registered: Registered,
}

/// What became of one that was to be withdrawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawn {
    /// The session that was meant.
    pub session_id: SessionId,
    /// Why nothing was withdrawn, and what could be; `None`: it is declared no more.
    pub missing: Option<String>,
}

/// Why an agent cannot be declared.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// No session has this name, and none can have it as its id.
    #[error("{0}; nor is any session named so")]
    NoSession(BadName),
    /// Several sessions have this name.
    #[error("several sessions are named `{asked}`; name one by its id: {}", ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// Their ids.
        ids: Vec<String>,
    },
    /// Who comes over HTTP may not use this id. It is not said why: what is not theirs does not exist for them.
    #[error("the session_id {0:?} cannot be used: it is reserved, or no session of yours; choose another")]
    NotYours(String),
    /// Somebody else has a session of this id.
    #[error("session {session} belongs to {owner}; choose another id")]
    Owned {
        /// Its id.
        session: String,
        /// Whose it is.
        owner: String,
    },
    /// A configured kind of agent cannot be used.
    #[error(transparent)]
    Kind(#[from] KindError),
    /// No process of the declarer's user has this id.
    #[error(
        "no process {pid} of the user {user} runs here: give the id of one that does, or none for an agent that has no process on this machine"
    )]
    NoProcessOf {
        /// The id.
        pid: u32,
        /// The declarer's user.
        user: String,
    },
    /// Nothing tells whose process it is.
    #[error("whose process {0} is cannot be told now; try again")]
    WhoseProcess(u32),
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

impl RegisterError {
    /// What the audit log calls it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::NoSession(_) => Outcome::Invalid,
            Self::NotYours(_) | Self::Owned { .. } | Self::NoProcessOf { .. } => Outcome::Denied,
            Self::Ambiguous { .. } => Outcome::NotFound,
            _ => Outcome::Failed,
        }
    }
}

/// Declares an agent; its process is pinned by its whole identity, so that a later one with its pid is not taken for it.
///
/// # Errors
/// When the session is none or several, the process does not exist or the registry cannot be written.
pub fn register(
    setup: &Setup,
    rosters: &[PathBuf],
    who: &Declarer,
    what: Declaration,
) -> Result<Declared, RegisterError> {
    if let Some(path) = what.root_path.as_ref().filter(|path| !Path::new(path).is_absolute()) {
        return Err(RegisterError::RelativePath(path.clone()));
    }
    let session_id = session(setup, rosters, who, &what.session)?;
    let process = what.process_id.map(|pid| identify(setup.sampler(), who, pid)).transpose()?;
    let registration = Registration {
        session_id: session_id.clone(),
        session_name: what.session_name,
        root_path: what.root_path,
        agent_name: what.agent_name,
        specialization: what.specialization,
        process,
        owner: who.user.clone(),
        registered_by: what.registered_by,
        registered_at_ms: setup.clock.now().unix_ms,
    };
    // Somebody else may have made the session meanwhile.
    let registered = setup.store.register(&registration).map_err(|error| match error {
        StoreError::Owned { .. } if who.is_remote => RegisterError::NotYours(clean(&what.session)),
        error => error.into(),
    })?;
    Ok(Declared { session_id, registered })
}

/// Withdraws the declaration of an agent.
///
/// # Errors
/// When the session is none or several, or the registry cannot be written.
pub fn unregister(
    setup: &Setup,
    rosters: &[PathBuf],
    who: &Declarer,
    asked: &str,
    agent: &AgentName,
) -> Result<Withdrawn, RegisterError> {
    let session_id = if who.is_remote { session(setup, rosters, who, asked)? } else { any(setup, rosters, asked)? };
    if setup.store.unregister(&session_id, agent)? {
        return Ok(Withdrawn { session_id, missing: None });
    }
    let mut registered = setup.store.list()?;
    registered.retain(|other| !who.is_remote || who.user == other.owner);
    let missing = Some(missing(&session_id, agent, &registered));
    Ok(Withdrawn { session_id, missing })
}

/// The session that something is declared in by `asked`: an existing one's id, or a name that exactly one of the declarer's
/// has; else a new one with this id. `rosters` are files that declare sessions beside those that are configured.
///
/// # Errors
/// When several have the name, none has it and it is no id, or it is the id of somebody else's.
pub fn session(setup: &Setup, rosters: &[PathBuf], who: &Declarer, asked: &str) -> Result<SessionId, RegisterError> {
    let (own, others): (Vec<Session>, Vec<Session>) =
        setup.sessions(rosters)?.into_iter().partition(|session| session.owner == who.user);
    if let Some(known) = meant(&own, asked)? {
        return Ok(known);
    }
    let theirs = others.into_iter().find(|session| session.id == asked);
    // What is found by itself later on has such an id: whose it is would show, and who has it first.
    if who.is_remote && (theirs.is_some() || is_found(asked)) {
        return Err(RegisterError::NotYours(clean(asked)));
    }
    if let Some(Session { id: session, owner, .. }) = theirs {
        return Err(RegisterError::Owned { session, owner: clean(&owner) });
    }
    SessionId::parse(asked).map_err(RegisterError::NoSession)
}

/// The session that is meant by `asked`, whose ever it is.
fn any(setup: &Setup, rosters: &[PathBuf], asked: &str) -> Result<SessionId, RegisterError> {
    let id = SessionId::parse(asked);
    // An id comes before any name: then nothing is to be looked for. What cannot be read here is told by whoever writes it.
    let registered = setup.store.list().unwrap_or_default();
    if let Some(known) = id.iter().find(|id| registered.iter().any(|agent| agent.session_id == **id)) {
        return Ok(known.clone());
    }
    meant(&setup.sessions(rosters)?, asked)?.map_or_else(|| id.map_err(RegisterError::NoSession), Ok)
}

/// The one of these that has this id, or alone has this name.
fn meant(sessions: &[Session], asked: &str) -> Result<Option<SessionId>, RegisterError> {
    match Find::among(sessions, |session| session, asked) {
        Find::One(one) => SessionId::parse(&one.id).map(Some).map_err(RegisterError::NoSession),
        Find::None => Ok(None),
        Find::Several(ids) => {
            Err(RegisterError::Ambiguous { asked: clean(asked), ids: ids.into_iter().map(str::to_owned).collect() })
        }
    }
}

/// That nobody of this name is declared, and who is.
fn missing(session: &SessionId, agent: &AgentName, registered: &[Registration]) -> String {
    let listed = |names: BTreeSet<&str>| {
        let more = if names.len() > NAMED { ", …" } else { "" };
        format!("{}{more}", names.into_iter().take(NAMED).collect::<Vec<_>>().join(", "))
    };
    let here = registered.iter().filter(|other| other.session_id == *session);
    let here: BTreeSet<&str> = here.map(|other| other.agent_name.as_str()).collect();
    let there = match registered {
        _ if !here.is_empty() => format!("it has {}", listed(here)),
        [] => "nobody is registered".to_owned(),
        others => format!("others have: {}", listed(others.iter().map(|other| other.session_id.as_str()).collect())),
    };
    format!("session {session} has no registered agent {agent}; {there}")
}

impl Declarer {
    /// The user of this program.
    pub fn of(setup: &Setup) -> Self {
        Self { user: setup.user.clone(), is_remote: false }
    }
}

fn identify(mut sampler: Sampler, who: &Declarer, pid: u32) -> Result<RegisteredProcess, RegisterError> {
    sampler.refresh()?;
    let process = sampler.get(pid);
    if who.is_remote {
        let not_theirs = || RegisterError::NoProcessOf { pid, user: who.user.clone() };
        let owner = owner(process.ok_or_else(not_theirs)?).ok_or(RegisterError::WhoseProcess(pid))?;
        if owner != who.user {
            return Err(not_theirs());
        }
    }
    let id = process.ok_or(RegisterError::NoProcess(pid))?.id;
    let machine = sampler.machine();
    Ok(RegisteredProcess {
        pid,
        start: id.start,
        boot_id: machine.boot_id.clone(),
        pid_namespace: machine.pid_namespace.clone(),
    })
}

/// Whose process it is, where that can be told.
fn owner(process: &Process) -> Option<String> {
    match &process.details {
        Details::Read(program) => program.uid.map(|uid| Owners::default().name(Some(uid))),
        Details::Pending => None,
    }
}
