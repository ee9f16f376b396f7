//! Messages on their way in: how many bytes they may have together, and how slow they may be.
//!
//! The transport makes room for as many bytes as the header of a message claims, before any has
//! come. So each claim is looked at first, and is taken from a budget that all connections of a
//! server share, until the request is done.

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

/// Bytes before each message: whether it is compressed, and its length.
const HEADER: usize = 5;

/// Bytes from which on a message counts. A shorter one does if it comes in pieces: nobody knows
/// when the rest comes.
const COUNTED: usize = 16 << 10;

/// Bytes from which on a message is large.
const LARGE: usize = 1 << 20;

/// Of the budget, one part in so many is for messages that are not large: whoever claims much does
/// not keep them out.
const KEPT: usize = 8;

/// One connection has at most one part in so many of the budget, or a single message of any length.
/// The large messages of all connections and the others are counted apart.
const OWN: usize = 4;

/// Bytes per second that a client must send at least, on an average of the time that it may wait.
const PACE: u128 = 1 << 20;

/// Parts of that time. While others are refused for want of room, the average is that of one part,
/// and of the length that is claimed as much as makes the whole of it in all parts: what is claimed
/// and does not come must not keep them out for long.
const PARTS: u32 = 30;

/// What the messages of a server may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes of the longest message; the transport refuses longer ones by itself.
    pub longest: usize,
    /// Bytes of all of them; at least that of the longest.
    pub together: usize,
    /// How long a client may take to send as many bytes as it must in that time, or the rest of a
    /// message.
    pub patience: Duration,
}

/// Bytes of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Taken {
    /// For large messages.
    large: usize,
    /// For others.
    small: usize,
}

impl Taken {
    /// What a message takes.
    fn by(bytes: usize) -> Self {
        let mut taken = Taken::default();
        *taken.of(bytes) = bytes;
        taken
    }

    /// The part in which a message with so many bytes counts.
    fn of(&mut self, bytes: usize) -> &mut usize {
        match bytes >= LARGE {
            true => &mut self.large,
            false => &mut self.small,
        }
    }

    fn sum(self) -> usize {
        self.large + self.small
    }

    fn add(&mut self, more: Taken) {
        self.large += more.large;
        self.small += more.small;
    }

    fn subtract(&mut self, less: Taken) {
        self.large -= less.large;
        self.small -= less.small;
    }
}

/// What the messages of one connection have of the budget.
#[derive(Debug, Default)]
pub(crate) struct Account(Mutex<Taken>);

/// Bytes that messages may take, and those that they have.
#[derive(Debug)]
struct Budget {
    whole: usize,
    /// Those that large messages may have.
    large: usize,
    taken: Mutex<Taken>,
    /// Messages for which there was no room.
    refused: AtomicUsize,
}

impl Budget {
    fn new(bounds: &Bounds) -> Self {
        let whole = bounds.together.max(bounds.longest);
        Budget {
            whole,
            large: (whole - whole / KEPT).max(bounds.longest),
            taken: Mutex::default(),
            refused: AtomicUsize::new(0),
        }
    }

    fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes bytes for a message of a connection.
    fn take(&self, account: &Account, bytes: usize) -> Result<(), Status> {
        let (mut all, mut own) = (lock(&self.taken), lock(&account.0));
        let (has, most) = (*own.of(bytes), self.whole / OWN);
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
        all.add(Taken::by(bytes));
        own.add(Taken::by(bytes));
        Ok(())
    }

    fn give_back(&self, account: &Account, bytes: Taken) {
        lock(&self.taken).subtract(bytes);
        lock(&account.0).subtract(bytes);
    }
}

/// What one request has of the budget; given back at the latest with the last handle.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    peer: Arc<Peer>,
    taken: Mutex<Taken>,
}

impl Share {
    fn new(budget: &Arc<Budget>, peer: Arc<Peer>) -> Arc<Self> {
        Arc::new(Share {
            budget: Arc::clone(budget),
            peer,
            taken: Mutex::default(),
        })
    }

