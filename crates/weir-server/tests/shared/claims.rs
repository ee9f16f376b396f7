//! Requests whose messages claim more bytes than come.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::{Body as HttpBody, Bytes, Service, http};
use tonic::transport::Channel;
use tonic::{Code, Status};

/// A body that has one piece and does not end.
struct Unfinished(Option<Bytes>);

impl HttpBody for Unfinished {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(http_body::Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// Starts a request on a new connection. Its message claims `bytes`, of which few are sent. Returns
/// the answer's code.
pub fn claim(address: SocketAddr, method: &'static str, bytes: u32) -> JoinHandle<Code> {
    tokio::spawn(async move {
        let channel = Channel::from_shared(format!("http://{address}")).expect("a URI");
        let mut channel = channel.connect().await.expect("connects");
        let begin = [&[0][..], &bytes.to_be_bytes(), &[7; 55]].concat();
        let request = http::Request::post(format!("http://{address}{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Body::new(Unfinished(Some(begin.into()))));
        std::future::poll_fn(|context| channel.poll_ready(context))
            .await
            .expect("is connected");
        let answer = channel.call(request.expect("is one")).await.expect("is answered");
        let status = answer
            .headers()
            .get("grpc-status")
            .expect("there is nothing but a status");
        Code::from_bytes(status.as_bytes())
    })
}

/// Starts two such requests that exceed the budget together. One is refused; returns the other,
/// which is still running.
pub async fn one_of_two_is_refused(address: SocketAddr, method: &'static str, bytes: u32) -> JoinHandle<Code> {
    let (mut one, mut two) = (claim(address, method, bytes), claim(address, method, bytes));
    let (code, other) = tokio::select! {
        code = &mut one => (code, two),
        code = &mut two => (code, one),
    };
    assert_eq!(code.expect("is answered"), Code::ResourceExhausted);
    assert!(!other.is_finished());
    other
}
