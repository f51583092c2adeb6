//! What is remembered of sessions beyond the end of the server, so that clients need not notice that there is a new one.

use crate::setup::Setup;
use crate::store::StoreError;
use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The memory for the sessions of one grant.
#[derive(Clone)]
pub(super) struct Memory {
    setup: Arc<Setup>,
    grant_id: Arc<str>,
    /// How sessions began that could not be kept so far, by their ids. There are no more than sessions are open.
    unkept: Arc<Mutex<HashMap<String, String>>>,
}

impl Memory {
    /// The memory for this grant.
    pub fn new(setup: Arc<Setup>, grant_id: &str) -> Self {
        Self { setup, grant_id: grant_id.into(), unkept: Arc::default() }
    }

    /// Whether a session could not be kept so far.
    pub fn lacks(&self, id: &str) -> bool {
        self.unkept().contains_key(id)
    }

    /// Tries again to keep what could not be kept of a session, if there is that.
    pub async fn try_again(&self, id: &str) {
        let unkept = self.unkept().remove(id);
        if let Some(hello) = unkept
            && let Err(error) = self.keep(id, hello).await
        {
            tracing::warn!("a session is not remembered yet: {error}");
        }
    }

    /// Whether a session is remembered. Where that cannot be told, it is not.
    pub async fn knows(&self, id: &str) -> bool {
        let found = self.load(id).await;
        found
            .inspect_err(|error| tracing::warn!("sessions from before are not known: {error}"))
            .is_ok_and(|it| it.is_some())
    }

    /// Forgets a session.
    pub async fn forget(&self, id: &str) {
        self.unkept().remove(id);
        if let Err(error) = self.delete(id).await {
            tracing::warn!("a session that is over is still remembered: {error}");
        }
    }

    /// Notes for how long each of these sessions has not been used: a new server counts from there.
    pub async fn note_use(&self, unused: Vec<(Arc<str>, Duration)>) {
        let setup = Arc::clone(&self.setup);
        let note = move || {
            let now_ms = setup.clock.now().unix_ms;
            let used: Vec<_> =
                unused.into_iter().map(|(id, unused)| (id, now_ms.saturating_sub(millis(unused)))).collect();
            setup.store.use_sessions(&used)
        };
        let noted = tokio::task::spawn_blocking(note).await;
        if let Err(error) = noted.map_err(|e| e.to_string()).and_then(|noted| noted.map_err(|e| e.to_string())) {
            tracing::warn!("when sessions were used is not written down: {error}");
        }
    }

    async fn keep(&self, id: &str, hello: String) -> Result<(), SessionStoreError> {
        let copy = hello.clone();
        let keep = move |setup: &Setup, id: &str, grant: &str| {
            let now_ms = setup.clock.now().unix_ms;
            let oldest_ms = now_ms.saturating_sub(millis(setup.config().clients.keep.0));
            setup.store.keep_session(id, grant, &copy, now_ms, oldest_ms)
        };
        let kept = self.with(id, keep).await;
        if kept.is_err() {
            self.unkept().insert(id.to_owned(), hello);
        }
        kept
    }

    fn unkept(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.unkept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn with<T: Send + 'static>(
        &self,
        id: &str,
        work: impl FnOnce(&Setup, &str, &str) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        let (memory, id) = (self.clone(), id.to_owned());
        Ok(tokio::task::spawn_blocking(move || work(&memory.setup, &id, &memory.grant_id)).await??)
    }
}

#[async_trait]
impl SessionStore for Memory {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let load = |setup: &Setup, id: &str, grant: &str| {
            let now_ms = setup.clock.now().unix_ms;
            setup.store.kept_session(id, grant, now_ms.saturating_sub(millis(setup.config().clients.idle.0)))
        };
        let found = self.with(id, load).await?;
        Ok(found.map(|hello| serde_json::from_str(&hello)).transpose()?)
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        self.keep(id, serde_json::to_string(state)?).await
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.with(id, |setup, id, _| setup.store.forget_session(id)).await
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
