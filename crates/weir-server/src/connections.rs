//! Accepted connections: their limit, their timeouts, and the coalescing of small writes.
//!
//! [`Incoming`] accepts connections. Beyond the limit, the connection without a request for longest
//! is closed. [`Connection`] wraps a socket: it fails if the peer is silent or accepts no bytes for
//! too long, and it delays small answers so that several are written by one system call.
//!
//! It does not read what is sent. Requests are counted per peer in [`crate::peers`]; message sizes
//! are limited in [`crate::admission`].

use crate::device::lock;
use crate::peers::{ConnectionSlot, Peer, Peers};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

/// How long a server waits after a failed accept, most often for lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// How long a peer may take to answer a ping.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Writes of this many bytes or more are not delayed: some fifteen answers without contents. With a
/// lower limit the system calls cost more than everything else. With a higher one most of a
/// client's requests in flight wait here, so that client and server idle alternately
/// (docs/performance.md).
const MIN_UNDELAYED_BYTES: usize = 640;

/// A vectored write whose last slice has this many bytes or more is not delayed: the transport does
/// not combine such contents with other answers.
const MIN_UNDELAYED_SLICE_BYTES: usize = 256;

/// The limits of a server's connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Connections at a time.
    pub max_connections: usize,
    /// How long a peer may take for the TLS handshake and its first valid HTTP/2 preface, whatever
    /// bytes it sends.
    pub handshake_timeout: Duration,
    /// How long a peer may send, or accept, nothing after that. Live peers answer pings.
    pub idle_timeout: Duration,
}

impl ConnectionLimits {
    /// The limits of a server that pings a peer which has been silent for `keepalive`.
    pub fn pinging(max_connections: usize, keepalive: Duration) -> Self {
        ConnectionLimits {
            max_connections,
            handshake_timeout: keepalive,
            idle_timeout: keepalive.saturating_add(PING_TIMEOUT),
        }
    }
}

/// `max_connections`, or less if the process may open few files. Other servers and the devices of
/// the switch need file descriptors, too.
fn limited_by_open_files(max_connections: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    match open_files(&limits) {
        Some(files) => max_connections.min((files / 3).max(1)),
        None => max_connections,
    }
}

/// The soft limit of open files, from the text of /proc/self/limits.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A listening socket.
pub(crate) trait Accept {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin;

    /// Ready with the next connection.
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Self::Io>>;
}

impl Accept for TcpListener {
    type Io = TcpStream;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let (stream, _) = ready!(TcpListener::poll_accept(self, context))?;
        // Without TCP_NODELAY, answers and window updates wait for the client's acknowledgements.
        // If the peer has left already, the next read or write fails.
        let _ = stream.set_nodelay(true);
        Poll::Ready(Ok(stream))
    }
}

impl Accept for UnixListener {
    type Io = UnixStream;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        let (stream, _) = ready!(UnixListener::poll_accept(self, context))?;
        Poll::Ready(Ok(stream))
    }
}

/// Waits for a free connection slot.
type PendingPermit = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// Accepts connections. For a connection beyond the limit, the one without a request for longest is
/// closed. If all have a request, the new one is closed. So idle connections keep no client out.
pub(crate) struct Incoming<L: Accept> {
    listener: L,
    /// A permit for each connection that may be accepted.
    free_slots: Arc<Semaphore>,
    /// The connected peers, for the choice of which to evict.
    peers: Arc<Peers>,
    limits: ConnectionLimits,
    /// Set after a failed accept: the time of the next attempt.
    accept_retry: Option<Pin<Box<Sleep>>>,
    /// An accepted connection that waits until another one is closed.
    awaiting_slot: Option<(L::Io, PendingPermit)>,
}

impl<L: Accept> Incoming<L> {
    pub fn new(listener: L, limits: ConnectionLimits) -> Self {
        let max_connections = limited_by_open_files(limits.max_connections).min(Semaphore::MAX_PERMITS);
        Incoming {
            listener,
            free_slots: Arc::new(Semaphore::new(max_connections)),
            peers: Arc::default(),
            limits,
            accept_retry: None,
            awaiting_slot: None,
        }
    }

