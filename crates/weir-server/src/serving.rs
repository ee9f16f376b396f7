//! Sockets of servers: addresses, listeners, and the transport settings that all servers share.

use crate::admission::{self, AdmissionLayer};
use crate::calls::{Calls, CountingLayer};
use crate::connections::{self, Incoming, PING_TIMEOUT};
use crate::tls::{Tls, TlsError};
use std::fmt;
use std::io::ErrorKind;
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

/// The HTTP/2 flow control window. With the default of 64 KiB a large batch waits for some hundred
/// round trips.
const WINDOW: u32 = 4 << 20;

/// The HTTP/2 frame size. With the default of 16 KiB a large batch has hundreds of frames, each
/// with its own overhead.
const FRAME: u32 = 1 << 20;

/// A server cannot start, or has failed.
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
    /// Whether it is reachable from this machine only.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }

    /// Listens. A stale socket file, which refuses connections because no process has it, is
    /// replaced.
    ///
    /// # Errors
    /// The address is in use or not available.
    pub async fn listen(&self) -> std::io::Result<Listener> {
        match self {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Listener::Tcp),
            Address::Unix(path) => {
                if is_socket(path) {
                    let connected = UnixStream::connect(path).await;
                    let refused = connected.err().ok_or_else(|| in_use("a process listens at it"))?;
                    match refused.kind() {
                        ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
                        // It was removed in the meantime.
                        ErrorKind::NotFound => {}
                        ErrorKind::PermissionDenied => {
                            let message = "found a socket of another user, which may be in use; choose \
                                           another path, or remove it if it is not";
                            return Err(std::io::Error::new(ErrorKind::AddrInUse, message));
                        }
                        // A full backlog, a socket of another kind.
                        _ => return Err(in_use(&refused.to_string())),
                    }
                }
                let listener = UnixListener::bind(path)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                Ok(Listener::Unix(listener, SocketFile(path.clone())))
            }
        }
    }
}

/// The error for a socket file that is not stale.
fn in_use(found: &str) -> std::io::Error {
    let message = format!(
        "expected a free path or a stale socket file, found a socket in use ({found}); \
         choose another path, or end the process that has it"
    );
    std::io::Error::new(ErrorKind::AddrInUse, message)
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

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A socket in the file system.
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Its address.
    ///
    /// # Errors
    /// The system call fails.
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

/// A socket file, removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The layers around every service: metrics of calls, and admission of messages.
type Layers = Stack<AdmissionLayer, Stack<CountingLayer, Nothing>>;

/// The settings that all servers have in common.
pub(crate) struct Transport<'t> {
    /// Requests that are processed at a time on one connection.
    pub requests: usize,
    /// Connections at a time.
    pub connections: usize,
    /// How long a connection may be silent before the server pings the client.
    pub keepalive: Duration,
    /// The limits of messages.
    pub messages: admission::MessageLimits,
    /// Transport security.
    pub tls: Option<&'t Tls>,
    /// Counts calls.
    pub calls: &'t Calls,
}

impl Transport<'_> {
    /// A server without services.
    pub fn server(&self) -> Result<Server<Layers>, ServeError> {
        let server = Server::builder()
            .layer(CountingLayer(self.calls.clone()))
            .layer(AdmissionLayer::new(self.messages))
            .concurrency_limit_per_connection(self.requests)
            .http2_keepalive_interval(Some(self.keepalive))
            .http2_keepalive_timeout(Some(PING_TIMEOUT))
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

    /// Serves until `shutdown` completes.
    pub async fn serve(
        &self,
        router: Router<Layers>,
        listener: Listener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let limits = connections::ConnectionLimits::pinging(self.connections, self.keepalive);
        match listener {
            Listener::Tcp(listener) => {
                let incoming = Incoming::new(listener, limits);
                router.serve_with_incoming_shutdown(incoming, shutdown).await?;
            }
            Listener::Unix(listener, _file) => {
                let incoming = Incoming::new(listener, limits);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net;

    #[tokio::test]
    async fn only_stale_socket_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listen = || async { Address::Unix(path.clone()).listen().await };
        drop(net::UnixListener::bind(&path).unwrap());
        drop(listen().await.unwrap());
        // A process listens; its backlog is full.
        let listener = net::UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        assert_eq!(listen().await.unwrap_err().kind(), ErrorKind::AddrInUse);
        while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(1), UnixStream::connect(&path)).await {
            waiting.push(stream);
        }
        assert_eq!(listen().await.unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        let datagrams = net::UnixDatagram::bind(&path).unwrap();
        assert_eq!(listen().await.unwrap_err().kind(), ErrorKind::AddrInUse);
        net::UnixDatagram::unbound().unwrap().connect(&path).unwrap();
        drop(datagrams);
    }
}
