//! Admission of messages: a memory budget for all messages of a server, and a minimum rate at which
//! clients must send them.
//!
//! The transport allocates the length that a gRPC message header claims before any byte has
//! arrived. [`AdmissionLayer`] therefore reads each header first and charges the length to a budget
//! that all connections of the server share. The charge lasts until the answer is sent and the work
//! is done. A client that sends too slowly loses its request.
//!
//! This *message budget* is the first of several: it covers encoded requests, before
//! [`crate::batches`] covers their decoded updates. docs/internals/glossary.md lists all budgets.
//!
//! Quotas per connection keep one client from using the whole budget. The content of messages is
//! not read here (`decoding.rs`).

use crate::device::lock;
use crate::peers::{Busy, Peer};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Body as HttpBody, Bytes, http};

/// Bytes of a gRPC message header: the compression flag and the length.
const HEADER_BYTES: usize = 5;

/// Messages of this many bytes or more are charged. A shorter one is charged if it arrives in
/// pieces, since its rest may take any time.
const MIN_CHARGED_BYTES: usize = 16 << 10;

/// Messages of this many bytes or more are in the size class *large*, others in *small*.
const MIN_LARGE_BYTES: usize = 1 << 20;

/// 1/N of the budget is reserved for messages that are not large, so that large claims do not keep
/// them out.
const SMALL_RESERVE_DIVISOR: usize = 8;

/// The quota of a connection: 1/N of the budget, or a single message of any length. Large and small
/// messages have separate quotas.
const PEER_QUOTA_DIVISOR: usize = 4;

/// The least average rate, over [`MessageLimits::rate_window`], at which a client must send:
/// bytes per second.
const MIN_BYTES_PER_SECOND: u128 = 1 << 20;

/// The number N of intervals of [`MessageLimits::rate_window`].
///
/// While the budget suffices for all, the rate must hold over the window. Once another request is
/// refused for lack of budget during an interval, two conditions must hold within that interval:
/// the rate, and that 1/N of the claimed length arrives. So a client that claims bytes and sends
/// none keeps others out for one interval only.
const RATE_INTERVALS: u32 = 30;

/// The limits of a server's messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageLimits {
    /// The most bytes of a message. The transport refuses longer ones.
    pub max_message_bytes: usize,
    /// The budget: bytes of all charged messages together. At least `max_message_bytes` is used.
    pub budget_bytes: usize,
    /// The window over which a client's rate is measured. It limits a client that sends too slowly;
    /// a faster one may take longer for its message. Configurations call it `receive_timeout`.
    pub rate_window: Duration,
}

/// Bytes charged to the budget, by size class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Charge {
    large_bytes: usize,
    small_bytes: usize,
}

impl Charge {
    /// The charge of one message.
    fn of_message(bytes: usize) -> Self {
        let mut charge = Charge::default();
        *charge.counter_for(bytes) = bytes;
        charge
    }

    /// The counter of the size class of a message of this many bytes.
    fn counter_for(&mut self, bytes: usize) -> &mut usize {
        match bytes >= MIN_LARGE_BYTES {
            true => &mut self.large_bytes,
            false => &mut self.small_bytes,
        }
    }

    /// Bytes of both classes.
    fn sum(self) -> usize {
        self.large_bytes + self.small_bytes
    }

    fn add(&mut self, more: Charge) {
        self.large_bytes += more.large_bytes;
        self.small_bytes += more.small_bytes;
    }

    fn subtract(&mut self, less: Charge) {
        self.large_bytes -= less.large_bytes;
        self.small_bytes -= less.small_bytes;
    }
}

/// The bytes charged for the messages of one connection.
#[derive(Debug, Default)]
pub(crate) struct Account(Mutex<Charge>);

/// The memory budget of a server.
#[derive(Debug)]
struct Budget {
    /// The whole budget.
    total_bytes: usize,
    /// The part of it that large messages may use.
    max_large_bytes: usize,
    /// The part in use.
    charged: Mutex<Charge>,
    /// The number of messages refused for lack of budget so far.
    refusals: AtomicUsize,
}

