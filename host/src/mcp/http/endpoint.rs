//! The endpoint `/mcp`: from a request whose sender is known to its answer.

use super::super::answer::Service;
use super::super::connection::Connection;
use super::super::server::Server;
use super::Body;
use super::guest::{Guest, House, Refusal, no_room};
use super::handler::handlers;
use super::message::{NoMessage, Wish};
use super::room::{ALL, Room};
use crate::auth::Admitted;
use crate::store::clients::EndReason;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::ServerHandler;
use std::any::Any;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::bytes::Bytes;

/// Sessions of the older era that there may be in all.
const SESSIONS: usize = 1024;

/// Streams of notifications that there may be in all.
const STREAMS: usize = 1024;

/// The revision from which on there are no sessions.
const STATELESS: &str = "2026-07-28";

const JSON: &str = "application/json";
const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// The largest message that something is kept of for as long as a session, a stream or a call that waits lasts, bytes.
const MAX_KEPT: usize = 64 << 10;

/// What a GET or DELETE without a session can be told to do instead.
const ONLY_POST: Refusal = Refusal::Method { allow: "POST" };

/// What a request keeps as long as its answer is sent.
type Kept = Vec<Box<dyn Any + Send + Sync>>;

/// MCP over HTTP for all guests.
pub struct Endpoint {
    house: Arc<House>,
    guests: Arc<Mutex<HashMap<String, Arc<Guest>>>>,
    ending: AtomicBool,
}

/// What is open at an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Grants that have come and not ended.
    pub guests: usize,
    /// Sessions of the older era.
    pub sessions: usize,
    /// Streams of notifications.
    pub streams: usize,
}

impl Endpoint {
    /// An endpoint for headcount's own tools, that nobody has come to yet.
    pub fn new(service: Arc<Service>) -> Self {
        let tools = Arc::clone(&service);
        Self::of(service, move |connection| Server::new(Arc::clone(&tools), Arc::new(connection)))
    }

    /// The same for another handler, made anew for each session and each request of the newer era. Nothing of what it does
    /// comes into the ledger.
    pub fn serving<H: ServerHandler>(service: Arc<Service>, handler: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self::of(service, move |_| handler())
    }

    fn of<H: ServerHandler>(service: Arc<Service>, handler: impl Fn(Connection) -> H + Send + Sync + 'static) -> Self {
        let room = |n| Arc::new(Semaphore::new(n));
        let (sessions, streams, bodies) = (room(SESSIONS), room(STREAMS), room(ALL));
        let house = Arc::new(House { service, handlers: handlers(handler), sessions, streams, bodies });
        Self { house, guests: Arc::default(), ending: AtomicBool::new(false) }
    }

    /// What it answers from.
    pub fn service(&self) -> &Arc<Service> {
        &self.house.service
    }

    /// Counts a request of a grant: those to `/mcp` and all others.
    ///
    /// # Errors
    /// When they come too often, or nobody is served any more.
    pub fn count(&self, admitted: &Admitted) -> Result<(), Refusal> {
        self.guest(admitted)?.count()
    }

    /// Room for the body of a request that begins to come.
    ///
    /// # Errors
    /// When nobody is served any more.
    pub fn room(&self, admitted: &Admitted) -> Result<Room, Refusal> {
        self.guest(admitted)?.room()
    }

    /// Answers a request, whose body was read already.
    ///
    /// # Errors
    /// Why it is not served.
    pub async fn serve(&self, admitted: &Admitted, request: Request<Bytes>) -> Result<Response<Body>, Refusal> {
        let guest = self.guest(admitted)?;
        match *request.method() {
            Method::POST => post(&guest, admitted, request).await,
            Method::GET | Method::DELETE => {
                guest.check(&admitted.principal, &Wish::Other)?;
                if request.method() == Method::GET {
                    get(&guest, admitted, request).await
                } else {
                    delete(&guest, request.headers()).await
                }
            }
            _ => Err(Refusal::Method { allow: "POST, GET, DELETE" }),
        }
    }

    /// How many grants use it now, and how many sessions and streams they have open.
    pub fn open(&self) -> Open {
        let taken = |room: &Semaphore, of: usize| of - room.available_permits().min(of);
        Open {
            guests: self.all().len(),
            sessions: taken(&self.house.sessions, SESSIONS),
            streams: taken(&self.house.streams, STREAMS),
        }
    }

    /// Nobody is served any more, streams end, and whoever waits is let go.
    pub fn drain(&self) {
        self.ending.store(true, Ordering::Relaxed);
        for guest in self.all().values() {
            guest.gone.cancel();
        }
    }

    /// Ends everything.
    pub fn end(&self) {
        self.drain();
        for guest in self.all().values() {
            guest.end(EndReason::ServerStopped);
        }
    }

    fn guest(&self, admitted: &Admitted) -> Result<Arc<Guest>, Refusal> {
        let mut guests = self.all();
        if self.ending.load(Ordering::Relaxed) {
            return Err(Refusal::Ending);
        }
        if let Some(guest) = guests.get(&admitted.principal.grant_id) {
            return Ok(Arc::clone(guest));
        }
        let guest = Arc::new(Guest::new(Arc::clone(&self.house), &admitted.principal));
        guests.insert(admitted.principal.grant_id.clone(), Arc::clone(&guest));
        tokio::spawn(keep(Arc::clone(&guest), admitted.clone(), Arc::clone(&self.guests), self.idle()));
        Ok(guest)
    }

