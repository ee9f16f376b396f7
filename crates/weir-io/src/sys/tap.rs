//! TAPs: interfaces whose wire is this process.

use super::{control_socket, interface_error, ioctl, is_running, request, set_up};
use crate::batch::{Batch, Frame};
use crate::device::{Counters, Device};
use crate::error::IoError;
use crate::now_ns;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// What one read can give.
const BUFFER: usize = 65_536 + 256;

/// A TAP. It exists while this does, unless it was there before.
#[derive(Debug)]
pub struct Tap {
    name: String,
    file: File,
    control: OwnedFd,
    buffer: Vec<u8>,
    held: Option<(usize, u64)>,
    counters: Counters,
}

impl Tap {
    /// Makes the TAP, or takes the one of this name, and sets it up.
    ///
    /// # Errors
    ///
    /// A right is missing, or another process has it.
    pub fn open(name: &str) -> Result<Self, IoError> {
        let doing = format!("making the TAP `{name}`");
        let mut about = request(name)?;
        about.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/net/tun");
        let file = file.map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => IoError::System {
                doing: format!("{doing}: /dev/net/tun is missing (`modprobe tun`; in a container, pass the device)"),
                source: e,
            },
            _ => IoError::system(&doing, "CAP_NET_ADMIN", e),
        })?;
        // SAFETY: TUNSETIFF takes an `ifreq` and follows no pointer of it.
        let made = unsafe { ioctl(&file, libc::TUNSETIFF as libc::Ioctl, &mut about) };
        made.map_err(|e| interface_error(name, &doing, "CAP_NET_ADMIN", e))?;
        let control = control_socket()?;
        set_up(&control, name)?;
        Ok(Tap {
            name: name.to_string(),
            file,
            control,
            buffer: vec![0; BUFFER],
            held: None,
            counters: Counters::default(),
        })
    }

    fn failed(&self, doing: &str, error: io::Error) -> IoError {
        match error.raw_os_error() {
            Some(libc::EBADFD | libc::ENODEV) => IoError::Gone {
                name: self.name.clone(),
            },
            _ => IoError::system(format!("{doing} tap:{}", self.name), "CAP_NET_ADMIN", error),
        }
    }
}

impl Device for Tap {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        let mut added = 0;
        while batch.room() > 0 {
            let (length, time_ns) = match self.held.take() {
                Some(held) => held,
                None => match (&self.file).read(&mut self.buffer) {
                    Ok(length) => (length, now_ns()),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    // It is set down.
                    Err(e) if e.raw_os_error() == Some(libc::EIO) => break,
                    Err(e) => return Err(self.failed("reading from", e)),
                },
            };
            if !batch.push(&self.buffer[..length], time_ns) {
                self.held = Some((length, time_ns));
                break;
            }
            self.counters.count_received(length);
            added += 1;
        }
        Ok(added)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        for (i, frame) in frames.iter().enumerate() {
            match (&self.file).write(frame.data) {
                Ok(_) => self.counters.count_sent(&[*frame]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(i),
                Err(e) => match e.raw_os_error() {
                    // Set down, or no frame (too short, too long): never to be sent.
                    Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE) => self.counters.send_dropped += 1,
                    Some(libc::EINTR | libc::ENOBUFS | libc::ENOMEM) => return Ok(i),
                    _ => return Err(self.failed("writing to", e)),
                },
            }
        }
        Ok(frames.len())
    }

    fn description(&self) -> String {
        format!("tap:{}", self.name)
    }

    fn link_up(&self) -> bool {
        is_running(&self.control, &self.name)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