impl Budget {
    fn new(limits: &MessageLimits) -> Self {
        let total_bytes = limits.budget_bytes.max(limits.max_message_bytes);
        Budget {
            total_bytes,
            max_large_bytes: (total_bytes - total_bytes / SMALL_RESERVE_DIVISOR).max(limits.max_message_bytes),
            charged: Mutex::default(),
            refusals: AtomicUsize::new(0),
        }
    }

    /// The number of messages refused for lack of budget so far.
    fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Charges a message to the budget and to its connection.
    fn charge(&self, account: &Account, bytes: usize) -> Result<(), Status> {
        let (mut all, mut peer) = (lock(&self.charged), lock(&account.0));
        let (charged_to_peer, quota) = (*peer.counter_for(bytes), self.total_bytes / PEER_QUOTA_DIVISOR);
        if charged_to_peer > 0 && charged_to_peer + bytes > quota {
            return Err(Status::resource_exhausted(format!(
                "the message has {bytes} bytes; one client may have {quota} bytes in progress, or a single larger message, and this client has \
                 {charged_to_peer}: try again"
            )));
        }
        let free = match bytes >= MIN_LARGE_BYTES {
            true => (self.max_large_bytes.saturating_sub(all.large_bytes)).min(self.total_bytes - all.sum()),
            false => self.total_bytes - all.sum(),
        };
        if bytes > free {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(Status::resource_exhausted(format!(
                "the message has {bytes} bytes; the messages of all clients may have {} at a time, of which {free} are free for it now: try again",
                self.total_bytes
            )));
        }
        all.add(Charge::of_message(bytes));
        peer.add(Charge::of_message(bytes));
        Ok(())
    }

    /// Releases a charge of the budget and of its connection.
    fn release(&self, account: &Account, bytes: Charge) {
        lock(&self.charged).subtract(bytes);
        lock(&account.0).subtract(bytes);
    }
}

/// The charge of one request, released when the last handle is dropped at the latest.
#[derive(Debug)]
struct RequestCharge {
    budget: Arc<Budget>,
    /// The connection, whose account is charged too.
    peer: Arc<Peer>,
    /// Bytes charged for this request now.
    charged: Mutex<Charge>,
}

impl RequestCharge {
    fn new(budget: &Arc<Budget>, peer: Arc<Peer>) -> Arc<Self> {
        Arc::new(RequestCharge {
            budget: Arc::clone(budget),
            peer,
            charged: Mutex::default(),
        })
    }

    /// Charges a message.
    fn charge(&self, bytes: usize) -> Result<(), Status> {
        self.budget.charge(&self.peer.account, bytes)?;
        lock(&self.charged).add(Charge::of_message(bytes));
        Ok(())
    }

    /// Releases all but the charge of one message of this many bytes.
    fn release_except(&self, bytes: usize) {
        let mut released = std::mem::replace(&mut *lock(&self.charged), Charge::of_message(bytes));
        released.subtract(Charge::of_message(bytes));
        if released != Charge::default() {
            self.budget.release(&self.peer.account, released);
        }
    }
}

impl Drop for RequestCharge {
    fn drop(&mut self) {
        self.release_except(0);
    }
}

/// Keeps a request's charge until it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct BudgetPermit(#[allow(dead_code, reason = "held for its Drop")] Arc<RequestCharge>);

impl BudgetPermit {
    /// The permit of a request, if it came through an [`AdmissionLayer`].
    pub fn from_extensions(extensions: &tonic::Extensions) -> Option<BudgetPermit> {
        extensions.get().cloned()
    }
}

/// Does work that needs a request's bytes, then drops the permit. For work that may outlive its
/// client.
pub(crate) async fn run_then_release<T>(permit: Option<BudgetPermit>, work: impl Future<Output = T>) -> T {
    let output = work.await;
    drop(permit);
    output
}

/// The tower layer that charges the messages of a server. Clones share one budget.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionLayer {
    budget: Arc<Budget>,
    limits: MessageLimits,
}

impl AdmissionLayer {
    pub fn new(limits: MessageLimits) -> Self {
        AdmissionLayer {
            budget: Arc::new(Budget::new(&limits)),
            limits,
        }
    }
}

impl<S> tower_layer::Layer<S> for AdmissionLayer {
    type Service = AdmissionService<S>;

    fn layer(&self, inner: S) -> AdmissionService<S> {
        AdmissionService {
            inner,
            layer: self.clone(),
        }
    }
}

