//! The HTTP server: connections, TLS, who may come in, and REST. The only place that knows axum, hyper and rustls; MCP itself is
//! spoken in [`mcp::http`](crate::mcp::http).

mod app;
mod auth;
mod connection;
mod cors;
mod doors;
mod limits;
mod patient;
mod problem;
mod rest;
mod scheme;
mod tls;
mod watchdog;

pub use doors::{BindError, Doors};
pub use tls::{Files as TlsFiles, TlsError};

use crate::auth::Gate;
use crate::config::service_manager::{Told, tell};
use crate::mcp::{Service, asked_to_end};
use app::App;
use connection::Connections;
use doors::{Listener, accept, open};
use std::sync::Arc;
use std::time::Duration;

/// How long what is under way may take to end once the server is to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves MCP and REST until a signal asks the program to end. `opened` is told what is listened on.
///
/// # Errors
/// When nothing can be listened on.
pub async fn serve(service: Service, gate: Gate, doors: Doors, opened: impl Fn(&str)) -> anyhow::Result<()> {
    // Whoever is told that it listens may ask it to end at once.
    let end = asked_to_end();
    let listeners = open(&doors, &service.setup().clock).await?;
    let connections = Connections::new(limits::connections());
    let app = Arc::new(App::new(service, gate, &doors));
    let places = listeners.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    for listener in listeners {
        opened(&listener.to_string());
        if let Listener::Tls(_, tls) = &listener {
            tokio::spawn(Arc::clone(tls).follow());
        }
        tokio::spawn(accept(listener, app::router(Arc::clone(&app)), Arc::clone(&connections)));
    }
    tell(Told::Ready(&format!("serves MCP and REST at {places}")));
    tokio::spawn(watchdog::keep(Arc::clone(&app.service)));
    end.await;
    tell(Told::Stopping);
    app.endpoint.drain();
    connections.drain(DRAIN).await;
    app.endpoint.end();
    Ok(())
}
