//! How a policy's work ended: an enum, so that nobody has to search a text.

use crate::config::{Size, Span};
use std::fmt;
use std::time::Duration;

/// How one evaluation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It returned a verdict, and the verdict is sound.
    Verdict,
    /// It returned a verdict that cannot be true: wrong lengths, counts that do not add up, figures out of range.
    BadVerdict(String),
    /// It declined to judge, with its own words.
    Declined(String),
    /// It broke: panic, out of bounds, stack exhausted.
    Trap(String),
    /// It ran longer than it may.
    Deadline(Duration),
    /// It ran longer than it may several times in a row, and is left alone for a while.
    Resting {
        /// What it may take.
        limit: Duration,
        /// For how long it is left alone.
        pause: Duration,
    },
    /// It broke after it was refused more memory.
    Memory {
        /// What it asked for in all, bytes.
        asked: usize,
        /// What it may have, bytes.
        limit: usize,
    },
    /// Its answer was larger than it may be, bytes.
    Flood(usize),
    /// Its settings are wrong.
    BadSettings(Vec<SettingsProblem>),
    /// It is made for another version of the interface.
    WrongVersion(String),
    /// It is no policy at all.
    NotAPolicy(String),
    /// Its file is not the one that the configuration pins.
    WrongDigest {
        /// SHA-256 that it should have.
        pinned: String,
        /// SHA-256 that it has.
        found: String,
    },
    /// It is still being compiled.
    Loading,
    /// Compiling it took more than compiling may.
    Compile(String),
}

/// What is wrong with a policy's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    /// JSON pointer to the key.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for SettingsProblem {
    /// What is wrong with the whole has no path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, message } = self;
        if path.is_empty() { f.write_str(message) } else { write!(f, "{path}: {message}") }
    }
}

impl Outcome {
    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::BadVerdict(_) => "bad-verdict",
            Self::Declined(_) => "declined",
            Self::Trap(_) => "trap",
            Self::Deadline(_) | Self::Resting { .. } => "deadline",
            Self::Memory { .. } => "memory",
            Self::Flood(_) => "flood",
            Self::BadSettings(_) => "bad-settings",
            Self::WrongVersion(_) => "wrong-version",
            Self::NotAPolicy(_) => "not-a-policy",
            Self::WrongDigest { .. } => "wrong-digest",
            Self::Compile(_) => "compile",
            Self::Loading => "loading",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: usize = 1 << 20;
        match self {
            Self::Verdict => f.write_str("judged"),
            Self::BadVerdict(why) => write!(f, "its verdict cannot be used: {why}"),
            Self::Declined(why) if why.is_empty() => f.write_str("it declined to judge, and gave no reason"),
            Self::Declined(why) => write!(f, "it declined to judge: {why}"),
            Self::Trap(why) => write!(f, "it broke: {why}"),
            Self::Deadline(limit) => write!(f, "it ran longer than its limit of {}", Span(*limit)),
            Self::Resting { limit, pause } => {
                let (limit, pause) = (Span(*limit), Span(Duration::from_secs(pause.as_secs().max(1))));
                write!(
                    f,
                    "it ran longer than its limit of {limit} several times in a row, and is not asked for {pause}"
                )
            }
            Self::Memory { asked, limit } => {
                let asked = asked.div_ceil(MIB);
                write!(f, "it asked for {asked} MiB of memory; its limit is {}", Size(*limit as u64))
            }
            Self::Flood(limit) => write!(f, "its answer was larger than its limit of {}", Size(*limit as u64)),
            Self::BadSettings(problems) => {
                let problems: Vec<_> = problems.iter().map(SettingsProblem::to_string).collect();
                write!(f, "its settings are wrong: {}", problems.join("; "))
            }
            Self::WrongVersion(what) | Self::NotAPolicy(what) | Self::Compile(what) => f.write_str(what),
            Self::Loading => f.write_str("it is still being compiled"),
            Self::WrongDigest { pinned, found } => {
                write!(f, "its file has the SHA-256 {found}, and the configuration pins {pinned}")
            }
        }
    }
}

/// Why a policy could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The engine itself could not be set up.
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(String),
    /// Some policies are at fault, and none may be.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// The policy is at fault.
    #[error("policy {name}: {outcome}")]
    Policy {
        /// Its file, or `builtin`.
        name: String,
        /// What is wrong with it.
        outcome: Outcome,
    },
}
