//! What becomes of children: this process's own, and the orphans that it was given as their subreaper.

use super::ending::Ending;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, wait, waitid, waitpid};

/// What became of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It has ended.
    Ended(Ending),
    /// It was stopped by the signal with this number.
    Stopped(i32),
    /// It was continued.
    Continued,
}

/// The next that became of any child; `None`: nothing now. Where `agent` has ended it is still to be [buried](bury): until then
/// everybody sees how it ended, and so does who takes it over if this process is killed before that is written down.
pub fn next(agent: Option<u32>) -> Option<(u32, Change)> {
    if let Some(agent) = agent
        && let Some(ending) = peek(agent)
    {
        return Some((agent, Change::Ended(ending)));
    }
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
    let (pid, status) = wait(options).ok().flatten()?;
    let change = match Ending::of(status) {
        Some(ending) => Change::Ended(ending),
        None => status.stopping_signal().map_or(Change::Continued, Change::Stopped),
    };
    Some((pid.as_raw_nonzero().get().cast_unsigned(), change))
}

/// How a child has ended that nobody has waited for yet.
fn peek(pid: u32) -> Option<Ending> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ending::peeked(&waitid(WaitId::Pid(raw(pid)?), options).ok()??)
}

/// Takes an ended child off the process table. One that is there no more was buried before.
pub fn bury(pid: u32) {
    let _ = raw(pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
}

/// The same for one that is about to end, and is waited for.
pub fn bury_soon(pid: u32) {
    let _ = raw(pid).map(|pid| waitpid(Some(pid), WaitOptions::empty()));
}

fn raw(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid.cast_signed())
}
