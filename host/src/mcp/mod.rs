//! headcount as an MCP server: the only place that knows rmcp's server side.

mod answer;
mod arguments;
mod callers;
mod clients;
mod connection;
pub mod http;
mod life;
mod outflow;
mod page;
mod presence;
mod register;
mod resources;
mod rows;
mod server;
mod sessions;
mod splice;
mod status;
mod subscriptions;
mod tools;
mod wait;

pub use answer::{Flow, Service};
pub use tools::Tool;

use crate::clients::NewClient;
use crate::store::clients::EndReason;
use connection::Connection;
use outflow::{Outflow, Told};
use presence::WhileHere;
use rmcp::ServiceExt as _;
use rmcp::service::QuitReason;
use rows::Rows;
use server::Server;
use splice::{Splicer, SplicingWriter};
use std::sync::Arc;
use std::time::Duration;

/// For how long a client that has closed its end may leave untaken what it is sent.
const UNTAKEN: Duration = Duration::from_secs(2);

/// Serves one client over stdin and stdout until it closes its end, in whichever era of the protocol it speaks.
///
/// # Errors
/// When the handshake fails in a way that ends the connection.
pub async fn serve_stdio(service: Service) -> anyhow::Result<()> {
    let splicer = Arc::new(Splicer::new(Arc::clone(service.flow())));
    let user = service.setup().user.clone();
    let common = NewClient { user_id: user.clone(), transport: "stdio".into(), ..NewClient::default() };
    let rows = Arc::new(Rows::new(service.ledger(), Arc::clone(&service.setup().clock), common));
    let connection = Arc::new(Connection::stdio(user, Arc::clone(&splicer), Arc::clone(&rows)));
    let server = Server::new(Arc::new(service), Arc::clone(&connection));
    widen_pipe();
    let (input, output) = rmcp::transport::stdio_pipes();
    let outflow = Arc::new(Outflow::default());
    let output = Told::new(output, Arc::clone(&outflow));
    let pipes = (WhileHere::new(input, connection.gone.clone()), SplicingWriter::new(output, splicer));
    let running = match server.serve(pipes).await {
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
    let deserted = async {
        connection.gone.cancelled().await;
        outflow.is_stuck_for(UNTAKEN).await;
    };
    let quit = tokio::select! {
        quit = running.waiting() => quit,
        () = deserted => {
            tracing::info!("the client has gone and takes no answers");
            Ok(QuitReason::Closed)
        }
    };
    let stopped = !matches!(quit, Ok(QuitReason::Closed));
    let reason = if stopped { EndReason::ServerStopped } else { EndReason::Closed };
    connection.callers.end(reason);
    rows.end_all(reason);
    quit?;
    Ok(())
}

/// A report of a thousand agents has half a megabyte; through a pipe of the usual 64 KiB it goes in ten turns of reader and writer.
#[cfg(target_os = "linux")]
fn widen_pipe() {
    use nix::fcntl::{FcntlArg, fcntl};
    // Not a pipe, or more than this user may have: then it goes the slow way.
    let _ = fcntl(std::io::stdout(), FcntlArg::F_SETPIPE_SZ(1 << 20));
}

#[cfg(not(target_os = "linux"))]
fn widen_pipe() {}

/// Waits until a signal asks the program to end, so that what is still to be written is written. From this call on none of
/// these signals ends it otherwise.
#[cfg(unix)]
pub(crate) fn asked_to_end() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut kinds = vec![SignalKind::terminate(), SignalKind::interrupt()];
    if !is_hangup_to_be_ignored() {
        kinds.push(SignalKind::hangup());
    }
    let signals: std::io::Result<Vec<_>> = kinds.into_iter().map(signal).collect();
    async move {
        match signals {
            Ok(mut signals) => {
                std::future::poll_fn(|cx| {
                    let came = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
                    if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
                })
                .await
            }
            Err(error) => {
                tracing::warn!(%error, "signals cannot be caught; SIGTERM ends the program at once");
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Whether SIGHUP is to be left alone: whoever has started this program by `nohup` wants it to outlive its terminal. Where that
/// cannot be told, nothing is changed: then it either ends the program at once or is ignored.
#[cfg(target_os = "linux")]
fn is_hangup_to_be_ignored() -> bool {
    match crate::run::ignored_signals() {
        Ok(ignored) => ignored.contains(&(nix::sys::signal::Signal::SIGHUP as i32)),
        Err(error) => {
            tracing::warn!("whether SIGHUP was ignored from the start cannot be told: {error}");
            true
        }
    }
}

/// There is nothing here that would tell it.
#[cfg(all(unix, not(target_os = "linux")))]
fn is_hangup_to_be_ignored() -> bool {
    true
}

/// Waits until Ctrl-C asks the program to end.
#[cfg(not(unix))]
pub(crate) async fn asked_to_end() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
