//! How a connection comes about, and how nothing of it is left.

use super::calls::list_tools;
#[cfg(unix)]
use super::child::Child;
use super::http::{self, Meaning};
use super::mask::Mask;
use super::transport::{Bounded, Ended, UNREAD_MAX, Watched};
use super::{Door, Handshake, Server};
use crate::text::clean;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProtocolVersion, ServerPeerInfo, SubscriptionFilter, Tool,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientCacheConfig, ClientHandler, ClientLifecycleMode, Peer, RoleClient, serve_client_with_lifecycle};
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long the client's half of a connection may take to end.
const CLOSE_MAX: Duration = Duration::from_secs(3);
/// How long a server may take to acknowledge that it will tell of changes.
const LISTEN_MAX: Duration = Duration::from_secs(5);
/// How long after its output a process is given to end, so that it can be said how.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What is said of a process that ended before we wanted it to.
const HAS_ENDED: &str = "the server has ended";

/// A connection that is ready to be used.
#[derive(Debug)]
pub struct Connection {
    service: RunningService<RoleClient, Listener>,
    /// The process at the other end, where there is one.
    #[cfg(unix)]
    child: Option<Child>,
    ended: Ended,
    listening: Option<AbortHandle>,
    /// What the server says of itself.
    pub about: About,
    /// The tools that it offered first.
    pub tools: Vec<Tool>,
    grace: Duration,
}

/// What a server says of itself, cleaned.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct About {
    /// Its name and version.
    pub server: Option<String>,
    /// The revision of the protocol that is spoken.
    pub protocol: String,
    /// The process that it is, where it is a child of ours.
    pub pid: Option<u32>,
}

/// Hears what a server says unasked.
#[derive(Debug)]
pub struct Listener {
    changed: mpsc::Sender<()>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // One that is not yet heeded says the same.
        let _ = self.changed.try_send(());
    }
}

