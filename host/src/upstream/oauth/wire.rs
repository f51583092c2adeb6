//! The requests of OAuth: where they may go, and how long and large what comes of them may be.

use crate::auth::Reach;
use crate::config::is_loopback;
use crate::text::clean;
use crate::upstream::mask::Mask;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{Request, Response, StatusCode};
use rmcp::transport::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::Value;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use url::{Url, form_urlencoded};

/// How long one request may take.
const TIME: Duration = Duration::from_secs(10);
/// The longest answer, bytes.
const BYTES_MAX: usize = 256 << 10;

/// The fields of requests that hold what nobody else may know.
const SECRETS: [&str; 5] = ["code", "code_verifier", "refresh_token", "client_secret", "token"];

/// Makes the requests, of which no redirection is followed here.
pub struct Wire {
    client: reqwest::Client,
    reach: Reach,
    /// Whether plain HTTP to this machine is no way into it from elsewhere.
    near: bool,
    mask: Mask,
    said: Mutex<Option<Said>>,
}

/// What the authorization server has said last of a request that it would not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The code of OAuth (RFC 6749, section 5.2), if it gave one.
    pub code: Option<String>,
    /// All of it, in words, cleaned.
    pub words: String,
}

impl Wire {
    /// For the server that is at `url`, and whomever it names; `mask` hides what they are sent in confidence.
    ///
    /// # Errors
    /// In words, when it cannot be told how far that may go.
    pub async fn to(url: &Url, mask: Mask) -> Result<Self, String> {
        let reach = timeout(TIME, Reach::of(url)).await;
        let reach = reach.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let reach = reach.map_err(|error| format!("the server's name cannot be resolved: {error}"))?;
        // A proxy would resolve names by itself.
        let client = reqwest::Client::builder()
            .dns_resolver(reach.resolver())
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| format!("no HTTP client: {}", innermost(&error)))?;
        Ok(Self { client, reach, near: is_loopback(url), mask, said: Mutex::default() })
    }

    /// Whether a request may go there: by https, or to this machine if the server is here, too.
    ///
    /// # Errors
    /// In words, when it may not.
    pub fn check(&self, url: &str) -> Result<Url, String> {
        let url: Url = url.parse().map_err(|_| format!("no address: {}", clean(url)))?;
        let checked = self.reach.check(&url).map_err(|error| error.to_string());
        let checked = checked.and_then(|()| match url.scheme() == "https" || self.near {
            true => Ok(()),
            false => Err("it is not https".into()),
        });
        let host = url.host_str().unwrap_or_else(|| url.scheme());
        checked.map(|()| url.clone()).map_err(|why| format!("{} is not gone to: {why}", clean(host)))
    }

    /// Sends a request, and reads all of the answer.
    ///
    /// # Errors
    /// In words, when it may not be sent or no answer came.
    pub async fn send(&self, mut request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, String> {
        self.check(&request.uri().to_string())?;
        self.hide(&request);
        let agent = http::HeaderValue::from_static(concat!("headcount/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        let request = reqwest::Request::try_from(request).map_err(|error| innermost(&error))?;
        let answer = timeout(TIME, self.answer(request)).await;
        let answer = answer.unwrap_or_else(|_| Err("it does not answer in time".into()));
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(Said::by(answer, &self.mask)),
            Err(words) => Some(Said { code: None, words: words.clone() }),
        };
        answer
    }

    /// Has what a request holds in confidence hidden in what is said of it.
    fn hide(&self, request: &Request<Vec<u8>>) {
        let secrets = form_urlencoded::parse(request.body()).filter(|(name, _)| SECRETS.contains(&&**name));
        secrets.for_each(|(_, secret)| self.mask.add(&secret));
        let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some((_, credentials)) = shown.and_then(|shown| shown.split_once(' ')) else { return };
        self.mask.add(credentials);
        let both = STANDARD.decode(credentials).ok().and_then(|both| String::from_utf8(both).ok());
        let secret = both.as_deref().and_then(|both| both.split_once(':')).map(|(_, secret)| secret.to_owned());
        if let Some(encoded) = secret {
            self.mask.add(&encoded);
            // RFC 6749, section 2.3.1: it is encoded as in a form.
            form_urlencoded::parse(encoded.as_bytes()).for_each(|(secret, _)| self.mask.add(&secret));
        }
    }

    async fn answer(&self, request: reqwest::Request) -> Result<Response<Vec<u8>>, String> {
        let mut answer = self.client.execute(request).await.map_err(|error| innermost(&error))?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| innermost(&error))? {
            if body.len() + chunk.len() > BYTES_MAX {
                return Err(format!("its answer is larger than {BYTES_MAX} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }

    /// What was said last; `None` if that was done.
    pub fn said(&self) -> Option<Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Said {
    fn by(answer: &Response<Vec<u8>>, mask: &Mask) -> Self {
        let status = format!("it answers with HTTP {}", answer.status().as_u16());
        let error: Value = match answer.status() {
            status if status.is_client_error() => serde_json::from_slice(answer.body()).unwrap_or_default(),
            StatusCode::SERVICE_UNAVAILABLE => return Self { code: None, words: "it is not available now".into() },
            _ => Value::Null,
        };
        let Some(code) = error["error"].as_str().map(|code| clean(&mask.hide(code))) else {
            return Self { code: None, words: status };
        };
        let words = match error["error_description"].as_str() {
            Some(description) => clean(&format!("{code}: {}", mask.hide(description))),
            None => code.clone(),
        };
        Self { code: Some(code), words }
    }
}

impl OAuthHttpClient for Wire {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move { self.send(request.request).await.map_err(OAuthHttpClientError::from) })
    }
}

/// The innermost cause, in words: others may hold the address with all that is in it.
fn innermost(error: &reqwest::Error) -> String {
    let mut error: &dyn Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    clean(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn wire(url: &str) -> Wire {
        Wire::to(&url.parse().unwrap(), Mask::default()).await.unwrap()
    }

    #[tokio::test]
    async fn who_is_on_the_internet_sends_us_to_nobody_else() {
        let far = wire("https://93.184.215.14/mcp").await;
        far.check("https://auth.example.org/token").unwrap();
        for (url, why) in [
            ("http://auth.example.org/token", "it is not https"),
            ("http://127.0.0.1:1/token", "it is not https"),
            ("https://127.0.0.1:1/token", "does not lead to the public internet"),
            ("https://[::1]/token", "does not lead to the public internet"),
            ("https://10.0.0.1/token", "does not lead to the public internet"),
            ("https://169.254.169.254/latest", "does not lead to the public internet"),
            ("https://me:pass@auth.example.org/", "it has a user name or password in it"),
            ("javascript:alert(1)", "is not gone to"),
            ("/token", "no address"),
        ] {
            let said = far.check(url).unwrap_err();
            assert!(said.contains(why) && !said.contains("pass@"), "{url}: {said}");
        }
        // A name is no better than what it stands for.
        let request = Request::get("https://localhost:1/token").body(vec![]).unwrap();
        let said = far.send(request).await.unwrap_err();
        assert_eq!(said, "this address does not lead to the public internet");
    }

    #[tokio::test]
    async fn who_is_on_this_machine_may_stay_here() {
        let near = wire("http://127.0.0.1:7878/mcp").await;
        near.check("http://localhost:1/token").unwrap();
        near.check("https://10.0.0.1/token").unwrap();
        near.check("http://10.0.0.1/token").unwrap_err();
        // Who is in the same network is not on this machine.
        let private = wire("https://10.0.0.1/mcp").await;
        private.check("https://10.0.0.2/token").unwrap();
        private.check("http://127.0.0.1:1/token").unwrap_err();
    }

    #[test]
    fn what_is_said_of_a_refusal_is_cleaned_and_cut() {
        let answer = |status: u16, body: &str| {
            Said::by(&Response::builder().status(status).body(body.as_bytes().to_vec()).unwrap(), &Mask::default())
        };
        let said = answer(400, r#"{"error": "invalid_grant", "error_description": "no\u001b[2J"}"#);
        assert_eq!((said.code.as_deref(), &*said.words), (Some("invalid_grant"), "invalid_grant: no"));
        assert!(answer(400, &format!(r#"{{"error": "{}"}}"#, "x".repeat(9000))).words.len() < 300);
        for (status, body) in [(400, "<html>"), (500, r#"{"error": "invalid_grant"}"#), (302, "{}")] {
            let said = answer(status, body);
            assert_eq!((said.code, said.words), (None, format!("it answers with HTTP {status}")));
        }
    }
}
