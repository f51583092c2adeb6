//! The keys of an issuer, and how long what is known of them counts.

use super::super::Reach;
use super::super::remote::Getter;
use super::super::trouble::Trouble;
use super::discovery;
use super::key::Key;
use crate::clock::Clock;
use crate::config;
use crate::files::read_small;
use crate::names::https_url;
use jsonwebtoken::Header;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The largest set of keys, bytes.
const MAX_BYTES: usize = 256 << 10;

/// For how long keys are fresh whose sender does not say.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// For how long they are at least and at most, whatever their sender says.
const BOUNDS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(60 * 60));

/// For how long they still count while there are no newer ones to be had.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long nobody looks again for a key that is not there.
const AGAIN: Duration = Duration::from_secs(60);

/// How long nobody looks again where looking has failed.
const RETRY: Duration = Duration::from_secs(5);

/// How long newer keys are waited for where there are some that are no longer fresh: as long as an issuer takes that is well.
const PATIENCE: Duration = Duration::from_millis(500);

/// The keys of one issuer.
pub(super) struct Keys {
    place: Place,
    getter: Getter,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    trouble: Trouble,
}

/// Where they are.
enum Place {
    Url(String),
    File(PathBuf),
    /// Where the issuer of this name says.
    Metadata(String),
}

/// What is known of them.
#[derive(Default)]
struct State {
    keys: Vec<Arc<Key>>,
    /// When these came, on the steady clock, and for how long they are fresh.
    came: Option<(Duration, Duration)>,
    /// When they were last looked for.
    looked_at: Option<Duration>,
    /// Why that came to nothing.
    failure: Option<String>,
    /// Who looks for them now, or did last.
    look: Option<Look>,
}

/// Somebody looks for keys, and all others wait for that one.
#[derive(Clone)]
struct Look {
    /// On the steady clock.
    began: Duration,
    /// Cancelled when it is over, whatever came of it.
    over: CancellationToken,
}

/// Why there is no key for a token.
pub(super) enum NoKey {
    /// The issuer has none.
    Unknown,
    /// What the issuer has cannot be told.
    CannotTell(String),
}

impl Keys {
    pub fn new(configured: &config::Issuer, clock: Arc<dyn Clock>) -> Self {
        let place = match (configured.jwks_url(), &configured.jwks) {
            (Some(url), _) => Place::Url(url.to_owned()),
            (None, Some(file)) => Place::File(file.clone()),
            (None, None) => Place::Metadata(configured.issuer.clone()),
        };
        let trouble = Trouble::new(format!("the keys of {} cannot be had", place.name()), Arc::clone(&clock));
        Self { place, getter: Getter::new(Reach::Anywhere, MAX_BYTES), clock, state: Mutex::default(), trouble }
    }

    /// The keys that a token with this header may be signed with: at least one. They are looked for where those that are
    /// known are no longer fresh, or there is none among them; where there are some, that is not waited for for long.
    pub async fn matching(self: &Arc<Self>, header: &Header) -> Result<Vec<Arc<Key>>, NoKey> {
        let now = self.clock.now().steady;
        let (known, are_fresh) = {
            let state = self.state();
            (state.matching(header, now), state.are_fresh(now))
        };
        match (known.is_empty(), are_fresh) {
            (false, true) => return Ok(known),
            (false, false) => {
                if let Some(look) = self.look() {
                    let left = PATIENCE.saturating_sub(now.saturating_sub(look.began));
                    // Who is late is not waited for.
                    let _ = timeout(left, look.over.cancelled()).await;
                }
            }
            (true, _) => self.looked().await,
        }
        let state = self.state();
        let found = state.matching(header, self.clock.now().steady);
        if found.is_empty() { Err(state.no_key()) } else { Ok(found) }
    }

    /// The same for a token that does not say by which key it is signed, and is signed by none of those known: its issuer may
    /// have a newer one.
    pub async fn newer(self: &Arc<Self>, header: &Header) -> Result<Vec<Arc<Key>>, NoKey> {
        self.looked().await;
        let state = self.state();
        match state.no_key() {
            NoKey::Unknown => Ok(state.matching(header, self.clock.now().steady)),
            cannot_tell => Err(cannot_tell),
        }
    }