/// Connects to `server`: starts it if it is a program, agrees on a protocol, and lists the tools. `changed` is told when those
/// change. Where it fails, or `cancel` is cancelled, nothing is left of it when this returns.
///
/// # Errors
/// In words, for a person.
pub async fn connect(
    server: &Server,
    changed: mpsc::Sender<()>,
    cancel: &CancellationToken,
) -> Result<Connection, String> {
    match &server.door {
        #[cfg(unix)]
        Door::Program(program) => {
            let (child, (out, into)) = Child::start(program, &server.name)
                .map_err(|error| format!("{} cannot be started: {error}", clean(&program.command)))?;
            let ended = Ended::default();
            let inner = AsyncRwTransport::new(Bounded::new(out, ended.clone()), into);
            // Nothing is sent to a program in confidence.
            let mask = Mask::default();
            let transport = Watched::new(inner, ended.clone(), Some(UNREAD_MAX), mask.clone());
            let end = child.end();
            let opened = tokio::select! {
                biased;
                opened = open(server, transport, &ended, changed, &mask) => opened,
                () = cancel.cancelled() => Err("given up".into()),
                () = end.come() => Err(HAS_ENDED.into()),
            };
            let pid = child.pid();
            match opened {
                Ok(opened) => Ok(opened.into_connection(Some(child), Some(pid), server.grace)),
                Err(error) => {
                    // One that we have given up ends because of that.
                    let is_theirs = ended.is_theirs() || error == HAS_ENDED;
                    if is_theirs {
                        let _ = timeout(LAST_WORDS, end.come()).await;
                    }
                    let how = end.how().filter(|_| is_theirs);
                    child.stop(server.grace).await;
                    Err(how.map_or(error, |how| format!("{HAS_ENDED}: {how}")))
                }
            }
        }
        #[cfg(not(unix))]
        Door::Program(_) => Err("a server that is a program needs Unix".into()),
        Door::Http(address) => {
            let ended = Ended::default();
            let mask = address.token.mask();
            let inner = http::transport(address, server.connect, &mask, &ended)?;
            let transport = Watched::new(inner, ended.clone(), None, mask.clone());
            tokio::select! {
                biased;
                opened = open(server, transport, &ended, changed, &mask) => Ok(opened?.into_connection(
                    #[cfg(unix)] None, None, server.grace)),
                () = cancel.cancelled() => Err("given up".into()),
            }
        }
    }
}

/// A connection as rmcp has it.
struct Opened {
    service: RunningService<RoleClient, Listener>,
    ended: Ended,
    listening: Option<AbortHandle>,
    about: About,
    tools: Vec<Tool>,
}

impl Opened {
    fn into_connection(self, #[cfg(unix)] child: Option<Child>, pid: Option<u32>, grace: Duration) -> Connection {
        let Self { service, ended, listening, mut about, tools } = self;
        about.pid = pid;
        Connection {
            service,
            #[cfg(unix)]
            child,
            ended,
            listening,
            about,
            tools,
            grace,
        }
    }
}

async fn open<T>(
    server: &Server,
    transport: Watched<T>,
    ended: &Ended,
    changed: mpsc::Sender<()>,
    mask: &Mask,
) -> Result<Opened, String>
where
    T: Transport<RoleClient> + 'static,
    T::Error: From<io::Error>,
{
    let preferred_versions = vec![ProtocolVersion::LATEST];
    let lifecycle = match server.handshake {
        Handshake::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        Handshake::Initialize => ClientLifecycleMode::Initialize,
        Handshake::Discover => ClientLifecycleMode::Discover { preferred_versions },
    };
    let listener = Listener { changed: changed.clone() };
    let service = serve_client_with_lifecycle(listener, transport, lifecycle).await;
    let service = service.map_err(|error| in_words(&error, ended))?;
    // What is kept of answers is kept here, where it is known when it no longer holds.
    service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    let info = service.peer().peer_info().ok_or("the server says nothing of itself")?;
    let listening = listen(service.peer(), &info, changed).await;
    let offers_tools = info.capabilities.tools.is_some();
    let tools = if offers_tools { list_tools(service.peer()).await } else { Ok(Vec::new()) };
    let tools = match tools {
        Ok(tools) => tools,
        Err(failure) => {
            listening.iter().for_each(AbortHandle::abort);
            return Err(ended
                .why()
                .map_or_else(|| format!("its tools cannot be listed: {}", failure.why()), str::to_owned));
        }
    };
    Ok(Opened { ended: ended.clone(), listening, about: About::of(&info, mask), tools, service })
}

impl About {
    fn of(info: &ServerPeerInfo, mask: &Mask) -> Self {
        let said = |words: &str| clean(&mask.hide(words));
        let server = info.server_info.as_ref().map(|info| said(&format!("{} {}", info.name, info.version)));
        Self { server, protocol: said(info.protocol_version.as_str()), pid: None }
    }
}

/// From revision 2026-07-28 on, a server tells of changes to its tools only who has asked for it. Where the stream of that
/// ends before the connection does, something may have been missed: then it is as if they had changed.
async fn listen(peer: &Peer<RoleClient>, info: &ServerPeerInfo, changed: mpsc::Sender<()>) -> Option<AbortHandle> {
    let tells = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
    if info.protocol_version.has_initialize() || !tells {
        return None;
    }
    let filter = || SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = timeout(LISTEN_MAX, peer.listen(filter())).await.ok()?.ok()?;
    let peer = peer.clone();
    let task = tokio::spawn(async move {
        loop {
            while let Ok(Some(_)) = subscription.next().await {
                let _ = changed.try_send(());
            }
            tokio::time::sleep(LISTEN_MAX).await;
            let Ok(Ok(again)) = timeout(LISTEN_MAX, peer.listen(filter())).await else { return };
            subscription = again;
            let _ = changed.try_send(());
        }
    });
    Some(task.abort_handle())
}

/// Why no protocol could be agreed on.
fn in_words(error: &ClientInitializeError, ended: &Ended) -> String {
    if let Some(why) = ended.why() {
        return why.to_owned();
    }
    match error {
        ClientInitializeError::TransportError { error, .. } => match http::meaning(error) {
            Meaning::NotDelivered(why) | Meaning::Unknown(why) => why,
            Meaning::Refused { code, message } => format!("{message} ({code})"),
        },
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => in_words(fallback, ended),
        ClientInitializeError::ConnectionClosed(_) => "the server has closed its output".into(),
        ClientInitializeError::JsonRpcError(error) => {
            format!("the server refuses: {} ({})", clean(&error.message), error.code.0)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => "there is no protocol that both speak".into(),
        _ => "the server does not speak MCP".into(),
    }
}

impl Connection {
    /// What requests go through.
    pub fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// Whether it ends as a whole, and not each request for itself.
    pub fn ends_whole(&self) -> bool {
        self.about.pid.is_some()
    }

    /// Why an answer was cut, if that was our doing.
    pub fn take_cut(&self) -> Option<&'static str> {
        self.ended.take_cut()
    }

    /// How to hear that the connection has ended.
    pub fn watch(&self) -> Watch {
        Watch {
            ended: self.ended.clone(),
            #[cfg(unix)]
            child: self.child.as_ref().map(Child::end),
        }
    }

    /// Ends it, and what is at the other end if that is a child of ours. It is bounded in time, whatever the server does.
    pub async fn close(mut self) {
        self.listening.iter().for_each(AbortHandle::abort);
        let closed = self.service.close_with_timeout(CLOSE_MAX).await;
        if !matches!(closed, Ok(Some(_))) {
            tracing::debug!("a connection to an upstream server did not end by itself");
        }
        #[cfg(unix)]
        if let Some(child) = self.child {
            child.stop(self.grace).await;
        }
    }
}

/// Hears the end of a connection.
#[derive(Debug)]
pub struct Watch {
    ended: Ended,
    #[cfg(unix)]
    child: Option<super::end::End>,
}

impl Watch {
    /// Waits for the end of the connection, and says why.
    pub async fn end(self) -> String {
        #[cfg(unix)]
        if let Some(child) = self.child {
            tokio::select! {
                // A server that has ended may have left others behind that hold its output open.
                () = child.come() => {}
                () = self.ended.come() => {
                    let _ = timeout(LAST_WORDS, child.come()).await;
                }
            }
            if let Some(why) = self.ended.why() {
                return why.to_owned();
            }
            return child
                .how()
                .map_or_else(|| "the server has closed its output".to_owned(), |how| format!("{HAS_ENDED}: {how}"));
        }
        self.ended.come().await;
        self.ended.why().unwrap_or("the connection has ended").to_owned()
    }
}
