//! Puts what a switch's journal hears into the form in which it is kept.

use crate::file::append_encoded;
use crate::keeper::Line;
use weir_switch::{Journal, OpResult, Write, WriteResult};

/// The journal of a switch.
#[derive(Debug)]
pub struct Recorder {
    line: Line,
    /// What was noted and not committed.
    noted: Vec<u8>,
    /// What was noted last is not kept.
    skips: bool,
}

impl Recorder {
    pub fn new(line: Line) -> Self {
        Recorder {
            line,
            noted: Vec::new(),
            skips: false,
        }
    }
}

/// What is not kept: ports and their links are the device's, and when an entry was hit is soon
/// forgotten.
fn is_fleeting(change: &Write) -> bool {
    matches!(change, Write::Port(..) | Write::Loopback(..) | Write::Touch(..))
}

/// The number with which a [`weir_switch::Kept::Change`] begins.
const CHANGE: u8 = 0;

impl Journal for Recorder {
    fn note(&mut self, change: &Write) {
        self.skips = is_fleeting(change);
        if !self.skips {
            self.noted.push(CHANGE);
            append_encoded(&mut self.noted, change);
        }
    }

    fn made(&mut self, result: &WriteResult) {
        if !self.skips {
            let handle = match result {
                WriteResult::Table(OpResult::Handle(handle)) => Some(handle.get()),
                WriteResult::Table(_) | WriteResult::Done => None,
            };
            append_encoded(&mut self.noted, &handle);
        }
    }

    fn mark(&self) -> usize {
        self.noted.len()
    }

    fn back_to(&mut self, mark: usize) {
        self.noted.truncate(mark);
    }

    fn commit(&mut self) {
        if !self.noted.is_empty() {
            self.line.append(&self.noted);
            self.noted.clear();
        }
    }
}
