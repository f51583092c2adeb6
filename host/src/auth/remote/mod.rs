//! JSON documents from other servers, whose addresses somebody else has named. An address may be a trap: it may lead into
//! this machine's own network, elsewhere than it says, nowhere, or to more than anybody can hold.

mod address;
mod get;
#[cfg(test)]
mod tests;

pub(super) use get::Getter;

use super::Bucket;
use crate::clock::Clock;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

/// The largest document that is fetched, bytes.
const MAX_BYTES: usize = 64 << 10;

/// So many are fetched at once.
const AT_ONCE: usize = 8;

/// So many may be fetched in a second, and at once after a while without any.
const RATE: (u32, u32) = (1, 32);

/// So many are remembered, with those that could not be fetched.
const REMEMBERED: usize = 256;

/// For how long a document holds whose sender does not say.
const FRESH: Duration = Duration::from_secs(5 * 60);

/// For how long one holds at least and at most, whatever its sender says.
const BOUNDS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(24 * 60 * 60));

/// For how long nobody tries again what could not be fetched.
const FAILED: Duration = Duration::from_secs(60);

/// Where addresses may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To the public internet alone, by https: for what strangers name.
    Public,
    /// Anywhere by https, and by http to this machine: for what the owner of this server has named.
    Anywhere,
}

/// Why there is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The address is none to go to.
    #[error("this address is not fetched: {0}")]
    Refused(&'static str),
    /// It leads into a private network.
    #[error("this address does not lead to the public internet")]
    NotPublic,
    /// There is nobody, or nobody to be trusted.
    #[error("it cannot be fetched: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("it does not come in time")]
    TimedOut,
    /// It is not there. Redirections are not followed.
    #[error("it is answered with status {0}")]
    Status(u16),
    /// It is something else.
    #[error("it is no JSON")]
    NotJson,
    /// It is too large.
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    /// Too much is being fetched, which says nothing of this document.
    #[error("too many documents are being fetched")]
    Busy,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// For how long it holds from when it was fetched.
    pub lifetime: Duration,
}

/// Fetches documents, and remembers them. Each is fetched once at a time, however many want it; one that cannot be fetched is
/// left alone for a minute; and a flood of addresses is refused, so that nobody is flooded through this server.
pub struct Fetcher {
    getter: Getter,
    clock: Arc<dyn Clock>,
    at_once: Semaphore,
    rate: Bucket,
    known: Mutex<HashMap<Url, Arc<Known>>>,
}

/// What is known of an address. Who fetches it holds the lock.
#[derive(Default)]
struct Known {
    outcome: tokio::sync::Mutex<Option<Outcome>>,
}

#[derive(Clone)]
struct Outcome {
    document: Result<Arc<Document>, RemoteError>,
    /// On the steady clock.
    until: Duration,
}

impl Fetcher {
    /// One that goes as far as this.
    pub fn new(reach: Reach, clock: Arc<dyn Clock>) -> Self {
        Self {
            getter: Getter::new(reach, MAX_BYTES),
            rate: Bucket::new(Arc::clone(&clock), RATE.0, RATE.1),
            clock,
            at_once: Semaphore::new(AT_ONCE),
            known: Mutex::default(),
        }
    }

    /// The same, which trusts this authority too.
    #[cfg(test)]
    pub(in crate::auth) fn trusting(self, authority: reqwest::Certificate) -> Self {
        Self { getter: self.getter.trusting(authority), ..self }
    }

    /// The document at this address: a JSON document of at most 64 KiB, by a GET without credentials that follows no
    /// redirection and takes at most five seconds. One that was fetched before serves as long as it holds.
    ///
    /// # Errors
    /// When the address may not be gone to, or there is no such document, or too much is being fetched.
    pub async fn json(&self, url: &Url) -> Result<Arc<Document>, RemoteError> {
        self.getter.reach().check(url)?;
        let known = self.known(url);
        let mut outcome = known.outcome.lock().await;
        let now = self.clock.now().steady;
        if let Some(outcome) = outcome.as_ref().filter(|outcome| now < outcome.until) {
            return outcome.document.clone();
        }
        let _permit = self.at_once.try_acquire().map_err(|_| RemoteError::Busy)?;
        self.rate.take().map_err(|_| RemoteError::Busy)?;
        let document = self.getter.get(url).await.map(|got| {
            let lifetime = got.max_age.unwrap_or(FRESH).clamp(BOUNDS.0, BOUNDS.1);
            Arc::new(Document { value: got.value, lifetime })
        });
        let holds = document.as_ref().map_or(FAILED, |document| document.lifetime);
        *outcome = Some(Outcome { document: document.clone(), until: self.clock.now().steady + holds });
        document
    }

    /// What is known of an address. Where too much is, what holds the shortest is forgotten.
    fn known(&self, url: &Url) -> Arc<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(url) {
            return Arc::clone(found);
        }
        if known.len() >= REMEMBERED {
            let until = |known: &Known| match known.outcome.try_lock() {
                Ok(outcome) => outcome.as_ref().map_or(Duration::ZERO, |outcome| outcome.until),
                // It is being fetched.
                Err(_) => Duration::MAX,
            };
            let soonest = known.iter().min_by_key(|(_, known)| until(known)).map(|(url, _)| url.clone());
            soonest.map(|url| known.remove(&url));
        }
        Arc::clone(known.entry(url.clone()).or_default())
    }
}
