//! Policies of one's own: a project to start from, how a component is made of it, trials of a policy on facts in files, and
//! what is found out about it.

pub mod bench;
pub mod build;
pub mod cases;
pub mod check;
pub mod difference;
pub mod explain;
mod json;
mod manifest;
pub mod project;
pub mod snapshot;
#[cfg(test)]
mod tests;
pub mod trial;

pub use manifest::{MANIFEST, Manifest};
