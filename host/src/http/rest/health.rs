//! Whether the server lives, and whether it can answer: for whoever watches over it, without a token.

use super::super::app::App;
use super::super::problem::NotReady;
use super::{Problem, unavailable};
use crate::auth;
use crate::monitor::Sight;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whoever looks does so yet. Without it a new start is all that helps.
pub(super) async fn lives(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    app.service.ended().map_or(Ok(well("ok\n")), |ended| Err(unavailable(ended)))
}

/// Somebody looks, and who may come in can be told.
pub(super) async fn is_ready(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    let (sessions, database) = tokio::join!(sessions(&app), database(&app));
    let parts = [("sessions", sessions), ("database", database)];
    let not_ready = parts.into_iter().filter_map(|(part, ready)| Some(NotReady { part, reason: ready.err()? }));
    let not_ready: Vec<NotReady> = not_ready.collect();
    if not_ready.is_empty() { Ok(well("ready\n")) } else { Err(Problem::not_ready(not_ready)) }
}

/// All is well, now.
fn well(word: &'static str) -> impl IntoResponse {
    ([(header::CACHE_CONTROL, "no-store")], word)
}

async fn sessions(app: &App) -> Result<(), String> {
    let tick = timeout(PATIENCE, app.service.tick(&Sight::All)).await;
    tick.map_err(|_| "nobody has looked yet".to_owned())?.map(drop).map_err(|ended| ended.to_string())
}

async fn database(app: &App) -> Result<(), String> {
    let setup = Arc::clone(app.service.setup());
    // One that cannot be made is of no use either.
    let read = move || {
        setup.store.make()?;
        auth::list(&setup.store, &*setup.clock, &setup.user, false).map(drop)
    };
    let read = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    // Where it is and what it holds concerns nobody who has shown no token.
    read.map_err(|error| {
        tracing::error!("the database cannot be used: {error}");
        "the database cannot be used; the server's log says why".to_owned()
    })
}
