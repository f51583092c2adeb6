//! What is listened on: addresses and sockets, and who may be meant by a request that comes there.

use super::connection::{Connections, plain, serve};
use super::peers::Peer;
use super::scheme::Scheme;
use super::tls::{Files, Tls, TlsError};
use crate::clock::Clock;
use axum::Router;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

/// Where to listen, and for whom.
#[derive(Debug, Clone, Default)]
pub struct Doors {
    /// An address and port.
    pub address: Option<SocketAddr>,
    /// The certificate and key by which TLS is spoken at the address.
    pub tls: Option<Files>,
    /// A socket's path.
    pub socket: Option<PathBuf>,
    /// Whether a proxy stands before it that speaks TLS with everybody else.
    pub behind_proxy: bool,
    /// Names that a request's `Host` may have beside those of this machine for itself.
    pub hosts: Vec<String>,
    /// Origins of web pages that may send requests.
    pub origins: Vec<String>,
}

/// Why nothing can be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Others could read along.
    #[error(
        "{0} can be reached from other machines, and tokens would go there unencrypted: listen on 127.0.0.1, give --tls-cert \
         and --tls-key, or put a proxy with TLS before it and say --behind-proxy"
    )]
    Exposed(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// Which one.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The socket cannot be made.
    #[error("cannot listen on {}: {source}", path.display())]
    Socket {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no TLS with this certificate and key.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// What is listened on.
pub(super) enum Listener {
    Tcp(TcpListener, Scheme),
    Tls(TcpListener, Arc<Tls>),
    #[cfg(unix)]
    Unix(UnixListener, Socket),
}

/// A socket's file; it goes with it, unless another stands in its place by then.
#[cfg(unix)]
pub(super) struct Socket {
    path: PathBuf,
    /// The device and the inode.
    is: Option<(u64, u64)>,
}

#[cfg(unix)]
impl Socket {
    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), is: Self::what_is_at(path) }
    }

    fn what_is_at(path: &Path) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
    }
}

#[cfg(unix)]
impl Drop for Socket {
    fn drop(&mut self) {
        if self.is.is_some() && self.is == Self::what_is_at(&self.path) {
            // One that stays behind is taken away by the next server.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens.
pub(super) async fn open(doors: &Doors, clock: &Arc<dyn Clock>) -> Result<Vec<Listener>, BindError> {
    let mut listeners = Vec::new();
    if let Some(address) = doors.address {
        if !address.ip().is_loopback() && !doors.behind_proxy && doors.tls.is_none() {
            return Err(BindError::Exposed(address));
        }
        let tls = doors.tls.clone().map(|files| Tls::load(files, Arc::clone(clock))).transpose()?;
        let bound = TcpListener::bind(address).await.map_err(|source| BindError::Address { address, source })?;
        let plain = if doors.behind_proxy { Scheme::Proxied } else { Scheme::Http };
        listeners.push(match tls {
            Some(tls) => Listener::Tls(bound, tls),
            None => Listener::Tcp(bound, plain),
        });
    }
    if let Some(path) = &doors.socket {
        let bound = open_socket(path).await;
        listeners.push(bound.map_err(|source| BindError::Socket { path: path.clone(), source })?);
    }
    Ok(listeners)
}

#[cfg(unix)]
async fn open_socket(path: &Path) -> io::Result<Listener> {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    // What a server has left that was killed; nothing else is taken away.
    let found = std::fs::symlink_metadata(path);
    let is_socket = found.as_ref().is_ok_and(|found| found.file_type().is_socket());
    if found.is_ok() && !is_socket {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file already, which is no socket"));
    }
    if is_socket && UnixStream::connect(path).await.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    let socket = Socket::at(path);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Listener::Unix(listener, socket))
}

#[cfg(not(unix))]
async fn open_socket(_: &Path) -> io::Result<Listener> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "there are no such sockets on this system"))
}

/// Takes in whoever comes, until the server is to end.
pub(super) async fn accept(listener: Listener, app: Router, connections: Arc<Connections>) {
    loop {
        let came = tokio::select! {
            () = connections.ending() => return,
            came = come(&listener, &app, &connections) => came,
        };
        if let Err(error) = came {
            // Most likely there are too many files open; it passes when others leave.
            tracing::warn!("nobody can come in: {error}");
            sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn come(listener: &Listener, app: &Router, connections: &Arc<Connections>) -> io::Result<()> {
    match listener {
        Listener::Tcp(listener, scheme) => {
            let (stream, came) = next(listener, *scheme).await?;
            serve(plain(|| TcpStream::from_std(stream)), came, app.clone(), connections);
        }
        Listener::Tls(listener, tls) => {
            let (stream, came) = next(listener, Scheme::Https).await?;
            serve(tls.shake_hands(stream), came, app.clone(), connections);
        }
        #[cfg(unix)]
        Listener::Unix(listener, _) => {
            let stream = listener.accept().await?.0.into_std()?;
            let came = Came { scheme: Scheme::Http, at: None, peer: Peer::Local };
            serve(plain(|| UnixStream::from_std(stream)), came, app.clone(), connections);
        }
    }
    Ok(())
}

/// The next who comes, for whichever thread is to see to it.
async fn next(listener: &TcpListener, scheme: Scheme) -> io::Result<(std::net::TcpStream, Came)> {
    let (stream, peer) = listener.accept().await?;
    // Without it each small answer waits 40 ms for the client's word that it has the one before.
    stream.set_nodelay(true)?;
    let at = Some(stream.local_addr()?.ip().to_canonical());
    Ok((stream.into_std()?, Came { scheme, at, peer: Peer::at(peer.ip()) }))
}

/// Which way a connection has come, as an extension of its requests: there is none without it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    /// What the addresses of the door begin with.
    pub scheme: Scheme,
    /// The address of this machine at which it has come in; `None`: a socket's file. It may be named as `Host`: no page that
    /// another machine has sent can be called by it, as it could by a name.
    pub at: Option<IpAddr>,
    /// Whose it is.
    pub peer: Peer,
}

impl fmt::Display for Listener {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is spoken here, which a proxy makes something else of.
        let (listener, spoken) = match self {
            Self::Tcp(listener, _) => (listener, "http"),
            Self::Tls(listener, _) => (listener, "https"),
            #[cfg(unix)]
            Self::Unix(_, socket) => return write!(to, "unix:{}", socket.path.display()),
        };
        match listener.local_addr() {
            Ok(address) => write!(to, "{spoken}://{}", reachable(address)),
            Err(error) => write!(to, "an address that cannot be told: {error}"),
        }
    }
}

/// An address by which this machine reaches what listens at `address`: all addresses together are none.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
