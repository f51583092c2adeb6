//! What agents tell of themselves: taking their events, and arranging that they send them.
//!
//! An agent runs `headcount hook KIND` as its child at each event, and waits for it. So taking one is quick and silent, and
//! never fails: whatever is wrong with the event, the disk or the machine is the agent's no more than ours.

mod desk;
mod input;
pub mod install;

use crate::clock::{Clock as _, SystemClock};
use crate::config::{Dirs, Environment};
use crate::observe::processes::lineage;
use crate::observe::records::hooks::event::Event;
use crate::observe::records::hooks::meaning::KINDS;
use crate::report::clean;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long an event may take to arrive.
const ARRIVES: Duration = Duration::from_millis(200);

/// How long all may take: a disk that does not answer holds nobody up.
const ENDS: Duration = Duration::from_millis(230);

/// Takes one event. `words`: the kind of the agent, and the event itself, unless it comes on stdin. Without a kind that is
/// known, nothing is noted.
///
/// It always comes back, in under a quarter of a second, and prints nothing: only who mistypes a kind at a terminal is told.
pub fn receive(words: &[OsString]) {
    let Some(kind) = words.first().and_then(|word| KINDS.into_iter().find(|kind| word == kind)) else {
        if io::stderr().is_terminal() {
            let word = words.first().map(|word| clean(&word.to_string_lossy())).unwrap_or_default();
            crate::stderr::line(&format!(
                "headcount hook: no kind of agent is called {word:?}, only {}",
                KINDS.join(", ")
            ));
        }
        return;
    };
    std::panic::set_hook(Box::new(|_| {}));
    survive_limits();
    let clock = SystemClock::default();
    let at_ms = clock.now().unix_ms;
    let event = match words.get(1) {
        Some(word) if install::is_mark(word.as_encoded_bytes()) => input::read(&clock, ARRIVES),
        Some(event) => event.as_encoded_bytes().to_vec(),
        None => input::read(&clock, ARRIVES),
    };
    let (done, end) = mpsc::channel();
    // On a thread of its own, which is left behind if it hangs.
    let work = move || {
        if let Err(error) = note(kind, &event, at_ms) {
            tracing::debug!("the event is not noted: {error:#}");
        }
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(work).is_ok() {
        let _ = end.recv_timeout(ENDS.saturating_sub(clock.now().steady));
    }
}

/// A file that may not grow is an error like any other, and no reason to be ended.
#[cfg(unix)]
fn survive_limits() {
    use nix::sys::signal::{SigSet, Signal};
    // It can only fail for a signal that does not exist.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
}

#[cfg(not(unix))]
fn survive_limits() {}

fn note(kind: &str, event: &[u8], at_ms: u64) -> anyhow::Result<()> {
    let Some(event) = Event::parse(event) else { return Ok(()) };
    let dirs = Dirs::of(&Environment::of_process())?;
    Ok(desk::note(&dirs.state, kind, event, at_ms, lineage()?)?)
}
