//! The facts: what this machine shows of its agents. Nothing here decides what they mean.

pub mod agents;
pub mod facts;
pub mod processes;
pub mod roster;
