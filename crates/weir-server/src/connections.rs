//! Connections that come in: no more than a server takes, and none of peers that are not there any
//! more.

use crate::device::lock;
use crate::peers::{Peer, Peers, Place};
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

/// How long a server that cannot accept waits, most often for a file descriptor: it would ask again
/// and again.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a peer may take to answer a ping.
pub(crate) const ANSWER: Duration = Duration::from_secs(20);

/// Bytes that are written at once; fewer wait for others. Of answers without contents some fifteen:
/// with few, writing costs more than all else, and where it is most of what a client has in flight,
/// client and server wait for each other in turns (docs/performance.md).
const ENOUGH: usize = 640;

/// Bytes of a piece that is written at once: the transport sends no other answer along with
/// contents from 256 bytes on.
const PIECE: usize = 256;

/// How many connections a server takes, and how long each may be silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections at a time.
    pub most: usize,
    /// How long a peer may take until it speaks the server's protocol, whatever bytes come
    /// meanwhile.
    pub first: Duration,
    /// How long a peer may be silent then. Pings make those talk that are there.
    pub silence: Duration,
}

impl Bounds {
    /// Those of a server that pings peers which have been silent for so long.
    pub fn pinging(most: usize, after: Duration) -> Self {
        Bounds {
            most,
            first: after,
            silence: after.saturating_add(ANSWER),
        }
    }
}

/// Connections of which a server may have so many: other servers and the devices of a switch need
/// files, too.
fn affordable(most: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    match open_files(&limits) {
        Some(files) => most.min((files / 3).max(1)),
        None => most,
    }
}

/// The limit of open files that is in force, from the text of the kernel.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Where connections are taken.
pub(crate) trait Accept {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Self::Io>>;
}

impl Accept for TcpListener {
    type Io = TcpStream;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let (stream, _) = ready!(TcpListener::poll_accept(self, context))?;
        // Without the option, answers and windows wait for the client's acknowledgements. One that
        // has gone already is told of elsewhere.
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

/// Waits for a place.
type Permit = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// Connections as they come. For one beyond the limit that is ended which has had no request for
/// longest; where all have one, it is closed at once itself. So nobody is kept out by connections
/// that do nothing.
pub(crate) struct Incoming<L: Accept> {
    listener: L,
    free: Arc<Semaphore>,
    peers: Arc<Peers>,
    bounds: Bounds,
    pause: Option<Pin<Box<Sleep>>>,
    /// One for which another one is being ended.
    next: Option<(L::Io, Permit)>,
}

impl<L: Accept> Incoming<L> {
    pub fn new(listener: L, bounds: Bounds) -> Self {
        let most = affordable(bounds.most).min(Semaphore::MAX_PERMITS);
        Incoming {
            listener,
            free: Arc::new(Semaphore::new(most)),
            peers: Arc::default(),
            bounds,
            pause: None,
            next: None,
        }
    }

