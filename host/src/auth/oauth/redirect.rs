//! Where answers may be sent: redirect URIs, and what is sent there.

use super::error::{ErrorCode, OAuthError};
use std::fmt;
use url::{Host, Url};

/// The longest redirect URI, bytes.
const MAX: usize = 2048;

/// Schemes without a dot that MCP clients are known to have. Others are of the form that RFC 8252, section 7.1, wants: a
/// domain's name reversed. Browsers and desktops open many that are neither, such as `mailto`, `search-ms` or `view-source`.
const KNOWN: [&str; 15] = [
    "claude",
    "code-oss",
    "cursor",
    "goose",
    "jetbrains",
    "kiro",
    "lmstudio",
    "raycast",
    "trae",
    "vscode",
    "vscode-insiders",
    "vscodium",
    "warp",
    "windsurf",
    "zed",
];

/// Reads a redirect URI that a client registers: `https`, `http` on this machine alone, or a scheme of the client's own
/// (RFC 8252, section 7).
///
/// # Errors
/// When answers may not be sent there. The text is not in the error.
pub fn parse(text: &str) -> Result<Url, OAuthError> {
    let refused = |why: &'static str| Err(OAuthError::new(ErrorCode::InvalidRedirectUri, why));
    if text.len() > MAX || text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return refused("a redirect URI is too long, or has blanks in it");
    }
    let Ok(url) = Url::parse(text) else { return refused("a redirect URI is no absolute URI") };
    // Whoever compares texts, and whoever follows them, have to see the same.
    if text.contains(['#', '\\']) || !url.username().is_empty() || url.password().is_some() {
        return refused("a redirect URI has no fragment and names no user");
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => refused("a redirect URI with http is for this machine alone: 127.0.0.1, [::1] or localhost"),
        own if own.contains('.') || KNOWN.contains(&own) => Ok(url),
        _ => refused("a redirect URI's scheme is neither a reversed domain name nor one of a known client"),
    }
}

/// Whether it leads back to this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The redirect URI that a request names, if it is one of those that its client has registered: the same text, or on this
/// machine the same but for the port, which a client gets anew each time (RFC 8252, section 7.3).
pub fn find(registered: &[String], asked: &str) -> Option<Redirect> {
    let url = parse(asked).ok()?;
    let without_port = |url: &Url| {
        let mut url = url.clone();
        (url.scheme() == "http" && is_loopback(&url) && url.set_port(None).is_ok()).then_some(url)
    };
    let is_it = |one: &String| {
        one == asked || {
            let (one, asked) = (parse(one).ok().as_ref().and_then(without_port), without_port(&url));
            one.is_some() && one == asked
        }
    };
    registered.iter().any(is_it).then_some(Redirect(url))
}

/// Where the answer to a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect(Url);

impl Redirect {
    /// One that was checked when its request came.
    ///
    /// # Errors
    /// When it is none all the same.
    pub fn checked(text: &str) -> Result<Self, OAuthError> {
        parse(text).map(Self)
    }

    /// The same with parameters behind those that it has.
    #[must_use]
    pub fn with(mut self, params: &[(&str, Option<&str>)]) -> Self {
        for (name, value) in params {
            if let Some(value) = value {
                self.0.query_pairs_mut().append_pair(name, value);
            }
        }
        self
    }

    /// Whether a browser is sent there without anybody having looked where it goes: to a program on this machine. Somewhere in
    /// the web it could be a page that looks like this one.
    pub fn is_on_this_machine(&self) -> bool {
        self.0.scheme() != "https"
    }

    /// For people: the host, or the scheme where a program on this machine has one of its own.
    pub fn host(&self) -> String {
        match self.0.host_str() {
            Some(host) if ["http", "https"].contains(&self.0.scheme()) => host.to_owned(),
            _ => format!("{}:", self.0.scheme()),
        }
    }

    /// As a source of a content security policy: what a form may lead to. IPv6 addresses cannot stand there.
    pub fn source(&self) -> String {
        match self.0.origin() {
            url::Origin::Tuple(_, Host::Ipv6(_), _) | url::Origin::Opaque(_) => format!("{}:", self.0.scheme()),
            origin => origin.ascii_serialization(),
        }
    }
}

impl fmt::Display for Redirect {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find_in(registered: &str, asked: &str) -> bool {
        find(&[registered.to_owned()], asked).is_some()
    }

    #[test]
    fn answers_go_only_where_a_client_can_be() {
        for good in [
            "https://agents.example/callback?a=b",
            "http://127.0.0.1:8080/callback",
            "http://[::1]/callback",
            "http://localhost:1/",
            "com.example.app:/oauth",
            "cursor://anysphere.cursor-retrieval/oauth/callback",
        ] {
            assert!(parse(good).is_ok() && find_in(good, good), "{good}");
        }
        let long = format!("https://a.example/{}", "x".repeat(MAX));
        for bad in [
            "",
            "/callback",
            "callback",
            "http://agents.example/callback",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://localhost@evil.example/",
            "https://localhost:1@evil.example/",
            "https://agents.example/#",
            "https://agents.example/#a",
            "javascript:alert(1)",
            "mailto:a@b.example",
            "ms-settings:x",
            "search-ms:query=x",
            "feed:https://a.example/",
            "intent://a.example/",
            "vbscript:x",
            "myapp:/callback",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "blob:https://a.example/x",
            "view-source:https://a.example/",
            "https://a.example/\r\nx: y",
            "https://a.example\\@evil.example/",
            "https://a.example/ b",
            "java\tscript:alert(1)",
            " https://a.example/",
            "wss://a.example/",
            "http://0.0.0.0/",
            "https://",
            &long,
        ] {
            assert_eq!(parse(bad).unwrap_err().code, ErrorCode::InvalidRedirectUri, "{bad}");
            assert!(!find_in(bad, bad), "{bad}");
        }
    }

    #[test]
    fn only_the_port_on_this_machine_may_be_another() {
        let registered = "http://127.0.0.1:1234/callback?a=b";
        assert!(
            find_in(registered, "http://127.0.0.1:9/callback?a=b")
                && find_in(registered, "http://127.0.0.1/callback?a=b")
        );
        for other in [
            "http://127.0.0.1:9/callback",
            "http://127.0.0.1:9/callback?a=b&c=d",
            "http://127.0.0.1:9/callback/?a=b",
            "http://localhost:1234/callback?a=b",
            "https://127.0.0.1:1234/callback?a=b",
            "http://127.0.0.2:1234/callback?a=b",
        ] {
            assert!(!find_in(registered, other), "{other}");
        }
        assert!(!find_in("https://agents.example/cb", "https://agents.example:8443/cb"));
        assert!(!find_in("https://agents.example/cb", "https://agents.example/cb/../cb"), "texts are compared");
        assert!(!find_in("com.example.app:/cb", "com.example.app:/cb2"));
    }

    proptest! {
        #[test]
        fn whatever_comes_back_with_it_the_answer_goes_to_the_same_place(state in any::<String>(), code in any::<String>()) {
            let base = "https://agents.example/cb?a=b";
            let redirect = find(&[base.to_owned()], base).unwrap();
            let full = redirect.with(&[("code", Some(&*code)), ("error", None), ("state", Some(&*state))]).to_string();
            prop_assert!(full.starts_with("https://agents.example/cb?a=b&code=") && full.is_ascii());
            let pairs: Vec<_> = Url::parse(&full).unwrap().query_pairs().map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
            prop_assert_eq!(pairs, [("a".into(), "b".to_owned()), ("code".into(), code), ("state".into(), state)]);
        }
    }
}
