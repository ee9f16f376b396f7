//! The side of the IPC process: connections of applications, without threads. The owner waits for
//! [`Server::files`], or not at all if the server [`has_backlog`](Server::has_backlog), then calls
//! [`Server::poll`].
//!
//! An application that sends requests and does not read their answers delays only itself: its
//! requests stay in its socket while [`MAX_ANSWERS`] bytes wait for it.

use crate::protocol::{FlowNumber, Frame, MAX_MESSAGE, Reply, Request, read_frame, sdu_header, write_message};
use rustix::event::PollFlags;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Applications at once.
const MAX_CONNECTIONS: usize = 256;
/// Bytes that wait for an application; one that does not read them is disconnected.
const MAX_WAITING: usize = 64 << 20;
/// While more bytes wait for an application, none of its requests is taken.
const MAX_ANSWERS: usize = 1 << 20;
/// Messages of all applications that one [`Server::poll`] takes, and of one of them.
const MESSAGES: usize = 16;
const MESSAGES_OF_ONE: usize = 4;
/// The time for the first message of an application.
const HELLO: Duration = Duration::from_secs(5);
/// Bytes of one read, and reads of one application before the next one's.
const READ: usize = 256 * 1024;
const READS: usize = 4;

/// An application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub u64);

/// A request or an SDU of an application, or its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A request.
    Request(ApplicationId, Request),
    /// An SDU for a flow.
    Sdu(ApplicationId, FlowNumber, Vec<u8>),
    /// The application is gone.
    Gone(ApplicationId),
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    /// Bytes to be sent, and how many of them are.
    waiting: Vec<u8>,
    sent: usize,
    is_broken: bool,
    /// It reads nothing any more; SDUs that it has sent before may still have to be read.
    is_deaf: bool,
    since: Instant,
    /// Its first message has arrived.
    has_begun: bool,
    /// Received bytes have a complete frame that was not taken.
    is_behind: bool,
}

/// The socket of an IPC process. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    connections: BTreeMap<ApplicationId, Connection>,
    next: u64,
    /// The application that was served last: the others are next.
    last: ApplicationId,
    buffer: Vec<u8>,
}

