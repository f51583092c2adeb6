//! headcount as an MCP server: the only place that knows rmcp's server side.

mod answer;
mod arguments;
mod register;
mod server;
mod sessions;
mod splice;
mod status;
mod tools;

pub use answer::Service;

use rmcp::ServiceExt as _;
use server::Server;
use splice::{Splicer, SplicingWriter};
use std::sync::Arc;

/// Serves one client over stdin and stdout until it closes its end, in whichever era of the protocol it speaks.
///
/// # Errors
/// When the handshake fails in a way that ends the connection.
pub async fn serve_stdio(service: Service) -> anyhow::Result<()> {
    let splicer = Arc::new(Splicer::default());
    let server = Server::new(Arc::new(service), Arc::clone(&splicer));
    let (input, output) = rmcp::transport::stdio_pipes();
    let running = match server.serve((input, SplicingWriter::new(output, splicer))).await {
        Ok(running) => running,
        // A client that leaves before it has said anything wanted nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let end = running.cancellation_token();
    tokio::spawn(async move {
        asked_to_end().await;
        end.cancel();
    });
    running.waiting().await?;
    Ok(())
}

/// Waits until a signal asks the program to end, so that what is still to be written is written.
async fn asked_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            },
            Err(error) => {
                tracing::warn!(%error, "signals cannot be caught; SIGTERM ends the program at once");
                std::future::pending::<()>().await;
            }
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
