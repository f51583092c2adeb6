//! Under which name the server is known: one for each address that it is reached by.

use std::fmt;
use url::Url;

/// The issuer's identifier (RFC 8414): the origin that a request was sent to, such as `http://127.0.0.1:7878`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer(String);

impl Issuer {
    /// The issuer at an origin.
    pub fn at(origin: impl Into<String>) -> Self {
        Self(origin.into())
    }

    /// The identifier itself, which is the origin too.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address of something that is served there; `path` begins with `/`.
    pub fn with(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The resource that tokens are for (RFC 8707): the MCP endpoint.
    pub fn resource(&self) -> String {
        self.with("/mcp")
    }

    /// Whether a client that names this resource means this server.
    pub fn is_meant_by(&self, resource: &str) -> bool {
        let Ok(url) = Url::parse(resource) else { return false };
        let names_a_user = !url.username().is_empty() || url.password().is_some();
        url.origin().ascii_serialization() == self.0
            && ["", "/", "/mcp", "/mcp/"].contains(&url.path())
            && !names_a_user
            && url.query().is_none()
            && url.fragment().is_none()
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_means_this_server_or_another() {
        let issuer = Issuer::at("http://127.0.0.1:7878");
        assert_eq!(issuer.resource(), "http://127.0.0.1:7878/mcp");
        for ours in ["", "/", "/mcp", "/mcp/"] {
            assert!(issuer.is_meant_by(&issuer.with(ours)), "{ours}");
        }
        for other in [
            "",
            "http://127.0.0.1/mcp",
            "https://127.0.0.1:7878/mcp",
            "http://localhost:7878/mcp",
            "http://127.0.0.1:7878/v1",
            "http://127.0.0.1:7878/mcp?a",
            "http://127.0.0.1:7878/mcp#a",
            "http://a@127.0.0.1:7878/mcp",
            "http://127.0.0.1:78780/mcp",
            "http://127.0.0.1:7878.evil.example/mcp",
        ] {
            assert!(!issuer.is_meant_by(other), "{other}");
        }
        assert!(Issuer::at("https://agents.example").is_meant_by("https://Agents.example:443/mcp"));
    }
}
