//! Servers on sockets.

use crate::calls::{Calls, Counting};
use crate::connections::{self, ANSWER, Incoming};
use crate::receiving::{self, Receiving};
use crate::tls::{Tls, TlsError};
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tonic::transport::Server;
use tonic::transport::server::Router;
use tower_layer::Identity as Nothing;
use tower_layer::Stack;

/// Bytes that a client may send ahead of the server: the default of 64 KiB makes a large batch wait
/// for the network some hundred times.
const WINDOW: u32 = 4 << 20;

/// Bytes of a frame that a client may send: with the default of 16 KiB, a large batch has hundreds,
/// each with its own handling.
const FRAME: u32 = 1 << 20;

/// A server does not start, or has ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// A certificate, key or authority cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server failed.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
}

/// Where a server can listen: an IP address with a port, or `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A port.
    Tcp(SocketAddr),
    /// A socket in the file system, for this user only.
    Unix(PathBuf),
}

impl Address {
    /// Whether only this machine reaches it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }

    /// Listens. A socket in the file system that a server has left behind which is not there any
    /// more is replaced.
    ///
    /// # Errors
    /// The address is taken or cannot be had.
    pub async fn listen(&self) -> std::io::Result<Listener> {
        match self {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Listener::Tcp),
            Address::Unix(path) => {
                let is_left_behind = is_socket(path) && UnixStream::connect(path).await.is_err();
                if is_left_behind {
                    std::fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                Ok(Listener::Unix(listener, SocketFile(path.clone())))
            }
        }
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket())
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        let address = text.parse().map(Address::Tcp);
        address.map_err(|_| "expected an IP address with a port, such as 127.0.0.1:9559, or unix:PATH".to_owned())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where connections come in.
#[derive(Debug)]
pub enum Listener {
    /// By TCP.
    Tcp(TcpListener),
    /// By a socket in the file system.
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Where it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> std::io::Result<Address> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Listener::Unix(_, file) => Ok(Address::Unix(file.0.clone())),
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Listener::Tcp(listener)
    }
}

/// A socket in the file system, taken away with this.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have been faster.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What every server has around its service: calls are counted, and messages before they are taken
/// in.
type Layers = Stack<Receiving, Stack<Counting, Nothing>>;

/// The settings that all servers have in common.
pub(crate) struct Transport<'t> {
    /// Requests that are processed at a time on one connection.
    pub requests: usize,
    /// Connections at a time.
    pub connections: usize,
    /// How long a connection is silent before the server asks whether the client is still there.
    pub keepalive: Duration,
    /// What messages may take.
    pub messages: receiving::Bounds,
    /// Transport security.
    pub tls: Option<&'t Tls>,
    /// Counts calls.
    pub calls: &'t Calls,
}

impl Transport<'_> {
    /// A server without services.
    pub fn server(&self) -> Result<Server<Layers>, ServeError> {
        let server = Server::builder()
            .layer(Counting(self.calls.clone()))
            .layer(Receiving::new(self.messages))
            .concurrency_limit_per_connection(self.requests)
            .http2_keepalive_interval(Some(self.keepalive))
            .http2_keepalive_timeout(Some(ANSWER))
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_frame_size(FRAME);
        Ok(match self.tls {
            Some(tls) => {
                tls.check()?;
                server.tls_config(tls.config())?
            }
            None => server,
        })
    }

    /// Serves until `shutdown` is fulfilled.
    pub async fn serve(
        &self,
        router: Router<Layers>,
        listener: Listener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let bounds = connections::Bounds::pinging(self.connections, self.keepalive);
        match listener {
            Listener::Tcp(listener) => {
                let incoming = Incoming::new(listener, bounds);
                router.serve_with_incoming_shutdown(incoming, shutdown).await?;
            }
            Listener::Unix(listener, _file) => {
                let incoming = Incoming::new(listener, bounds);
                router.serve_with_incoming_shutdown(incoming, shutdown).await?;
            }
        }
        Ok(())
    }
}

/// Listens at an address.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| ServeError::Listen { address, source })
}