    /// The next connection that is admitted.
    pub fn poll_connection(&mut self, context: &mut Context<'_>) -> Poll<Connection<L::Io>> {
        loop {
            if let Some((_, permit)) = &mut self.awaiting_slot {
                let permit = ready!(permit.as_mut().poll(context));
                if let (Some((io, _)), Ok(permit)) = (self.awaiting_slot.take(), permit) {
                    return Poll::Ready(Connection::new(io, self.peers.register(permit), self.limits));
                }
            }
            if let Some(accept_retry) = &mut self.accept_retry {
                ready!(accept_retry.as_mut().poll(context));
                self.accept_retry = None;
            }
            match ready!(self.listener.poll_accept(context)) {
                Ok(io) => match Arc::clone(&self.free_slots).try_acquire_owned() {
                    Ok(permit) => return Poll::Ready(Connection::new(io, self.peers.register(permit), self.limits)),
                    Err(_) if self.peers.evict_idle() => {
                        self.awaiting_slot = Some((io, Box::pin(Arc::clone(&self.free_slots).acquire_owned())));
                    }
                    Err(_) => {}
                },
                // The peer has left before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => self.accept_retry = Some(Box::pin(sleep(ACCEPT_RETRY))),
            }
        }
    }
}

impl<L: Accept + Unpin> Stream for Incoming<L> {
    type Item = io::Result<Connection<L::Io>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_connection(context).map(|connection| Some(Ok(connection)))
    }
}

/// An accepted connection. It fails when its peer is silent for too long, or when it is evicted.
#[derive(Debug)]
pub(crate) struct Connection<I> {
    /// The socket.
    io: I,
    /// How long the peer may send nothing, or accept nothing.
    idle_timeout: Duration,
    /// The end of the current interval, in which the peer must send something.
    read_deadline: Pin<Box<Sleep>>,
    /// Whether the peer has sent something in it. A timer reset for every read would cost more.
    has_read: bool,
    /// Whether the server's HTTP/2 preface was flushed.
    has_sent_preface: bool,
    /// Whether the connection is closed in favour of another peer's.
    is_evicted: bool,
    /// Coalesces small writes.
    coalescer: Arc<WriteCoalescer>,
    /// Set while the peer accepts no bytes: the time by which it must.
    write_deadline: Option<Pin<Box<Sleep>>>,
    /// Its place among the server's connections.
    slot: ConnectionSlot,
}

/// Coalesces small writes of a connection: delays them until the runtime has run all other tasks
/// that were ready, which may add to them.
#[derive(Debug, Default)]
struct WriteCoalescer(Mutex<CoalescerState>);

/// The state of a [`WriteCoalescer`].
#[derive(Debug, Default)]
struct CoalescerState {
    /// The connection's write, if there is one.
    write: DelayedWrite,
    /// Whether the runtime will wake the coalescer once other tasks have run.
    is_scheduled: bool,
}

/// The write that a [`WriteCoalescer`] delays.
#[derive(Debug, Default)]
enum DelayedWrite {
    /// There is no write.
    #[default]
    Nothing,
    /// The write is delayed; this wakes the connection.
    Delayed(Waker),
    /// The write may proceed.
    Released,
}

impl WriteCoalescer {
    /// Ready once the write may proceed.
    fn poll_ready(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        match &mut state.write {
            DelayedWrite::Released => return Poll::Ready(()),
            DelayedWrite::Delayed(waker) => waker.clone_from(context.waker()),
            write => *write = DelayedWrite::Delayed(context.waker().clone()),
        }
        let was_scheduled = std::mem::replace(&mut state.is_scheduled, true);
        drop(state);
        if !was_scheduled {
            // `yield_now` defers the waker until no other task is ready, or many have run. The
            // future itself is not needed any more.
            let waker = Waker::from(Arc::clone(self));
            let _ = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
        }
        Poll::Pending
    }

