//! Why an upstream server did not do what was asked.

use crate::text::Wait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What was asked of which server, and why it was not done. None of it holds arguments, headers or tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("upstream {upstream}: {operation}: {failure}")]
pub struct UpstreamError {
    /// The server's name in the configuration.
    pub upstream: Arc<str>,
    /// What was asked, as in `call of get_session_status`.
    pub operation: String,
    /// Why it was not done.
    pub failure: Failure,
}

/// Why something was not done. Whether it may have been done all the same is told by [`Failure::outcome`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The tool is outside the allow-list.
    #[error("the tool is not allowed; allowed are {}", Names(.allowed))]
    NotAllowed {
        /// The tools that are, sorted.
        allowed: Vec<String>,
    },
    /// Too many calls are unanswered.
    #[error("{limit} calls are waiting already")]
    QueueFull {
        /// How many there may be.
        limit: usize,
    },
    /// Nothing came back in time.
    #[error("no answer within {}{}", Wait(*.after), if *.sent { "; whether it was done is not known" } else { "" })]
    Timeout {
        /// How long was waited.
        after: Duration,
        /// Whether the server may have got the call.
        sent: bool,
    },
    /// There is no connection, and none could be made.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// It has failed a moment ago, and is tried again later than this call can wait for.
    #[error("not tried again for {}, after: {reason}", Wait(*.retry_in))]
    Backoff {
        /// Why it failed.
        reason: String,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// The connection ended before the answer came.
    #[error("{0}; whether it was done is not known")]
    Lost(String),
    /// The server answered with an error of the protocol.
    #[error("the server refuses: {message} ({code})")]
    Refused {
        /// The code of JSON-RPC, or HTTP's status.
        code: i32,
        /// The server's words, cleaned.
        message: String,
    },
    /// The server answered with something that nobody here can go on with.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
}

/// What is known of a call that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The server has not done it.
    NotDone,
    /// The server may have done it.
    Unknown,
}

impl Failure {
    /// Whether the server may have done what was asked. It is never asked again for the same call where it may.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Lost(_) | Self::Timeout { sent: true, .. } | Self::Unsupported(_) => Outcome::Unknown,
            _ => Outcome::NotDone,
        }
    }
}

/// Names as a list in a sentence.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0.join(", "))
    }
}
