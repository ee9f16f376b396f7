//! The server on a socket.

use super::service::P4Runtime;
use crate::admission;
use crate::serving::{self, Listener, ServeError, Transport};
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
    let device = server.shared.device.clone();
    let transport = Transport {
        requests: config.max_requests_per_connection,
        connections: config.max_connections,
        keepalive: config.keepalive,
        messages: admission::MessageLimits {
            max_message_bytes: config.max_message_bytes,
            budget_bytes: config.max_request_bytes,
            rate_window: config.receive_timeout,
        },
        tls: config.tls.as_ref(),
        calls: &device.calls,
    };
    let service = P4RuntimeServer::new(server).max_decoding_message_size(config.max_message_bytes);
    let router = transport.server()?.add_service(service);
    transport.serve(router, listener.into(), shutdown).await
}
