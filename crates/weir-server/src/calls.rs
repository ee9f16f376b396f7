//! Metrics of RPCs: calls and time per service, method and gRPC status.
//!
//! [`CountingLayer`] wraps every server. Time is measured until the answer starts, not until a
//! stream ends.

use crate::device::lock;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;
use tonic::Code;
use tonic::codegen::http;

/// Path prefixes and services, with the methods that only this service has. All other paths are
/// counted as [`OTHER`], so that clients cannot create labels.
const KNOWN: [(&str, &str, &[&str]); 2] = [
    ("/p4.v1.P4Runtime/", "P4Runtime", &["Capabilities"]),
    ("/bfrt_proto.BfRuntime/", "BfRuntime", &[]),
];

/// The methods that both services have.
const METHODS: [&str; 5] = [
    "Write",
    "Read",
    "SetForwardingPipelineConfig",
    "GetForwardingPipelineConfig",
    "StreamChannel",
];

/// The label of calls of unknown services and methods.
const OTHER: (&str, &str) = ("other", "other");

/// Calls of one method with one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCount {
    /// `P4Runtime`, `BfRuntime` or `other`.
    pub service: &'static str,
    /// The method.
    pub method: &'static str,
    /// The status; of streaming RPCs the one with which the stream began.
    pub code: Code,
    /// How many.
    pub calls: u64,
    /// Time until the answer, or until the first of several, in ns.
    pub nanos: u64,
}

/// Calls and their time in ns, by service, method and code.
type Tallies = BTreeMap<(&'static str, &'static str, i32), (u64, u64)>;

/// The counters. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Tallies>>);

impl Calls {
    fn add(&self, (service, method): (&'static str, &'static str), code: Code, nanos: u64) {
        let mut tallies = lock(&self.0);
        let (calls, time) = tallies.entry((service, method, code as i32)).or_default();
        *calls += 1;
        *time = time.saturating_add(nanos);
    }

    pub fn counts(&self) -> Vec<CallCount> {
        let tallies = lock(&self.0);
        let count = |(&(service, method, code), &(calls, nanos)): (&(_, _, i32), &(u64, u64))| CallCount {
            service,
            method,
            code: Code::from_i32(code),
            calls,
            nanos,
        };
        tallies.iter().map(count).collect()
    }
}

/// The service and method that a path names.
fn known(path: &str) -> (&'static str, &'static str) {
    let found = KNOWN.iter().find_map(|(prefix, service, own)| {
        let name = path.strip_prefix(prefix)?;
        let method = METHODS.iter().chain(*own).find(|m| **m == name)?;
        Some((*service, *method))
    });
    found.unwrap_or(OTHER)
}

/// The layer that counts the calls of a server.
#[derive(Debug, Clone)]
pub(crate) struct CountingLayer(pub Calls);

impl<S> tower_layer::Layer<S> for CountingLayer {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            calls: self.0.clone(),
        }
    }
}

/// A service whose calls are counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    calls: Calls,
}

impl<S, B, A> tower_service::Service<http::Request<B>> for Counted<S>
where
    S: tower_service::Service<http::Request<B>, Response = http::Response<A>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    A: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let which = known(request.uri().path());
        let (calls, started) = (self.calls.clone(), Instant::now());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = match &answer {
                Ok(answer) => match answer.headers().get("grpc-status") {
                    Some(status) => Code::from_bytes(status.as_bytes()),
                    None => Code::Ok,
                },
                Err(_) => Code::Unknown,
            };
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            calls.add(which, code, nanos);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_known_by_their_paths() {
        assert_eq!(known("/p4.v1.P4Runtime/Write"), ("P4Runtime", "Write"));
        assert_eq!(
            known("/bfrt_proto.BfRuntime/StreamChannel"),
            ("BfRuntime", "StreamChannel")
        );
        assert_eq!(known("/p4.v1.P4Runtime/Capabilities"), ("P4Runtime", "Capabilities"));
        assert_eq!(known("/bfrt_proto.BfRuntime/Capabilities"), OTHER);
        assert_eq!(known("/p4.v1.P4Runtime/Wr"), OTHER);
        assert_eq!(known("/"), OTHER);
    }
}
