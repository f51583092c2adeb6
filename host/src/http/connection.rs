//! Connections: how many, how long each may take, and their end.

use super::patient::Patient;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long the head of a request may take to come; a connection that is kept for a next one is closed after that time, too.
const HEAD: Duration = Duration::from_secs(15);

/// The largest head of a request, bytes.
const MAX_HEAD: usize = 32 << 10;

/// How long a client may read nothing of what is sent to it.
const READS_NOTHING: Duration = Duration::from_secs(60);

/// The connections there are.
pub(super) struct Connections {
    most: u32,
    places: Arc<Semaphore>,
    ending: CancellationToken,
}

impl Connections {
    /// None yet, and so many at the most.
    pub fn new(most: u32) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(most as usize));
        Arc::new(Self { most, places, ending: CancellationToken::new() })
    }

    /// Waits until the server is to end.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Has all of them end after what they are doing, and waits for that so long at the most.
    pub async fn drain(&self, patience: Duration) {
        self.ending.cancel();
        if timeout(patience, self.places.acquire_many(self.most)).await.is_err() {
            let left = self.most as usize - self.places.available_permits();
            tracing::warn!(left, "connections were cut, for they did not end");
        }
    }
}

/// Serves a connection for as long as it lasts. One that is too many is closed at once.
pub(super) fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    connections: &Arc<Connections>,
) {
    let Ok(place) = Arc::clone(&connections.places).try_acquire_owned() else { return };
    let ending = connections.ending.clone();
    tokio::spawn(async move {
        let _place = place;
        let io = TokioIo::new(Patient::new(stream, READS_NOTHING));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(MAX_HEAD);
        let mut connection = std::pin::pin!(http.serve_connection(io, TowerToHyperService::new(app)));
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = ending.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            // A client that leaves in the midst of something is nothing special.
            tracing::debug!("a connection has ended: {error}");
        }
    });
}