    /// Records the result of a write. A write that the socket did not accept is not delayed again.
    fn after_write(&self, is_written: bool) {
        lock(&self.0).write = match is_written {
            true => DelayedWrite::Nothing,
            false => DelayedWrite::Released,
        };
    }
}

impl Wake for WriteCoalescer {
    fn wake(self: Arc<Self>) {
        let mut state = lock(&self.0);
        state.is_scheduled = false;
        match std::mem::take(&mut state.write) {
            DelayedWrite::Delayed(connection) => {
                state.write = DelayedWrite::Released;
                drop(state);
                connection.wake();
            }
            before => state.write = before,
        }
    }
}

impl<I> Connection<I> {
    fn new(io: I, slot: ConnectionSlot, limits: ConnectionLimits) -> Self {
        Connection {
            io,
            idle_timeout: limits.idle_timeout,
            read_deadline: Box::pin(sleep(limits.handshake_timeout)),
            has_read: false,
            has_sent_preface: false,
            is_evicted: false,
            coalescer: Arc::default(),
            write_deadline: None,
            slot,
        }
    }

    /// The peer.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.slot.peer
    }

    /// Fails once the connection was evicted. Checked on writes as well as reads: while a peer
    /// accepts no bytes, the server does not read.
    fn check_evicted(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.is_evicted = self.is_evicted || Pin::new(&mut self.slot.evicted).poll(context).is_ready();
        match self.is_evicted {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// Coalesces writes: pending while a write of `bytes` bytes is delayed so that later ones join
    /// it, ready when it may proceed. `cannot_coalesce`: it cannot be combined with later ones.
    ///
    /// Fails if the connection is evicted. Also confirms the peer's protocol: after its preface the
    /// server writes only to peers that have sent a valid HTTP/2 preface.
    ///
    /// Each of several requests that arrived together wakes the connection when it is answered, and
    /// the runtime runs the connection before the next request. Every answer or two would cost a
    /// system call, the most expensive part of a short request. So a write is delayed until there
    /// are [`MIN_UNDELAYED_BYTES`] bytes, or until all other ready tasks have run. The layers above
    /// (HTTP/2, TLS) may poll several times before they wait.
    fn poll_coalesce(
        &mut self,
        context: &mut Context<'_>,
        bytes: usize,
        cannot_coalesce: bool,
    ) -> Poll<io::Result<()>> {
        self.check_evicted(context)?;
        if self.has_sent_preface {
            self.slot.peer.confirm_http2();
        }
        match cannot_coalesce || bytes >= MIN_UNDELAYED_BYTES {
            true => Poll::Ready(Ok(())),
            false => self.coalescer.poll_ready(context).map(Ok),
        }
    }

    /// Records the result of a write. Fails if the peer has accepted no bytes for too long: the
    /// transport cannot send such a peer a ping.
    fn after_write(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.coalescer.after_write(written.is_ready());
        if written.is_ready() {
            self.write_deadline = None;
            return written;
        }
        let idle_timeout = self.idle_timeout;
        let deadline = self.write_deadline.get_or_insert_with(|| Box::pin(sleep(idle_timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Connection<I> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.check_evicted(context)?;
        if let Poll::Ready(read) = Pin::new(&mut this.io).poll_read(context, buf) {
            this.has_read = true;
            return Poll::Ready(read);
        }
        loop {
            ready!(this.read_deadline.as_mut().poll(context));
            if !this.has_read || !this.slot.peer.is_confirmed() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            this.has_read = false;
            this.read_deadline.as_mut().reset(Instant::now() + this.idle_timeout);
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Connection<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_coalesce(context, buf.len(), false))?;
        let written = Pin::new(&mut self.io).poll_write(context, buf);
        self.after_write(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(context))?;
        // Earlier writes belong to the TLS handshake.
        self.has_sent_preface = self.slot.peer.has_handshake();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = bufs.iter().map(|b| b.len()).sum();
        let cannot_coalesce = bufs.len() > 1 && bufs.last().is_some_and(|last| last.len() >= MIN_UNDELAYED_SLICE_BYTES);
        ready!(self.poll_coalesce(context, bytes, cannot_coalesce))?;
        let written = Pin::new(&mut self.io).poll_write_vectored(context, bufs);
        self.after_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

impl<I> Connected for Connection<I> {
    type ConnectInfo = Arc<Peer>;

    /// The transport calls this once, after the TLS handshake if there is one.
    fn connect_info(&self) -> Arc<Peer> {
        self.slot.peer.finish_handshake();
        Arc::clone(&self.slot.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    #[test]
    fn the_limit_of_open_files_is_the_one_in_force() {
        let text = "Limit    Soft Limit    Hard Limit   Units\nMax open files            1024                 524288               files     \n";
        assert_eq!(open_files(text), Some(1024));
        assert_eq!(open_files("Max open files  unlimited  unlimited  files"), None);
        assert_eq!(open_files(""), None);
        assert_eq!(limited_by_open_files(1), 1);
        assert!(limited_by_open_files(usize::MAX) >= 1);
    }

    async fn listening(max_connections: usize) -> Incoming<TcpListener> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Incoming::new(
            listener,
            ConnectionLimits::pinging(max_connections, Duration::from_secs(30)),
        )
    }

    async fn next(incoming: &mut Incoming<TcpListener>) -> Connection<TcpStream> {
        poll_fn(|context| incoming.poll_connection(context)).await
    }

    #[tokio::test]
    async fn new_connections_are_closed_while_all_others_have_requests() {
        let mut incoming = listening(1).await;
        let address = incoming.listener.local_addr().expect("an address");
        let connect = || async move { TcpStream::connect(address).await.expect("the kernel takes it") };
        let _first = connect().await;
        let taken = next(&mut incoming).await;
        let _busy = taken.peer().busy();
        let mut second = connect().await;
        let accepting = tokio::spawn(async move { next(&mut incoming).await });
        assert_eq!(second.read(&mut [0]).await.expect("is closed"), 0);
        drop(taken);
        let _third = connect().await;
        assert!(accepting.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_without_a_request_for_longest_is_evicted() {
        let mut incoming = listening(3).await;
        let address = incoming.listener.local_addr().expect("an address");
        let mut peers = Vec::new();
        let mut taken = Vec::new();
        for _ in 0..3 {
            peers.push(TcpStream::connect(address).await.expect("the kernel takes it"));
            taken.push(next(&mut incoming).await);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // The first has a stream, and the second has just had a request.
        let _busy = taken[0].peer().busy();
        drop(taken[1].peer().busy());
        let mut third = taken.pop().expect("is there");
        let _fourth = TcpStream::connect(address).await.expect("the kernel takes it");
        let ended = tokio::spawn(async move { third.read(&mut [0]).await.map_err(|e| e.kind()) });
        let fourth = next(&mut incoming).await;
        let ended = ended.await.expect("ends");
        assert_eq!(ended, Err(io::ErrorKind::ConnectionAborted));
        assert!(fourth.peer().idle_since().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_disconnected() {
        let mut incoming = listening(9).await;
        let address = incoming.listener.local_addr().expect("an address");
        let _silent = TcpStream::connect(address).await.expect("the kernel takes it");
        let mut connection = next(&mut incoming).await;
        let read = connection.read(&mut [0]).await;
        assert_eq!(read.expect_err("nothing comes").kind(), io::ErrorKind::TimedOut);
        let mut speaking = TcpStream::connect(address).await.expect("the kernel takes it");
        speaking.write_all(b"a").await.expect("is sent");
        let mut connection = next(&mut incoming).await;
        connection.peer().confirm_http2();
        assert_eq!(connection.read(&mut [0]).await.expect("has come"), 1);
        let read = connection.read(&mut [0]).await;
        assert_eq!(read.expect_err("nothing more").kind(), io::ErrorKind::TimedOut);
    }

    /// A connection whose peer buffers this many bytes.
    fn with_buffer(bytes: usize) -> (Connection<DuplexStream>, DuplexStream) {
        let (io, other) = tokio::io::duplex(bytes);
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("is free");
        let slot = Arc::<Peers>::default().register(permit);
        let limits = ConnectionLimits::pinging(9, Duration::from_secs(30));
        (Connection::new(io, slot, limits), other)
    }

    /// Polls twice each time that it is woken, as the layers above do. Returns the result of the
    /// write, and how often it was woken.
    async fn write(connection: &mut Connection<DuplexStream>, text: &[u8]) -> (io::Result<usize>, usize) {
        let mut woken = 0;
        let written = poll_fn(|context| {
            woken += 1;
            match Pin::new(&mut *connection).poll_write(context, text) {
                Poll::Pending => Pin::new(&mut *connection).poll_write(context, text),
                ready => ready,
            }
        });
        (written.await, woken)
    }

    #[tokio::test]
    async fn few_bytes_wait_for_other_tasks_and_many_do_not() {
        let (mut connection, mut other) = with_buffer(1 << 20);
        let answers = Arc::new(AtomicUsize::new(0));
        let answering = Arc::clone(&answers);
        let others: Vec<_> = (0..5)
            .map(|_| {
                let answering = Arc::clone(&answering);
                tokio::spawn(async move { answering.fetch_add(1, Ordering::SeqCst) })
            })
            .collect();
        let (written, woken) = write(&mut connection, b"few").await;
        assert_eq!((written.expect("there is room"), woken), (3, 2));
        assert_eq!(answers.load(Ordering::SeqCst), others.len());
        let (written, woken) = write(&mut connection, &[0; MIN_UNDELAYED_BYTES]).await;
        assert_eq!((written.expect("there is room"), woken), (MIN_UNDELAYED_BYTES, 1));
        let pieces = [9, MIN_UNDELAYED_SLICE_BYTES].map(|bytes| vec![0; bytes]);
        let pieces = pieces.each_ref().map(|piece| io::IoSlice::new(piece));
        let written = poll_fn(|context| Poll::Ready(Pin::new(&mut connection).poll_write_vectored(context, &pieces)));
        assert!(written.await.is_ready());
        drop(connection);
        let mut all = Vec::new();
        other.read_to_end(&mut all).await.expect("is open");
        assert_eq!(all.get(..3), Some(&b"few"[..]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_accepts_no_bytes_is_disconnected_without_busy_polling() {
        let (mut connection, mut other) = with_buffer(9);
        let started = Instant::now();
        assert_eq!(write(&mut connection, b"it is full").await.0.expect("takes some"), 9);
        let (written, woken) = write(&mut connection, b"more").await;
        assert_eq!(written.map_err(|e| e.kind()), Err(io::ErrorKind::TimedOut));
        assert_eq!(started.elapsed().as_secs(), 50);
        // Once when the other tasks had run, and once at the deadline.
        assert_eq!(woken, 3);
        other.read_exact(&mut [0; 9]).await.expect("was written");
        assert_eq!(write(&mut connection, b"more").await.0.expect("there is room"), 4);
    }

    /// How long, up to five minutes, a peer stays connected that sends a byte every few seconds.
    /// `answers`: the server accepts its bytes as valid HTTP/2 preface.
    async fn dripped(answers: bool) -> Duration {
        let (mut connection, mut dripping) = with_buffer(1024);
        let started = Instant::now();
        // Writes and flushes before `finish_handshake` belong to the TLS handshake.
        for written in ["keys", "settings"] {
            connection.write_all(written.as_bytes()).await.expect("is sent");
            connection.flush().await.expect("is sent");
            connection.slot.peer.finish_handshake();
        }
        if answers {
            connection.flush().await.expect("is sent");
            connection.write_all(b"acknowledged").await.expect("is sent");
        }
        tokio::spawn(async move {
            while started.elapsed() < Duration::from_secs(300) && dripping.write_all(b"a").await.is_ok() {
                sleep(Duration::from_secs(9)).await;
            }
        });
        while let Ok(1) = connection.read(&mut [0]).await {}
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_without_valid_protocol_is_disconnected_whatever_it_sends() {
        assert_eq!(dripped(false).await.as_secs(), 30);
        assert!(dripped(true).await.as_secs() >= 300);
    }
}