    /// Comes back when somebody has looked for them, if that may be.
    async fn looked(self: &Arc<Self>) {
        if let Some(look) = self.look() {
            look.over.cancelled().await;
        }
    }

    /// Has somebody look for them, unless somebody does already; `None`: it is too early to.
    fn look(self: &Arc<Self>) -> Option<Look> {
        let mut state = self.state();
        if let Some(look) = state.look.as_ref().filter(|look| !look.over.is_cancelled()) {
            return Some(look.clone());
        }
        let began = self.clock.now().steady;
        if !state.may_look(began) {
            return None;
        }
        let look = Look { began, over: CancellationToken::new() };
        state.look = Some(look.clone());
        let (keys, over) = (Arc::clone(self), look.over.clone().drop_guard());
        // Whoever asked may go away meanwhile: what was begun is ended, lest everybody begin it anew.
        tokio::spawn(async move {
            let got = keys.get().await;
            keys.learn(got);
            drop(over);
        });
        Some(look)
    }

    fn learn(&self, got: Result<(Vec<Key>, Duration), String>) {
        let now = self.clock.now().steady;
        let mut state = self.state();
        state.looked_at = Some(now);
        state.failure = match got {
            Ok((keys, fresh)) => {
                self.trouble.works();
                state.keys = keys.into_iter().map(Arc::new).collect();
                state.came = Some((now, fresh));
                None
            }
            Err(why) => {
                self.trouble.fails(&why);
                Some(why)
            }
        };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys as they are now, and for how long they are fresh.
    async fn get(&self) -> Result<(Vec<Key>, Duration), String> {
        let url = match &self.place {
            Place::File(file) => return Ok((usable(&read(file.clone()).await?)?, BOUNDS.0)),
            Place::Url(url) => https_url(url).map_err(str::to_owned)?,
            Place::Metadata(issuer) => {
                discovery::jwks(&self.getter, issuer).await.map_err(|error| error.to_string())?
            }
        };
        let got = self.getter.get(&url).await.map_err(|error| format!("{url}: {error}"))?;
        let fresh = got.max_age.unwrap_or(FRESH).clamp(BOUNDS.0, BOUNDS.1);
        Ok((usable(&got.value).map_err(|why| format!("{url}: {why}"))?, fresh))
    }
}

impl Place {
    fn name(&self) -> String {
        match self {
            Self::Url(name) | Self::Metadata(name) => name.clone(),
            Self::File(file) => file.display().to_string(),
        }
    }
}

impl State {
    fn matching(&self, header: &Header, now: Duration) -> Vec<Arc<Key>> {
        let count = self.came.is_some_and(|(at, fresh)| now < at + fresh + STALE);
        let keys = self.keys.iter().filter(|key| count && key.may_have_signed(header));
        keys.cloned().collect()
    }

    fn are_fresh(&self, now: Duration) -> bool {
        self.came.is_some_and(|(at, fresh)| now < at + fresh)
    }

    /// Why there is none.
    fn no_key(&self) -> NoKey {
        self.failure.clone().map_or(NoKey::Unknown, NoKey::CannotTell)
    }

    fn may_look(&self, now: Duration) -> bool {
        let pause = if self.failure.is_some() { RETRY } else { AGAIN };
        self.looked_at.is_none_or(|at| now >= at + pause)
    }
}

/// The keys of a set that serve here. A set without any is taken for a mistake, by which nobody's key is withdrawn.
fn usable(set: &Value) -> Result<Vec<Key>, String> {
    let keys = Key::of_set(set);
    if keys.is_empty() { Err("there is no key for signatures that is known here".into()) } else { Ok(keys) }
}

async fn read(file: PathBuf) -> Result<Value, String> {
    let name = file.display().to_string();
    let read = move || read_small(&file, MAX_BYTES as u64);
    let bytes = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    let bytes = bytes.map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{name} is no JSON: {error}"))
}
