//! The front: the process that the user started, and that stands for the agent where it was started.
//!
//! It passes on keys, output and signals, stops and goes on as the agent does, and ends as it ended. If the keeper is killed,
//! its children come to this process, which then does its work too.

use super::children::{self, Change};
use super::ending::Ending;
use super::keeper::let_go;
use super::line::{self, Line};
use super::order::{Hint, News, Order, Phase, State};
use super::signals::{Signals, die_of, hear_of_children, send, stop_as_by_key};
use super::stage::{CANNOT_START, PROGRAM};
use super::supervisor::Supervisor;
use super::terminal::Terminals;
use super::unwritten::Unwritten;
use super::witness::Witness;
use crate::clock::SystemClock;
use crate::text::Wait;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// How often a process in the background looks whether it was brought to the foreground: nothing tells it.
const BACKGROUND: Duration = Duration::from_millis(200);

/// How long what could not be written is tried once the agent has ended. The user waits for it.
const LAST_TRIES: Duration = Duration::from_secs(2);

/// Runs `command` as `order` says. Comes back with its exit code, or ends as it did.
///
/// # Errors
/// When nothing can be started.
pub fn run(order: Order, command: Vec<OsString>) -> io::Result<ExitCode> {
    hear_of_children()?;
    let signals = Signals::take()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let terminals = order.terminal.then(Terminals::new).transpose()?;
    let (news, hints) = (Line::new()?, Line::new()?);
    rustix::io::ioctl_fionbio(&news.reader, true)?;
    let (witness, witness_pid) = if order.terminal { None } else { Some(Witness::start()?) }.unzip();
    let keeper = start_keeper(&order, &command, terminals.as_ref(), [&news, &hints], witness.as_ref())?;
    let mut front = Front {
        signals,
        link: news.reader,
        hints,
        said: Vec::new(),
        keeper: Some(keeper),
        state: State { phase: Phase::Beginning, restart: order.restart.clone(), unwritten: Unwritten::default() },
        supervision: None,
        terminals,
        order,
        command,
        witness,
        unclaimed: None,
        stopped: None,
        continued: false,
        outcome: None,
    };
    // The keeper is to be the only one who has it open.
    drop(news.writer);
    let outcome = front.stand();
    drop(front);
    if let Some(witness) = witness_pid {
        send(witness.cast_signed(), Signal::SIGKILL);
        children::bury_soon(witness);
    }
    match outcome? {
        Outcome::Ended(ending) => {
            if let Some(signal) = ending.signal() {
                die_of(signal);
            }
            Ok(ExitCode::from(ending.exit_code()))
        }
        Outcome::Refused(why, code) => {
            crate::stderr::line(&format!("headcount: {why}"));
            Ok(ExitCode::from(code))
        }
    }
}

/// What came of the run.
#[derive(Debug, Clone)]
enum Outcome {
    /// The agent has ended so.
    Ended(Ending),
    /// Nothing was started: why, and what to exit with.
    Refused(String, u8),
}

struct Front {
    order: Order,
    command: Vec<OsString>,
    signals: Signals,
    /// What the keeper says, and the part of it that is no whole line yet.
    link: PipeReader,
    said: Vec<u8>,
    /// What is said to the keeper. What it has not read when it ends is for this process to do.
    hints: Line,
    /// The keeper's pid while it lives.
    keeper: Option<u32>,
    /// Where the run stands, as the keeper has said last.
    state: State,
    /// The keeper's work, once it is this process's, and what is new of it.
    supervision: Option<(Supervisor, Receiver<News>)>,
    terminals: Option<Terminals>,
    /// What became of the agent before it was known that its keeper is gone.
    unclaimed: Option<(u32, Change)>,
    /// For when this process does the keeper's work.
    witness: Option<Witness>,
    /// By which signal the agent was stopped, and this process is to be.
    stopped: Option<i32>,
    /// Whether this process was continued since it last stopped.
    continued: bool,
    outcome: Option<Outcome>,
}

impl Front {
    /// Does its part until the run is over.
    fn stand(&mut self) -> io::Result<Outcome> {
        loop {
            self.wait()?;
            self.take_signals()?;
            self.take_changes()?;
            if let Some((supervisor, _)) = &mut self.supervision {
                supervisor.see_to();
            }
            self.take_news()?;
            if let Some(outcome) = self.outcome.take() {
                self.finish()?;
                return Ok(outcome);
            }
            if let Some(signal) = self.stopped.take() {
                self.stop(signal)?;
            }
        }
    }

