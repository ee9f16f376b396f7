//! The classic format: one header, then packets.

use super::input::{Input, Order};
use super::{Meta, PcapError, PcapErrorKind};
use std::io::Read;

/// Time stamps in microseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
/// Time stamps in nanoseconds.
pub(super) const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// What the file's header says.
#[derive(Debug)]
pub(super) struct Classic {
    order: Order,
    /// Nanoseconds per fraction of a second.
    unit: u64,
    link_type: u16,
}

impl Classic {
    /// Reads the rest of the header.
    pub(super) fn begin<R: Read>(magic: [u8; 4], input: &mut Input<R>) -> Result<Self, PcapError> {
        let orders = [Order::Little, Order::Big];
        let known = orders.into_iter().find_map(|order| match order.u32(magic) {
            MICROSECONDS => Some((order, 1000)),
            NANOSECONDS => Some((order, 1)),
            _ => None,
        });
        let Some((order, unit)) = known else {
            let kind = PcapErrorKind::Magic(u32::from_be_bytes(magic));
            return Err(PcapError { offset: 0, kind });
        };
        let header = input.array::<20>("the file's header")?;
        let (major, minor) = (order.u16_at(&header, 0), order.u16_at(&header, 2));
        if major != 2 {
            let kind = PcapErrorKind::Version(major, minor);
            return Err(PcapError { offset: 4, kind });
        }
        // The upper half tells of checksums at the end of frames.
        let link_type = order.u32_at(&header, 16) as u16;
        Ok(Classic { order, unit, link_type })
    }

    pub(super) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Meta>, PcapError> {
        let Some(header) = input.array_or_end::<16>("a packet's header")? else {
            return Ok(None);
        };
        let field = |offset| self.order.u32_at(&header, offset);
        let (seconds, fraction) = (u64::from(field(0)), u64::from(field(4)));
        input.packet(data, field(8))?;
        Ok(Some(Meta {
            time_ns: seconds * 1_000_000_000 + fraction * self.unit,
            original_length: field(12),
            link_type: self.link_type,
        }))
    }
}
