//! Observing a made-up world, and real processes that only look like agents.

mod conversations;
mod declared;
mod elsewhere;
mod found;
mod owners;
#[cfg(target_os = "linux")]
mod real;
mod retained;
mod runs;
pub mod world;