    /// Waits for whatever comes next. Keys are passed on here.
    fn wait(&mut self) -> io::Result<()> {
        let due = self.supervision.as_ref().and_then(|(supervisor, _)| supervisor.due_in());
        let mut keys = false;
        let mut patience = due;
        let runs = self.runs();
        if let Some(terminals) = self.terminals.as_mut().filter(|_| runs) {
            if terminals.waits_for_foreground() {
                terminals.take();
            }
            if terminals.waits_for_foreground() {
                patience = Some(due.unwrap_or(BACKGROUND).min(BACKGROUND));
            }
        }
        {
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            if self.keeper.is_some() {
                fds.push(PollFd::new(&self.link, PollFlags::IN));
            }
            let own = fds.len();
            fds.extend(self.terminals.as_ref().and_then(Terminals::interests));
            line::wait(&mut fds, patience)?;
            keys |= fds.get(own).is_some_and(|fd| !fd.revents().is_empty());
        }
        if keys {
            // Told first: the agent may end of the key before anything else can be said.
            for signal in self.terminals.iter_mut().flat_map(Terminals::read_keys).collect::<Vec<_>>() {
                self.hint(Hint { signal, is_key: true })?;
            }
            self.terminals.iter_mut().for_each(Terminals::pass_keys);
        }
        Ok(())
    }

