//! A server over streamable HTTP: how its address, headers and token become a transport, and what its failures mean.

use super::mask::Mask;
use super::oauth::{Access, Authorized};
use super::secret::{SecretPlace, check_token};
use super::transport::Ended;
use crate::config::is_loopback;
use crate::text::clean;
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{AuthError, DynamicTransportError, StreamableHttpClientTransport};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Where a server is, and what it is sent with each request.
#[derive(Debug, Clone)]
pub struct Address {
    /// Its URL.
    pub url: Url,
    /// Headers beside those of the protocol.
    pub headers: Vec<(HeaderName, Header)>,
    /// Where its token is.
    pub token: TokenPlace,
}

/// What a header holds.
#[derive(Debug, Clone)]
pub enum Header {
    /// This.
    Plain(HeaderValue),
    /// What is there.
    Secret(SecretPlace),
}

impl Header {
    /// What it holds now.
    fn read(&self, name: &HeaderName) -> Result<HeaderValue, String> {
        match self {
            Self::Plain(value) => Ok(value.clone()),
            Self::Secret(place) => {
                let secret = place.read(&format!("the header {name}"))?;
                let mut value = HeaderValue::try_from(secret).map_err(|_| "the header holds control characters")?;
                value.set_sensitive(true);
                Ok(value)
            }
        }
    }
}

/// Where a token is.
#[derive(Debug, Clone)]
pub enum TokenPlace {
    /// There is none.
    Nowhere,
    /// Somebody has put it there.
    In(SecretPlace),
    /// It is asked for by OAuth, and kept.
    Granted(Arc<Access>),
}

impl TokenPlace {
    /// The token. Why there is none never shows what was found.
    fn read(&self) -> Result<Option<String>, String> {
        let Self::In(place) = self else { return Ok(None) };
        let token = place.read("the token")?;
        check_token(&token).map_err(|why| format!("what is to be the token {why}"))?;
        Ok(Some(token))
    }

    /// What hides the secrets that are sent there.
    pub fn mask(&self) -> Mask {
        match self {
            Self::Granted(access) => access.mask.clone(),
            _ => Mask::default(),
        }
    }

    fn access(&self) -> Option<Arc<Access>> {
        match self {
            Self::Granted(access) => Some(Arc::clone(access)),
            _ => None,
        }
    }
}

/// A transport to `address`. Nothing is sent yet; what will be in confidence is hidden by `mask`.
///
/// # Errors
/// When a secret cannot be read, in words.
pub fn transport(
    address: &Address,
    connect: Duration,
    mask: &Mask,
    ended: &Ended,
) -> Result<StreamableHttpClientTransport<Authorized>, String> {
    // As rmcp's own client: a connection for each request, as idle ones stall where a server leaves Nagle's algorithm on. No
    // redirect is followed: it could carry the headers to another host.
    let client = reqwest::Client::builder()
        .pool_max_idle_per_host(0)
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none());
    let client = if is_loopback(&address.url) { client.no_proxy() } else { client };
    let client = client.build().map_err(|error| format!("no HTTP client: {}", root(&error)))?;
    let headers = address.headers.iter().map(|(name, header)| {
        let value = header.read(name)?;
        mask.add(&String::from_utf8_lossy(value.as_bytes()));
        Ok((name.clone(), value))
    });
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(headers.collect::<Result<_, String>>()?)
        // A new session is a new connection here: the list of tools may be another.
        .reinit_on_expired_session(false);
    config.auth_header = address.token.read()?;
    config.retry_config = Arc::new(RetryPolicy);
    address.url.query_pairs().for_each(|(_, value)| mask.add(&value));
    let client = Authorized::new(client, address.token.access(), mask.clone(), ended.clone());
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// How often a stream that was cut is taken up again: a few times, soon.
#[derive(Debug)]
struct RetryPolicy;

impl rmcp::transport::common::client_side_sse::SseRetryPolicy for RetryPolicy {
    fn retry(&self, times: usize) -> Option<Duration> {
        [100, 400, 1600].get(times).map(|ms| Duration::from_millis(*ms))
    }
}

/// What a request that came to nothing means.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The server has not got it, and this connection is over.
    NotDelivered(String),
    /// The server would not do it.
    Refused {
        /// HTTP's status.
        code: i32,
        /// In words.
        message: String,
    },
    /// Whether it was done cannot be told.
    Unknown(String),
}

/// What it means that sending failed.
pub fn meaning(error: &DynamicTransportError) -> Meaning {
    type Of = StreamableHttpError<reqwest::Error>;
    match error.error.downcast_ref::<Of>() {
        Some(Of::SessionExpired) => Meaning::NotDelivered("the server knows this session no more".into()),
        Some(Of::Auth(AuthError::AuthorizationFailed(why))) => Meaning::NotDelivered(why.clone()),
        Some(Of::Auth(AuthError::InsufficientScope { required_scope: why, .. })) => {
            Meaning::Refused { code: 403, message: why.clone() }
        }
        Some(Of::AuthRequired(asked)) => {
            let why = reason(&asked.www_authenticate_header);
            Meaning::NotDelivered(format!("the server wants other authorization (401){why}"))
        }
        Some(Of::InsufficientScope(asked)) => {
            let why = reason(&asked.www_authenticate_header);
            Meaning::Refused { code: 403, message: format!("the authorization does not reach so far{why}") }
        }
        Some(Of::HttpStatus(status)) if status.status == StatusCode::TOO_MANY_REQUESTS.as_u16() => {
            Meaning::Refused { code: 429, message: "too many requests".into() }
        }
        Some(Of::HttpStatus(status)) => Meaning::Unknown(format!("the server answers with HTTP {}", status.status)),
        Some(Of::Client(error)) if error.is_connect() => {
            Meaning::NotDelivered(format!("the server cannot be reached: {}", root(error)))
        }
        // reqwest's own words may hold the URL.
        Some(Of::Client(error)) => Meaning::Unknown(clean(&root(error))),
        Some(Of::UnexpectedServerResponse(words)) => Meaning::Unknown(clean(words)),
        _ => Meaning::Unknown(clean(&root(&*error.error))),
    }
}

/// The reason that a challenge gives, and the scope that it asks for (RFC 6750, section 3), cleaned and cut.
fn reason(challenge: &str) -> String {
    let value = |name: &str| challenge.split_once(&format!("{name}=\""))?.1.split('"').next();
    let description = value("error_description").map(str::to_owned);
    let scope = value(" scope").map(|scope| format!("it asks for the scope {scope}"));
    let said: Vec<_> = description.into_iter().chain(scope).map(|said| clean(&said)).collect();
    if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) }
}

/// The innermost cause, in words.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn a_challenge_says_why_and_what_for() {
        let all =
            r#"Bearer error="insufficient_scope", error_description="no\u{1b}[2J", scope="a b", resource_metadata="x""#;
        assert_eq!(reason(all), r": no\u{1b}[2J; it asks for the scope a b");
        assert_eq!(reason("Bearer error_description=\"was \u{1b}[2Jrevoked\""), ": was revoked");
        assert_eq!(reason(r#"Bearer realm="headcount""#), "");
        assert!(reason(&format!("Bearer error_description=\"{}\"", "x".repeat(9000))).chars().count() < 300);
    }
}
