//! Starts the agent, sees its end, writes it down, and starts it again: the work of the keeper, and of the front once the
//! keeper is gone.

use super::children::{Change, bury};
use super::ending::{Ending, REQUESTS};
use super::hearing::{Ear, Hearing};
use super::order::{Hint, News, Order, Phase, State};
use super::record::Record;
use super::signals::send;
use super::stage::{CANNOT_START, Stage, Stdio3, exit_code, sentence};
use super::unwritten::Unwritten;
use super::witness::Witness;
use crate::clock::Clock;
use nix::sys::signal::Signal;
use rustix::termios::tcgetpgrp;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The exit code where a name is somebody else's: the command line makes no sense (`EX_USAGE`).
const TAKEN: u8 = 64;

/// An end within so long of a SIGINT or SIGQUIT was asked for. Later it was not: agents go on after one, which only interrupts them.
const INTERRUPTED: Duration = Duration::from_secs(10);

/// The other side of the agent's terminal, or what there is without one.
pub type Means = (Option<OwnedFd>, Option<Witness>);

/// Runs an agent.
pub struct Supervisor {
    order: Order,
    command: Vec<OsString>,
    clock: Arc<dyn Clock>,
    record: Record,
    /// The other side of the agent's terminal.
    master: Option<OwnedFd>,
    state: State,
    /// When the agent was last started, on the steady clock.
    started: Duration,
    /// When it is to be started again.
    due: Option<Duration>,
    /// Until when an end counts as asked for, and by which signal.
    asked: Option<(Duration, i32)>,
    hearing: Hearing,
    /// Where the agent is in the caller's process group.
    witness: Option<Witness>,
    stopped: bool,
    /// Takes what is new.
    tell: Box<dyn FnMut(News)>,
}

impl Supervisor {
    /// One that has started nothing yet.
    pub fn new(
        order: Order,
        command: Vec<OsString>,
        means: Means,
        clock: Arc<dyn Clock>,
        tell: Box<dyn FnMut(News)>,
    ) -> Self {
        let state = State { phase: Phase::Beginning, restart: order.restart.clone(), unwritten: Unwritten::default() };
        Self::going_on(order, command, means, clock, tell, state)
    }

    /// One that goes on from where another has ended. Its children are this process's now.
    pub fn adopting(
        order: Order,
        command: Vec<OsString>,
        means: Means,
        clock: Arc<dyn Clock>,
        tell: Box<dyn FnMut(News)>,
        state: State,
    ) -> Self {
        let mut it = Self::going_on(order, command, means, clock, tell, state);
        it.record.kept_by_me();
        if matches!(it.state.phase, Phase::Waiting(..)) {
            it.due = Some(it.clock.now().steady);
        }
        it
    }

    fn going_on(
        order: Order,
        command: Vec<OsString>,
        (master, witness): Means,
        clock: Arc<dyn Clock>,
        tell: Box<dyn FnMut(News)>,
        state: State,
    ) -> Self {
        let record = Record::new(&order, Arc::clone(&clock), state.unwritten.clone());
        let started = clock.now().steady;
        Self {
            order,
            command,
            clock,
            record,
            master,
            state,
            started,
            due: None,
            asked: None,
            hearing: Hearing::default(),
            witness,
            stopped: false,
            tell,
        }
    }

    /// Starts the agent for the first time. `None`: it was not, and why was told.
    pub fn begin(&mut self) -> Option<()> {
        let stage = match self.stage() {
            Ok(stage) => stage,
            Err(error) => return self.refuse(format!("the agent cannot be started: {error}"), CANNOT_START),
        };
        if let Err(taken) = self.record.begin(stage.pid) {
            return self.refuse(taken, TAKEN);
        }
        self.runs(stage.pid);
        if let Err(error) = stage.go() {
            self.record.forget();
            let program = self.command.first().map(Path::new).unwrap_or(Path::new(""));
            return self.refuse(sentence(program, &error), exit_code(&error));
        }
        Some(())
    }

    fn refuse(&mut self, why: String, code: u8) -> Option<()> {
        self.state.phase = Phase::Over(Ending(code.into()));
        (self.tell)(News::Refused(why, code));
        None
    }

    fn stage(&self) -> std::io::Result<Stage> {
        let stdio = match &self.master {
            None => Stdio3::Callers,
            Some(master) => Stdio3::Terminal { master, stderr: self.order.terminal_stderr },
        };
        Stage::start(&self.command, &self.order.tag, &self.order.blocked, stdio)
    }

    /// Told before the agent is: whoever takes over must know of it.
    fn runs(&mut self, pid: u32) {
        self.started = self.clock.now().steady;
        self.due = None;
        self.stopped = false;
        self.enter(Phase::Running(pid));
    }

    fn enter(&mut self, phase: Phase) {
        self.state.phase = phase;
        self.state.unwritten = self.record.unwritten().clone();
        (self.tell)(News::State(self.state.clone()));
    }

    /// The agent's process, while it runs.
    pub fn agent(&self) -> Option<u32> {
        match self.state.phase {
            Phase::Running(pid) => Some(pid),
            _ => None,
        }
    }

    /// How it ended for good.
    pub fn is_over(&self) -> bool {
        matches!(self.state.phase, Phase::Over(_))
    }

    /// How long until [`see_to`](Self::see_to) has something to do.
    pub fn due_in(&self) -> Option<Duration> {
        [self.start_due_in(), self.record.due_in()].into_iter().flatten().min()
    }

