//! What authors of policies work with: facts in files, trials of a policy on them, and what is found out about it.

pub mod bench;
pub mod cases;
pub mod check;
pub mod difference;
pub mod explain;
mod json;
pub mod sample;
pub mod snapshot;
pub mod trial;
