//! The scheme of a door's addresses, as whoever comes through it sees them.

use url::Host;

/// What the addresses of a door begin with. What a client says of it itself does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Anybody on the way could read along.
    Http,
    /// Encrypted by this server.
    Https,
    /// A proxy stands before it that speaks TLS with everybody but this machine.
    Proxied,
}

impl Scheme {
    /// The scheme for who has reached this host by the door.
    pub fn towards(self, host: Option<Host<&str>>) -> &'static str {
        let is_this_machine = || match host {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        match self {
            Self::Https => "https",
            Self::Proxied if !is_this_machine() => "https",
            Self::Http | Self::Proxied => "http",
        }
    }
}
