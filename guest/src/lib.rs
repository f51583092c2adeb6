//! headcount's built-in health policy: what was observed of a session goes in, what it means comes out.
//!
//! The crate is two things at once. Built for `wasm32-unknown-unknown`, the target without an operating system, it is the
//! component that the host embeds; built natively, or for `wasm32-wasip1`, it is an ordinary library with the same functions,
//! so that its rules can be tested, fuzzed and measured without a sandbox. This file only translates between the two; the
//! rules stand in the modules.
//!
//! Pure: the verdict follows from the arguments alone, byte for byte. Text in the facts comes from agents and is never
//! trusted: what is copied into the verdict is cut and stripped of control characters (`text`).

mod activity;
mod checks;
mod score;
mod session;
mod settings;
mod text;

#[cfg(not(target_os = "unknown"))]
#[doc(hidden)]
pub mod cases;

#[allow(unsafe_code, missing_docs, clippy::all)]
mod bindings {
    //! What `wit-bindgen` makes of `wit/policy.wit`; the only place with unsafe code.

    wit_bindgen::generate!({
        world: "health-policy",
        path: "../wit",
        additional_derives: [PartialEq],
    });

    // Exporting natively would not link: the names that a component exports are not symbols of a shared library.
    #[cfg(target_os = "unknown")]
    export!(Component);
    #[cfg(target_os = "unknown")]
    use super::Component;
}

pub use bindings::exports::headcount::policy::policy::{
    Activity, Advice, Agent, AgentVerdict, Check, Claim, Description, Evidence, Gap, Health, MemoryMethod, Metrics,
    Outcome, Problem, ProcessState, Session, SessionVerdict, Snapshot, Source, SourceState, Status, Totals, Trend,
    Usage,
};

use settings::Settings;

/// Judges a session: the activity, status and score of each agent, and the session's totals, health and advice.
///
/// `so_far`, the verdict of the policies before this one, is not looked at: the built-in policy stands first in the
/// chain and speaks for itself wherever else it is put. `settings` is a JSON object; the empty string means none.
///
/// # Errors
/// One line that names every problem of `settings`, where [`validate_settings`] finds any.
pub fn judge(facts: &Snapshot, _so_far: Option<&SessionVerdict>, settings: &str) -> Result<SessionVerdict, String> {
    let settings = Settings::parse(settings).map_err(|problems| settings::one_line(&problems))?;
    Ok(session::judge(facts, &settings))
}

/// The problems of `json`, in the order of their paths; none means that [`judge`] accepts it.
#[must_use]
pub fn validate_settings(json: &str) -> Vec<Problem> {
    Settings::parse(json).err().unwrap_or_default()
}

/// The policy's name, version and purpose, and a JSON schema of its settings.
#[must_use]
pub fn describe() -> Description {
    Description {
        name: "built-in".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        summary: "Says what each agent does and how it fares, from its own records and its processes, and sums up the session.".to_owned(),
        settings_schema: settings::schema(),
    }
}

#[cfg(target_os = "unknown")]
struct Component;

#[cfg(target_os = "unknown")]
impl bindings::exports::headcount::policy::policy::Guest for Component {
    fn describe() -> Description {
        describe()
    }

    fn validate_settings(json: String) -> Vec<Problem> {
        validate_settings(&json)
    }

    fn judge(facts: Snapshot, so_far: Option<SessionVerdict>, settings: String) -> Result<SessionVerdict, String> {
        judge(&facts, so_far.as_ref(), &settings)
    }
}
