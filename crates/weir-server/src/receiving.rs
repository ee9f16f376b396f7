//! Admission of messages: a memory budget for all messages of a server, and a minimum rate at which
//! clients must send them.
//!
//! The transport allocates the length that a gRPC message header claims before any byte has
//! arrived. [`AdmissionLayer`] therefore reads each header first and charges the length to a budget
//! that all connections of the server share. The charge lasts until the answer is sent and the work
//! is done. A client that sends too slowly loses its request.
//!
//! The content of messages is not read here (`decoding.rs`).

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
const HEADER: usize = 5;

/// Messages of this many bytes or more are charged. A shorter one is charged if it arrives in
/// pieces, since its rest may take any time.
const MIN_CHARGED: usize = 16 << 10;

/// Messages of this many bytes or more are large.
const LARGE: usize = 1 << 20;

/// One part in this many of the budget is reserved for messages that are not large, so that large
/// claims do not keep them out.
const SMALL_RESERVE_DIVISOR: usize = 8;

/// The quota of a connection: one part in this many of the budget, or a single message of any
/// length. Large and small messages have separate quotas.
const PEER_QUOTA_DIVISOR: usize = 4;

/// The least average rate, over [`Bounds::patience`], at which a client must send: bytes per
/// second.
const MIN_RATE: u128 = 1 << 20;

/// Intervals of [`Bounds::patience`]. If another request is refused for lack of budget during an
/// interval, the rate must hold within that interval, and this fraction of the claimed length must
/// arrive in it. So a claim without bytes keeps others out for one interval only.
const INTERVALS: u32 = 30;

/// The limits of a server's messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most bytes of a message; the transport itself refuses longer ones.
    pub longest: usize,
    /// The budget: bytes of all messages together; at least `longest`.
    pub together: usize,
    /// The time over which a client's rate is measured, and the deadline for the rest of a message.
    pub patience: Duration,
}

/// Bytes charged to the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Charge {
    /// By large messages.
    large: usize,
    /// By others.
    small: usize,
}

impl Charge {
    /// The charge of one message.
    fn of_message(bytes: usize) -> Self {
        let mut charge = Charge::default();
        *charge.class_of(bytes) = bytes;
        charge
    }

    /// The size class of a message of this many bytes.
    fn class_of(&mut self, bytes: usize) -> &mut usize {
        match bytes >= LARGE {
            true => &mut self.large,
            false => &mut self.small,
        }
    }

    fn sum(self) -> usize {
        self.large + self.small
    }

    fn add(&mut self, more: Charge) {
        self.large += more.large;
        self.small += more.small;
    }

    fn subtract(&mut self, less: Charge) {
        self.large -= less.large;
        self.small -= less.small;
    }
}

/// The bytes charged for the messages of one connection.
#[derive(Debug, Default)]
pub(crate) struct Account(Mutex<Charge>);

/// The memory budget of a server.
#[derive(Debug)]
struct Budget {
    whole: usize,
    /// The part that large messages may use.
    large: usize,
    charged: Mutex<Charge>,
    /// Messages that were refused for lack of budget.
    refused: AtomicUsize,
}

impl Budget {
    fn new(bounds: &Bounds) -> Self {
        let whole = bounds.together.max(bounds.longest);
        Budget {
            whole,
            large: (whole - whole / SMALL_RESERVE_DIVISOR).max(bounds.longest),
            charged: Mutex::default(),
            refused: AtomicUsize::new(0),
        }
    }

    fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Charges a message to the budget and to its connection.
    fn charge(&self, account: &Account, bytes: usize) -> Result<(), Status> {
        let (mut all, mut peer) = (lock(&self.charged), lock(&account.0));
        let (has, most) = (*peer.class_of(bytes), self.whole / PEER_QUOTA_DIVISOR);
        if has > 0 && has + bytes > most {
            return Err(Status::resource_exhausted(format!(
                "the message has {bytes} bytes; the messages of one client may have {most} at a time, or one alone any number, and this client's \
                 have {has} now: try again"
            )));
        }
        let free = match bytes >= LARGE {
            true => (self.large.saturating_sub(all.large)).min(self.whole - all.sum()),
            false => self.whole - all.sum(),
        };
        if bytes > free {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Status::resource_exhausted(format!(
                "the message has {bytes} bytes; the messages of all clients may have {} at a time, of which {free} are free for it now: try again",
                self.whole
            )));
        }
        all.add(Charge::of_message(bytes));
        peer.add(Charge::of_message(bytes));
        Ok(())
    }

    fn release(&self, account: &Account, bytes: Charge) {
        lock(&self.charged).subtract(bytes);
        lock(&account.0).subtract(bytes);
    }
}

