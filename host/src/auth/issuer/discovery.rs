//! Where an issuer says that its keys are.

use super::super::RemoteError;
use super::super::remote::Getter;
use crate::names::https_url;
use url::Url;

/// Why it is not known where an issuer's keys are.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotFound {
    /// There are no metadata.
    #[error("neither {0} nor {1} can be had: {2}")]
    Nowhere(Url, Url, RemoteError),
    /// They are those of somebody else, whose keys they would be.
    #[error("the metadata name another issuer")]
    AnothersName,
    /// They do not say it.
    #[error("the metadata name no keys at an https URL")]
    NoKeys,
}

/// Where an issuer's metadata are: by RFC 8414, and by OpenID Connect Discovery, which differ where the issuer has a path.
fn places(issuer: &Url) -> [Url; 2] {
    let path = issuer.path().trim_end_matches('/').to_owned();
    [format!("/.well-known/oauth-authorization-server{path}"), format!("{path}/.well-known/openid-configuration")].map(
        |path| {
            let mut url = issuer.clone();
            url.set_path(&path);
            url.set_query(None);
            url.set_fragment(None);
            url
        },
    )
}

/// Where the keys of an issuer are.
pub(super) async fn jwks(getter: &Getter, issuer: &str) -> Result<Url, NotFound> {
    let home = https_url(issuer).map_err(|_| NotFound::NoKeys)?;
    let [first, second] = places(&home);
    let metadata = match getter.get(&first).await {
        Ok(got) => got.value,
        Err(_) => match getter.get(&second).await {
            Ok(got) => got.value,
            Err(error) => return Err(NotFound::Nowhere(first, second, error)),
        },
    };
    if metadata["issuer"] != issuer {
        return Err(NotFound::AnothersName);
    }
    let keys = metadata["jwks_uri"].as_str().and_then(|url| https_url(url).ok()).ok_or(NotFound::NoKeys)?;
    // Within this machine nobody leads but who is here.
    if keys.scheme() == "http" && keys.origin() != home.origin() {
        return Err(NotFound::NoKeys);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_stand_where_either_standard_says() {
        for (issuer, first, second) in [
            ("https://a.example", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"),
            ("https://a.example/", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"),
            (
                "https://a.example:8443/realms/x",
                "/.well-known/oauth-authorization-server/realms/x",
                "/realms/x/.well-known/openid-configuration",
            ),
        ] {
            let issuer: Url = issuer.parse().unwrap();
            let found = places(&issuer);
            assert_eq!(found.each_ref().map(Url::path), [first, second], "{issuer}");
            assert!(found.iter().all(|place| place.origin() == issuer.origin()));
        }
    }
}
