//! Signals as something that is read: none of them ends or stops who passes them on.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// What is read and not passed on. SIGCONT has a meaning of its own; the window's size, the state of children and what a
/// terminal forbids are each process's own.
const NOT_PASSED_ON: [Signal; 5] =
    [Signal::SIGCHLD, Signal::SIGCONT, Signal::SIGWINCH, Signal::SIGTTIN, Signal::SIGTTOU];

/// The signals of this process, to be read. Programs that it starts inherit that they are blocked, and must [let](let_through)
/// them through again.
#[derive(Debug)]
pub struct Signals(SignalFd);

/// A signal that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caught {
    /// Which.
    pub signal: Signal,
    /// The process that has sent it; 0 where the kernel has, as for a key or a closed terminal.
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
        while let Some(info) = self.0.read_signal()? {
            if let Ok(signal) = Signal::try_from(info.ssi_signo.cast_signed()) {
                return Ok(Some(Caught { signal, sender: info.ssi_pid }));
            }
        }
        Ok(None)
    }
}

impl Caught {
    /// Whether it is for the agent. What this process has brought on itself, such as by writing to a closed pipe, is not.
    pub fn is_for_agent(self) -> bool {
        self.sender != std::process::id() && !NOT_PASSED_ON.contains(&self.signal)
    }
}

/// All that can be caught: none of them is a reason to end for who passes them on.
fn ours() -> SigSet {
    Signal::iterator().filter(|signal| ![Signal::SIGKILL, Signal::SIGSTOP].contains(signal)).collect()
}

/// Stops this process as a terminal's key does: the kernel stops no process group that is orphaned, because nobody could
/// continue it. Whether it was stopped is told by the SIGCONT that has come then.
///
/// # Errors
/// When the system refuses.
pub fn stop_as_by_key() -> io::Result<()> {
    let stop = SigSet::from_iter([Signal::SIGTSTP]);
    nix::sys::signal::raise(Signal::SIGTSTP)?;
    stop.thread_unblock()?;
    Ok(stop.thread_block()?)
}

/// The signals that this process was started with ignored, as by `nohup`.
///
/// # Errors
/// When `/proc` is missing.
pub fn ignored() -> io::Result<Vec<i32>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok((1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect())
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
    // The first may only take away the handler that the runtime has for some of them.
    let _ = nix::sys::signal::raise(signal);
    let _ = nix::sys::signal::raise(signal);
}
