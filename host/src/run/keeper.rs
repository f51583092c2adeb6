//! The keeper: starts the agent, waits for it, writes down its end, and starts it again.
//!
//! It is not what the user started, so that it lives on when that is killed: then it also takes what the agent writes to its
//! terminal, lest the agent wait for somebody to read it.

use super::children;
use super::line;
use super::order::{News, Order};
use super::signals::{Signals, send};
use super::supervisor::{Supervisor, cannot_start};
use crate::clock::SystemClock;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

/// Keeps an agent. `front` is the process that has started this one, and reads the line with this number.
pub fn run(order: Order, command: Vec<OsString>, front: u32, line: i32) -> ExitCode {
    match keep(order, command, front, line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::warn!("the agent is not kept: {error}");
            cannot_start()
        }
    }
}

/// Where news goes, as long as somebody hears it.
type Link = Rc<RefCell<Option<File>>>;

fn keep(order: Order, command: Vec<OsString>, front: u32, line: i32) -> io::Result<()> {
    let mut signals = Signals::take()?;
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))?;
    let link: Link = Rc::new(RefCell::new(Some(line::writing(front, line)?)));
    let mut master = None;
    let mut modes = None;
    if order.terminal {
        // Neither keys nor the closing of the caller's terminal are for this process.
        rustix::process::setsid()?;
        master = Some(rustix::stdio::stdin().try_clone_to_owned()?);
        modes = tcgetattr(rustix::stdio::stdout()).ok();
    }
    let restarts = order.restart.is_some();
    let own = master.as_ref().map(OwnedFd::try_clone).transpose()?;
    let clock = Arc::new(SystemClock::default());
    let mut supervisor = Supervisor::new(order, command, own, clock, teller(Rc::clone(&link)));
    if supervisor.begin().is_none() {
        return Ok(());
    }
    if !restarts && master.is_none() {
        let_go()?;
    }
    while !supervisor.is_over() {
        wait(&supervisor, &signals, &link, master.as_ref())?;
        while let Some(caught) = signals.next()? {
            match caught.signal {
                Signal::SIGCHLD | Signal::SIGWINCH | Signal::SIGTTIN | Signal::SIGTTOU => {}
                Signal::SIGCONT if caught.sender == front => supervisor.go_on(),
                Signal::SIGCONT => {}
                signal if caught.sender == front => supervisor.relayed(signal),
                _ => supervisor.heard(caught),
            }
        }
        while let Some((pid, change)) = children::next(supervisor.agent()) {
            supervisor.hear(pid, change);
            if change == children::Change::Continued && link.borrow().is_some() {
                // Somebody has continued the agent, and not whoever waits for it.
                send(front.cast_signed(), Signal::SIGCONT);
            }
        }
        supervisor.start_again();
        if link.borrow().is_none() {
            // Once, and as the user's shell needs it.
            restore(modes.take());
            master.as_ref().map(drain).transpose()?;
        }
    }
    Ok(())
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

/// Waits for whatever comes next. Whether the front is there is seen by its end of the line.
fn wait(supervisor: &Supervisor, signals: &Signals, link: &Link, master: Option<&OwnedFd>) -> io::Result<()> {
    let gone = {
        let link = link.borrow();
        let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
        match (&*link, master) {
            (Some(link), _) => fds.push(PollFd::from_borrowed_fd(link.as_fd(), PollFlags::empty())),
            // A terminal that nobody has open is always ready, and has nothing to read.
            (None, Some(master)) if supervisor.agent().is_some() => fds.push(PollFd::new(master, PollFlags::IN)),
            (None, _) => {}
        }
        line::wait(&mut fds, supervisor.due_in())?;
        link.is_some() && fds.get(1).is_some_and(|fd| fd.revents().contains(PollFlags::ERR))
    };
    if gone {
        link.replace(None);
    }
    Ok(())
}

/// Takes what the agent has written to its terminal.
fn drain(master: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(master, true)?;
    let mut bytes = [0_u8; 4096];
    while rustix::io::read(master, &mut bytes).is_ok_and(|count| count > 0) {}
    Ok(())
}

/// Gives the caller's terminal the modes back that it had before the front was killed.
fn restore(modes: Option<Termios>) {
    if let Some(modes) = modes
        && let Err(error) = tcsetattr(rustix::stdio::stdout(), OptionalActions::Now, &modes)
    {
        tracing::debug!("the terminal's modes are not restored: {error}");
    }
}

/// Lets go of what only the agent is to have open: who reads what it writes waits for the last who could write, and the other
/// way round.
pub fn let_go() -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}