    fn start_due_in(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_sub(self.clock.now().steady))
    }

    /// Does what is due.
    pub fn see_to(&mut self) {
        if self.record.write_again() {
            self.enter(self.state.phase.clone());
        }
        self.start_again();
    }

    /// Tries for so long to write what the registry does not know yet. Nothing runs any more.
    pub fn finish(&mut self, patience: Duration) {
        self.record.finish(patience);
    }

    /// Takes what became of a child. Those that are not the agent are orphans of its, and were only to be waited for.
    pub fn hear(&mut self, pid: u32, change: Change) {
        if self.agent() != Some(pid) {
            return;
        }
        match change {
            Change::Ended(ending) => self.ended(pid, ending),
            Change::Stopped(signal) => {
                self.stopped = true;
                (self.tell)(News::Stopped(signal));
            }
            Change::Continued => {
                self.stopped = false;
                (self.tell)(News::Continued);
            }
        }
    }

    fn ended(&mut self, pid: u32, ending: Ending) {
        let now = self.clock.now().steady;
        let asked = self.asked.take().filter(|(until, _)| now <= *until).map(|(_, signal)| signal);
        let request = ending.request().or(asked);
        let again_in = match &mut self.state.restart {
            Some(backoff) if ending.is_failure() && request.is_none() => backoff.next(now.saturating_sub(self.started)),
            _ => None,
        };
        self.record.ended(ending, request, again_in, self.state.restart.as_ref());
        bury(pid);
        self.go_on_after(ending, again_in);
    }

    /// The agent has ended, and is started again after this time, if at all.
    fn go_on_after(&mut self, ending: Ending, again_in: Option<Duration>) {
        self.due = again_in.map(|wait| self.clock.now().steady + wait);
        self.enter(again_in.map_or(Phase::Over(ending), |wait| Phase::Waiting(ending, wait)));
    }

    /// Starts the agent again where that is due. Where it cannot be, it has failed once more.
    fn start_again(&mut self) {
        if self.start_due_in() != Some(Duration::ZERO) {
            return;
        }
        match self.stage() {
            Ok(stage) => {
                self.record.started_again(stage.pid);
                self.runs(stage.pid);
                if let Err(error) = stage.go() {
                    // The stage ends with the code that says so, and is seen to.
                    tracing::warn!("the agent cannot be started again: {error}");
                }
            }
            Err(error) => {
                tracing::warn!("the agent cannot be started again: {error}");
                let wait = self.state.restart.as_mut().and_then(|backoff| backoff.next(Duration::ZERO));
                let ending = Ending(CANNOT_START.into());
                self.record.ended(ending, None, wait, self.state.restart.as_ref());
                self.go_on_after(ending, wait);
            }
        }
    }

    /// Takes what the front has said of a signal.
    pub fn hinted(&mut self, hint: Hint) {
        match hint.signal {
            Signal::SIGCONT => self.go_on(),
            signal if hint.is_key => self.wanted(signal),
            signal => self.heard(Ear::Front, signal),
        }
    }

    /// Takes a signal that is meant for the agent, and passes it on unless the agent has it already.
    pub fn heard(&mut self, ear: Ear, signal: Signal) {
        let now = self.clock.now().steady;
        for to_all in self.witness.iter_mut().flat_map(Witness::heard) {
            self.hearing.came_to_all(to_all, now);
        }
        self.wanted(signal);
        if self.hearing.is_new(ear, signal, now) {
            self.pass_on(signal);
        }
    }

    /// What a signal says of what the user wants.
    fn wanted(&mut self, signal: Signal) {
        let number = signal as i32;
        let is_request = REQUESTS.contains(&number) || signal == Signal::SIGQUIT;
        if !is_request || self.order.ignored.contains(&number) {
            return;
        }
        if let Phase::Waiting(last, _) = self.state.phase {
            // Nothing runs that could be asked, and nothing is to be started.
            self.record.ended(last, Some(signal as i32), None, self.state.restart.as_ref());
            self.due = None;
            self.enter(Phase::Over(Ending(-(signal as i32))));
            return;
        }
        let now = self.clock.now().steady;
        let until = if [Signal::SIGINT, Signal::SIGQUIT].contains(&signal) { now + INTERRUPTED } else { Duration::MAX };
        self.asked = self.asked.max(Some((until, signal as i32)));
    }

    fn pass_on(&self, signal: Signal) {
        let Some(agent) = self.agent() else { return };
        let agent = agent.cast_signed();
        let front_group = self.master.as_ref().and_then(|master| tcgetpgrp(master).ok());
        let front_group = front_group.map(|group| group.as_raw_nonzero().get());
        match (signal, front_group) {
            // As a terminal does it that is closed or gets the key.
            (Signal::SIGHUP, Some(group)) if group != agent => {
                send(-group, signal);
                send(agent, signal);
            }
            (Signal::SIGTSTP, Some(group)) => send(-group, signal),
            _ => send(agent, signal),
        }
    }

    /// Hangs the agent up if it is stopped: nobody is left who could continue it.
    pub fn hang_up_if_stopped(&mut self) {
        if self.stopped {
            self.pass_on(Signal::SIGHUP);
            self.go_on();
        }
    }

    /// Continues the agent if it was stopped.
    pub fn go_on(&mut self) {
        let Some(agent) = self.agent().filter(|_| self.stopped) else { return };
        let agent = agent.cast_signed();
        // In a terminal of its own it leads a group; in the caller's, the shell sees to the group.
        send(if self.master.is_some() { -agent } else { agent }, Signal::SIGCONT);
        let group = self.master.as_ref().and_then(|master| tcgetpgrp(master).ok());
        if let Some(group) = group.map(|group| group.as_raw_nonzero().get()).filter(|group| *group != agent) {
            send(-group, Signal::SIGCONT);
        }
    }
}

/// What this process exits with where it could not do its part.
pub fn cannot_start() -> ExitCode {
    ExitCode::from(CANNOT_START)
}
