//! Connections: how many, how long each may take, and their end.

use super::doors::Came;
use super::patient::Patient;
use super::workers::Team;
use crate::figures::Count;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long whoever comes may take until requests can be read: the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long the head of a connection's first request may take to come.
const FIRST: Duration = Duration::from_secs(10);

/// How long that of each further one may take, the pause before it included. Not a time in which clients ask again and again:
/// a request that comes as the connection is closed is lost.
const NEXT: Duration = Duration::from_secs(77);

/// The largest head of a request, bytes.
const MAX_HEAD: usize = 32 << 10;

/// What may wait to be written before no more is taken, bytes. The report of a hundred agents and what stands around it go at once
/// then, and what comes last is no packet of its own, which the client would be woken for.
const MAX_WAITING: usize = 128 << 10;

/// How long a client may read nothing of what is sent to it.
const READS_NOTHING: Duration = Duration::from_secs(60);

/// The connections there are.
pub(super) struct Connections {
    most: u32,
    places: Arc<Semaphore>,
    ending: CancellationToken,
    workers: Team,
    /// Those that were closed at once, for there were too many.
    pub refused: Count,
}

impl Connections {
    /// None yet, and so many at the most, which these see to.
    pub fn new(most: u32, workers: Team) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(most as usize));
        Arc::new(Self { most, places, ending: CancellationToken::new(), workers, refused: Count::default() })
    }

    /// How many there are.
    pub fn open(&self) -> usize {
        self.most as usize - self.places.available_permits()
    }

    /// Waits until the server is to end.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Has all of them end after what they are doing, and waits for that so long at the most.
    pub async fn drain(&self, patience: Duration) {
        self.ending.cancel();
        if timeout(patience, self.places.acquire_many(self.most)).await.is_err() {
            let left = self.open();
            tracing::warn!(left, "connections were cut, for they did not end");
        }
    }
}

/// Serves a connection for as long as it lasts, once `opening` has made of it what requests are read from. One that is too
/// many is closed at once: who does not get through a handshake has a place, too.
pub(super) fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    opening: impl Future<Output = io::Result<S>> + Send + 'static,
    came: Came,
    app: Router,
    connections: &Arc<Connections>,
) {
    let Ok(place) = Arc::clone(&connections.places).try_acquire_owned() else {
        connections.refused.add_one();
        return;
    };
    let ending = connections.ending.clone();
    connections.workers.spawn(async move {
        let _place = place;
        let opened = tokio::select! {
            opened = timeout(HANDSHAKE, opening) => opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            () = ending.cancelled() => return,
        };
        match opened {
            Ok(stream) => answer(stream, came, app, ending).await,
            Err(error) => tracing::debug!("a connection was not opened: {error}"),
        }
    });
}

/// A connection that nothing has to be done for before requests are read from it.
pub(super) async fn plain<S>(stream: impl FnOnce() -> io::Result<S>) -> io::Result<Patient<S>> {
    Ok(patient(stream()?))
}

/// A stream that a client has to read from.
pub(super) fn patient<S>(stream: S) -> Patient<S> {
    Patient::new(stream, READS_NOTHING)
}

/// Answers requests until there are no more.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, came: Came, app: Router, ending: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(NEXT).max_header_size(MAX_HEAD).max_buf_size(MAX_WAITING);
    let (asked, app) = (CancellationToken::new(), TowerToHyperService::new(app));
    let first = asked.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        first.cancel();
        request.extensions_mut().insert(came);
        app.call(request)
    });
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = says_nothing(asked) => return,
        () = ending.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        // A client that leaves in the midst of something is nothing special.
        tracing::debug!("a connection has ended: {error}");
    }
}

/// Comes back only where nothing was asked in time.
async fn says_nothing(asked: CancellationToken) {
    if timeout(FIRST, asked.cancelled()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}
