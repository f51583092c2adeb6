//! One GET of a JSON document.

use super::address::is_public;
use super::{Reach, RemoteError};
use crate::names::check_https;
use crate::text::clean;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Response, StatusCode, redirect};
use serde_json::Value;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use url::{Host, Url};

/// How long all of it may take.
const TIME: Duration = Duration::from_secs(5);

/// Gets documents, each time anew.
pub(in crate::auth) struct Getter {
    reach: Reach,
    max_bytes: usize,
    /// Authorities that are trusted beside the system's.
    trusted: Vec<Certificate>,
    /// Made when it is first needed: it reads the certificates of this machine.
    client: Mutex<Option<Client>>,
}

/// A document as it came.
pub(in crate::auth) struct Got {
    pub value: Value,
    /// For how long its sender says that it holds; `None`: it says nothing of that.
    pub max_age: Option<Duration>,
}

impl Getter {
    pub fn new(reach: Reach, max_bytes: usize) -> Self {
        Self { reach, max_bytes, trusted: vec![], client: Mutex::default() }
    }

    /// The same, which trusts this authority too.
    #[cfg(test)]
    pub fn trusting(self, authority: Certificate) -> Self {
        Self { trusted: vec![authority], ..self }
    }

    /// How far it goes.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Gets what is at this address, in five seconds at most.
    ///
    /// # Errors
    /// When the address may not be gone to, or there is no such document.
    pub async fn get(&self, url: &Url) -> Result<Got, RemoteError> {
        self.reach.check(url)?;
        let client = self.client()?;
        timeout(TIME, self.read(client.get(url.clone()))).await.unwrap_or(Err(RemoteError::TimedOut))
    }

    fn client(&self) -> Result<Client, RemoteError> {
        let mut made = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*made {
            return Ok(client.clone());
        }
        let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let client = Client::builder()
            .tls_certs_merge(self.trusted.iter().cloned())
            .dns_resolver(self.reach.resolver())
            .redirect(redirect::Policy::none())
            // A proxy would resolve names by itself.
            .no_proxy()
            .referer(false)
            .user_agent(concat!("headcount/", env!("CARGO_PKG_VERSION")))
            .default_headers(accept)
            // Between two of these documents lie minutes.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(unreachable)?;
        Ok(made.insert(client).clone())
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> Result<Got, RemoteError> {
        let mut response = request.send().await.map_err(unreachable)?;
        if response.status() != StatusCode::OK {
            return Err(RemoteError::Status(response.status().as_u16()));
        }
        if !is_json(&response) {
            return Err(RemoteError::NotJson);
        }
        let max_age = max_age(response.headers());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > self.max_bytes {
                return Err(RemoteError::TooLarge(self.max_bytes));
            }
            body.extend_from_slice(&chunk);
        }
        let value = serde_json::from_slice(&body).map_err(|_| RemoteError::NotJson)?;
        Ok(Got { value, max_age })
    }
}

/// Resolves names, and refuses those that stand for any address which is not within reach. What is connected to is what was
/// looked at, as the name is not resolved again.
#[derive(Debug)]
pub struct Checked(Reach);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if !found.iter().all(|address| reach.has(address.ip())) {
                return Err(Box::new(RemoteError::NotPublic) as _);
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl Reach {
    /// How far who is at this address may send us: not into a private network, if they are on the public internet.
    ///
    /// # Errors
    /// When the name cannot be resolved.
    pub async fn of(url: &Url) -> std::io::Result<Self> {
        let found = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect(),
            None => vec![],
        };
        Ok(if !found.is_empty() && found.into_iter().all(is_public) { Self::Public } else { Self::Anywhere })
    }

    /// Whether this address may be gone to at all. What a name stands for is seen when it is resolved.
    ///
    /// # Errors
    /// When it may not.
    pub fn check(self, url: &Url) -> Result<(), RemoteError> {
        check_https(url).map_err(RemoteError::Refused)?;
        if self == Self::Public && url.scheme() != "https" {
            return Err(RemoteError::Refused("it is not https"));
        }
        // An address that is written as such is not resolved.
        match url.host() {
            Some(Host::Ipv4(address)) if !self.has(address.into()) => Err(RemoteError::NotPublic),
            Some(Host::Ipv6(address)) if !self.has(address.into()) => Err(RemoteError::NotPublic),
            _ => Ok(()),
        }
    }

    /// What resolves names for an HTTP client that goes no further.
    pub fn resolver(self) -> Arc<Checked> {
        Arc::new(Checked(self))
    }

    fn has(self, address: IpAddr) -> bool {
        self == Self::Anywhere || is_public(address)
    }
}

/// `application/json`, or a type of its family (RFC 6839), as `application/jwk-set+json`.
fn is_json(response: &Response) -> bool {
    let said = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// What `Cache-Control` (RFC 9111) says of how long a response is fresh.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let said = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<String> =
        said.flat_map(|text| text.split(',')).map(|d| d.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|directive| directive == "no-store" || directive == "no-cache") {
        return Some(Duration::ZERO);
    }
    let age = directives.iter().find_map(|directive| directive.strip_prefix("max-age="))?;
    age.trim_matches('"').parse().ok().map(Duration::from_secs)
}

/// Why nothing came: the innermost error says most.
fn unreachable(error: reqwest::Error) -> RemoteError {
    let error = error.without_url();
    let mut innermost: &dyn Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<RemoteError>() {
        Some(error) => error.clone(),
        None => RemoteError::Unreachable(clean(&innermost.to_string())),
    }
}
