//! Servers on sockets.

use std::net::SocketAddr;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

/// Bytes that a client may send ahead of the server: the default of 64 KiB makes a large batch wait for the network some
/// hundred times.
const WINDOW: u32 = 4 << 20;

/// Transport security: PEM texts.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The server's certificate, and those between it and its authority.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
    /// Authorities of clients: with them, clients need a certificate (mutual TLS).
    pub client_authorities: Option<Vec<u8>>,
}

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
    /// Certificate, key or address do not serve, or the server failed.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
}

/// Listens at an address.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| ServeError::Listen { address, source })
}

/// The settings that all servers have in common. `requests`: processed at a time on one connection.
pub(crate) fn transport(requests: usize, tls: Option<&Tls>) -> Result<Server, ServeError> {
    let server = Server::builder()
        .concurrency_limit_per_connection(requests)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    Ok(match tls {
        Some(tls) => server.tls_config(tls_config(tls))?,
        None => server,
    })
}

/// What comes by a listener. Without the option, answers and windows wait for the client's acknowledgements.
pub(crate) fn incoming(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener).with_nodelay(Some(true))
}

fn tls_config(tls: &Tls) -> ServerTlsConfig {
    let identity = Identity::from_pem(&tls.certificate, &tls.key);
    let config = ServerTlsConfig::new().identity(identity);
    match &tls.client_authorities {
        Some(pem) => config.client_ca_root(Certificate::from_pem(pem)),
        None => config,
    }
}
