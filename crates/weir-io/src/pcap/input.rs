//! A file that is read once from front to back.

use super::{PcapError, PcapErrorKind};
use crate::MAX_FRAME;
use std::io::{self, Read};

/// Order of bytes in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The 32-bit number at an offset of a header, which must be long enough.
    pub(super) fn u32_at(self, header: &[u8], offset: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&header[offset..offset + 4]);
        self.u32(bytes)
    }

    /// The 16-bit number at an offset of a header, which must be long enough.
    pub(super) fn u16_at(self, header: &[u8], offset: usize) -> u16 {
        self.u16([header[offset], header[offset + 1]])
    }
}

/// The file and how far it has been read.
#[derive(Debug)]
pub(super) struct Input<R> {
    reader: R,
    pub(super) offset: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Input { reader, offset: 0 }
    }

    pub(super) fn error(&self, kind: PcapErrorKind) -> PcapError {
        PcapError {
            offset: self.offset,
            kind,
        }
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, PcapError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => {
                    filled += n;
                    self.offset += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(error.into())),
            }
        }
        Ok(filled)
    }

    /// Exactly `N` bytes; `what` they are, should the file end within them.
    pub(super) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], PcapError> {
        let bytes = self.array_or_end(what)?;
        bytes.ok_or_else(|| self.error(PcapErrorKind::Truncated(what)))
    }

    /// Exactly `N` bytes, or `None` where the file ends before them.
    pub(super) fn array_or_end<const N: usize>(&mut self, what: &'static str) -> Result<Option<[u8; N]>, PcapError> {
        let mut bytes = [0; N];
        match self.fill(&mut bytes)? {
            0 => Ok(None),
            n if n == N => Ok(Some(bytes)),
            _ => Err(self.error(PcapErrorKind::Truncated(what))),
        }
    }

    /// The bytes of a packet, in place of what `data` held.
    pub(super) fn packet(&mut self, data: &mut Vec<u8>, length: u32) -> Result<(), PcapError> {
        let size = length as usize;
        if size > MAX_FRAME {
            return Err(self.error(PcapErrorKind::PacketTooLong(length)));
        }
        data.clear();
        data.resize(size, 0);
        let filled = self.fill(data)?;
        if filled < size {
            return Err(self.error(PcapErrorKind::Truncated("a packet")));
        }
        Ok(())
    }

    /// Passes over bytes.
    pub(super) fn skip(&mut self, length: u64, what: &'static str) -> Result<(), PcapError> {
        let mut left = length;
        let mut buffer = [0; 4096];
        while left > 0 {
            let part = left.min(buffer.len() as u64) as usize;
            let filled = self.fill(&mut buffer[..part])?;
            if filled < part {
                return Err(self.error(PcapErrorKind::Truncated(what)));
            }
            left -= filled as u64;
        }
        Ok(())
    }
}
