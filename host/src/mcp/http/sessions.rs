//! The sessions of the older era: rmcp keeps them going, and here stands how many there may be and when each is over.

use super::super::connection::Connection;
use super::super::life::{Held, Life};
use super::memory::Memory;
use crate::clock::Clock;
use crate::store::clients::EndReason;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{EventId, LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Sessions that one guest may have at a time.
const MOST: usize = 256;

/// One that was not used for so long gives way where there is no room for another.
const GIVES_WAY: Duration = Duration::from_secs(10);

/// How long what was answered in part is kept for a client that comes back for the rest.
const KEPT: Duration = Duration::from_secs(2);

/// How long a session may be without a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The sessions of one guest.
pub(super) struct Sessions {
    inner: Arc<LocalSessionManager>,
    open: Mutex<HashMap<SessionId, Session>>,
    /// Room for the sessions of all guests.
    room: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    /// Cancelled when the guest has gone: then its sessions end with it.
    gone: CancellationToken,
    memory: Memory,
}

/// One session.
#[derive(Clone)]
pub(in super::super) struct Session(Arc<Inner>);

struct Inner {
    life: Arc<Life>,
    /// Cancelled when it is over.
    over: CancellationToken,
    /// Who it is of, once it has shaken hands.
    of: OnceLock<Arc<Connection>>,
    _room: OwnedSemaphorePermit,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// There are too many.
    #[error("there are too many sessions")]
    Full,
    /// It was closed before it was restored.
    #[error("the session was closed")]
    Closed,
    /// As rmcp says.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

impl Session {
    /// The connection that it is of; what is known of it there ends with it.
    pub fn is_of(&self, connection: &Arc<Connection>) {
        // A second handshake changes nothing.
        let _ = self.0.of.set(Arc::clone(connection));
    }

    /// Uses it.
    pub(super) fn hold(&self) -> Held {
        self.0.life.hold()
    }

    /// Cancelled when it is over.
    pub(super) fn over(&self) -> CancellationToken {
        self.0.over.clone()
    }

    fn end(&self, reason: EndReason) {
        self.0.over.cancel();
        if let Some(connection) = self.0.of.get() {
            connection.gone.cancel();
            connection.callers.end(reason);
        }
    }
}

impl Sessions {
    /// None yet, in a house with `room`.
    pub fn new(room: Arc<Semaphore>, clock: Arc<dyn Clock>, gone: CancellationToken, memory: Memory) -> Self {
        let mut inner = LocalSessionManager::default();
        let config = &mut inner.session_config;
        // rmcp would end those, too, that still wait for an answer.
        config.keep_alive = None;
        config.sse_retry = None;
        config.completed_cache_ttl = KEPT;
        config.init_timeout = Some(HANDSHAKE);
        Self { inner: Arc::new(inner), open: Mutex::default(), room, clock, gone, memory }
    }

    /// The session with this id.
    pub fn get(&self, id: &str) -> Option<Session> {
        self.all().get(id).cloned()
    }

    /// Whether there is a session of this id, or was when the server before this one ended: rmcp goes on with that one.
    pub async fn knows(&self, id: &str) -> bool {
        self.get(id).is_some() || self.memory.knows(id).await
    }

    /// Remembers a session that could not be remembered when it began. It keeps nobody waiting.
    pub fn remember(self: &Arc<Self>, id: &str) {
        if !self.memory.lacks(id) {
            return;
        }
        let (sessions, id) = (Arc::clone(self), id.to_owned());
        tokio::spawn(async move {
            sessions.memory.try_again(&id).await;
            if sessions.get(&id).is_none() {
                // It has ended meanwhile.
                sessions.memory.forget(&id).await;
            }
        });
    }

    /// Ends a session, as its client wishes; `false`: there is none.
    pub async fn close(&self, id: &str) -> bool {
        let is_known = self.knows(id).await;
        if is_known {
            // Before it ends: whoever restores it meanwhile looks for that when it is there.
            self.memory.forget(id).await;
        }
        self.end(id, EndReason::Closed);
        is_known
    }

    /// Ends a session, if it is there.
    pub fn end(&self, id: &str, reason: EndReason) {
        let ended = self.all().remove_entry(id);
        let Some((id, session)) = ended else { return };
        session.end(reason);
        let (inner, memory) = (Arc::clone(&self.inner), self.memory.clone());
        // It may be busy for as long as a client does not read.
        tokio::spawn(async move {
            if reason != EndReason::ServerStopped {
                memory.forget(&id).await;
            }
            if let Err(error) = inner.close_session(&id).await {
                tracing::warn!("a session does not close: {error}");
            }
        });
    }

    /// Ends those that nobody has used for so long.
    pub fn end_idle(&self, after: Duration) {
        let idle = |session: &Session| session.0.life.unused_for().is_some_and(|unused| unused >= after);
        let ids: Vec<SessionId> = self.all().iter().filter(|(_, s)| idle(s)).map(|(id, _)| Arc::clone(id)).collect();
        ids.iter().for_each(|id| self.end(id, EndReason::Idle));
    }

    /// Notes which of them were used lately: not for so long at the most, which is since this was last done.
    pub async fn note_use(&self, since: Duration) {
        let unused = |session: &Session| session.0.life.unused_for().unwrap_or_default();
        let used: Vec<(SessionId, Duration)> =
            self.all().iter().map(|(id, session)| (Arc::clone(id), unused(session))).collect();
        let used: Vec<_> = used.into_iter().filter(|(_, unused)| *unused <= since).collect();
        if !used.is_empty() {
            self.memory.note_use(used).await;
        }
    }

    /// Ends all of them.
    pub fn end_all(&self, reason: EndReason) {
        let ids: Vec<SessionId> = self.all().keys().cloned().collect();
        ids.iter().for_each(|id| self.end(id, reason));
    }

    /// Whether there is room for one more. The one that was not used for longest gives way, where it was not for a while.
    pub fn make_room(&self) -> bool {
        let has_room = || self.all().len() < MOST && self.room.available_permits() > 0;
        if has_room() {
            return true;
        }
        let unused = |(id, session): (&SessionId, &Session)| Some((session.0.life.unused_for()?, Arc::clone(id)));
        let longest = self.all().iter().filter_map(unused).max();
        if let Some((_, id)) = longest.filter(|(unused, _)| *unused >= GIVES_WAY) {
            self.end(&id, EndReason::Idle);
        }
        has_room()
    }

    /// Ends the stream of what is pushed, if one is open: a client that opens another has lost it, and what is pushed goes to one.
    async fn end_stream(&self, id: &SessionId) -> Result<(), SessionError> {
        let handle = self.inner.sessions.read().await.get(id).cloned();
        if let Some(handle) = handle {
            handle.close_standalone_sse_stream(None).await.map_err(LocalSessionManagerError::from)?;
        }
        Ok(())
    }

    fn begin(&self) -> Result<Session, SessionError> {
        if !self.make_room() {
            return Err(SessionError::Full);
        }
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| SessionError::Full)?;
        let (life, over) = (Life::new(Arc::clone(&self.clock)), self.gone.child_token());
        Ok(Session(Arc::new(Inner { life, over, of: OnceLock::new(), _room: room })))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        let session = self.begin()?;
        let (id, transport) = self.inner.create_session().await?;
        self.all().insert(Arc::clone(&id), session);
        Ok((id, transport))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, SessionError> {
        let session = self.begin()?;
        let restored = self.inner.restore_session(Arc::clone(&id)).await?;
        self.all().insert(Arc::clone(&id), session);
        if !self.memory.knows(&id).await {
            // Its client has closed it meanwhile.
            self.end(&id, EndReason::Closed);
            return Err(SessionError::Closed);
        }
        Ok(restored)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        if let Some(session) = self.get(id) {
            message.insert_extension(session);
        }
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.all().contains_key(id))
    }

    /// rmcp says so when a session has come to its end: by itself, where it is still known here.
    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        // Who has the guest go ends all of them, and says why.
        if !self.gone.is_cancelled() {
            self.end(id, EndReason::Closed);
        }
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        if let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::SubscribeRequest(_))
        {
            // The next server would not know what it is to be told of: then it is to begin anew.
            self.memory.forget(id).await;
        }
        Ok(self.inner.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.end_stream(id).await?;
        Ok(self.inner.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        // That of a request's own stream has its number, too.
        if last_event_id.parse::<EventId>().is_ok() && !last_event_id.contains('/') {
            self.end_stream(id).await?;
        }
        Ok(self.inner.resume(id, last_event_id).await?)
    }
}