impl Server {
    /// Listens at a path; only this user may connect. The socket of a process that has ended is
    /// replaced.
    ///
    /// # Errors
    /// Another process listens there, or there is a file that is no socket.
    pub fn bind(path: &Path) -> io::Result<Self> {
        remove_stale(path)?;
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Server {
            listener,
            path: path.to_owned(),
            connections: BTreeMap::new(),
            next: 0,
            last: ApplicationId(0),
            buffer: vec![0; READ],
        })
    }

    /// What to wait for.
    pub fn files(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let connections = self.connections.values().map(|connection| {
            let write = if connection.waiting() > 0 {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            let read = if connection.is_behind {
                PollFlags::empty()
            } else {
                PollFlags::IN
            };
            (connection.stream.as_fd(), read | write)
        });
        std::iter::once((self.listener.as_fd(), PollFlags::IN)).chain(connections)
    }

    /// Whether there are requests to take without waiting for [`Server::files`].
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        let mut connections = self.connections.values();
        connections.any(|connection| connection.is_behind && connection.waiting() <= MAX_ANSWERS)
    }

    /// Whether an application is there to read an answer.
    #[must_use]
    pub fn is_connected(&self, application: ApplicationId) -> bool {
        self.connections
            .get(&application)
            .is_some_and(|connection| connection.takes_answers())
    }

    /// Takes new connections, reads what has arrived, and sends what waits.
    pub fn poll(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Ok((stream, _)) = self.listener.accept() {
            self.add(stream, &mut inputs);
        }
        let mut ids: Vec<ApplicationId> = self.connections.keys().copied().collect();
        let next = ids.partition_point(|id| *id <= self.last);
        ids.rotate_left(next);
        let mut budget = MESSAGES;
        for id in ids {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.write();
                let of_one = budget.min(MESSAGES_OF_ONE);
                let taken = of_one - connection.read(id, &mut self.buffer, of_one, &mut inputs);
                budget -= taken;
                if taken > 0 {
                    self.last = id;
                }
                if !connection.has_begun && connection.since.elapsed() > HELLO {
                    connection.end("expected Hello within 5 s");
                }
            }
        }
        self.remove_broken(&mut inputs);
        inputs
    }

    fn add(&mut self, stream: UnixStream, inputs: &mut Vec<Input>) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            // The one that has been silent for the longest time makes room.
            let silent = self
                .connections
                .iter_mut()
                .find(|(_, connection)| !connection.has_begun);
            let Some((_, connection)) = silent else {
                return;
            };
            connection.end("too many applications: expected Hello before");
            self.remove_broken(inputs);
        }
        self.next += 1;
        let connection = Connection {
            stream,
            received: Vec::new(),
            waiting: Vec::new(),
            sent: 0,
            is_broken: false,
            is_deaf: false,
            since: Instant::now(),
            has_begun: false,
            is_behind: false,
        };
        self.connections.insert(ApplicationId(self.next), connection);
    }

    fn remove_broken(&mut self, inputs: &mut Vec<Input>) {
        self.connections.retain(|id, connection| {
            if connection.is_broken {
                inputs.push(Input::Gone(*id));
            }
            !connection.is_broken
        });
    }

    /// Sends a message. One for an application that is gone is dropped; an answer that is longer
    /// than a message may be becomes an error.
    pub fn send(&mut self, to: ApplicationId, reply: &Reply) {
        if let Some(connection) = self.connections.get_mut(&to).filter(|known| known.takes_answers()) {
            let start = connection.waiting.len();
            write_message(reply, &mut connection.waiting);
            let bytes = connection.waiting.len() - start;
            if let Reply::Managed { call, .. } = reply
                && bytes > MAX_MESSAGE
            {
                connection.waiting.truncate(start);
                let result = Err(format!("the answer has {bytes} bytes: expected at most {MAX_MESSAGE}"));
                write_message(&Reply::Managed { call: *call, result }, &mut connection.waiting);
            }
            connection.check();
        }
    }

    /// Sends an SDU of a flow.
    pub fn send_sdu(&mut self, to: ApplicationId, flow: FlowNumber, sdu: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&to).filter(|known| known.takes_answers()) {
            connection.waiting.extend(sdu_header(flow, sdu.len()));
            connection.waiting.extend_from_slice(sdu);
            connection.check();
        }
    }

    /// Sends what waits, as far as the sockets take it.
    pub fn flush(&mut self) {
        self.connections.values_mut().for_each(Connection::write);
    }

    /// Ends the connection of an application, with a reason for it.
    pub fn disconnect(&mut self, application: ApplicationId, reason: &str) {
        if let Some(connection) = self.connections.get_mut(&application) {
            connection.end(reason);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Connection {
    /// Bytes that wait for the application.
    fn waiting(&self) -> usize {
        self.waiting.len() - self.sent
    }

    fn takes_answers(&self) -> bool {
        !self.is_broken && !self.is_deaf
    }

    /// Ends it, with a reason for the application.
    fn end(&mut self, reason: &str) {
        if self.is_broken {
            return;
        }
        let reason = reason.to_owned();
        write_message(&Reply::Goodbye { reason }, &mut self.waiting);
        self.write();
        self.is_broken = true;
    }

    /// Takes frames, and reads more once none is complete. Returns what is left of the budget of
    /// messages.
    fn read(&mut self, id: ApplicationId, buffer: &mut [u8], mut budget: usize, inputs: &mut Vec<Input>) -> usize {
        if self.is_behind {
            self.take(id, &mut budget, inputs);
        }
        for _ in 0..READS {
            if self.is_behind || self.is_broken {
                break;
            }
            match self.stream.read(buffer) {
                Ok(0) => self.is_broken = true,
                Ok(length) => {
                    self.received.extend_from_slice(&buffer[..length]);
                    self.take(id, &mut budget, inputs);
                    if length == buffer.len() {
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.is_broken = true,
            }
            break;
        }
        budget
    }

    fn take(&mut self, id: ApplicationId, budget: &mut usize, inputs: &mut Vec<Input>) {
        let mut used = 0;
        self.is_behind = false;
        loop {
            match read_frame::<Request>(&self.received[used..]) {
                Ok(None) => break,
                Ok(Some((Frame::Sdu(flow, sdu), size))) => {
                    used += size;
                    inputs.push(Input::Sdu(id, flow, sdu.to_vec()));
                }
                Ok(Some((Frame::Message(_), _))) if *budget == 0 || self.waiting() > MAX_ANSWERS => {
                    self.is_behind = true;
                    break;
                }
                Ok(Some((Frame::Message(request), size))) => {
                    used += size;
                    *budget -= 1;
                    self.has_begun = true;
                    inputs.push(Input::Request(id, request));
                }
                Err(error) => {
                    self.end(&error.to_string());
                    break;
                }
            }
        }
        self.received.drain(..used);
    }

    fn write(&mut self) {
        while self.sent < self.waiting.len() {
            match self.stream.write(&self.waiting[self.sent..]) {
                Ok(length) if length > 0 => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    self.is_deaf = true;
                    self.sent = self.waiting.len();
                }
            }
        }
        if self.sent == self.waiting.len() {
            self.waiting.clear();
            self.sent = 0;
        }
    }

    /// Disconnects an application that does not read.
    fn check(&mut self) {
        if self.waiting() > MAX_WAITING {
            self.is_broken = true;
        }
        if self.sent > READ && self.sent * 2 > self.waiting.len() {
            self.waiting.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// Removes the socket of a process that has ended.
fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        let reason = format!("{}: expected a socket or no file", path.display());
        return Err(io::Error::new(ErrorKind::AlreadyExists, reason));
    }
    match UnixStream::connect(path) {
        Ok(_) => {
            let reason = format!("{}: another process listens there", path.display());
            Err(io::Error::new(ErrorKind::AddrInUse, reason))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}
