//! What one grant has here: its sessions, its clients, and how much of everything it may have.

use super::super::answer::Service;
use super::super::callers::Callers;
use super::super::connection::Connection;
use super::super::rows::Rows;
use super::super::splice::Splicer;
use super::handler::{Handlers, Protocol};
use super::memory::Memory;
use super::message::Wish;
use super::room::{self, Room};
use super::sessions::Sessions;
use crate::auth::Bucket;
use crate::auth::{Principal, Scope};
use crate::clients::NewClient;
use crate::monitor::Sight;
use crate::store::audit::Transport;
use crate::store::clients::EndReason;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Streams of notifications that one guest may have open.
const STREAMS: usize = 256;

/// Calls that one guest may have under way.
const CALLS: usize = 512;

/// Large answers of one guest that may wait to be sent. One is left waiting where its client has not taken it.
const ANSWERS: usize = 1024;

/// How often a guest may do something: in a second, and at once.
const INITIALIZE: (u32, u32) = (20, 300);
const CALL: (u32, u32) = (500, 5000);

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The grant does not permit it.
    #[error("the token does not permit this: it needs the scope {}", .0.as_str())]
    Scope(Scope),
    /// It comes too often, or there is no room for it.
    #[error("{what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// After which time it may be tried again.
        again: Duration,
    },
    /// It is larger than a message of its kind ever is.
    #[error("a message of this kind is not larger than {0} bytes")]
    TooLarge(usize),
    /// There is no such session.
    #[error("there is no such session; initialize a new one")]
    NoSession,
    /// This cannot be done so.
    #[error("this is not done so")]
    Method {
        /// What can be.
        allow: &'static str,
    },
    /// There is no room for its body.
    #[error("there is no room for the body: those of other requests have it")]
    Full,
    /// The server ends.
    #[error("the server is about to end")]
    Ending,
}

/// What all guests share.
pub(super) struct House {
    pub service: Arc<Service>,
    /// What answers them.
    pub handlers: Handlers,
    pub sessions: Arc<Semaphore>,
    pub streams: Arc<Semaphore>,
    pub bodies: Arc<Semaphore>,
}

/// One grant.
pub(super) struct Guest {
    pub splicer: Arc<Splicer>,
    pub sessions: Arc<Sessions>,
    pub rmcp: Box<dyn Protocol>,
    /// Cancelled when it hears nothing new any more.
    pub gone: CancellationToken,
    /// Cancelled when everything of it is to end.
    pub over: CancellationToken,
    rows: Arc<Rows>,
    house: Arc<House>,
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    initializes: Bucket,
    calls: Bucket,
}

impl Guest {
    /// A grant that has come for the first time.
    pub fn new(house: Arc<House>, principal: &Principal) -> Self {
        let service = &house.service;
        let clock = &service.setup().clock;
        let (gone, over) = (CancellationToken::new(), CancellationToken::new());
        let splicer = Arc::new(Splicer::keeping(ANSWERS, Arc::clone(service.flow())));
        let common = NewClient {
            user_id: principal.user_id.clone(),
            grant_id: Some(principal.grant_id.clone()),
            client_id: principal.client_id.clone(),
            transport: "http".into(),
            ..NewClient::default()
        };
        let rows = Arc::new(Rows::new(service.ledger(), Arc::clone(clock), common));
        let connection = Connection {
            transport: Transport::Http,
            user: principal.user_id.clone(),
            sight: Sight::granted(principal, &service.setup().config().access, &service.setup().user),
            gone: gone.clone(),
            splicer: Arc::clone(&splicer),
            callers: Arc::new(Callers::new(Arc::clone(&rows))),
            calls: Arc::new(Semaphore::new(CALLS)),
        };
        let memory = Memory::new(Arc::clone(service.setup()), &principal.grant_id);
        let room = Arc::clone(&house.sessions);
        let sessions = Arc::new(Sessions::new(room, Arc::clone(clock), gone.clone(), memory.clone()));
        let their_rows = Arc::clone(&rows);
        // For each session, and for each request of the newer era.
        let connect = move || {
            let callers = Arc::new(Callers::new(Arc::clone(&their_rows)));
            Connection { gone: connection.gone.child_token(), callers, ..connection.clone() }
        };
        // Who may come in at all was decided before.
        let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts().disable_allowed_origins();
        config = config.with_json_response(true).with_sse_retry(None).with_cancellation_token(over.clone());
        config.session_store = Some(Arc::new(memory));
        Self {
            splicer,
            rmcp: (house.handlers)(Box::new(connect), Arc::clone(&sessions), config),
            sessions,
            gone,
            over,
            rows,
            streams: Arc::new(Semaphore::new(STREAMS)),
            bodies: Arc::new(Semaphore::new(room::SHARE)),
            initializes: Bucket::new(Arc::clone(clock), INITIALIZE.0, INITIALIZE.1),
            calls: Bucket::new(Arc::clone(clock), CALL.0, CALL.1),
            house,
        }
    }

    /// Whether it may have this now.
    pub fn check(&self, principal: &Principal, wish: &Wish) -> Result<(), Refusal> {
        if let Some(scope) = wish.scope().filter(|scope| !principal.may(*scope)) {
            return Err(Refusal::Scope(scope));
        }
        if *wish == Wish::Initialize {
            let often = |again| Refusal::TooMany { what: "too many sessions are begun", again };
            self.initializes.take().map_err(often)?;
            if !self.sessions.make_room() {
                return Err(no_room());
            }
        }
        Ok(())
    }

    /// A place for a stream of notifications: among its own and among all.
    pub fn stream(&self) -> Result<[OwnedSemaphorePermit; 2], Refusal> {
        let place = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned();
        match (place(&self.streams), place(&self.house.streams)) {
            (Ok(own), Ok(of_all)) => Ok([own, of_all]),
            _ => Err(Refusal::TooMany { what: "too many streams are open", again: Duration::from_secs(10) }),
        }
    }

    /// Counts a request, whatever it asks for.
    pub fn count(&self) -> Result<(), Refusal> {
        self.calls.take().map_err(|again| Refusal::TooMany { what: "too many requests come", again })
    }

    /// Room for a body, none of which has come yet.
    pub fn room(&self) -> Result<Room, Refusal> {
        Room::none(&self.bodies, &self.house.bodies)
    }

    /// Ends its clients that nobody has heard for so long.
    pub fn end_idle(&self, after: Duration) {
        self.sessions.end_idle(after);
        self.rows.end_idle(after);
    }

    /// Ends everything of it.
    pub fn end(&self, reason: EndReason) {
        // Answers are cut before anybody could say that the connection ends.
        self.over.cancel();
        self.gone.cancel();
        self.sessions.end_all(reason);
        self.rows.end_all(reason);
    }
}

/// There are as many sessions as there may be.
pub(super) fn no_room() -> Refusal {
    Refusal::TooMany { what: "too many sessions are open", again: Duration::from_secs(10) }
}
