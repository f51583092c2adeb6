//! Whether the server lives, and whether it can answer: for whoever watches over it, without a token.

use super::super::app::App;
use super::{Problem, unavailable};
use crate::auth;
use crate::monitor::Sight;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

pub(in super::super) fn router() -> Router<Arc<App>> {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

/// Somebody looks, and who may come in can be told.
async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    let tick = timeout(PATIENCE, app.service.tick(&Sight::All)).await;
    tick.map_err(|_| unavailable("nobody has looked yet"))?.map_err(unavailable)?;
    let read = move || {
        let setup = app.service.setup();
        auth::list(&setup.store, &*setup.clock, &setup.user, false).map(drop)
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(())) => Ok("ready\n"),
        Ok(Err(error)) => {
            tracing::error!("the database cannot be read: {error}");
            Err(unavailable("the database cannot be read; the server's log says why"))
        }
        Err(error) => Err(unavailable(error)),
    }
}
