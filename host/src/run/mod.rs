//! Running agents: `headcount run` starts an agent, and two small processes share the work of standing by it.
//!
//! The [`front`] is what the user started: it stands for the agent there. The [`keeper`] starts the agent, by way of a [`stage`],
//! and waits for it. Both can do the work of the [`supervisor`]: whichever is killed, the other goes on, because each is a
//! subreaper above the agent. Which of the two it is that does it, the record in the registry always says.
//!
//! ```text
//! shell ── front ── keeper ── agent (was: stage) ── …
//!               └── witness, without a terminal
//! ```

pub mod anchor;
mod backoff;
mod children;
mod edge;
mod ending;
pub mod front;
mod hearing;
pub mod keeper;
mod line;
mod order;
mod prepare;
mod record;
mod signals;
pub mod stage;
mod supervisor;
mod terminal;
mod unwritten;
pub mod witness;

pub use backoff::Backoff;
pub use order::Order;
pub use prepare::{Wanted, order};
pub use signals::ignored as ignored_signals;
pub use supervisor::cannot_start;

/// Gives this process a name: what is started through `/proc/self/exe` is called `exe` in lists of processes.
///
/// # Errors
/// When the system refuses.
pub fn take_name(name: &std::ffi::CStr) -> std::io::Result<()> {
    Ok(nix::sys::prctl::set_name(name)?)
}
