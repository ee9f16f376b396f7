//! The server on a socket.

use super::config::Tls;
use super::service::P4Runtime;
use std::future::Future;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use weir_proto::p4::v1::p4_runtime_server::P4RuntimeServer;

/// Bytes that a client may send ahead of the server: the default of 64 KiB makes a large batch wait for the network some
/// hundred times.
const WINDOW: u32 = 4 << 20;

/// A server does not start, or has ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Certificate, key or address do not serve, or the server failed.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
}

/// Listens at the configured address and serves until `shutdown` is fulfilled.
///
/// # Errors
/// The address is taken, or the TLS configuration is wrong.
pub async fn serve(server: P4Runtime, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
    let address = server.shared.config.listen;
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| ServeError::Listen { address, source })?;
    serve_on(server, listener, shutdown).await
}

/// Serves on a listener until `shutdown` is fulfilled.
///
/// # Errors
/// The TLS configuration is wrong.
pub async fn serve_on(
    server: P4Runtime,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let config = server.shared.config.clone();
    let mut transport = Server::builder()
        .concurrency_limit_per_connection(config.max_requests_per_connection)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    if let Some(tls) = &config.tls {
        transport = transport.tls_config(tls_config(tls))?;
    }
    let service = P4RuntimeServer::new(server).max_decoding_message_size(config.max_message_bytes);
    // Without it, answers and windows wait for the client's acknowledgements.
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let served = transport
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, shutdown);
    Ok(served.await?)
}

fn tls_config(tls: &Tls) -> ServerTlsConfig {
    let identity = Identity::from_pem(&tls.certificate, &tls.key);
    let config = ServerTlsConfig::new().identity(identity);
    match &tls.client_authorities {
        Some(pem) => config.client_ca_root(Certificate::from_pem(pem)),
        None => config,
    }
}
