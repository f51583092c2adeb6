//! A server over streamable HTTP: how its address, headers and token become a transport, and what its failures mean.

use crate::config::{Environment, is_loopback};
use crate::files::{is_open_to_all, read_small_text};
use crate::text::clean;
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The longest token file.
const TOKEN_MAX: u64 = 64 << 10;

/// Where a server is, and what it is sent with each request.
#[derive(Debug, Clone)]
pub struct Address {
    /// Its URL.
    pub url: Url,
    /// Headers beside those of the protocol.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Where its token is.
    pub token: TokenPlace,
}

/// Where a token is read anew for each connection, so that one that was exchanged is taken up.
#[derive(Debug, Clone)]
pub enum TokenPlace {
    /// There is none.
    Nowhere,
    /// In a variable of this process.
    Variable(String),
    /// In a file that holds nothing else.
    File(PathBuf),
}

impl TokenPlace {
    /// The token. Why there is none never shows what was found.
    fn read(&self) -> Result<Option<String>, String> {
        let token = match self {
            Self::Nowhere => return Ok(None),
            Self::Variable(name) => match Environment::of_process().get(name).map(|value| value.to_str()) {
                Some(Some(value)) => value.to_owned(),
                Some(None) => return Err(format!("the token in {name} is not text")),
                None => return Err(format!("{name}, which is to hold the token, is not set")),
            },
            Self::File(file) if is_open_to_all(file) => {
                let file = file.display();
                return Err(format!("all users may read or write the token file {file}: chmod o= {file}"));
            }
            Self::File(file) => read_small_text(file, TOKEN_MAX)
                .map_err(|error| format!("the token file {}: {error}", file.display()))?,
        };
        let token = token.trim();
        match token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Err("what is to be the token is empty or holds other than visible ASCII".into()),
            false => Ok(Some(token.into())),
        }
    }
}

/// A transport to `address`. Nothing is sent yet.
///
/// # Errors
/// When the token cannot be read, in words.
pub fn transport(
    address: &Address,
    connect: Duration,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    // As rmcp's own client: a connection for each request, as idle ones stall where a server leaves Nagle's algorithm on. No
    // redirect is followed: it could carry the headers to another host.
    let client = reqwest::Client::builder()
        .pool_max_idle_per_host(0)
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none());
    let client = if is_loopback(&address.url) { client.no_proxy() } else { client };
    let client = client.build().map_err(|error| format!("no HTTP client: {}", root(&error)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(address.headers.iter().cloned().collect())
        // A new session is a new connection here: the list of tools may be another.
        .reinit_on_expired_session(false);
    config.auth_header = address.token.read()?;
    config.retry_config = Arc::new(RetryPolicy);
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
