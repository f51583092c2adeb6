//! The keeper: starts the agent, waits for it, writes down its end, and starts it again.
//!
//! It is not what the user started, so that it lives on when that is killed: then it also takes what the agent writes to its
//! terminal, lest the agent wait for somebody to read it.

use super::children;
use super::edge::Edge;
use super::hearing::Ear;
use super::line;
use super::order::{Hint, News, Order};
use super::signals::{Signals, send};
use super::supervisor::{Supervisor, cannot_start};
use super::terminal::in_foreground;
use super::witness::Witness;
use crate::clock::SystemClock;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long what could not be written is tried once the agent has ended. Nobody waits for it.
const LAST_TRIES: Duration = Duration::from_secs(10);

/// The lines that the front has passed on: where it reads, where it writes, and the two of the witness.
#[derive(Debug)]
pub struct Lines {
    /// Where news goes.
    pub news: i32,
    /// Where hints come from.
    pub hints: i32,
    /// The witness's, where there is one.
    pub witness: Option<[i32; 2]>,
}

/// Keeps an agent. `front` is the process that has started this one.
pub fn run(order: Order, command: Vec<OsString>, front: u32, lines: &Lines) -> ExitCode {
    match keep(order, command, front, lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::warn!("the agent is not kept: {error}");
            cannot_start()
        }
    }
}

/// Where news goes, as long as somebody hears it.
type Link = Rc<RefCell<Option<File>>>;

/// The agent's terminal, of which the output is taken once nobody else does.
struct Master {
    terminal: OwnedFd,
    news: Edge,
    /// The modes of the user's terminal.
    modes: Option<Termios>,
}

fn keep(order: Order, command: Vec<OsString>, front: u32, lines: &Lines) -> io::Result<()> {
    let mut signals = Signals::take()?;
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))?;
    let link: Link = Rc::new(RefCell::new(Some(line::writing(lines.news)?)));
    let mut hints = Some(line::reading(lines.hints)?);
    let witness = lines.witness.map(|[ask, told]| Witness::inherited(ask, told)).transpose()?;
    let mut master = order.terminal.then(Master::take).transpose()?;
    let restarts = order.restart.is_some();
    let own = master.as_ref().map(|master| master.terminal.try_clone()).transpose()?;
    let clock = Arc::new(SystemClock::default());
    let mut supervisor = Supervisor::new(order, command, (own, witness), clock, teller(Rc::clone(&link)));
    if supervisor.begin().is_none() {
        return finish(&mut supervisor);
    }
    if !restarts {
        line::close_callers()?;
        if master.is_none() {
            let_go()?;
        }
    }
    while !supervisor.is_over() {
        let front_is_there = hints.is_some();
        wait(&mut supervisor, &signals, &mut hints, master.as_ref())?;
        while let Some(caught) = signals.next()? {
            if caught.is_for_agent() {
                supervisor.heard(Ear::Keeper, caught.signal);
            }
        }
        while let Some((pid, change)) = children::next(supervisor.agent()) {
            supervisor.hear(pid, change);
            if change == children::Change::Continued && hints.is_some() {
                // Somebody has continued the agent, and not whoever waits for it.
                send(front.cast_signed(), Signal::SIGCONT);
            }
        }
        supervisor.see_to();
        if let (None, Some(master)) = (&hints, &mut master) {
            if front_is_there {
                master.front_is_gone()?;
            }
            supervisor.hang_up_if_stopped();
            master.drain();
        }
    }
    finish(&mut supervisor)
}

/// Writes what is left to be written. Who waits for the end of what the agent writes does not wait for this.
fn finish(supervisor: &mut Supervisor) -> io::Result<()> {
    let_go()?;
    rustix::stdio::dup2_stderr(OpenOptions::new().write(true).open("/dev/null")?)?;
    supervisor.finish(LAST_TRIES);
    Ok(())
}

impl Master {
    /// The terminal that this process has as its standard input. Neither keys nor the closing of the caller's are for this
    /// process from now on.
    fn take() -> io::Result<Self> {
        // In the background they are somebody else's.
        let modes = tcgetattr(rustix::stdio::stdout()).ok().filter(|_| in_foreground(rustix::stdio::stdout()));
        rustix::process::setsid()?;
        let terminal = rustix::stdio::stdin().try_clone_to_owned()?;
        rustix::io::ioctl_fionbio(&terminal, true)?;
        Ok(Self { news: Edge::new(&terminal)?, terminal, modes })
    }

    /// Gives the user's terminal the modes back that it had, and leaves it.
    fn front_is_gone(&mut self) -> io::Result<()> {
        if let Some(modes) = self.modes.take()
            && let Err(error) = tcsetattr(rustix::stdio::stdout(), OptionalActions::Now, &modes)
        {
            tracing::debug!("the terminal's modes are not restored: {error}");
        }
        let_go()
    }

    /// Takes what the agent has written.
    fn drain(&self) {
        self.news.clear();
        let mut bytes = [0_u8; 4096];
        while rustix::io::read(&self.terminal, &mut bytes).is_ok_and(|count| count > 0) {}
    }
}

/// Writes each news as a line. Who cannot be told is gone.
fn teller(link: Link) -> Box<dyn FnMut(News)> {
    Box::new(move |news| {
        let told = link.borrow_mut().as_mut().map(|to| {
            let mut line = serde_json::to_vec(&news)?;
            line.push(b'\n');
            to.write_all(&line)
        });
        if let Some(Err(error)) = told {
            tracing::debug!("whoever has started this process is gone: {error}");
            link.replace(None);
        }
    })
}

/// Waits for whatever comes next. That the front is gone is seen by the end of its line.
fn wait(
    supervisor: &mut Supervisor,
    signals: &Signals,
    hints: &mut Option<File>,
    master: Option<&Master>,
) -> io::Result<()> {
    let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
    match (&*hints, master) {
        (Some(hints), _) => fds.push(PollFd::new(hints, PollFlags::IN)),
        (None, Some(master)) => fds.push(PollFd::new(&master.news, PollFlags::IN)),
        (None, None) => {}
    }
    line::wait(&mut fds, supervisor.due_in())?;
    let is_ready = fds.get(1).is_some_and(line::is_ready);
    drop(fds);
    if let Some(from) = hints.as_mut().filter(|_| is_ready) {
        let mut bytes = [0; 64];
        match from.read(&mut bytes)? {
            0 => *hints = None,
            count => bytes[..count].iter().filter_map(|byte| Hint::of(*byte)).for_each(|hint| supervisor.hinted(hint)),
        }
    }
    Ok(())
}

/// Lets go of what only the agent is to have open: who reads what it writes waits for the last who could write, and the other
/// way round.
pub fn let_go() -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}