/// A service whose messages are charged.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionService<S> {
    inner: S,
    layer: AdmissionLayer,
}

impl<S, A> tower_service::Service<http::Request<Body>> for AdmissionService<S>
where
    S: tower_service::Service<http::Request<Body>, Response = http::Response<A>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    A: 'static,
{
    type Response = http::Response<ResponseBody<A>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        // Without a known connection, every request counts as a connection.
        let peer = request.extensions().get().map_or_else(Peer::new, Arc::clone);
        let request_guard = peer.busy();
        let request_charge = RequestCharge::new(&self.layer.budget, peer);
        let is_stream = request.uri().path().ends_with("/StreamChannel");
        request
            .extensions_mut()
            .insert(BudgetPermit(Arc::clone(&request_charge)));
        let limits = self.layer.limits;
        let request =
            request.map(|body| Body::new(MeteredBody::new(body, Arc::clone(&request_charge), limits, is_stream)));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|inner| ResponseBody {
                inner,
                _request_charge: request_charge,
                _request_guard: request_guard,
            }))
        })
    }
}

/// The body of an answer. Until it is sent it holds the charge of its request, and marks its
/// connection as busy.
#[derive(Debug)]
pub(crate) struct ResponseBody<A> {
    inner: A,
    _request_charge: Arc<RequestCharge>,
    _request_guard: Busy,
}

impl<A: HttpBody + Unpin> HttpBody for ResponseBody<A> {
    type Data = A::Data;
    type Error = A::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<A::Data>, A::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a request, whose message headers are read before the transport sees them.
struct MeteredBody {
    inner: Body,
    request_charge: Arc<RequestCharge>,
    limits: MessageLimits,
    /// Whether this is a stream of messages. Each message is processed by the time the next bytes
    /// are polled, which releases its charge.
    is_stream: bool,
    /// The first `header_len` bytes of the next message's header.
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that have arrived.
    header_len: usize,
    /// Bytes of the current message that have not arrived yet.
    remaining_bytes: usize,
    /// The bytes charged for the current message while it has not arrived completely, else 0.
    partial_charge: usize,
    /// Whether a message header has arrived.
    has_message: bool,
    /// Whether further bytes are passed on without metering: the request has failed.
    passes_through: bool,
    /// The rate measurement, while bytes are missing.
    rate: Option<RateMeter>,
}

/// Measures the rate at which a client sends.
struct RateMeter {
    /// The end of the current interval.
    interval_end: Pin<Box<Sleep>>,
    /// The number of the current interval in its window, below [`RATE_INTERVALS`].
    interval: u32,
    /// Bytes that have arrived in the window.
    arrived_in_window: usize,
    /// Bytes that have arrived in the current interval.
    arrived_in_interval: usize,
    /// [`Budget::refusals`] at the start of the interval.
    refusals: usize,
}

impl MeteredBody {
    fn new(inner: Body, request_charge: Arc<RequestCharge>, limits: MessageLimits, is_stream: bool) -> Self {
        MeteredBody {
            inner,
            request_charge,
            limits,
            is_stream,
            header: [0; HEADER_BYTES],
            header_len: 0,
            remaining_bytes: 0,
            partial_charge: 0,
            has_message: false,
            passes_through: false,
            rate: None,
        }
    }

    /// Adds received bytes to the client's rate.
    fn count_received(&mut self, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.arrived_in_window = rate.arrived_in_window.saturating_add(bytes);
            rate.arrived_in_interval = rate.arrived_in_interval.saturating_add(bytes);
        }
    }

    /// The message is complete, so that the current window and interval count as met: the next
    /// message has its own deadline.
    fn satisfy_rate(&mut self) {
        self.count_received(usize::MAX);
    }

    /// Meters bytes that have arrived: reads message headers, skips contents.
    fn meter(&mut self, mut bytes: &[u8]) -> Result<(), Status> {
        self.count_received(bytes.len());
        while !bytes.is_empty() && !self.passes_through {
            if self.remaining_bytes == 0 {
                bytes = self.read_header(bytes)?;
            } else {
                let arrived = self.remaining_bytes.min(bytes.len());
                bytes = &bytes[arrived..];
                self.remaining_bytes -= arrived;
                if self.remaining_bytes == 0 {
                    self.partial_charge = 0;
                    self.satisfy_rate();
                }
            }
        }
        Ok(())
    }

