//! Writing captures.

use super::ETHERNET;
use super::classic::NANOSECONDS;
use crate::MAX_FRAME;
use std::io::{self, Write};

/// Writes a classic capture of Ethernet frames with times in nanoseconds.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    writer: W,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file's header. Writes are small: a file should come in a
    /// [`BufWriter`](std::io::BufWriter).
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn new(mut writer: W) -> io::Result<Self> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&NANOSECONDS.to_le_bytes());
        header[4..6].copy_from_slice(&2u16.to_le_bytes());
        header[6..8].copy_from_slice(&4u16.to_le_bytes());
        header[16..20].copy_from_slice(&(MAX_FRAME as u32).to_le_bytes());
        header[20..24].copy_from_slice(&u32::from(ETHERNET).to_le_bytes());
        writer.write_all(&header)?;
        Ok(PcapWriter { writer })
    }

    /// Writes a frame; of one longer than [`MAX_FRAME`] as much as that.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn write(&mut self, frame: &[u8], time_ns: u64) -> io::Result<()> {
        let captured = &frame[..frame.len().min(MAX_FRAME)];
        let seconds = u32::try_from(time_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let fraction = (time_ns % 1_000_000_000) as u32;
        let original = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let fields = [seconds, fraction, captured.len() as u32, original];
        let mut header = [0; 16];
        for (bytes, field) in header.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        self.writer.write_all(&header)?;
        self.writer.write_all(captured)
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
