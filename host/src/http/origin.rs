//! By which origin clients reach this server: under that name they know it as issuer and resource.

use crate::auth::oauth::Issuer;
use axum::http::uri::Authority;
use url::{Host, Url};

/// The origin of a request that was let in, by the authority it was sent to; `None`: there is none of that form.
pub(super) fn origin(authority: &Authority, behind_proxy: bool) -> Option<Issuer> {
    let url = Url::parse(&format!("http://{authority}")).ok()?;
    let scheme = scheme(&url, behind_proxy);
    let url = Url::parse(&format!("{scheme}://{authority}")).ok()?;
    Some(Issuer::at(url.origin().ascii_serialization()))
}

/// How clients speak to it: in plain, unless a proxy stands before it that speaks TLS with everybody but this machine.
fn scheme(url: &Url, behind_proxy: bool) -> &'static str {
    let is_this_machine = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if behind_proxy && !is_this_machine { "https" } else { "http" }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_origin_is_what_the_client_sees() {
        let origin = |authority: &str, proxy| super::origin(&authority.parse().unwrap(), proxy).unwrap().to_string();
        for (authority, behind_proxy, seen) in [
            ("127.0.0.1:7878", false, "http://127.0.0.1:7878"),
            ("LocalHost:7878", false, "http://localhost:7878"),
            ("localhost:80", false, "http://localhost"),
            ("[::1]:7878", true, "http://[::1]:7878"),
            ("agents.example", true, "https://agents.example"),
            ("Agents.example:443", true, "https://agents.example"),
            ("agents.example:8443", true, "https://agents.example:8443"),
        ] {
            assert_eq!(origin(authority, behind_proxy), seen);
        }
    }
}
