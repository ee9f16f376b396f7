//! gRPC channels, and requests with encoded messages.

use crate::error::Error;
use crate::options::{Address, Options};
use bytes::{Buf, BufMut, Bytes};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Uri};
use tonic::{Request, Response, Status, Streaming};

/// An encoded message in two parts, because joining them would copy them.
#[derive(Debug, Clone, Default)]
pub struct Encoded(pub [Bytes; 2]);

impl From<Bytes> for Encoded {
    fn from(whole: Bytes) -> Self {
        Encoded([whole, Bytes::new()])
    }
}

impl From<Vec<u8>> for Encoded {
    fn from(whole: Vec<u8>) -> Self {
        Bytes::from(whole).into()
    }
}

/// A codec that passes encoded messages through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Encoded;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Encoded;
    type Error = Status;

    fn encode(&mut self, Encoded(parts): Encoded, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(parts.iter().map(Bytes::len).sum());
        parts.into_iter().for_each(|part| out.put(part));
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        weir_proto::codec::settings()
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, input: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(input.copy_to_bytes(input.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        weir_proto::codec::settings()
    }
}

/// Largest HTTP/2 frame from a target: with the default of 16 KiB, a large table needs thousands.
const FRAME: u32 = 1 << 20;

/// A connection to a target.
#[derive(Debug, Clone)]
pub struct Transport {
    grpc: Grpc<Channel>,
    deadline: Duration,
    metadata: Option<(&'static str, u32)>,
}

impl Transport {
    /// Connects.
    pub async fn connect(options: &Options) -> Result<Transport, Error> {
        let failed = |reason: String| Error::Connect {
            target: options.address.to_string(),
            reason,
        };
        let endpoint = endpoint(options)?;
        let connected = match &options.address {
            Address::Tcp(..) => endpoint.connect().await,
            Address::Unix(path) => {
                let path = path.clone();
                let connector = tower::service_fn(move |_: Uri| {
                    let path = path.clone();
                    async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
                });
                endpoint.connect_with_connector(connector).await
            }
        };
        let channel = connected.map_err(|e| failed(causes(&e)))?;
        let grpc = Grpc::new(channel)
            .max_decoding_message_size(options.max_message_bytes)
            .max_encoding_message_size(usize::MAX);
        Ok(Transport {
            grpc,
            deadline: options.deadline,
            // weir limits error details to the default limit of clients, unless a client states a
            // larger one.
            metadata: Some(("weir-max-error-bytes", options.max_error_bytes)),
        })
    }

    fn request<T>(&self, message: T, is_bounded: bool) -> Request<T> {
        let mut request = Request::new(message);
        if is_bounded {
            request.set_timeout(self.deadline);
        }
        if let Some((name, value)) = self.metadata {
            request.metadata_mut().insert(name, value.into());
        }
        request
    }

    /// A request with one response.
    pub async fn unary(&self, path: &'static str, message: Encoded) -> Result<Bytes, Status> {
        let mut grpc = self.grpc.clone();
        ready(&mut grpc).await?;
        let path = http::uri::PathAndQuery::from_static(path);
        let answer: Response<Bytes> = grpc.unary(self.request(message, true), path, Raw).await?;
        Ok(answer.into_inner())
    }

    /// A request with any number of responses.
    pub async fn streaming(&self, path: &'static str, message: Bytes) -> Result<Streaming<Bytes>, Status> {
        let mut grpc = self.grpc.clone();
        ready(&mut grpc).await?;
        let path = http::uri::PathAndQuery::from_static(path);
        let mut request = self.request(Encoded::from(message), false);
        // Servers of BF Runtime answer in one message, as its first clients expected; weir sends
        // pages if this metadata field is set.
        request.metadata_mut().insert("weir-stream", 1.into());
        let answer = grpc.server_streaming(request, path, Raw).await?;
        Ok(answer.into_inner())
    }

    /// Messages in both directions, without a deadline.
    pub async fn duplex<S>(&self, path: &'static str, messages: S) -> Result<Streaming<Bytes>, Status>
    where
        S: tokio_stream::Stream<Item = Bytes> + Send + 'static,
    {
        let mut grpc = self.grpc.clone();
        ready(&mut grpc).await?;
        let path = http::uri::PathAndQuery::from_static(path);
        let messages = messages.map(Encoded::from);
        let answer = grpc.streaming(self.request(messages, false), path, Raw).await?;
        Ok(answer.into_inner())
    }
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    let ready = grpc.ready().await;
    ready.map_err(|e| Status::unavailable(causes(&e)))
}

fn endpoint(options: &Options) -> Result<Endpoint, Error> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let authority = match &options.address {
        Address::Tcp(..) => options.address.to_string(),
        Address::Unix(_) => "localhost".to_owned(),
    };
    let wrong = |e: tonic::transport::Error| Error::Options(causes(&e));
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"))
        .map_err(wrong)?
        .connect_timeout(options.connect_timeout)
        .tcp_nodelay(true)
        .initial_stream_window_size(options.window_bytes)
        .initial_connection_window_size(options.window_bytes)
        .max_frame_size(FRAME)
        .http2_max_header_list_size(options.max_error_bytes);
    if let Some(interval) = options.keepalive {
        endpoint = endpoint.http2_keep_alive_interval(interval).keep_alive_while_idle(true);
    }
    if let Some(tls) = &options.tls {
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.authorities));
        if let Some(domain) = &tls.domain {
            config = config.domain_name(domain);
        }
        if let Some((certificate, key)) = &tls.identity {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        endpoint = endpoint.tls_config(config).map_err(wrong)?;
    }
    Ok(endpoint)
}

/// An error with its chain of causes: the message of a gRPC error alone is only "transport error".
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += &format!(": {cause_text}");
        }
        next = cause.source();
    }
    text
}
