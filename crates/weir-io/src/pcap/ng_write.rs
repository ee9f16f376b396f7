//! Writing pcapng: one section, one interface, packets with their direction.

use super::ETHERNET;
use super::ng::SECTION;
use crate::MAX_FRAME;
use std::io::{self, Write};

const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const OPTION_NAME: u16 = 2;
const OPTION_TIME_RESOLUTION: u16 = 9;
/// Of a packet: its direction, in the lowest two bits.
const OPTION_FLAGS: u16 = 2;
/// A text about the block.
const OPTION_COMMENT: u16 = 1;
const OPTION_END: u16 = 0;

/// Which way a frame went, from the interface's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    In,
    /// It was sent.
    Out,
}

/// Writes a pcapng capture of one Ethernet interface with times in nanoseconds.
#[derive(Debug)]
pub struct NgWriter<W: Write> {
    writer: W,
    block: Vec<u8>,
}

/// Fills up to a multiple of four bytes.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn option(bytes: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    bytes.extend_from_slice(&code.to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u16).to_le_bytes());
    bytes.extend_from_slice(value);
    pad(bytes);
}

impl<W: Write> NgWriter<W> {
    /// Writes the header of the file and of the interface with this name. Writes are small: a file
    /// should come in a [`BufWriter`](std::io::BufWriter).
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn new(writer: W, interface: &str) -> io::Result<Self> {
        let mut ng = NgWriter {
            writer,
            block: Vec::new(),
        };
        let mut section = BYTE_ORDER.to_le_bytes().to_vec();
        section.extend_from_slice(&1u16.to_le_bytes());
        section.extend_from_slice(&0u16.to_le_bytes());
        // The length of the section is not known.
        section.extend_from_slice(&u64::MAX.to_le_bytes());
        ng.block = section;
        ng.write_block(SECTION)?;
        ng.block.extend_from_slice(&ETHERNET.to_le_bytes());
        ng.block.extend_from_slice(&0u16.to_le_bytes());
        ng.block.extend_from_slice(&(MAX_FRAME as u32).to_le_bytes());
        option(&mut ng.block, OPTION_NAME, interface.as_bytes());
        option(&mut ng.block, OPTION_TIME_RESOLUTION, &[9]);
        option(&mut ng.block, OPTION_END, &[]);
        ng.write_block(INTERFACE)?;
        Ok(ng)
    }

    /// Writes the block with its type and length, and empties it.
    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.writer.write_all(&kind.to_le_bytes())?;
        self.writer.write_all(&length)?;
        self.writer.write_all(&self.block)?;
        self.writer.write_all(&length)?;
        self.block.clear();
        Ok(())
    }

    /// Writes a frame with a comment, which may be empty; of a frame longer than [`MAX_FRAME`] as
    /// much as that.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn write(&mut self, frame: &[u8], time_ns: u64, direction: Direction, comment: &str) -> io::Result<()> {
        let captured = &frame[..frame.len().min(MAX_FRAME)];
        let original = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let fields = [
            0,
            (time_ns >> 32) as u32,
            time_ns as u32,
            captured.len() as u32,
            original,
        ];
        for field in fields {
            self.block.extend_from_slice(&field.to_le_bytes());
        }
        self.block.extend_from_slice(captured);
        pad(&mut self.block);
        let flags: u32 = match direction {
            Direction::In => 1,
            Direction::Out => 2,
        };
        if !comment.is_empty() {
            option(&mut self.block, OPTION_COMMENT, comment.as_bytes());
        }
        option(&mut self.block, OPTION_FLAGS, &flags.to_le_bytes());
        option(&mut self.block, OPTION_END, &[]);
        self.write_block(ENHANCED_PACKET)
    }

    /// Writes out what the writer has buffered.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::PcapReader;

    #[test]
    fn packets_are_read_back_with_their_times() {
        let mut file = Vec::new();
        let mut writer = NgWriter::new(&mut file, "s1-eth1").unwrap();
        writer
            .write(&[1; 61], 1_700_000_000_123_456_789, Direction::In, "dropped: acl")
            .unwrap();
        writer.write(&[2; 60], 5, Direction::Out, "").unwrap();
        writer.flush().unwrap();
        // The direction of the second: flags of an enhanced packet, before the end of its options.
        let flags = &file[file.len() - 12..file.len() - 8];
        assert_eq!(flags, 2u32.to_le_bytes());
        // A comment is code 1 with its length, filled up to a multiple of four.
        let comment = b"\x01\x00\x0c\x00dropped: acl\x02\x00";
        assert!(file.windows(comment.len()).any(|window| window == comment));
        let mut reader = PcapReader::new(file.as_slice()).unwrap();
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.data, packet.time_ns), (&[1; 61][..], 1_700_000_000_123_456_789));
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.data, packet.time_ns), (&[2; 60][..], 5));
        assert!(reader.next_packet().unwrap().is_none());
    }
}
