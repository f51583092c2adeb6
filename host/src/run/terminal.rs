//! The user's terminal and the agent's, and the bytes between them.
//!
//! The agent has a terminal of its own, so that it lives on when the one that the user sits at is gone. The user's is put in
//! raw mode meanwhile: each key goes to the agent's, and what it means is decided there.

use super::line::{self, Line};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetwinsize};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::Duration;

/// How long a terminal that others still have open must be silent to count as read to the end.
const SILENCE: Duration = Duration::from_millis(30);

/// The most that is read of one side before it is written to the other.
const CHUNK: usize = 16 << 10;

/// Whether the caller's standard input and output are a terminal, and whether its standard error is the same.
pub fn callers() -> (bool, bool) {
    let both = isatty(stdin()) && isatty(stdout());
    let device = |stat: rustix::io::Result<rustix::fs::Stat>| stat.ok().map(|stat| stat.st_rdev);
    let same = || isatty(stderr()) && device(rustix::fs::fstat(stderr())) == device(rustix::fs::fstat(stdin()));
    (both, both && same())
}

/// Both terminals.
pub struct Terminals {
    master: Arc<OwnedFd>,
    /// The user's modes.
    saved: Termios,
    raw: bool,
    /// Whether the user's terminal may still say something.
    open: bool,
    /// Keys that the agent's terminal has not taken yet.
    typed: Vec<u8>,
    output: Output,
}

impl Terminals {
    /// Makes a terminal like the one that the user sits at. Nothing is copied yet.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let saved = tcgetattr(stdin())?;
        tcsetattr(&master, OptionalActions::Now, &saved)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        let master = Arc::new(master);
        let it = Self { output: Output::default(), master, saved, raw: false, open: true, typed: Vec::new() };
        it.resize();
        Ok(it)
    }

    /// The agent's terminal, from the other side.
    pub fn master(&self) -> &OwnedFd {
        &self.master
    }

    /// Begins to copy what the agent writes.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(&mut self) -> io::Result<()> {
        self.output = Output::start(Arc::clone(&self.master))?;
        self.take();
        Ok(())
    }

    /// Gives the agent's terminal the size of the user's; the kernel tells the agent.
    pub fn resize(&self) {
        if let Ok(size) = tcgetwinsize(stdin())
            && let Err(error) = tcsetwinsize(&self.master, size)
        {
            tracing::debug!("the terminal keeps its size: {error}");
        }
    }

    /// Takes the user's terminal, if this process may: in the background it may not.
    pub fn take(&mut self) {
        if !self.raw && self.open && in_foreground() {
            let mut modes = self.saved.clone();
            modes.make_raw();
            self.raw = tcsetattr(stdin(), OptionalActions::Now, &modes).is_ok();
            self.resize();
        }
    }

    /// Gives the user's terminal back as it was.
    pub fn give_back(&mut self) {
        if std::mem::take(&mut self.raw) {
            // One that is gone needs no modes.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.saved);
        }
    }

    /// Whether keys wait to be asked for only because this process is in the background.
    pub fn waits_for_foreground(&self) -> bool {
        self.open && !self.raw
    }

    /// What to wait for: keys, or that the agent's terminal takes those that it has not taken.
    pub fn interests(&self) -> Option<PollFd<'_>> {
        if !self.typed.is_empty() {
            return Some(PollFd::new(&self.master, PollFlags::OUT));
        }
        (self.open && self.raw).then(|| PollFd::from_borrowed_fd(stdin(), PollFlags::IN))
    }

    /// Passes keys on, as many as there are and as the agent's terminal takes.
    pub fn pass_keys(&mut self) {
        if self.typed.is_empty() {
            let mut keys = vec![0; 4096];
            match rustix::io::read(stdin(), &mut keys) {
                Ok(0) => self.open = false,
                Ok(count) => {
                    keys.truncate(count);
                    self.typed = keys;
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => self.open = false,
            }
        }
        match rustix::io::write(&self.master, &self.typed) {
            Ok(count) => drop(self.typed.drain(..count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The agent has closed its terminal.
            Err(_) => self.typed.clear(),
        }
    }

    /// Waits a moment for what the agent has written already: it belongs before whatever comes now.
    pub fn settle(&self) {
        for _ in 0..100 {
            let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
            let nothing = line::wait(&mut fds, Some(Duration::ZERO)).is_ok() && fds[0].revents().is_empty();
            if nothing && !self.output.is_copying() {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Has all that the agent has written copied to the end, and says where to wait for that.
    pub fn finish(&mut self) -> Option<PipeReader> {
        self.open = false;
        self.output.finish()
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn in_foreground() -> bool {
    // A terminal that is not this process's own has no foreground to be in.
    tcgetpgrp(stdin()).map_or(true, |group| group == rustix::process::getpgrp())
}

/// What copies the agent's output. A thread, because a terminal that is held (Ctrl-S) blocks who writes to it.
#[derive(Default)]
struct Output {
    copying: Arc<Mutex<()>>,
    /// Closed when the rest is to be copied.
    go_on: Option<PipeWriter>,
    /// Closed by the thread when it ends.
    ended: Option<PipeReader>,
}

impl Output {
    fn start(master: Arc<OwnedFd>) -> io::Result<Self> {
        let (go_on, ended) = (Line::new()?, Line::new()?);
        let copying = Arc::new(Mutex::new(()));
        let lock = Arc::clone(&copying);
        let copy = move || {
            let _ended = ended.writer;
            if let Err(error) = copy(&master, &go_on.reader, &lock) {
                tracing::warn!("what the agent writes is not shown: {error}");
            }
        };
        thread::Builder::new().name("output".to_owned()).spawn(copy)?;
        Ok(Self { copying, go_on: Some(go_on.writer), ended: Some(ended.reader) })
    }

    fn is_copying(&self) -> bool {
        matches!(self.copying.try_lock(), Err(TryLockError::WouldBlock))
    }

    fn finish(&mut self) -> Option<PipeReader> {
        self.go_on = None;
        self.ended.take()
    }
}

/// Copies until `go_on` is closed, and then what is left.
fn copy(master: &OwnedFd, go_on: &PipeReader, copying: &Mutex<()>) -> io::Result<()> {
    let mut shows = true;
    let mut finishing = false;
    let mut closed = false;
    loop {
        let mut fds = vec![PollFd::new(master, PollFlags::IN)];
        if closed {
            // Between one agent and the next nobody has it open: it is always ready and has nothing to say.
            fds.clear();
        }
        if !finishing {
            fds.push(PollFd::new(go_on, PollFlags::IN));
        }
        line::wait(&mut fds, (finishing || closed).then_some(SILENCE))?;
        let has_more = closed || line::is_ready(&fds[0]);
        if !finishing && fds.last().is_some_and(line::is_ready) {
            finishing = true;
        } else if finishing && !has_more {
            return Ok(());
        }
        let _copying = copying.lock();
        let mut bytes = [0; CHUNK];
        closed = match rustix::io::read(master, &mut bytes) {
            Ok(0) => true,
            Ok(count) => {
                shows = shows && write_all(&bytes[..count]);
                false
            }
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(_) => true,
        };
        if closed && finishing {
            return Ok(());
        }
    }
}

/// Whether the user's terminal has taken it all. What is not shown is read all the same, or the agent would wait.
fn write_all(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(stdout(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)];
                if line::wait(&mut fds, None).is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
    true
}
