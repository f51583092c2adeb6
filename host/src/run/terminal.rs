//! The user's terminal and the agent's, and the bytes between them.
//!
//! The agent has a terminal of its own, so that it lives on when the one that the user sits at is gone. The user's is put in
//! raw mode meanwhile: each key goes to the agent's, and what it means is decided there.

use super::edge::Edge;
use super::line::{self, Line};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcgetsid, tcgetwinsize,
    tcsetattr, tcsetwinsize,
};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{BorrowedFd, OwnedFd};
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
    let same = || device(rustix::fs::fstat(stderr())) == device(rustix::fs::fstat(stdin()));
    // By whatever name: a session has one terminal, and only of that one this is told.
    let own = || tcgetsid(stdin()).is_ok() && tcgetsid(stderr()).is_ok();
    (both, both && isatty(stderr()) && (same() || own()))
}

/// Both terminals.
pub struct Terminals {
    master: Arc<OwnedFd>,
    /// The user's modes, once this process was in the foreground: in the background they are somebody else's.
    saved: Option<Termios>,
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
        let saved = in_foreground(stdin()).then(|| tcgetattr(stdin())).transpose()?;
        if let Some(saved) = &saved {
            tcsetattr(&master, OptionalActions::Now, saved)?;
        }
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
        if self.raw || !self.open || !in_foreground(stdin()) {
            return;
        }
        if self.saved.is_none() {
            self.saved = tcgetattr(stdin()).ok();
        }
        if let Some(mut modes) = self.saved.clone() {
            modes.make_raw();
            self.raw = tcsetattr(stdin(), OptionalActions::Now, &modes).is_ok();
            self.resize();
        }
    }

    /// Takes it again after this process was stopped: whoever used it meanwhile has set its own modes.
    pub fn take_again(&mut self) {
        self.raw = false;
        self.take();
    }

    /// Gives the user's terminal back as it was.
    pub fn give_back(&mut self) {
        if let Some(saved) = self.saved.as_ref().filter(|_| self.raw) {
            // One that is gone needs no modes.
            let _ = tcsetattr(stdin(), OptionalActions::Now, saved);
        }
        self.raw = false;
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

    /// Reads keys, unless some are still to be [passed on](Self::pass_keys). Says which of them are signals there.
    pub fn read_keys(&mut self) -> Vec<Signal> {
        if !self.typed.is_empty() {
            return Vec::new();
        }
        let mut keys = vec![0; 4096];
        match rustix::io::read(stdin(), &mut keys) {
            Ok(count @ 1..) => {
                keys.truncate(count);
                self.typed = keys;
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            _ => self.open = false,
        }
        self.signals_of(&self.typed)
    }

    /// Passes on the keys that were read, as many as the agent's terminal takes.
    pub fn pass_keys(&mut self) {
        match rustix::io::write(&self.master, &self.typed) {
            Ok(count) => drop(self.typed.drain(..count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The agent has closed its terminal.
            Err(_) => self.typed.clear(),
        }
    }

    /// The signals that the agent's terminal makes of these keys, as it is set now.
    fn signals_of(&self, keys: &[u8]) -> Vec<Signal> {
        let Ok(modes) = tcgetattr(&self.master) else { return Vec::new() };
        if !modes.local_modes.contains(LocalModes::ISIG) {
            return Vec::new();
        }
        let codes = [(SpecialCodeIndex::VINTR, Signal::SIGINT), (SpecialCodeIndex::VQUIT, Signal::SIGQUIT)];
        let of = |key: &u8| codes.iter().find(|(code, _)| *key != 0 && modes.special_codes[*code] == *key);
        keys.iter().filter_map(of).map(|(_, signal)| *signal).collect()
    }

    /// Waits a moment for what the agent has written already: it belongs before whatever comes now.
    pub fn settle(&self) {
        for _ in 0..100 {
            let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
            let nothing =
                line::wait(&mut fds, Some(Duration::ZERO)).is_ok() && !fds[0].revents().contains(PollFlags::IN);
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

/// Whether this process is in the terminal's foreground. One that is not its own has none to be in.
pub fn in_foreground(terminal: BorrowedFd<'_>) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == rustix::process::getpgrp())
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
    let news = Edge::new(master)?;
    let mut shows = true;
    let mut finishing = false;
    loop {
        let mut fds = vec![PollFd::new(&news, PollFlags::IN)];
        if !finishing {
            fds.push(PollFd::new(go_on, PollFlags::IN));
        }
        line::wait(&mut fds, finishing.then_some(SILENCE))?;
        let is_last = finishing && !line::is_ready(&fds[0]);
        finishing |= fds.get(1).is_some_and(line::is_ready);
        news.clear();
        let _copying = copying.lock();
        let is_closed = copy_what_is_there(master, &mut shows);
        if is_last || finishing && is_closed {
            return Ok(());
        }
    }
}

/// Copies what can be read now, and says whether nobody has the other side open.
fn copy_what_is_there(master: &OwnedFd, shows: &mut bool) -> bool {
    let mut bytes = [0; CHUNK];
    loop {
        match rustix::io::read(master, &mut bytes) {
            Ok(0) => return true,
            Ok(count) => *shows = *shows && write_all(&bytes[..count]),
            Err(Errno::INTR) => {}
            Err(error) => return error != Errno::AGAIN,
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
