//! Connections that come in: no more than a server takes, and none of peers that are not there any more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

/// How long a server that cannot accept waits, most often for a file descriptor: it would ask again and again.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a peer may take to answer a ping.
pub(crate) const ANSWER: Duration = Duration::from_secs(20);

/// How many connections a server takes, and how long each may be silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections at a time.
    pub most: usize,
    /// How long a peer may take for its first byte.
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

/// Connections of which a server may have so many: other servers and the devices of a switch need files, too.
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
        // Without the option, answers and windows wait for the client's acknowledgements. One that has gone already is told of elsewhere.
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

/// Connections as they come. Those beyond the limit are closed at once.
#[derive(Debug)]
pub(crate) struct Incoming<L> {
    listener: L,
    free: Arc<Semaphore>,
    bounds: Bounds,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<L: Accept> Incoming<L> {
    pub fn new(listener: L, bounds: Bounds) -> Self {
        let most = affordable(bounds.most).min(Semaphore::MAX_PERMITS);
        Incoming {
            listener,
            free: Arc::new(Semaphore::new(most)),
            bounds,
            pause: None,
        }
    }

    /// The next connection that is taken.
    pub fn poll_connection(&mut self, context: &mut Context<'_>) -> Poll<Connection<L::Io>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match ready!(self.listener.poll_accept(context)) {
                Ok(io) => {
                    if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
                        return Poll::Ready(Connection::new(io, place, self.bounds));
                    }
                }
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

/// A connection, which ends when its peer is silent for too long.
#[derive(Debug)]
pub(crate) struct Connection<I> {
    io: I,
    silence: Duration,
    /// When the peer must have said something.
    until: Pin<Box<Sleep>>,
    /// Whether it has since the last time. To set a clock for each read would cost more.
    has_spoken: bool,
    _place: OwnedSemaphorePermit,
}

impl<I> Connection<I> {
    fn new(io: I, place: OwnedSemaphorePermit, bounds: Bounds) -> Self {
        Connection {
            io,
            silence: bounds.silence,
            until: Box::pin(sleep(bounds.first)),
            has_spoken: false,
            _place: place,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Connection<I> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Poll::Ready(read) = Pin::new(&mut this.io).poll_read(context, buf) {
            this.has_spoken = true;
            return Poll::Ready(read);
        }
        loop {
            ready!(this.until.as_mut().poll(context));
            if !this.has_spoken {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            this.has_spoken = false;
            this.until.as_mut().reset(Instant::now() + this.silence);
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Connection<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

impl<I: Connected> Connected for Connection<I> {
    type ConnectInfo = I::ConnectInfo;

    fn connect_info(&self) -> I::ConnectInfo {
        self.io.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_and_a_place_is_given_on() {
        let mut incoming = listening(1).await;
        let address = incoming.listener.local_addr().expect("an address");
        let connect = || async move { TcpStream::connect(address).await.expect("the kernel takes it") };
        let _first = connect().await;
        let taken = poll_fn(|context| incoming.poll_connection(context)).await;
        let mut second = connect().await;
        let accepting = tokio::spawn(async move { poll_fn(|context| incoming.poll_connection(context)).await });
        assert_eq!(second.read(&mut [0]).await.expect("is closed"), 0);
        drop(taken);
        let _third = connect().await;
        assert!(accepting.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_is_silent_for_too_long_is_gone() {
        let mut incoming = listening(9).await;
        let address = incoming.listener.local_addr().expect("an address");
        let _silent = TcpStream::connect(address).await.expect("the kernel takes it");
        let mut connection = poll_fn(|context| incoming.poll_connection(context)).await;
        let read = connection.read(&mut [0]).await;
        assert_eq!(read.expect_err("nothing comes").kind(), io::ErrorKind::TimedOut);
        let mut speaking = TcpStream::connect(address).await.expect("the kernel takes it");
        speaking.write_all(b"a").await.expect("is sent");
        let mut connection = poll_fn(|context| incoming.poll_connection(context)).await;
        assert_eq!(connection.read(&mut [0]).await.expect("has come"), 1);
        let read = connection.read(&mut [0]).await;
        assert_eq!(read.expect_err("nothing more").kind(), io::ErrorKind::TimedOut);
    }
}