    fn idle(&self) -> Duration {
        self.house.service.setup().config().clients.idle.0
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Guest>>> {
        lock(&self.guests)
    }
}

fn lock(guests: &Mutex<HashMap<String, Arc<Guest>>>) -> MutexGuard<'_, HashMap<String, Arc<Guest>>> {
    guests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees to a guest until its grant has ended.
async fn keep(guest: Arc<Guest>, admitted: Admitted, guests: Arc<Mutex<HashMap<String, Arc<Guest>>>>, idle: Duration) {
    let pause = (idle / 8).clamp(Duration::from_millis(50), Duration::from_secs(30));
    loop {
        tokio::select! {
            () = admitted.ended.cancelled() => break,
            () = guest.over.cancelled() => return,
            () = sleep(pause) => {}
        }
        guest.end_idle(idle);
        // Twice as long: what was used just before the pause was may have been missed.
        guest.sessions.note_use(2 * pause).await;
    }
    lock(&guests).remove(&admitted.principal.grant_id);
    // The ledger tells by the grant why; that it was cut is said, lest it be taken for one that ended with this server.
    guest.end(EndReason::Closed);
}

async fn post(guest: &Guest, admitted: &Admitted, mut request: Request<Bytes>) -> Result<Response<Body>, Refusal> {
    let wish = match Wish::of(request.body()) {
        Ok(wish) => wish,
        Err(error) => return Ok(no_message(guest, &error)),
    };
    if wish.lasts() && request.body().len() > MAX_KEPT {
        return Err(Refusal::TooLarge(MAX_KEPT));
    }
    guest.check(&admitted.principal, &wish)?;
    let session = session(guest, request.headers_mut()).await?;
    let mut kept = Kept::new();
    let until = if wish == Wish::Listen {
        kept.push(Box::new(guest.stream()?));
        vec![guest.gone.clone(), admitted.expired.clone()]
    } else {
        vec![guest.over.clone()]
    };
    let says_json = says_json(request.headers());
    let response = ask(guest, request).await;
    if says_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        // So rmcp calls what it cannot read.
        return Ok(no_message(guest, &NoMessage::unread()));
    }
    // One from before the server's start is there only now.
    let is_named = session.is_some();
    let session = session.and_then(|id| guest.sessions.get(&id));
    if is_named && session.is_none() && response.status().is_server_error() {
        // It was closed meanwhile.
        return Err(Refusal::NoSession);
    }
    kept.extend(session.map(|session| Box::new(session.hold()) as _));
    if wish == Wish::Initialize && response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        // Others were faster.
        return Err(no_room());
    }
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    let (head, inner) = response.into_parts();
    let body = Body::new(inner, Arc::clone(&guest.splicer), until, kept);
    Ok(Response::from_parts(head, if is_stream { body } else { body.whole().await }))
}

/// The stream on which a session hears what it has subscribed to. Without a session nothing is ever pushed.
async fn get(guest: &Guest, admitted: &Admitted, mut request: Request<Bytes>) -> Result<Response<Body>, Refusal> {
    let id = session(guest, request.headers_mut()).await?.ok_or(ONLY_POST)?;
    let place = guest.stream()?;
    let response = ask(guest, request).await;
    let session = guest.sessions.get(&id).ok_or(Refusal::NoSession)?;
    let kept: Kept = vec![Box::new(session.hold()), Box::new(place)];
    Ok(response
        .map(|inner| Body::new(inner, Arc::clone(&guest.splicer), [session.over(), admitted.expired.clone()], kept)))
}

/// Ends a session, as its client wishes.
async fn delete(guest: &Guest, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
    let id = session_id(headers).ok_or(ONLY_POST)?;
    if !guest.sessions.close(id).await {
        return Err(Refusal::NoSession);
    }
    Ok(response(guest, StatusCode::NO_CONTENT, Bytes::new()))
}

/// The session that a request names. In the newer era, where there is none, what names one is left out.
async fn session(guest: &Guest, headers: &mut HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(id) = session_id(headers).map(str::to_owned) else { return Ok(None) };
    if guest.sessions.get(&id).is_some() {
        guest.sessions.remember(&id);
        return Ok(Some(id));
    }
    if headers.get(PROTOCOL_VERSION).is_some_and(|version| version == STATELESS) {
        headers.remove(SESSION_ID);
        return Ok(None);
    }
    if guest.sessions.knows(&id).await { Ok(Some(id)) } else { Err(Refusal::NoSession) }
}

/// A text that is none names no session, and an empty one neither.
fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID).map(|id| id.to_str().unwrap_or_default())
}

/// Has rmcp answer. It is not told the token. What it refuses in plain words is made an error of JSON-RPC.
async fn ask(guest: &Guest, mut request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
    request.headers_mut().remove(AUTHORIZATION);
    let answer = guest.rmcp.answer(request.map(Full::new)).await;
    let status = answer.status();
    let is_message = answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    if is_message || !(status.is_client_error() || status.is_server_error()) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(words) = body.collect().await;
    let error = NoMessage::refused(&String::from_utf8_lossy(&words.to_bytes()));
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Response::from_parts(head, Full::new(Bytes::from(error.answer().to_string())).boxed())
}

/// Whether the body of a request is JSON, as its sender says.
fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(JSON))
}

fn no_message(guest: &Guest, error: &NoMessage) -> Response<Body> {
    let mut response = response(guest, StatusCode::BAD_REQUEST, Bytes::from(error.answer().to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

fn response(guest: &Guest, status: StatusCode, body: Bytes) -> Response<Body> {
    let body = Body::new(Full::new(body).boxed(), Arc::clone(&guest.splicer), [], Kept::new());
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
