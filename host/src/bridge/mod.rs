//! The file bridge: one retained MCP session, driven through files by programs that can do nothing else.
//!
//! A `folder` that nobody else has holds requests and responses; `mailbox` decides what becomes of each, on disk, so that it
//! holds whenever this process ends; `permit` says which tools may be called; `service` calls them over a session of
//! [`upstream`](crate::upstream), one at a time; `standing` tells how all that stands. Of the server's text, and of what it is
//! given, nothing gets into any file or log but what a tool returns.

mod folder;
#[doc(hidden)]
pub mod fuzzing;
mod mailbox;
mod permit;
mod request;
mod response;
mod service;
mod standing;
mod strict;
#[cfg(test)]
mod tests;
mod watch;

pub use folder::Unusable;
pub use permit::Permit;
pub use response::Patterns;

use crate::clock::Clock;
use crate::observe::roster::retained::STATUS_FILE;
use crate::upstream::{BadToolName, Server, Session};
use folder::Folder;
use mailbox::Mailbox;
use request::Entry;
use service::{End, Ends, Service, Work};
use standing::{Left, Standing};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What is to be bridged.
#[derive(Debug)]
pub struct Order {
    /// The session's folder.
    pub folder: PathBuf,
    /// Whether one that is there is gone on with.
    pub resume: bool,
    /// The server.
    pub server: Server,
    /// Which of its tools may be called.
    pub permit: Permit,
    /// How long the answer to a call is waited for.
    pub timeout: Duration,
    /// How long a response is kept that nobody fetches.
    pub keep: Duration,
    /// What is made of what tools say of their failures.
    pub patterns: Patterns,
}

/// Why a session came to nothing. None of it holds the server's words.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The folder cannot be used, or can no longer.
    #[error("{folder}: {why}")]
    Folder {
        /// Its path.
        folder: String,
        /// Why.
        why: Unusable,
    },
    /// The system refuses.
    #[error("{folder}: {error}")]
    System {
        /// The folder's path.
        folder: String,
        /// Why.
        error: io::Error,
    },
    /// There is no connection.
    #[error("the server cannot be connected to; what it says of that is not told here")]
    Connect,
    /// What is allowed by name can be no tool's name.
    #[error(transparent)]
    ToolName(#[from] BadToolName),
}

/// Serves requests until the session is closed, by a request or by a signal.
///
/// # Errors
/// When it cannot begin, or the folder is lost; `status.json` says so then, where it can.
pub async fn run(order: Order, clock: Arc<dyn Clock>) -> Result<(), BridgeError> {
    let name = crate::text::clean(&order.folder.to_string_lossy());
    let system = |error| BridgeError::System { folder: name.clone(), error };
    let unusable = |why| BridgeError::Folder { folder: name.clone(), why };
    // From here on a signal is an end in order.
    let mut ends = Ends::listen().map_err(system)?;
    let mut standing = Standing::of_this_process(Arc::clone(&clock)).map_err(system)?;
    let mailbox = open(&order.folder, order.resume, &standing).map_err(system)?.map_err(unusable)?;
    standing.starting(mailbox.folder()).map_err(system)?;
    // What may be called is decided here, and not there.
    let Order { server, permit, timeout, keep, patterns, .. } = order;
    let session = Session::open(server, &[], Arc::clone(&clock))?;
    let listed = tokio::select! {
        listed = session.list_tools() => Some(listed),
        () = ends.come() => None,
    };
    let tools = match listed {
        Some(Ok(tools)) => tools,
        Some(Err(_)) => {
            session.close().await;
            standing.failed(mailbox.folder(), "connect_failed").map_err(system)?;
            return Err(BridgeError::Connect);
        }
        None => {
            session.close().await;
            return standing.closed(mailbox.folder()).map_err(system);
        }
    };
    standing.server = session.status().about.and_then(|about| about.server);
    let missing = permit.missing(&tools);
    if missing > 0 {
        tracing::warn!("{missing} of the tools that are allowed by name are not among those of the server");
    }
    let tools = permit.names(&tools);
    standing.ready(mailbox.folder(), tools.clone(), true).map_err(system)?;
    tracing::info!("ready; {} tools may be called", tools.len());
    let work = Work { permit: permit.into(), patterns, timeout, keep };
    let mut service = Service::new(mailbox, standing, session.clone(), ends, clock, work, tools);
    let end = service.serve().await;
    session.close().await;
    match end {
        End::Closed => service.standing.closed(service.mailbox.folder()).map_err(system),
        End::Lost(why) => {
            // Where it was removed nobody reads it.
            let _ = service.standing.failed(service.mailbox.folder(), why.word());
            Err(unusable(why))
        }
    }
}

/// The requests of a folder that is new, or that an earlier session has left.
fn open(path: &Path, resume: bool, standing: &Standing) -> io::Result<Result<Mailbox, Unusable>> {
    let folder = match Folder::make(path)? {
        Ok(folder) => return Ok(Ok(Mailbox::new(folder))),
        Err(Unusable::Exists) if resume => Folder::open(path)?,
        Err(why) => return Ok(Err(why)),
    };
    let folder = match folder {
        Ok(folder) => folder,
        Err(why) => return Ok(Err(why)),
    };
    let left = standing.left(&folder)?;
    if left == Left::MayLive {
        return Ok(Err(Unusable::InUse));
    }
    let is_ours = |name: &String| name.starts_with('.') || name == STATUS_FILE || Entry::of(name).is_some();
    if left == Left::Unknown && !folder.names()?.iter().all(is_ours) {
        return Ok(Err(Unusable::NoSession));
    }
    let mut mailbox = Mailbox::new(folder);
    mailbox.resume(left == Left::Certain)?;
    Ok(Ok(mailbox))
}
