//! The HTTP server: connections, who may come in, and REST. The only place that knows axum and hyper; MCP itself is spoken in
//! [`mcp::http`](crate::mcp::http).

mod app;
mod auth;
mod connection;
mod doors;
mod limits;
mod patient;
mod problem;
mod rest;
mod traffic;

pub use doors::{BindError, Doors};

use crate::auth::Gate;
use crate::mcp::{Service, asked_to_end};
use app::App;
use connection::Connections;
use doors::{accept, open};
use std::sync::Arc;
use std::time::Duration;

/// How long what is under way may take to end once the server is to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves MCP and REST until a signal asks the program to end. `opened` is told what is listened on.
///
/// # Errors
/// When nothing can be listened on.
pub async fn serve(service: Service, gate: Gate, doors: Doors, opened: impl Fn(&str)) -> anyhow::Result<()> {
    let listeners = open(&doors).await?;
    let connections = Connections::new(limits::connections());
    let app = Arc::new(App::new(service, gate, &doors, Arc::clone(&connections)));
    for listener in listeners {
        opened(&listener.to_string());
        tokio::spawn(accept(listener, app::router(Arc::clone(&app)), Arc::clone(&connections)));
    }
    asked_to_end().await;
    app.endpoint.drain();
    connections.drain(DRAIN).await;
    app.endpoint.end();
    Ok(())
}