    /// Reads a header as far as it has arrived and charges the length that it claims. Returns the
    /// bytes after it.
    fn read_header<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Status> {
        if self.has_message && !self.is_stream {
            // The status that gRPC defines for too many messages.
            return Err(Status::unimplemented("a request of this method is one message"));
        }
        let (more, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES - self.header_len));
        self.header[self.header_len..][..more.len()].copy_from_slice(more);
        self.header_len += more.len();
        if self.header_len < HEADER_BYTES {
            return Ok(rest);
        }
        self.header_len = 0;
        self.has_message = true;
        let [_, length @ ..] = self.header;
        let length = u32::from_be_bytes(length) as usize;
        if length > self.limits.max_message_bytes {
            self.passes_through = true;
            return Ok(rest);
        }
        let has_arrived_whole = length <= rest.len();
        if !has_arrived_whole || length >= MIN_CHARGED_BYTES {
            self.request_charge.charge(length)?;
        }
        if !has_arrived_whole {
            self.partial_charge = length;
        }
        self.remaining_bytes = length;
        Ok(rest)
    }

    /// Whether the client must send more: the rest of a message, or the end of a request that is a
    /// single message.
    fn awaits_bytes(&self) -> bool {
        !self.is_stream || self.remaining_bytes > 0 || self.header_len > 0
    }

    /// Ready when the client has sent below the minimum rate.
    fn poll_below_min_rate(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.awaits_bytes() {
            self.rate = None;
            return Poll::Pending;
        }
        let (budget, interval) = (&self.request_charge.budget, self.limits.rate_window / RATE_INTERVALS);
        let rate = self.rate.get_or_insert_with(|| RateMeter {
            interval_end: Box::pin(sleep(interval)),
            interval: 0,
            arrived_in_window: 0,
            arrived_in_interval: 0,
            refusals: budget.refusals(),
        });
        // The bytes that must arrive per interval.
        let min_bytes = usize::try_from(MIN_BYTES_PER_SECOND * interval.as_millis() / 1000)
            .unwrap_or(usize::MAX)
            .max(1);
        let min_bytes_while_blocking = min_bytes.max(self.partial_charge.div_ceil(RATE_INTERVALS as usize));
        loop {
            ready!(rate.interval_end.as_mut().poll(context));
            let refusals = budget.refusals();
            let blocks_others = self.partial_charge > 0 && refusals != rate.refusals;
            if blocks_others && rate.arrived_in_interval < min_bytes_while_blocking {
                return Poll::Ready(());
            }
            rate.interval += 1;
            if rate.interval == RATE_INTERVALS {
                if rate.arrived_in_window < min_bytes.saturating_mul(RATE_INTERVALS as usize) {
                    return Poll::Ready(());
                }
                (rate.interval, rate.arrived_in_window) = (0, 0);
            }
            (rate.arrived_in_interval, rate.refusals) = (0, refusals);
            rate.interval_end.as_mut().reset(Instant::now() + interval);
        }
    }

    /// Fails the request.
    fn refuse(&mut self, why: Status) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        self.passes_through = true;
        self.rate = None;
        Poll::Ready(Some(Err(why)))
    }
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.is_stream {
            this.request_charge.release_except(this.partial_charge);
        }
        match Pin::new(&mut this.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let metered = frame.data_ref().map_or(Ok(()), |bytes| this.meter(bytes));
                match metered {
                    Ok(()) => Poll::Ready(Some(Ok(frame))),
                    Err(why) => this.refuse(why),
                }
            }
            Poll::Ready(end) => Poll::Ready(end),
            Poll::Pending => {
                ready!(this.poll_below_min_rate(context));
                let rate_window = this.limits.rate_window;
                this.refuse(Status::deadline_exceeded(format!(
                    "the request is too slow: send at least {} KiB/s, averaged over {rate_window:?}; while others are refused for lack of \
                     budget, that rate and 1/{RATE_INTERVALS} of the message in each {:?}",
                    MIN_BYTES_PER_SECOND >> 10,
                    rate_window / RATE_INTERVALS
                )))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests;
