//! By which origin clients reach this server: under that name they know it as issuer and resource.

use super::scheme::Scheme;
use crate::auth::oauth::Issuer;
use axum::http::uri::Authority;
use url::Url;

/// The origin of a request that was let in, by the authority it was sent to; `None`: there is none of that form.
pub(super) fn origin(authority: &Authority, scheme: Scheme) -> Option<Issuer> {
    let url = Url::parse(&format!("http://{authority}")).ok()?;
    let scheme = scheme.towards(url.host());
    let url = Url::parse(&format!("{scheme}://{authority}")).ok()?;
    Some(Issuer::at(url.origin().ascii_serialization()))
}

#[cfg(test)]
mod tests {
    use super::Scheme::{Http, Https, Proxied};

    #[test]
    fn the_origin_is_what_the_client_sees() {
        let origin = |authority: &str, scheme| super::origin(&authority.parse().unwrap(), scheme).unwrap().to_string();
        for (authority, scheme, seen) in [
            ("127.0.0.1:7878", Http, "http://127.0.0.1:7878"),
            ("LocalHost:7878", Http, "http://localhost:7878"),
            ("localhost:80", Http, "http://localhost"),
            ("[::1]:7878", Proxied, "http://[::1]:7878"),
            ("agents.example", Proxied, "https://agents.example"),
            ("Agents.example:443", Proxied, "https://agents.example"),
            ("127.0.0.1:443", Https, "https://127.0.0.1"),
            ("agents.example:8443", Proxied, "https://agents.example:8443"),
        ] {
            assert_eq!(origin(authority, scheme), seen);
        }
    }
}