    /// Takes bytes for a message.
    fn take(&self, bytes: usize) -> Result<(), Status> {
        self.budget.take(&self.peer.account, bytes)?;
        lock(&self.taken).add(Taken::by(bytes));
        Ok(())
    }

    /// Gives back all but what a message with so many bytes took.
    fn keep(&self, bytes: usize) {
        let mut gone = std::mem::replace(&mut *lock(&self.taken), Taken::by(bytes));
        gone.subtract(Taken::by(bytes));
        if gone != Taken::default() {
            self.budget.give_back(&self.peer.account, gone);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.keep(0);
    }
}

/// Keeps what a request has of the budget.
#[derive(Debug, Clone)]
pub(crate) struct Held(#[allow(dead_code, reason = "it is kept, not used")] Arc<Share>);

impl Held {
    /// What the request with these extensions has, if it came by a server.
    pub fn of(extensions: &tonic::Extensions) -> Option<Held> {
        extensions.get().cloned()
    }
}

/// Does work for which a request's bytes are needed, and which goes on if its client goes away.
pub(crate) async fn while_held<T>(held: Option<Held>, work: impl Future<Output = T>) -> T {
    let done = work.await;
    drop(held);
    done
}

/// Has the messages of a server counted. Clones share one budget.
#[derive(Debug, Clone)]
pub(crate) struct Receiving {
    budget: Arc<Budget>,
    bounds: Bounds,
}

impl Receiving {
    pub fn new(bounds: Bounds) -> Self {
        Receiving {
            budget: Arc::new(Budget::new(&bounds)),
            bounds,
        }
    }
}

impl<S> tower_layer::Layer<S> for Receiving {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered {
            inner,
            receiving: self.clone(),
        }
    }
}

/// A server whose messages are counted.
#[derive(Debug, Clone)]
pub(crate) struct Metered<S> {
    inner: S,
    receiving: Receiving,
}

impl<S, A> tower_service::Service<http::Request<Body>> for Metered<S>
where
    S: tower_service::Service<http::Request<Body>, Response = http::Response<A>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    A: 'static,
{
    type Response = http::Response<Answer<A>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        // Where no connection is known, each request has one of its own.
        let peer = request.extensions().get().map_or_else(Peer::new, Arc::clone);
        let busy = peer.busy();
        let share = Share::new(&self.receiving.budget, peer);
        let is_stream = request.uri().path().ends_with("/StreamChannel");
        request.extensions_mut().insert(Held(Arc::clone(&share)));
        let bounds = self.receiving.bounds;
        let request = request.map(|body| Body::new(Messages::new(body, Arc::clone(&share), bounds, is_stream)));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|inner| Answer {
                inner,
                _share: share,
                _busy: busy,
            }))
        })
    }
}

/// An answer, which keeps what its request has of the budget until it is sent, and its client's
/// place.
#[derive(Debug)]
pub(crate) struct Answer<A> {
    inner: A,
    _share: Arc<Share>,
    _busy: Busy,
}

impl<A: HttpBody + Unpin> HttpBody for Answer<A> {
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

/// The body of a request, whose messages are looked at before the transport sees them.
struct Messages {
    inner: Body,
    share: Arc<Share>,
    bounds: Bounds,
    /// Whether there may be any number of messages, each of which is done with when the next bytes
    /// are asked for.
    is_stream: bool,
    /// The header of the message that comes next, as far as it is there.
    header: [u8; HEADER],
    has: usize,
    /// Bytes of the message that are to come.
    left: usize,
    /// Bytes that an unfinished message has of the budget.
    unfinished: usize,
    has_begun: bool,
    /// Whether nothing more is looked at.
    is_over: bool,
    /// Where the client is waited for.
    waiting: Option<Waiting>,
}

/// How the client does while it is waited for.
struct Waiting {
    /// The end of a part of the time.
    until: Pin<Box<Sleep>>,
    part: u32,
    /// Bytes that have come in all parts until now, and in this one.
    brought: usize,
    brought_now: usize,
    /// Messages for which there was no room before this part.
    refused: usize,
}

impl Messages {
    fn new(inner: Body, share: Arc<Share>, bounds: Bounds, is_stream: bool) -> Self {
        Messages {
            inner,
            share,
            bounds,
            is_stream,
            header: [0; HEADER],
            has: 0,
            left: 0,
            unfinished: 0,
            has_begun: false,
            is_over: false,
            waiting: None,
        }
    }

