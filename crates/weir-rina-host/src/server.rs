//! The side of the IPC process: connections of applications, without threads. The owner waits for
//! [`Server::files`], then calls [`Server::poll`].

use crate::protocol::{FlowNumber, Frame, Reply, Request, read_frame, sdu_header, write_message};
use rustix::event::PollFlags;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Applications at once.
const MAX_CONNECTIONS: usize = 256;
/// Bytes that wait for an application; one that does not read them is disconnected.
const MAX_WAITING: usize = 64 << 20;
/// Bytes of one read, and reads of one application before the next one's.
const READ: usize = 256 * 1024;
const READS: usize = 4;

/// An application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub u64);

/// What an application wants.
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
}

/// The socket of an IPC process. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    connections: BTreeMap<ApplicationId, Connection>,
    next: u64,
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
            buffer: vec![0; READ],
        })
    }

    /// What to wait for.
    pub fn files(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let connections = self.connections.values().map(|connection| {
            let is_waiting = connection.sent < connection.waiting.len();
            let write = if is_waiting { PollFlags::OUT } else { PollFlags::empty() };
            (connection.stream.as_fd(), PollFlags::IN | write)
        });
        std::iter::once((self.listener.as_fd(), PollFlags::IN)).chain(connections)
    }

    /// Takes new connections, reads what has arrived, and sends what waits.
    pub fn poll(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Ok((stream, _)) = self.listener.accept() {
            self.add(stream);
        }
        let ids: Vec<ApplicationId> = self.connections.keys().copied().collect();
        for id in ids {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.read(id, &mut self.buffer, &mut inputs);
                connection.write();
            }
        }
        self.remove_broken(&mut inputs);
        inputs
    }

    fn add(&mut self, stream: UnixStream) {
        if self.connections.len() >= MAX_CONNECTIONS || stream.set_nonblocking(true).is_err() {
            return;
        }
        self.next += 1;
        let connection = Connection {
            stream,
            received: Vec::new(),
            waiting: Vec::new(),
            sent: 0,
            is_broken: false,
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

    /// Sends a message. One for an application that is gone is dropped.
    pub fn send(&mut self, to: ApplicationId, reply: &Reply) {
        if let Some(connection) = self.connections.get_mut(&to) {
            write_message(reply, &mut connection.waiting);
            connection.check();
        }
    }

    /// Sends an SDU of a flow.
    pub fn send_sdu(&mut self, to: ApplicationId, flow: FlowNumber, sdu: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&to) {
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
        let reason = reason.to_owned();
        self.send(application, &Reply::Goodbye { reason });
        if let Some(connection) = self.connections.get_mut(&application) {
            connection.write();
            connection.is_broken = true;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Connection {
    fn read(&mut self, id: ApplicationId, buffer: &mut [u8], inputs: &mut Vec<Input>) {
        for _ in 0..READS {
            match self.stream.read(buffer) {
                Ok(0) => self.is_broken = true,
                Ok(length) => {
                    self.received.extend_from_slice(&buffer[..length]);
                    self.take(id, inputs);
                    if length == buffer.len() && !self.is_broken {
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.is_broken = true,
            }
            return;
        }
    }

    fn take(&mut self, id: ApplicationId, inputs: &mut Vec<Input>) {
        let mut used = 0;
        loop {
            match read_frame::<Request>(&self.received[used..]) {
                Ok(None) => break,
                Ok(Some((frame, size))) => {
                    used += size;
                    inputs.push(match frame {
                        Frame::Message(request) => Input::Request(id, request),
                        Frame::Sdu(flow, sdu) => Input::Sdu(id, flow, sdu.to_vec()),
                    });
                }
                Err(error) => {
                    let reason = error.to_string();
                    write_message(&Reply::Goodbye { reason }, &mut self.waiting);
                    self.write();
                    self.is_broken = true;
                    break;
                }
            }
        }
        self.received.drain(..used);
    }

    fn write(&mut self) {
        while self.sent < self.waiting.len() && !self.is_broken {
            match self.stream.write(&self.waiting[self.sent..]) {
                Ok(0) => self.is_broken = true,
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_broken = true,
            }
        }
        if self.sent == self.waiting.len() {
            self.waiting.clear();
            self.sent = 0;
        }
    }

    /// Disconnects an application that does not read.
    fn check(&mut self) {
        if self.waiting.len() - self.sent > MAX_WAITING {
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
