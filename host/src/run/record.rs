//! The record of a run in the registry. What cannot be written is said once, stops nobody, and is written later.

use super::backoff::Backoff;
use super::ending::Ending;
use super::order::Order;
use super::unwritten::{Entry, Unwritten};
use crate::clock::Clock;
use crate::names::AgentName;
use crate::observe::processes::{ProcessId, identify, may_live};
use crate::store::registry::{RegisteredProcess, Registration};
use crate::store::runs::{Begun, Keeper, NewRun, RunEnd};
use crate::store::{Store, StoreError};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Of names that were not chosen, so many are tried.
const MOST_NAMES: u32 = 1000;

/// How long each of the steps of a writing waits for those who use the database too. An agent waits for the first.
const PATIENCE: Duration = Duration::from_millis(100);

/// When what could not be written is tried again: soon at first, and then so often.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(10);
const SOON_TIMES: u32 = 10;

/// Writes down what becomes of a run.
pub struct Record {
    order: Order,
    store: Store,
    clock: Arc<dyn Clock>,
    unwritten: Unwritten,
    /// When it is tried again, and how often it was in vain.
    again_at: Option<Duration>,
    failures: u32,
    complained: bool,
}

impl Record {
    /// The record of this run, of which the registry lacks this much.
    pub fn new(order: &Order, clock: Arc<dyn Clock>, unwritten: Unwritten) -> Self {
        let store = Store::at(&order.state).with_patience(PATIENCE);
        Self { order: order.clone(), store, clock, unwritten, again_at: None, failures: 0, complained: false }
    }

    /// What the registry does not know yet.
    pub fn unwritten(&self) -> &Unwritten {
        &self.unwritten
    }

    /// Registers the process as the run's agent, kept by this process.
    ///
    /// # Errors
    /// A sentence, where the session is another user's, or the name somebody else's who lives.
    pub fn begin(&mut self, pid: u32) -> Result<(), String> {
        let (id, _) = match identify(pid) {
            Ok(found) => found,
            Err(error) => {
                self.complain(&error);
                return Ok(());
            }
        };
        self.unwritten.push(Entry::Begun { pid, start: id.start, at_ms: self.now_ms() });
        match self.write() {
            Err(Failure::Taken(by)) => {
                self.unwritten = Unwritten::default();
                self.again_at = None;
                Err(by)
            }
            Err(failure) => {
                self.complain(&failure);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().unix_ms
    }

    /// Notes that the agent was started again, as this process.
    pub fn started_again(&mut self, pid: u32) {
        match identify(pid) {
            Ok((id, _)) => {
                self.note(Entry::StartedAgain { times: 1, pid, start: id.start, at_ms: self.now_ms() });
            }
            Err(error) => self.complain(&error),
        }
    }

    /// Notes how the agent has ended, by which signal that was asked for, and when it is to be started again.
    pub fn ended(
        &mut self,
        ending: Ending,
        request: Option<i32>,
        again_in: Option<Duration>,
        backoff: Option<&Backoff>,
    ) {
        let at_ms = self.now_ms();
        let again_in = again_in.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let next_ms = again_in.map(|wait| at_ms.saturating_add(wait));
        self.note(Entry::Ended(RunEnd {
            exit_code: ending.0,
            at_ms,
            request,
            next_start_at_ms: next_ms,
            restarts_in_a_row: backoff.map_or(0, Backoff::in_a_row),
        }));
    }

    /// Notes that from now on this process keeps the agent.
    pub fn kept_by_me(&mut self) {
        self.note(Entry::Kept);
    }

    /// Forgets the run: nothing was started.
    pub fn forget(&mut self) {
        self.note(Entry::Forgotten);
    }

    fn note(&mut self, entry: Entry) {
        self.unwritten.push(entry);
        if let Err(failure) = self.write() {
            self.complain(&failure);
        }
    }

    /// How long until [`write_again`](Self::write_again) has something to do.
    pub fn due_in(&self) -> Option<Duration> {
        self.again_at.map(|at| at.saturating_sub(self.clock.now().steady))
    }

    /// Writes what could not be written, where it is time. Whether something was.
    pub fn write_again(&mut self) -> bool {
        if self.due_in() != Some(Duration::ZERO) {
            return false;
        }
        let before = self.unwritten.clone();
        // Why it is not written was said.
        let _ = self.write();
        self.unwritten != before
    }

    /// Tries for so long to write what is left.
    pub fn finish(&mut self, patience: Duration) {
        let end = self.clock.now().steady + patience;
        while !self.unwritten.is_empty() && self.clock.now().steady < end {
            thread::sleep(PATIENCE);
            let _ = self.write();
        }
    }

    /// Writes what is unwritten, up to the first that cannot be.
    fn write(&mut self) -> Result<(), Failure> {
        while let Some(entry) = self.unwritten.first() {
            if let Err(failure) = self.write_one(&entry) {
                let wait = if self.failures < SOON_TIMES { SOON } else { LATER };
                self.failures = self.failures.saturating_add(1);
                self.again_at = Some(self.clock.now().steady + wait);
                return Err(failure);
            }
            self.unwritten.is_written();
        }
        self.failures = 0;
        self.again_at = None;
        Ok(())
    }

    fn write_one(&self, entry: &Entry) -> Result<(), Failure> {
        let tag = &self.order.tag;
        match *entry {
            Entry::Begun { pid, start, at_ms } => return self.write_begun(pid, start, at_ms),
            Entry::Ended(end) => self.store.run_ended(tag, end)?,
            Entry::StartedAgain { pid, start, at_ms, .. } => {
                self.store.run_started_again(tag, (pid, start), me()?, at_ms)?;
            }
            Entry::Kept => self.store.run_kept_by(tag, me()?)?,
            Entry::Forgotten => self.store.forget_run(tag)?,
        }
        Ok(())
    }

    fn write_begun(&self, pid: u32, start: u64, at_ms: u64) -> Result<(), Failure> {
        let order = &self.order;
        let (_, machine) = identify(std::process::id())?;
        let (session_name, root_path) = order.found.clone().unzip();
        let registration = Registration {
            session_id: order.session.clone(),
            session_name,
            root_path,
            agent_name: order.name.clone(),
            specialization: order.specialization.clone(),
            process: Some(RegisteredProcess {
                pid,
                start,
                boot_id: machine.boot_id.clone(),
                pid_namespace: machine.pid_namespace.clone(),
            }),
            owner: order.owner.clone(),
            registered_by: "headcount run".to_owned(),
            registered_at_ms: at_ms,
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
        match self.store.begin_run(registration, names(order), run, lives) {
            Ok(Begun::As(_)) => Ok(()),
            // Written by a process that was killed before it could say so.
            Ok(Begun::Taken(by)) if by == pid => Ok(()),
            Ok(Begun::Taken(by)) => Err(Failure::Taken(format!(
                "session {} has an agent {} that lives: process {by}; choose another --name",
                order.session, order.name
            ))),
            Err(owned @ StoreError::Owned { .. }) => Err(Failure::Taken(owned.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn complain(&mut self, why: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.complained, true) {
            // In a terminal in raw mode a line's end alone does not go back to the margin.
            let end = if self.order.terminal { "\r\n" } else { "\n" };
            crate::stderr::write(&format!("headcount: the run is not recorded: {why}{end}"));
        }
    }
}

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Taken(String),
    #[error(transparent)]
    Unknown(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
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
