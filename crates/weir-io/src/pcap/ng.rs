//! pcapng: sections of blocks.

use super::input::{Input, Order};
use super::{Meta, PcapError, PcapErrorKind};
use std::io::Read;

/// Type of the block that begins a section; reads the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPTION_END: u16 = 0;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// A block's type and length before and its length after what is in it.
const AROUND: u32 = 12;
const MAX_INTERFACES: usize = 65_536;

#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u16,
    snap_length: u32,
    /// Ticks per second.
    resolution: u128,
    /// Seconds to add.
    offset: i64,
}

impl Interface {
    fn time_ns(self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / self.resolution;
        let ns = ns as i128 + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// The section being read.
#[derive(Debug)]
pub(super) struct NextGeneration {
    order: Order,
    interfaces: Vec<Interface>,
}

/// What is left of a block: its type, its length, and how much of it has not been read, without the
/// length at its end.
struct Block {
    kind: u32,
    length: u32,
    left: u32,
}

impl Block {
    fn array<const N: usize, R: Read>(&mut self, input: &mut Input<R>) -> Result<[u8; N], PcapError> {
        self.take(N as u32, input)?;
        input.array("a block")
    }

    fn take<R: Read>(&mut self, count: u32, input: &Input<R>) -> Result<(), PcapError> {
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(input.error(PcapErrorKind::BlockLength(self.length))),
        }
    }
}

impl NextGeneration {
    /// Reads the first section's header; its type has been read.
    pub(super) fn begin<R: Read>(input: &mut Input<R>) -> Result<Self, PcapError> {
        let mut section = NextGeneration {
            order: Order::Little,
            interfaces: Vec::new(),
        };
        let length = input.array::<4>("a section's header")?;
        section.section(length, input)?;
        Ok(section)
    }

    /// Begins a section: everything known of the one before is forgotten.
    fn section<R: Read>(&mut self, length: [u8; 4], input: &mut Input<R>) -> Result<(), PcapError> {
        let magic = input.array::<4>("a section's header")?;
        self.order = match magic {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => return Err(input.error(PcapErrorKind::ByteOrder(u32::from_be_bytes(magic)))),
        };
        self.interfaces.clear();
        let mut block = self.block(SECTION, length, input)?;
        block.take(4, input)?;
        let version = block.array::<4, R>(input)?;
        let (major, minor) = (self.order.u16_at(&version, 0), self.order.u16_at(&version, 2));
        if major != 1 {
            return Err(input.error(PcapErrorKind::Version(major, minor)));
        }
        self.end(block, input)
    }

    fn block<R: Read>(&self, kind: u32, length: [u8; 4], input: &Input<R>) -> Result<Block, PcapError> {
        let length = self.order.u32(length);
        match length.checked_sub(AROUND) {
            Some(left) if length.is_multiple_of(4) => Ok(Block { kind, length, left }),
            _ => Err(input.error(PcapErrorKind::BlockLength(length))),
        }
    }

    /// Passes over the rest of a block.
    fn end<R: Read>(&self, block: Block, input: &mut Input<R>) -> Result<(), PcapError> {
        input.skip(u64::from(block.left), "a block")?;
        let again = self.order.u32(input.array::<4>("a block")?);
        if again == block.length {
            return Ok(());
        }
        Err(input.error(PcapErrorKind::BlockEnd(block.length, again)))
    }

    pub(super) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Meta>, PcapError> {
        loop {
            let Some(header) = input.array_or_end::<8>("a block's header")? else {
                return Ok(None);
            };
            let kind = self.order.u32_at(&header, 0);
            let length = [header[4], header[5], header[6], header[7]];
            if kind == SECTION {
                self.section(length, input)?;
                continue;
            }
            let mut block = self.block(kind, length, input)?;
            let packet = match block.kind {
                INTERFACE => {
                    self.interface(&mut block, input)?;
                    None
                }
                ENHANCED_PACKET => Some(self.enhanced_packet(&mut block, input, data)?),
                SIMPLE_PACKET => Some(self.simple_packet(&mut block, input, data)?),
                OLD_PACKET => Some(self.old_packet(&mut block, input, data)?),
                _ => None,
            };
            self.end(block, input)?;
            if packet.is_some() {
                return Ok(packet);
            }
        }
    }

