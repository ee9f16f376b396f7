//! Capture files: pcap and pcapng, in and out.
//!
//! A file may come from anywhere. Whatever is in it, reading it ends, allocates no more than
//! [`MAX_FRAME`](crate::MAX_FRAME) and answers with packets or with a [`PcapError`] that says at
//! which byte the file stops making sense.
//!
//! ```
//! use weir_io::pcap::{PcapReader, PcapWriter};
//!
//! let mut file = Vec::new();
//! let mut writer = PcapWriter::new(&mut file)?;
//! writer.write(&[0; 60], 1_700_000_000_123_456_789)?;
//! writer.flush()?;
//!
//! let mut reader = PcapReader::new(file.as_slice())?;
//! let packet = reader.next_packet()?.unwrap();
//! assert_eq!((packet.data.len(), packet.time_ns), (60, 1_700_000_000_123_456_789));
//! assert!(reader.next_packet()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod classic;
mod device;
mod input;
mod ng;
mod ng_write;
mod write;

pub use device::{PcapDevice, PcapSink, PcapSource};
pub use ng_write::{Direction, NgWriter};
pub use write::PcapWriter;

use classic::Classic;
use input::Input;
use ng::NextGeneration;
use std::io::{self, Read};

/// The link type of Ethernet.
pub const ETHERNET: u16 = 1;

/// A capture file that is not one, or ends too early.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {kind}")]
pub struct PcapError {
    /// Where in the file.
    pub offset: u64,
    /// What is wrong there.
    pub kind: PcapErrorKind,
}

/// What is wrong with a capture file.
#[derive(Debug, thiserror::Error)]
pub enum PcapErrorKind {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file ends within something.
    #[error("the file ends in the middle of {0}")]
    Truncated(&'static str),
    /// It does not begin as a capture does.
    #[error("{0:#010x} begins no capture file (pcap or pcapng, not compressed)")]
    Magic(u32),
    /// A version of the format that this crate does not know.
    #[error("version {0}.{1} of the format is unknown")]
    Version(u16, u16),
    /// A packet longer than any that is captured.
    #[error("a packet of {0} bytes; none is longer than 262144")]
    PacketTooLong(u32),
    /// The length of a block is too small for what is in it, or no multiple of 4.
    #[error("a block of {0} bytes cannot be")]
    BlockLength(u32),
    /// The two lengths of a block differ.
    #[error("a block begins with the length {0} and ends with {1}")]
    BlockEnd(u32, u32),
    /// The byte order of a section is neither.
    #[error("{0:#010x} tells no byte order")]
    ByteOrder(u32),
    /// A packet of an interface that the section does not have.
    #[error("a packet of interface {0}, and the section has {1}")]
    Interface(u32, u32),
    /// More interfaces than anybody has.
    #[error("a section with more than {0} interfaces")]
    TooManyInterfaces(usize),
}

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// What was captured of it.
    pub data: &'a [u8],
    /// When, in nanoseconds since 1970; 0 where the file does not say.
    pub time_ns: u64,
    /// Its length on the wire.
    pub original_length: u32,
    /// What it begins with: [`ETHERNET`], …
    pub link_type: u16,
}

/// The parts of a packet besides its bytes.
#[derive(Debug, Clone, Copy)]
struct Meta {
    time_ns: u64,
    original_length: u32,
    link_type: u16,
}

#[derive(Debug)]
enum Format {
    Classic(Classic),
    NextGeneration(NextGeneration),
}

/// Reads a capture of either format.
#[derive(Debug)]
pub struct PcapReader<R> {
    input: Input<R>,
    format: Format,
    data: Vec<u8>,
    failed: bool,
}

impl<R: Read> PcapReader<R> {
    /// Reads the beginning of the file. Reads are small: a file should come in a
    /// [`BufReader`](std::io::BufReader).
    ///
    /// # Errors
    ///
    /// It is no capture.
    pub fn new(reader: R) -> Result<Self, PcapError> {
        let mut input = Input::new(reader);
        let magic = input.array::<4>("the first four bytes")?;
        let format = if magic == ng::SECTION.to_be_bytes() {
            Format::NextGeneration(NextGeneration::begin(&mut input)?)
        } else {
            Format::Classic(Classic::begin(magic, &mut input)?)
        };
        Ok(PcapReader {
            input,
            format,
            data: Vec::new(),
            failed: false,
        })
    }

    /// The next packet; `None` at the end. After an error there is nothing more.
    ///
    /// # Errors
    ///
    /// The file does not go on as it must.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, PcapError> {
        if self.failed {
            return Ok(None);
        }
        let read = match &mut self.format {
            Format::Classic(format) => format.read(&mut self.input, &mut self.data),
            Format::NextGeneration(format) => format.read(&mut self.input, &mut self.data),
        };
        self.failed = read.is_err();
        let packet = |meta: Meta| Packet {
            data: &self.data,
            time_ns: meta.time_ns,
            original_length: meta.original_length,
            link_type: meta.link_type,
        };
        Ok(read?.map(packet))
    }
}

#[cfg(test)]
mod tests;