    /// The next connection that is taken.
    pub fn poll_connection(&mut self, context: &mut Context<'_>) -> Poll<Connection<L::Io>> {
        loop {
            if let Some((_, permit)) = &mut self.next {
                let permit = ready!(permit.as_mut().poll(context));
                if let (Some((io, _)), Ok(permit)) = (self.next.take(), permit) {
                    return Poll::Ready(Connection::new(io, self.peers.enter(permit), self.bounds));
                }
            }
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match ready!(self.listener.poll_accept(context)) {
                Ok(io) => match Arc::clone(&self.free).try_acquire_owned() {
                    Ok(permit) => return Poll::Ready(Connection::new(io, self.peers.enter(permit), self.bounds)),
                    Err(_) if self.peers.make_room() => {
                        self.next = Some((io, Box::pin(Arc::clone(&self.free).acquire_owned())));
                    }
                    Err(_) => {}
                },
                // The peer has gone before it was let in.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => self.pause = Some(Box::pin(sleep(PAUSE))),
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

/// A connection, which ends when its peer is silent for too long, or another one needs its place.
#[derive(Debug)]
pub(crate) struct Connection<I> {
    io: I,
    silence: Duration,
    /// When the peer must have said something.
    until: Pin<Box<Sleep>>,
    /// Whether it has since the last time. To set a clock for each read would cost more.
    has_spoken: bool,
    /// What the server greets its peer with is sent.
    has_greeted: bool,
    is_over: bool,
    /// Holds back what is written.
    gate: Arc<Gate>,
    /// When a peer that takes nothing must have taken something.
    stuck: Option<Pin<Box<Sleep>>>,
    place: Place,
}

/// Holds back what a connection writes until the runtime has run everybody else who was ready.
#[derive(Debug, Default)]
struct Gate(Mutex<Gathering>);

/// What a [`Gate`] does.
#[derive(Debug, Default)]
struct Gathering {
    state: Holding,
    /// The runtime will call.
    is_asked: bool,
}

/// Whether there is something to write.
#[derive(Debug, Default)]
enum Holding {
    /// No.
    #[default]
    Nothing,
    /// It waits, and so does the connection.
    Back(Waker),
    /// It may be written.
    Open,
}

impl Gate {
    /// Ready once it is open.
    fn poll_open(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut gathering = lock(&self.0);
        match &mut gathering.state {
            Holding::Open => return Poll::Ready(()),
            Holding::Back(waker) => waker.clone_from(context.waker()),
            state => *state = Holding::Back(context.waker().clone()),
        }
        let was_asked = std::mem::replace(&mut gathering.is_asked, true);
        drop(gathering);
        if !was_asked {
            // The runtime keeps the waker until nobody else is ready, or many have run; the future
            // itself is of no further use.
            let waker = Waker::from(Arc::clone(self));
            let _ = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
        }
        Poll::Pending
    }

    /// Something was written, or is to be as soon as the peer takes it.
    fn note(&self, is_written: bool) {
        lock(&self.0).state = match is_written {
            true => Holding::Nothing,
            false => Holding::Open,
        };
    }
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        let mut gathering = lock(&self.0);
        gathering.is_asked = false;
        match std::mem::take(&mut gathering.state) {
            Holding::Back(connection) => {
                gathering.state = Holding::Open;
                drop(gathering);
                connection.wake();
            }
            before => gathering.state = before,
        }
    }
}

impl<I> Connection<I> {
    fn new(io: I, place: Place, bounds: Bounds) -> Self {
        Connection {
            io,
            silence: bounds.silence,
            until: Box::pin(sleep(bounds.first)),
            has_spoken: false,
            has_greeted: false,
            is_over: false,
            gate: Arc::default(),
            stuck: None,
            place,
        }
    }

    /// Who is at the other end.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.place.peer
    }

    /// Fails once another one needs the place. To be asked before all else: a peer that takes
    /// nothing keeps the server from reading.
    fn check_place(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.is_over = self.is_over || Pin::new(&mut self.place.ended).poll(context).is_ready();
        match self.is_over {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// The server wants to write so many bytes, which may have to go `alone`: after its greeting it
    /// does so only to who has said the protocol's first words.
    ///
    /// Requests that came together are answered one after the other, and each wakes the connection,
    /// which the runtime runs before the next of them: every answer or two would be a write of its
    /// own, the most expensive part of a short request. So the connection writes once there is
    /// [enough](ENOUGH), or the others who were ready have run. The layers above (HTTP/2, transport
    /// security) may ask several times before they wait.
    fn poll_answer(&mut self, context: &mut Context<'_>, bytes: usize, alone: bool) -> Poll<io::Result<()>> {
        self.check_place(context)?;
        if self.has_greeted {
            self.place.peer.know();
        }
        match alone || bytes >= ENOUGH {
            true => Poll::Ready(Ok(())),
            false => self.gate.poll_open(context).map(Ok),
        }
    }

    /// Notes what has become of a write; ends the connection of a peer that takes nothing for too
    /// long. The transport does not ask such a peer whether it is there, for it cannot write that
    /// either.
    fn written(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.gate.note(written.is_ready());
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let silence = self.silence;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(silence)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Connection<I> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.check_place(context)?;
        if let Poll::Ready(read) = Pin::new(&mut this.io).poll_read(context, buf) {
            this.has_spoken = true;
            return Poll::Ready(read);
        }
        loop {
            ready!(this.until.as_mut().poll(context));
            if !this.has_spoken || !this.place.peer.is_known() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            this.has_spoken = false;
            this.until.as_mut().reset(Instant::now() + this.silence);
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Connection<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_answer(context, buf.len(), false))?;
        let written = Pin::new(&mut self.io).poll_write(context, buf);
        self.written(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(context))?;
        // Before that, what is written is about transport security.
        self.has_greeted = self.place.peer.is_secure();
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
        let alone = bufs.len() > 1 && bufs.last().is_some_and(|last| last.len() >= PIECE);
        ready!(self.poll_answer(context, bytes, alone))?;
        let written = Pin::new(&mut self.io).poll_write_vectored(context, bufs);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

impl<I> Connected for Connection<I> {
    type ConnectInfo = Arc<Peer>;

    /// The transport asks once what it has to know of a connection: when this is as secure as it is
    /// to be.
    fn connect_info(&self) -> Arc<Peer> {
        self.place.peer.secure();
        Arc::clone(&self.place.peer)
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
        assert_eq!(affordable(1), 1);
        assert!(affordable(usize::MAX) >= 1);
    }

    async fn listening(most: usize) -> Incoming<TcpListener> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Incoming::new(listener, Bounds::pinging(most, Duration::from_secs(30)))
    }

    async fn next(incoming: &mut Incoming<TcpListener>) -> Connection<TcpStream> {
        poll_fn(|context| incoming.poll_connection(context)).await
    }

    #[tokio::test]
    async fn where_all_have_requests_further_connections_are_closed_and_a_place_is_given_on() {
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
    async fn the_connection_without_a_request_for_longest_makes_room() {
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
    async fn a_peer_that_is_silent_for_too_long_is_gone() {
        let mut incoming = listening(9).await;
        let address = incoming.listener.local_addr().expect("an address");
        let _silent = TcpStream::connect(address).await.expect("the kernel takes it");
        let mut connection = next(&mut incoming).await;
        let read = connection.read(&mut [0]).await;
        assert_eq!(read.expect_err("nothing comes").kind(), io::ErrorKind::TimedOut);
        let mut speaking = TcpStream::connect(address).await.expect("the kernel takes it");
        speaking.write_all(b"a").await.expect("is sent");
        let mut connection = next(&mut incoming).await;
        connection.peer().know();
        assert_eq!(connection.read(&mut [0]).await.expect("has come"), 1);
        let read = connection.read(&mut [0]).await;
        assert_eq!(read.expect_err("nothing more").kind(), io::ErrorKind::TimedOut);
    }

    /// A connection whose peer has room for so many bytes.
    fn with_room(bytes: usize) -> (Connection<DuplexStream>, DuplexStream) {
        let (io, other) = tokio::io::duplex(bytes);
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("is free");
        let place = Arc::<Peers>::default().enter(permit);
        let bounds = Bounds::pinging(9, Duration::from_secs(30));
        (Connection::new(io, place, bounds), other)
    }

    /// Asks twice each time that it is woken, as layers above do. What it writes, and how often it
    /// is woken until then.
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
    async fn few_bytes_wait_until_others_have_run_and_many_do_not() {
        let (mut connection, mut other) = with_room(1 << 20);
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
        let (written, woken) = write(&mut connection, &[0; ENOUGH]).await;
        assert_eq!((written.expect("there is room"), woken), (ENOUGH, 1));
        let pieces = [9, PIECE].map(|bytes| vec![0; bytes]);
        let pieces = pieces.each_ref().map(|piece| io::IoSlice::new(piece));
        let alone = poll_fn(|context| Poll::Ready(Pin::new(&mut connection).poll_write_vectored(context, &pieces)));
        assert!(alone.await.is_ready());
        drop(connection);
        let mut all = Vec::new();
        other.read_to_end(&mut all).await.expect("is open");
        assert_eq!(all.get(..3), Some(&b"few"[..]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_not_asked_again_and_again_and_is_gone_in_the_end() {
        let (mut connection, mut other) = with_room(9);
        let begun = Instant::now();
        assert_eq!(write(&mut connection, b"it is full").await.0.expect("takes some"), 9);
        let (written, woken) = write(&mut connection, b"more").await;
        assert_eq!(written.map_err(|e| e.kind()), Err(io::ErrorKind::TimedOut));
        assert_eq!(begun.elapsed().as_secs(), 50);
        // Others had run, and the time was over.
        assert_eq!(woken, 3);
        other.read_exact(&mut [0; 9]).await.expect("was written");
        assert_eq!(write(&mut connection, b"more").await.0.expect("there is room"), 4);
    }

    /// How long a peer stays, of five minutes, that sends a byte every few seconds; the server
    /// `answers` what it has said.
    async fn dripped(answers: bool) -> Duration {
        let (mut connection, mut dripping) = with_room(1024);
        let begun = Instant::now();
        // What is written and sent before is about transport security.
        for written in ["keys", "settings"] {
            connection.write_all(written.as_bytes()).await.expect("is sent");
            connection.flush().await.expect("is sent");
            connection.place.peer.secure();
        }
        if answers {
            connection.flush().await.expect("is sent");
            connection.write_all(b"acknowledged").await.expect("is sent");
        }
        tokio::spawn(async move {
            while begun.elapsed() < Duration::from_secs(300) && dripping.write_all(b"a").await.is_ok() {
                sleep(Duration::from_secs(9)).await;
            }
        });
        while let Ok(1) = connection.read(&mut [0]).await {}
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_speak_the_protocol_in_time_is_gone_whatever_bytes_come() {
        assert_eq!(dripped(false).await.as_secs(), 30);
        assert!(dripped(true).await.as_secs() >= 300);
    }
}
