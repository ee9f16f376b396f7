//! The server on a socket.

use super::service::P4Runtime;
use crate::serving::{self, Listener, ServeError};
use std::future::Future;
use weir_proto::p4rt_raw::p4_runtime_server::P4RuntimeServer;

/// Listens at the configured address and serves until `shutdown` is fulfilled.
///
/// # Errors
/// The address is taken, or the TLS configuration is wrong.
pub async fn serve(server: P4Runtime, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
    let listener = serving::listen(server.shared.config.listen).await?;
    serve_on(server, listener, shutdown).await
}

/// Serves on a listener until `shutdown` is fulfilled.
///
/// # Errors
/// The TLS configuration is wrong.
pub async fn serve_on(
    server: P4Runtime,
    listener: impl Into<Listener>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let config = server.shared.config.clone();
    let calls = &server.shared.device.calls;
    let mut transport = serving::transport(config.max_requests_per_connection, config.tls.as_ref(), calls)?;
    let service = P4RuntimeServer::new(server).max_decoding_message_size(config.max_message_bytes);
    serving::serve(transport.add_service(service), listener.into(), shutdown).await
}