    /// Counts bytes for the time that the client may take.
    fn note(&mut self, bytes: usize) {
        if let Some(waiting) = &mut self.waiting {
            waiting.brought = waiting.brought.saturating_add(bytes);
            waiting.brought_now = waiting.brought_now.saturating_add(bytes);
        }
    }

    /// Looks at bytes that have come.
    fn look(&mut self, mut bytes: &[u8]) -> Result<(), Status> {
        self.note(bytes.len());
        while !bytes.is_empty() && !self.is_over {
            if self.left == 0 {
                bytes = self.begin(bytes)?;
            } else {
                let come = self.left.min(bytes.len());
                bytes = &bytes[come..];
                self.left -= come;
                if self.left == 0 {
                    self.unfinished = 0;
                    // The next one has its own time.
                    self.note(usize::MAX);
                }
            }
        }
        Ok(())
    }

    /// Reads a header, as far as it is there, and takes from the budget what it claims; what comes
    /// after it.
    fn begin<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Status> {
        if self.has_begun && !self.is_stream {
            // As gRPC has it for too many messages.
            return Err(Status::unimplemented("a request of this method is one message"));
        }
        let (more, rest) = bytes.split_at(bytes.len().min(HEADER - self.has));
        self.header[self.has..][..more.len()].copy_from_slice(more);
        self.has += more.len();
        if self.has < HEADER {
            return Ok(rest);
        }
        self.has = 0;
        self.has_begun = true;
        let [_, length @ ..] = self.header;
        let length = u32::from_be_bytes(length) as usize;
        if length > self.bounds.longest {
            self.is_over = true;
            return Ok(rest);
        }
        let is_whole = length <= rest.len();
        if !is_whole || length >= COUNTED {
            self.share.take(length)?;
        }
        if !is_whole {
            self.unfinished = length;
        }
        self.left = length;
        Ok(rest)
    }

    /// Whether the client is to send something: the rest of a message, or the end of a request that
    /// is one.
    fn is_owed(&self) -> bool {
        !self.is_stream || self.left > 0 || self.has > 0
    }

    /// Ready when the client has been too slow.
    fn poll_slowness(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_owed() {
            self.waiting = None;
            return Poll::Pending;
        }
        let (budget, part) = (&self.share.budget, self.bounds.patience / PARTS);
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            until: Box::pin(sleep(part)),
            part: 0,
            brought: 0,
            brought_now: 0,
            refused: budget.refused(),
        });
        let owed = usize::try_from(PACE * part.as_millis() / 1000)
            .unwrap_or(usize::MAX)
            .max(1);
        let owed_now = owed.max(self.unfinished.div_ceil(PARTS as usize));
        loop {
            ready!(waiting.until.as_mut().poll(context));
            let refused = budget.refused();
            let is_in_the_way = self.unfinished > 0 && refused != waiting.refused;
            if is_in_the_way && waiting.brought_now < owed_now {
                return Poll::Ready(());
            }
            waiting.part += 1;
            if waiting.part == PARTS {
                if waiting.brought < owed.saturating_mul(PARTS as usize) {
                    return Poll::Ready(());
                }
                (waiting.part, waiting.brought) = (0, 0);
            }
            (waiting.brought_now, waiting.refused) = (0, refused);
            waiting.until.as_mut().reset(Instant::now() + part);
        }
    }

    /// Ends the request.
    fn refuse(&mut self, why: Status) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        self.is_over = true;
        self.waiting = None;
        Poll::Ready(Some(Err(why)))
    }
}

impl HttpBody for Messages {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.is_stream {
            this.share.keep(this.unfinished);
        }
        match Pin::new(&mut this.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let looked = frame.data_ref().map_or(Ok(()), |bytes| this.look(bytes));
                match looked {
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
                     this much and a part in {PARTS} of the message in each {:?}",
                    PACE >> 10,
                    patience / PARTS
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
