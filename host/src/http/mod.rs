//! The HTTP server: connections, TLS, who may come in, and REST. The only place that knows axum, hyper and rustls; MCP itself is
//! spoken in [`mcp::http`](crate::mcp::http).

mod app;
mod auth;
mod bodies;
mod connection;
mod cors;
mod doors;
mod limits;
mod oauth;
mod origin;
mod patient;
mod peers;
mod problem;
mod refused;
mod rest;
mod scheme;
mod tls;
mod traffic;
mod watchdog;
mod workers;

pub use doors::{BindError, Doors};
pub use tls::{Files as TlsFiles, TlsError};

use crate::auth::Gate;
use crate::auth::oauth::{AuthorizationServer, RequestRow};
use crate::config::service_manager::{Told, tell as tell_manager};
use crate::mcp::asked_to_end;
use crate::mcp::http::Endpoint;
use app::App;
use connection::Connections;
use doors::{Listener, accept, open};
use oauth::OAuth;
use std::sync::Arc;
use std::time::Duration;
use workers::Workers;

/// How long what is under way may take to end once the server is to end.
const DRAIN: Duration = Duration::from_secs(5);

/// How long the end of what was cut is waited for.
const END: Duration = Duration::from_secs(2);

/// What the person who has started the server is told.
pub struct Tell {
    /// What is listened on.
    pub opened: Box<dyn Fn(&str)>,
    /// That somebody asks for access, with the code that consents to it: for a terminal alone.
    pub asked: Box<dyn Fn(&RequestRow) + Send + Sync>,
}

/// Serves MCP, as `endpoint` answers it, REST and, unless it is switched off, OAuth, until a signal asks the program to end.
///
/// # Errors
/// When nothing can be listened on.
pub async fn serve(endpoint: Endpoint, gate: Gate, doors: Doors, tell: Tell) -> anyhow::Result<()> {
    // Whoever is told that it listens may ask it to end at once.
    let end = asked_to_end();
    let setup = endpoint.service().setup();
    let listeners = open(&doors, &setup.clock).await?;
    let workers = Workers::start()?;
    let connections = Connections::new(limits::connections(), workers.team());
    let oauth = setup.config().auth.oauth.then(|| {
        let (store, clock) = (Arc::clone(&setup.store), Arc::clone(&setup.clock));
        OAuth::new(AuthorizationServer::new(store, clock, setup.user.clone()), &setup.clock, tell.asked)
    });
    let app = Arc::new(App::new(endpoint, gate, &doors, oauth, Arc::clone(&connections)));
    let places = listeners.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    for listener in listeners {
        (tell.opened)(&listener.to_string());
        if let Listener::Tls(_, tls) = &listener {
            tokio::spawn(Arc::clone(tls).follow());
        }
        tokio::spawn(accept(listener, app::router(Arc::clone(&app)), Arc::clone(&connections)));
    }
    tell_manager(Told::Ready(&format!("serves MCP and REST at {places}")));
    tokio::spawn(watchdog::keep(Arc::clone(&app.service)));
    let refused = Arc::clone(&app);
    tokio::spawn(async move { refused.refused.keep_summing_up().await });
    end.await;
    tell_manager(Told::Stopping);
    app.endpoint.drain();
    connections.drain(DRAIN).await;
    app.endpoint.end();
    app.refused.sum_up();
    workers.end().await;
    Ok(())
}
