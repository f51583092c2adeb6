//! What a policy needs besides its rules: reading settings, keeping a verdict's counts right, and the few functions that
//! the generated bindings ask for. There is nothing to change here.
#![allow(dead_code, unused_imports, reason = "each policy uses what it needs")]

pub mod panic_text;
pub mod rt;
mod settings;

pub use settings::{Value, one_line, problem, settings};

use crate::bindings::exports::headcount::policy::policy::{Health, SessionVerdict, Status};

/// Makes an agent at least degraded. The host refuses a verdict whose totals do not agree with its agents' statuses, so
/// they are kept right too; an agent that has failed or is offline stays what it is.
pub fn degrade(verdict: &mut SessionVerdict, agent: usize) {
    let totals = &mut verdict.totals;
    let counted = match verdict.agents[agent].status {
        Status::Active => &mut totals.active,
        Status::Unknown => &mut totals.unknown,
        Status::Degraded | Status::Failed | Status::Offline => return,
    };
    *counted -= 1;
    totals.degraded += 1;
    verdict.agents[agent].status = Status::Degraded;
}

/// Makes the session at least degraded. Worse stays worse, and where nothing is there or nothing is known, it stays so.
pub fn degrade_session(verdict: &mut SessionVerdict) {
    if verdict.health == Health::Healthy {
        verdict.health = Health::Degraded;
    }
}
