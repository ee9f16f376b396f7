//! The lab format: INT with a fixed record per hop, as in `p4/programs/int_lab`.
//!
//! It is the measuring switch's format of Mazigh et al., "Using P4-INT on Tofino for measuring
//! device performance characteristics in a network lab". UDP with a fixed destination port carries
//! a [`Shim`](super::Shim) with NPT 1, an [`MdHeader`] that is informational, and records of 20
//! bytes, the newest first:
//!
//! ingress timestamp 48 | empty 16 | egress timestamp 48 | ingress port 16 | egress port 16 |
//! bottom of stack 1 | reserved 15, in network order.
//!
//! Only the UDP port tells it from INT 2.x: header and length per hop are valid there, too.

use super::header::MdHeader;
use super::stack::{HopLayout, Stack};
use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::hop::Hop;

/// Bytes of a record.
pub const RECORD_BYTES: usize = HopLayout::LAB_WORDS as usize * 4;

/// The instruction bitmap of the informational header: level 1 ports and both timestamps.
pub const INSTRUCTIONS: u16 = 0x4c00;

/// The MD header that a lab switch sends.
#[must_use]
pub fn header(remaining_hops: u8) -> MdHeader {
    MdHeader {
        hop_words: Uint::truncate(HopLayout::LAB_WORDS.into()),
        remaining_hops,
        instructions: INSTRUCTIONS,
        ..MdHeader::default()
    }
}

/// Appends a record.
pub fn write_record(hop: &Hop, is_bottom: bool, out: &mut Vec<u8>) {
    HopLayout::lab().write(hop, &[], None, out);
    let bottom = out.len().checked_sub(2).and_then(|at| out.get_mut(at));
    if let Some(byte) = bottom {
        *byte = u8::from(is_bottom) << 7;
    }
}

/// Checks that the oldest record has the bottom-of-stack bit, and no other has it.
pub(crate) fn check_bottom(stack: &Stack<'_>, offset: usize) -> Result<(), WireError> {
    for (index, record) in stack.newest_first().enumerate() {
        let byte = record.bytes().get(RECORD_BYTES - 2).copied().unwrap_or(0);
        let found = u32::from(byte >> 7);
        let expected = u32::from(index + 1 == stack.announced());
        if found != expected {
            return Err(WireError::new(
                Reason::BottomOfStack,
                "bottom of stack",
                offset + index * RECORD_BYTES + RECORD_BYTES - 2,
                Expected::Exactly(expected),
                found,
            ));
        }
    }
    Ok(())
}
