//! Signals as something that is read: none of them ends or stops who passes them on.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// What is passed on to the agent.
pub const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
];

/// What else is read, or at least does nothing.
const OTHERS: [Signal; 5] = [Signal::SIGCHLD, Signal::SIGCONT, Signal::SIGWINCH, Signal::SIGTTIN, Signal::SIGTTOU];

/// The kernel itself has sent it, as for a key or a closed terminal (`SI_KERNEL`).
const BY_KERNEL: i32 = 0x80;

/// The signals of this process, to be read. Programs that it starts inherit that they are blocked, and must [let](let_through)
/// them through again.
#[derive(Debug)]
pub struct Signals(SignalFd);

/// A signal that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caught {
    /// Which.
    pub signal: Signal,
    /// Whether the kernel has sent it, to this process and others alike.
    pub by_kernel: bool,
    /// The process that has sent it.
    pub sender: u32,
}

impl Signals {
    /// Takes the signals from now on. Called before any thread is started, which would get them otherwise.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take() -> io::Result<Self> {
        let mask = ours();
        mask.thread_block()?;
        Ok(Self(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// The next that has come, lowest number first; `None`: there is none now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Caught>> {
        let Some(info) = self.0.read_signal()? else { return Ok(None) };
        let signal = Signal::try_from(info.ssi_signo.cast_signed())?;
        Ok(Some(Caught { signal, by_kernel: info.ssi_code == BY_KERNEL, sender: info.ssi_pid }))
    }
}

fn ours() -> SigSet {
    PASSED_ON.into_iter().chain(OTHERS).collect()
}

/// Sees to it that the end of children is heard of. Where whoever started this process ignores SIGCHLD, so does this process until
/// it handles it, and the kernel would tell nobody how a child has ended.
///
/// # Errors
/// When the system refuses.
pub fn hear_of_children() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // The handler stays when this is dropped. It is never run, for the signal is read.
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child()).map(drop)
}

/// Those of the signals that [`Signals`] would take that this process was started with blocked.
///
/// # Errors
/// When the system refuses.
pub fn blocked() -> io::Result<Vec<i32>> {
    let mask = SigSet::thread_get_mask()?;
    Ok(ours().iter().filter(|signal| mask.contains(*signal)).map(|signal| signal as i32).collect())
}

/// Lets all of them through again, but for those that were `blocked` before.
///
/// # Errors
/// When the system refuses.
pub fn let_through(blocked: &[i32]) -> io::Result<()> {
    let mask: SigSet = ours().iter().filter(|signal| !blocked.contains(&(*signal as i32))).collect();
    Ok(mask.thread_unblock()?)
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends a signal to a process, or to a group where the number is negative. One that has ended needs none.
pub fn send(to: i32, signal: Signal) {
    if let Err(error) = kill(Pid::from_raw(to), signal)
        && error != Errno::ESRCH
    {
        tracing::warn!("{signal} cannot be sent to process {to}: {error}");
    }
}

/// Ends this process by the same signal as ended the agent, so that whoever waits sees the same. Comes back where that
/// does not work: the signal is one that this process does not die of.
pub fn die_of(signal: i32) {
    let Ok(signal) = Signal::try_from(signal) else { return };
    // The agent's core is the one that somebody may want.
    let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
    let _ = SigSet::from_iter([signal]).thread_unblock();
    let _ = nix::sys::signal::raise(signal);
}
