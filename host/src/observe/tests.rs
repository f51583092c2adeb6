//! Observing a made-up world, and real processes that only look like agents.

mod conversations;
mod declared;
mod found;
#[cfg(target_os = "linux")]
mod real;
pub mod world;
