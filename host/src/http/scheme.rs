//! The scheme of a door's addresses, as whoever comes through it sees them.

use std::fmt;

/// What the addresses of a door begin with. It is an extension of each request that comes through it (`Extension<Scheme>`), so
/// that whoever speaks of the server's own addresses need not know its doors; what a client says of it itself does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Anybody on the way could read along.
    Http,
    /// Encrypted: by this server, or by the proxy that stands before it.
    Https,
}

impl fmt::Display for Scheme {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}