/// The charge of one request, released when the last handle is dropped at the latest.
#[derive(Debug)]
struct RequestCharge {
    budget: Arc<Budget>,
    peer: Arc<Peer>,
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

/// Does work that needs a request's bytes and outlives its client: the permit is dropped after it.
pub(crate) async fn holding<T>(permit: Option<BudgetPermit>, work: impl Future<Output = T>) -> T {
    let output = work.await;
    drop(permit);
    output
}

/// The layer that charges the messages of a server. Clones share one budget.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionLayer {
    budget: Arc<Budget>,
    bounds: Bounds,
}

impl AdmissionLayer {
    pub fn new(bounds: Bounds) -> Self {
        AdmissionLayer {
            budget: Arc::new(Budget::new(&bounds)),
            bounds,
        }
    }
}

impl<S> tower_layer::Layer<S> for AdmissionLayer {
    type Service = AdmissionService<S>;

    fn layer(&self, inner: S) -> AdmissionService<S> {
        AdmissionService {
            inner,
            receiving: self.clone(),
        }
    }
}

/// A service whose messages are charged.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionService<S> {
    inner: S,
    receiving: AdmissionLayer,
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
        let busy = peer.busy();
        let share = RequestCharge::new(&self.receiving.budget, peer);
        let is_stream = request.uri().path().ends_with("/StreamChannel");
        request.extensions_mut().insert(BudgetPermit(Arc::clone(&share)));
        let bounds = self.receiving.bounds;
        let request = request.map(|body| Body::new(MeteredBody::new(body, Arc::clone(&share), bounds, is_stream)));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|inner| ResponseBody {
                inner,
                _share: share,
                _busy: busy,
            }))
        })
    }
}

/// The body of an answer. Until it is sent it holds the charge of its request, and marks its
/// connection as busy.
#[derive(Debug)]
pub(crate) struct ResponseBody<A> {
    inner: A,
    _share: Arc<RequestCharge>,
    _busy: Busy,
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
    share: Arc<RequestCharge>,
    bounds: Bounds,
    /// Whether this is a stream of messages. Each message is processed by the time the next bytes
    /// are polled, which releases its charge.
    is_stream: bool,
    /// The first `header_len` bytes of the next message's header.
    header: [u8; HEADER],
    header_len: usize,
    /// Bytes of the current message that have not arrived.
    left: usize,
    /// The charge of a message that has not arrived completely.
    unfinished: usize,
    has_message: bool,
    /// Whether further bytes are passed on unread.
    is_over: bool,
    /// The rate measurement, while bytes are missing.
    rate: Option<RateMeter>,
}

/// Measures the rate at which a client sends.
struct RateMeter {
    /// The end of the current interval.
    interval_end: Pin<Box<Sleep>>,
    interval: u32,
    /// Bytes that have arrived in all intervals, and in the current one.
    arrived: usize,
    arrived_now: usize,
    /// [`Budget::refused`] at the start of the interval.
    refused: usize,
}

impl MeteredBody {
    fn new(inner: Body, share: Arc<RequestCharge>, bounds: Bounds, is_stream: bool) -> Self {
        MeteredBody {
            inner,
            share,
            bounds,
            is_stream,
            header: [0; HEADER],
            header_len: 0,
            left: 0,
            unfinished: 0,
            has_message: false,
            is_over: false,
            rate: None,
        }
    }

