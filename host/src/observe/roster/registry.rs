//! Agents that were registered by hand or by an orchestrator.

use super::{DeclaredAgent, DeclaredSession, Locator, Roster, Said, Source};
use crate::observe::processes::{Machine, ProcessId};
use crate::store::Store;
use crate::store::StoreError;
use crate::store::registry::Registration;
use crate::store::runs::RunRecord;
use std::sync::Arc;

/// The registry as a source.
#[derive(Debug)]
pub struct RegistrySource {
    store: Arc<Store>,
    last: (Vec<Registration>, Vec<RunRecord>),
    roster: Arc<Roster>,
}

impl RegistrySource {
    /// A source that has not read the registry yet.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, last: Default::default(), roster: Arc::default() }
    }
}

impl Source for RegistrySource {
    fn name(&self) -> String {
        "registry".to_owned()
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        let error = match self.registered() {
            Ok(registered) if registered == self.last => None,
            Ok(registered) => {
                self.roster = Arc::new(roster(&registered.0, &registered.1));
                self.last = registered;
                None
            }
            Err(error) => Some(error.to_string()),
        };
        (Arc::clone(&self.roster), error)
    }
}

impl RegistrySource {
    /// All agents, and what is recorded of those that were run.
    fn registered(&self) -> Result<(Vec<Registration>, Vec<RunRecord>), StoreError> {
        Ok((self.store.list()?, self.store.runs()?))
    }
}

/// The registrations as a roster. The oldest of a session's registrations says whose the session is.
fn roster(registrations: &[Registration], runs: &[RunRecord]) -> Roster {
    let mut sessions: Vec<DeclaredSession> = Vec::new();
    for registration in registrations {
        let at = sessions.iter().position(|session| session.id == registration.session_id).unwrap_or_else(|| {
            sessions.push(DeclaredSession {
                name: registration.session_name.clone(),
                root_path: registration.root_path.clone().map(Into::into),
                ..DeclaredSession::new(registration.session_id.clone())
            });
            sessions.len() - 1
        });
        let session = &mut sessions[at];
        if session.declared_at_ms.is_none_or(|earliest| registration.registered_at_ms < earliest) {
            session.declared_at_ms = Some(registration.registered_at_ms);
            session.owner = Some(registration.owner.clone());
        }
        session.agents.push(agent(registration, runs));
    }
    Roster { sessions }
}

fn agent(registration: &Registration, runs: &[RunRecord]) -> DeclaredAgent {
    let is_its =
        |run: &&RunRecord| run.session_id == registration.session_id && run.agent_name == registration.agent_name;
    let process = match &registration.process {
        None => Locator::Elsewhere,
        Some(process) => Locator::Exactly {
            machine: Machine { boot_id: process.boot_id.clone(), pid_namespace: process.pid_namespace.clone() },
            id: ProcessId { pid: process.pid, start: process.start },
        },
    };
    DeclaredAgent {
        name: registration.agent_name.clone(),
        specialization: registration.specialization.clone(),
        process,
        declared_at_ms: Some(registration.registered_at_ms),
        run: runs.iter().find(is_its).cloned(),
        said: Said::default(),
    }
}