    fn take_signals(&mut self) -> io::Result<()> {
        while let Some(caught) = self.signals.next()? {
            match caught.signal {
                Signal::SIGWINCH => self.terminals.iter().for_each(Terminals::resize),
                Signal::SIGCONT => self.go_on()?,
                // There is no agent that could be stopped.
                Signal::SIGTSTP if caught.is_for_agent() && !self.runs() => self.stopped = Some(caught.signal as i32),
                signal if caught.is_for_agent() => self.hint(Hint { signal, is_key: false })?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Has whoever supervises the agent take a signal.
    fn hint(&mut self, hint: Hint) -> io::Result<()> {
        match &mut self.supervision {
            Some((supervisor, _)) => supervisor.hinted(hint),
            None => self.hints.writer.write_all(&[hint.byte()])?,
        }
        Ok(())
    }

    fn runs(&self) -> bool {
        matches!(self.state.phase, Phase::Running(_))
    }

    fn go_on(&mut self) -> io::Result<()> {
        self.continued = true;
        if self.runs() {
            self.terminals.iter_mut().for_each(Terminals::take_again);
        }
        self.hint(Hint { signal: Signal::SIGCONT, is_key: false })
    }

    /// Stops as the agent was stopped, so that the user's shell goes on. Where no shell could continue this process, it is not
    /// stopped, and a key has not stopped the agent either.
    fn stop(&mut self, signal: i32) -> io::Result<()> {
        if let Some(terminals) = &mut self.terminals {
            terminals.settle();
            terminals.give_back();
            // In the caller's terminal, the key would have stopped all of the process group.
            send(0, Signal::SIGTSTP);
        }
        self.continued = false;
        stop_as_by_key()?;
        self.take_signals()?;
        if !self.continued && signal == Signal::SIGTSTP as i32 {
            self.go_on()?;
        }
        Ok(())
    }

    fn take_changes(&mut self) -> io::Result<()> {
        loop {
            let agent = self.supervision.as_ref().and_then(|(supervisor, _)| supervisor.agent());
            let Some((pid, change)) = children::next(agent) else { return Ok(()) };
            match &mut self.supervision {
                _ if self.keeper == Some(pid) => self.keeper_changed(pid, change)?,
                Some((supervisor, _)) => supervisor.hear(pid, change),
                None if self.state.phase == Phase::Running(pid) => self.unclaimed = Some((pid, change)),
                // An orphan of the agent, whose keeper ends.
                None => {}
            }
        }
    }

    fn keeper_changed(&mut self, keeper: u32, change: Change) -> io::Result<()> {
        match change {
            // Nobody wants that: who stops the agent stops the agent.
            Change::Stopped(_) => send(keeper.cast_signed(), Signal::SIGCONT),
            Change::Continued => {}
            Change::Ended(_) => {
                self.take_news()?;
                self.keeper = None;
                self.take_over()?;
            }
        }
        Ok(())
    }

    /// Does what the keeper did, where that has ended before its work has.
    fn take_over(&mut self) -> io::Result<()> {
        match self.state.phase {
            _ if self.outcome.is_some() => return Ok(()),
            Phase::Over(ending) => {
                self.outcome = Some(Outcome::Ended(ending));
                return Ok(());
            }
            Phase::Beginning => {
                let why = "the agent was not started: the process that was to start it has ended".to_owned();
                self.outcome = Some(Outcome::Refused(why, CANNOT_START));
                return Ok(());
            }
            Phase::Running(_) | Phase::Waiting(..) => {}
        }
        let (sender, news) = mpsc::channel();
        let tell = Box::new(move |new| {
            // The receiver lives as long as this process.
            let _ = sender.send(new);
        });
        let master = self.terminals.as_ref().map(|terminals| terminals.master().try_clone()).transpose()?;
        let (order, command) = (self.order.clone(), self.command.clone());
        let clock = Arc::new(SystemClock::default());
        let means = (master, self.witness.take());
        let mut supervisor = Supervisor::adopting(order, command, means, clock, tell, self.state.clone());
        if let Some((pid, change)) = self.unclaimed.take() {
            supervisor.hear(pid, change);
        }
        let mut unread = [0; 64];
        rustix::io::ioctl_fionbio(&self.hints.reader, true)?;
        while let Ok(count @ 1..) = self.hints.reader.read(&mut unread) {
            unread[..count].iter().filter_map(|byte| Hint::of(*byte)).for_each(|hint| supervisor.hinted(hint));
        }
        self.supervision = Some((supervisor, news));
        Ok(())
    }

    /// Takes what the keeper has said, or the own supervisor.
    fn take_news(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        while self.keeper.is_some() {
            match self.link.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => self.said.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while let Some(end) = self.said.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.said.drain(..=end).collect();
            self.hear(serde_json::from_slice(&line)?)?;
        }
        let own: Vec<News> = self.supervision.iter().flat_map(|(_, news)| news.try_iter()).collect();
        own.into_iter().try_for_each(|new| self.hear(new))
    }

    fn hear(&mut self, news: News) -> io::Result<()> {
        match news {
            News::State(state) => {
                let begins = self.state.phase == Phase::Beginning;
                if let Phase::Over(ending) = state.phase {
                    self.outcome = Some(Outcome::Ended(ending));
                }
                self.state = state;
                if begins {
                    self.begins()?;
                }
                if let Phase::Waiting(ending, wait) = self.state.phase {
                    self.waits(ending, wait);
                }
            }
            News::Stopped(signal) => self.stopped = Some(signal),
            News::Continued => self.stopped = None,
            News::Refused(why, code) => self.outcome = Some(Outcome::Refused(why, code)),
        }
        Ok(())
    }

    /// The agent has ended, and is started again after a while. Whoever sits there has to know what it waits for.
    fn waits(&mut self, ending: Ending, wait: Duration) {
        if let Some(terminals) = &mut self.terminals {
            // Keys are this process's again: Ctrl-C gives up.
            terminals.settle();
            terminals.give_back();
        }
        if io::stderr().is_terminal() {
            crate::stderr::line(&format!("headcount: {ending}; starts again in {} (Ctrl-C ends)", Wait(wait)));
        }
    }

    /// The agent runs, or is about to.
    fn begins(&mut self) -> io::Result<()> {
        if self.order.restart.is_none() {
            line::close_callers()?;
        }
        match &mut self.terminals {
            Some(terminals) => terminals.begin(),
            None if self.order.restart.is_none() => let_go(),
            None => Ok(()),
        }
    }

    /// Shows what the agent has written before it ended. Who sends a signal meanwhile wants no more of it.
    fn finish(&mut self) -> io::Result<()> {
        self.show_the_rest()?;
        if let Some((supervisor, _)) = &mut self.supervision {
            supervisor.finish(LAST_TRIES);
        }
        Ok(())
    }

    fn show_the_rest(&mut self) -> io::Result<()> {
        let Some(terminals) = &mut self.terminals else { return Ok(()) };
        if let Some(ended) = terminals.finish() {
            loop {
                let mut fds = [PollFd::new(&ended, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
                line::wait(&mut fds, None)?;
                if line::is_ready(&fds[0]) {
                    break;
                }
                let asked = self.signals.next()?;
                let is_request =
                    |signal| super::ending::REQUESTS.contains(&signal) && !self.order.ignored.contains(&signal);
                if asked.is_some_and(|caught| is_request(caught.signal as i32)) {
                    break;
                }
            }
        }
        terminals.give_back();
        Ok(())
    }
}

fn start_keeper(
    order: &Order,
    command: &[OsString],
    terminals: Option<&Terminals>,
    [news, hints]: [&Line; 2],
    witness: Option<&Witness>,
) -> io::Result<u32> {
    let mut keeper = Command::new(PROGRAM);
    keeper.arg0("headcount").arg("keep").arg(&order.state).arg(serde_json::to_string(order)?);
    keeper.arg(std::process::id().to_string()).args([line::number(&news.writer), line::number(&hints.reader)]);
    let mut ends = vec![news.writer.as_fd(), hints.reader.as_fd()];
    for end in witness.iter().flat_map(|witness| witness.ends()) {
        keeper.arg(format!("--witness={}", line::number(end)));
        ends.push(end.as_fd());
    }
    keeper.arg("--").args(command);
    if let Some(terminals) = terminals {
        let master: OwnedFd = terminals.master().try_clone()?;
        keeper.stdin(Stdio::from(master));
    }
    Ok(line::spawn(&mut keeper, &ends)?.id())
}