    /// Counts bytes for the client's rate.
    fn count_rate(&mut self, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.arrived = rate.arrived.saturating_add(bytes);
            rate.arrived_now = rate.arrived_now.saturating_add(bytes);
        }
    }

    /// Follows the messages in bytes that have arrived.
    fn scan(&mut self, mut bytes: &[u8]) -> Result<(), Status> {
        self.count_rate(bytes.len());
        while !bytes.is_empty() && !self.is_over {
            if self.left == 0 {
                bytes = self.read_header(bytes)?;
            } else {
                let arrived = self.left.min(bytes.len());
                bytes = &bytes[arrived..];
                self.left -= arrived;
                if self.left == 0 {
                    self.unfinished = 0;
                    // The next message has a deadline of its own.
                    self.count_rate(usize::MAX);
                }
            }
        }
        Ok(())
    }

    /// Reads a header as far as it has arrived and charges the length that it claims. Returns the
    /// bytes behind it.
    fn read_header<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Status> {
        if self.has_message && !self.is_stream {
            // The status that gRPC defines for too many messages.
            return Err(Status::unimplemented("a request of this method is one message"));
        }
        let (more, rest) = bytes.split_at(bytes.len().min(HEADER - self.header_len));
        self.header[self.header_len..][..more.len()].copy_from_slice(more);
        self.header_len += more.len();
        if self.header_len < HEADER {
            return Ok(rest);
        }
        self.header_len = 0;
        self.has_message = true;
        let [_, length @ ..] = self.header;
        let length = u32::from_be_bytes(length) as usize;
        if length > self.bounds.longest {
            self.is_over = true;
            return Ok(rest);
        }
        let is_whole = length <= rest.len();
        if !is_whole || length >= MIN_CHARGED {
            self.share.charge(length)?;
        }
        if !is_whole {
            self.unfinished = length;
        }
        self.left = length;
        Ok(rest)
    }

    /// Whether the client has to send more: the rest of a message, or the end of a request that is
    /// a single message.
    fn is_owed(&self) -> bool {
        !self.is_stream || self.left > 0 || self.header_len > 0
    }

    /// Ready when the client has sent too slowly.
    fn poll_slowness(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_owed() {
            self.rate = None;
            return Poll::Pending;
        }
        let (budget, interval) = (&self.share.budget, self.bounds.patience / INTERVALS);
        let rate = self.rate.get_or_insert_with(|| RateMeter {
            interval_end: Box::pin(sleep(interval)),
            interval: 0,
            arrived: 0,
            arrived_now: 0,
            refused: budget.refused(),
        });
        let owed = usize::try_from(MIN_RATE * interval.as_millis() / 1000)
            .unwrap_or(usize::MAX)
            .max(1);
        let owed_now = owed.max(self.unfinished.div_ceil(INTERVALS as usize));
        loop {
            ready!(rate.interval_end.as_mut().poll(context));
            let refused = budget.refused();
            let blocks_others = self.unfinished > 0 && refused != rate.refused;
            if blocks_others && rate.arrived_now < owed_now {
                return Poll::Ready(());
            }
            rate.interval += 1;
            if rate.interval == INTERVALS {
                if rate.arrived < owed.saturating_mul(INTERVALS as usize) {
                    return Poll::Ready(());
                }
                (rate.interval, rate.arrived) = (0, 0);
            }
            (rate.arrived_now, rate.refused) = (0, refused);
            rate.interval_end.as_mut().reset(Instant::now() + interval);
        }
    }

    /// Ends the request.
    fn refuse(&mut self, why: Status) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        self.is_over = true;
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
            this.share.release_except(this.unfinished);
        }
        match Pin::new(&mut this.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let scanned = frame.data_ref().map_or(Ok(()), |bytes| this.scan(bytes));
                match scanned {
                    Ok(()) => Poll::Ready(Some(Ok(frame))),
                    Err(why) => this.refuse(why),
                }
            }
            Poll::Ready(end) => Poll::Ready(end),
            Poll::Pending => {
                ready!(this.poll_slowness(context));
                let patience = this.bounds.patience;
                this.refuse(Status::deadline_exceeded(format!(
                    "the rest of the request has not come: a client sends it, or {} KiB/s, in {patience:?}, and where others wait for room \
                     this much and a part in {INTERVALS} of the message in each {:?}",
                    MIN_RATE >> 10,
                    patience / INTERVALS
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
