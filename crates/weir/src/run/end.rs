//! A device of a worker, with the frames that wait for it.

use super::reopen::Reopening;
use super::report::EndReport;
use crate::output::Messages;
use weir_io::{Counters, Device, FrameBatch, IoError, Null, Pool};
use weir_switch::VECTOR;

/// Frames that wait for a device to take them.
pub const WAITING: usize = 512;

/// A device that a worker owns: a port, or one of its receive queues.
pub struct End {
    /// The port.
    pub port: u32,
    /// The device.
    pub device: Box<dyn Device>,
    /// Frames that it has not taken yet.
    waiting: FrameBatch,
    /// Counters of its predecessors.
    before: Counters,
    /// Frames that it did not take and no other attempt will be made for.
    refused: u64,
    /// Why it failed.
    failure: Option<String>,
    /// Frames inside the device are no longer awaited.
    has_given_up: bool,
    /// Opens the device again. `None`: it cannot be.
    reopening: Option<Reopening>,
    /// The port was removed: this only keeps its counters.
    is_removed: bool,
    messages: Messages,
}

impl End {
    /// An end with nothing to send.
    pub fn new(
        port: u32,
        device: Box<dyn Device>,
        pool: &Pool,
        reopening: Option<Reopening>,
        messages: &Messages,
    ) -> Self {
        End {
            port,
            device,
            waiting: pool.batch(WAITING),
            before: Counters::default(),
            refused: 0,
            failure: None,
            has_given_up: false,
            reopening,
            is_removed: false,
            messages: messages.clone(),
        }
    }

    /// Whether anything can be received.
    pub fn is_open(&self) -> bool {
        self.failure.is_none() && !self.device.is_exhausted()
    }

    /// Nothing can be sent or received any more, unless the interface has gone and comes back.
    pub fn fail(&mut self, error: &IoError) {
        self.failure = Some(error.to_string());
        let returns = match (&mut self.reopening, error) {
            (Some(reopening), IoError::Gone { .. }) => match reopening.start() {
                Ok(()) => "; it is opened again when it is back".to_string(),
                Err(error) => format!("; it is not opened again, as there is no thread for it: {error}"),
            },
            _ => String::new(),
        };
        self.messages.line(format!("port {}: {error}{returns}", self.port));
    }

    /// Whether the port was removed.
    pub fn is_removed(&self) -> bool {
        self.is_removed
    }

    /// Closes the device for good. What waits for it is counted as not taken.
    pub fn remove(&mut self) {
        if self.is_removed {
            return;
        }
        self.give_up();
        self.before = self.before.plus(&self.device.counters());
        self.device = Box::new(Null::default());
        (self.failure, self.reopening, self.is_removed) = (None, None, true);
    }

    /// Whether the interface has gone and may come back.
    pub fn may_return(&self) -> bool {
        self.reopening.as_ref().is_some_and(Reopening::is_waiting)
    }

    /// Switches to the reopened device, if there is one.
    pub fn try_again(&mut self) {
        let Some(device) = self.reopening.as_mut().and_then(Reopening::device) else {
            return;
        };
        let before = self.device.counters();
        self.before = self.before.plus(&before);
        self.device = device;
        (self.failure, self.has_given_up) = (None, false);
        let device = self.device.description();
        self.messages.line(format!("port {}: {device} is back", self.port));
    }

    /// Frames that the device has not taken yet.
    pub fn held(&self) -> usize {
        self.waiting.held()
    }

    /// Whether a batch finds room.
    pub fn has_room(&self) -> bool {
        self.waiting.room() >= VECTOR
    }

    /// Sends what waits, as much of it as the device takes now.
    pub fn transmit(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        self.has_given_up = false;
        if self.failure.is_none()
            && let Err(error) = weir_io::transmit_frames(&mut *self.device, &mut self.waiting)
        {
            self.fail(&error);
        }
        if self.failure.is_some() {
            self.give_up();
        }
    }

    /// What waits is not sent, and what is within the device is not waited for.
    pub fn give_up(&mut self) {
        self.refused += self.waiting.held() as u64;
        self.waiting.clear();
        self.has_given_up = true;
    }

    /// Whether frames wait for the device, or within it.
    pub fn is_sending(&self) -> bool {
        !self.waiting.is_empty() || (!self.has_given_up && self.failure.is_none() && self.device.is_sending())
    }

    /// Has the device go on with what is within it.
    pub fn flush(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.device.flush()
        {
            self.fail(&error);
        }
    }

    /// Has a frame of a batch wait for the device.
    pub fn take(&mut self, frames: &mut FrameBatch, index: usize) {
        if self.waiting.room() == 0 {
            self.transmit();
        }
        if !frames.move_to(index, &mut self.waiting) {
            self.refused += 1;
        }
    }

    /// Has a copy of a packet wait for the device.
    pub fn take_copy(&mut self, data: &[u8], lost: &mut Lost) {
        if self.waiting.room() == 0 {
            self.transmit();
        }
        if self.waiting.room() == 0 {
            self.refused += 1;
        } else if !self.waiting.push(data, 0) {
            lost.no_frame += 1;
        }
    }

    /// What was counted.
    pub fn report(&self) -> EndReport {
        EndReport {
            port: self.port,
            device: match self.is_removed {
                true => REMOVED.to_owned(),
                false => self.device.description(),
            },
            counters: self.before.plus(&self.device.counters()),
            refused: self.refused,
            failure: self.failure.clone(),
        }
    }
}

/// The device of a port that was removed, in reports.
const REMOVED: &str = "removed";

/// What the devices of a port have done that was removed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Removed {
    counters: Counters,
    refused: u64,
}

impl Removed {
    /// Adds one more device.
    pub fn add(&mut self, report: &EndReport) {
        self.counters = self.counters.plus(&report.counters);
        self.refused += report.refused;
    }

    /// As the report of a device.
    pub fn report(&self, port: u32) -> EndReport {
        EndReport {
            port,
            device: REMOVED.to_owned(),
            counters: self.counters,
            refused: self.refused,
            failure: None,
        }
    }
}

/// Packets that were lost between workers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lost {
    /// The ring to another worker was full.
    pub ring_full: u64,
    /// There was no frame for a copy, or it was longer than any.
    pub no_frame: u64,
    /// They were for the control plane, whose queue was full or absent.
    pub control_plane: u64,
}
