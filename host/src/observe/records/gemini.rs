//! Gemini's records, which are not read: nothing in them names a process, and no process holds them open. Two agents in one
//! folder could not be told apart, and one that has come before another would lend it its words.

use super::{Records, Subject, Testimony};
use crate::clock::Moment;

/// Says why nothing is said.
#[derive(Debug)]
pub struct Gemini;

impl Records for Gemini {
    fn reads(&self, kind: &str) -> bool {
        kind == "gemini"
    }

    fn read(&mut self, subjects: &[&Subject], _now: Moment) -> Vec<Testimony> {
        subjects.iter().map(|_| Err("its records name no process".to_owned()).into()).collect()
    }
}
