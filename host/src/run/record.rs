//! The record of a run in the registry. What cannot be written is said once, and stops nobody.

use super::backoff::Backoff;
use super::ending::Ending;
use super::order::Order;
use crate::clock::Clock;
use crate::names::AgentName;
use crate::observe::processes::{ProcessId, identify, may_live};
use crate::store::registry::{RegisteredProcess, Registration};
use crate::store::runs::{Begun, Keeper, NewRun, RunEnd};
use crate::store::{Store, StoreError};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Of names that were not chosen, so many are tried.
const MOST_NAMES: u32 = 1000;

/// Writes down what becomes of a run.
pub struct Record {
    store: Store,
    tag: String,
    clock: Arc<dyn Clock>,
    /// Whether the run stands in the registry.
    written: bool,
    complained: bool,
    terminal: bool,
}

impl Record {
    /// The record of this run. `written`: it was begun already.
    pub fn new(order: &Order, clock: Arc<dyn Clock>, written: bool) -> Self {
        let store = Store::at(&order.state);
        Self { store, tag: order.tag.clone(), clock, written, complained: false, terminal: order.terminal }
    }

    /// Whether the run stands in the registry.
    pub fn is_written(&self) -> bool {
        self.written
    }

    /// Registers the process as the run's agent, kept by this process.
    ///
    /// # Errors
    /// A sentence, where the name is somebody else's who lives.
    pub fn begin(&mut self, order: &Order, pid: u32) -> Result<(), String> {
        let begun = match self.try_begin(order, pid) {
            Ok(begun) => begun,
            Err(error) => {
                self.complain("the run is not recorded", &error);
                return Ok(());
            }
        };
        match begun {
            Begun::As(_) => {
                self.written = true;
                Ok(())
            }
            Begun::Taken(by) => Err(format!(
                "session {} has an agent {} that lives: process {by}; choose another --name",
                order.session, order.name
            )),
        }
    }

    fn try_begin(&self, order: &Order, pid: u32) -> Result<Begun, Box<dyn std::error::Error>> {
        let (agent, machine) = identify(pid)?;
        let (session_name, root_path) = order.found.clone().unzip();
        let registration = Registration {
            session_id: order.session.clone(),
            session_name,
            root_path,
            agent_name: order.name.clone(),
            specialization: order.specialization.clone(),
            process: Some(RegisteredProcess {
                pid,
                start: agent.start,
                boot_id: machine.boot_id.clone(),
                pid_namespace: machine.pid_namespace.clone(),
            }),
            owner: order.owner.clone(),
            registered_by: "headcount run".to_owned(),
            registered_at_ms: self.clock.now().unix_ms,
        };
        let lives = |other: &RegisteredProcess| {
            other.boot_id == machine.boot_id
                && other.pid_namespace == machine.pid_namespace
                && may_live(ProcessId { pid: other.pid, start: other.start })
        };
        let run = NewRun {
            tag: &order.tag,
            keeper: me()?,
            max_restarts: order.restart.as_ref().map(Backoff::most),
            kind: order.kind.as_deref(),
        };
        Ok(self.store.begin_run(registration, names(order), run, lives)?)
    }

    /// Notes that the agent was started again, as this process.
    pub fn started_again(&mut self, pid: u32) {
        self.write("a restart is not recorded", |store, tag, now| {
            let (agent, _) = identify(pid)?;
            Ok(store.run_started_again(tag, (pid, agent.start), me()?, now)?)
        });
    }

    /// Notes how the agent has ended, by which signal that was asked for, and when it is to be started again.
    pub fn ended(
        &mut self,
        ending: Ending,
        request: Option<i32>,
        again_in: Option<Duration>,
        backoff: Option<&Backoff>,
    ) {
        let again_in = again_in.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self.write("the agent's end is not recorded", |store, tag, now| {
            let end = RunEnd {
                exit_code: ending.0,
                at_ms: now,
                request,
                next_start_at_ms: again_in.map(|wait| now.saturating_add(wait)),
                restarts_in_a_row: backoff.map_or(0, Backoff::in_a_row),
            };
            Ok(store.run_ended(tag, end)?)
        });
    }

    /// Notes that from now on this process keeps the agent.
    pub fn kept_by_me(&mut self) {
        self.write("who keeps the agent now is not recorded", |store, tag, _| Ok(store.run_kept_by(tag, me()?)?));
    }

    /// Forgets the run: nothing was started.
    pub fn forget(&mut self) {
        self.write("what could not be started is still registered", |store, tag, _| Ok(store.forget_run(tag)?));
        self.written = false;
    }

    fn write(&mut self, failed: &str, work: impl FnOnce(&Store, &str, u64) -> Result<(), Failure>) {
        if self.written
            && let Err(Failure(why)) = work(&self.store, &self.tag, self.clock.now().unix_ms)
        {
            self.complain(failed, &why);
        }
    }

    fn complain(&mut self, failed: &str, why: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.complained, true) {
            // In a terminal in raw mode a line's end alone does not go back to the margin.
            let end = if self.terminal { "\r\n" } else { "\n" };
            anstream::eprint!("headcount: {failed}: {why}{end}");
        }
    }
}

/// Why something could not be written.
struct Failure(String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

/// The name that was chosen; or what is tried where none was: `claude`, `claude-2`, and so on.
fn names(order: &Order) -> impl Iterator<Item = AgentName> {
    let more = if order.chosen { 1 } else { MOST_NAMES };
    let numbered = (2..=more).map(|number| AgentName::parse(&format!("{}-{number}", order.name)));
    std::iter::once(order.name.clone()).chain(numbered.filter_map(Result::ok))
}

fn me() -> io::Result<Keeper> {
    let (id, _) = identify(std::process::id())?;
    Ok((id.pid, id.start))
}