    fn interface<R: Read>(&mut self, block: &mut Block, input: &mut Input<R>) -> Result<(), PcapError> {
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(input.error(PcapErrorKind::TooManyInterfaces(MAX_INTERFACES)));
        }
        let header = block.array::<8, R>(input)?;
        let mut interface = Interface {
            link_type: self.order.u16_at(&header, 0),
            snap_length: self.order.u32_at(&header, 4),
            resolution: 1_000_000,
            offset: 0,
        };
        while block.left >= 4 {
            let option = block.array::<4, R>(input)?;
            let (code, length) = (self.order.u16_at(&option, 0), u32::from(self.order.u16_at(&option, 2)));
            match (code, length) {
                (OPTION_END, _) => break,
                (OPTION_TIME_RESOLUTION, 1) => {
                    let value = block.array::<4, R>(input)?;
                    interface.resolution = resolution(value[0]);
                }
                (OPTION_TIME_OFFSET, 8) => {
                    let value = block.array::<8, R>(input)?;
                    let offset = match self.order {
                        Order::Little => i64::from_le_bytes(value),
                        Order::Big => i64::from_be_bytes(value),
                    };
                    interface.offset = offset;
                }
                _ => {
                    let padded = length.next_multiple_of(4);
                    block.take(padded, input)?;
                    input.skip(u64::from(padded), "an option")?;
                }
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn interface_at<R: Read>(&self, index: u32, input: &Input<R>) -> Result<Interface, PcapError> {
        let found = self.interfaces.get(index as usize).copied();
        found.ok_or_else(|| input.error(PcapErrorKind::Interface(index, self.interfaces.len() as u32)))
    }

    /// The bytes of a packet, which the rest of the block must have.
    fn bytes<R: Read>(
        &self,
        length: u32,
        block: &mut Block,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<(), PcapError> {
        block.take(length, input)?;
        input.packet(data, length)
    }

    fn enhanced_packet<R: Read>(
        &self,
        block: &mut Block,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<Meta, PcapError> {
        let header = block.array::<20, R>(input)?;
        let field = |offset| self.order.u32_at(&header, offset);
        let interface = self.interface_at(field(0), input)?;
        let ticks = u64::from(field(4)) << 32 | u64::from(field(8));
        self.bytes(field(12), block, input, data)?;
        Ok(Meta {
            time_ns: interface.time_ns(ticks),
            original_length: field(16),
            link_type: interface.link_type,
        })
    }

    /// The packet block of the format's first drafts.
    fn old_packet<R: Read>(
        &self,
        block: &mut Block,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<Meta, PcapError> {
        let header = block.array::<20, R>(input)?;
        let field = |offset| self.order.u32_at(&header, offset);
        let interface = self.interface_at(u32::from(self.order.u16_at(&header, 0)), input)?;
        let ticks = u64::from(field(4)) << 32 | u64::from(field(8));
        self.bytes(field(12), block, input, data)?;
        Ok(Meta {
            time_ns: interface.time_ns(ticks),
            original_length: field(16),
            link_type: interface.link_type,
        })
    }

    /// A packet of the first interface that has no time.
    fn simple_packet<R: Read>(
        &self,
        block: &mut Block,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<Meta, PcapError> {
        let original_length = self.order.u32(block.array::<4, R>(input)?);
        let interface = self.interface_at(0, input)?;
        let snap = match interface.snap_length {
            0 => u32::MAX,
            n => n,
        };
        let length = original_length.min(snap).min(block.left);
        self.bytes(length, block, input, data)?;
        Ok(Meta {
            time_ns: 0,
            original_length,
            link_type: interface.link_type,
        })
    }
}

/// Ticks per second: a power of 2 where the highest bit is set, else of 10.
fn resolution(value: u8) -> u128 {
    let exponent = u32::from(value & 0x7f);
    if value & 0x80 != 0 {
        1 << exponent
    } else {
        // Finer than anything there is: every time becomes 0.
        10u128.checked_pow(exponent).unwrap_or(u128::MAX)
    }
}
