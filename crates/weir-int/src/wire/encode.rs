//! Encoders of INT with its stack: what is between a transport header and the payload.
//!
//! They compute lengths and leave everything else to the caller, checksums of the packet too.

use super::header::{MdHeader, MxHeader};
use super::lab;
use super::old::{Tail, V0Header, V0Layout, V1Header};
use super::shim::{NextProtocol, OldShim, OldShimType, Shim, ShimType};
use super::stack::HopLayout;
use crate::bits::Uint;
use crate::error::TooLong;
use crate::hop::Hop;

/// Most bytes that a shim's length field of 8 bits covers.
const LIMIT: usize = 255 * 4;

/// The length field for some bytes.
fn length(bytes: usize) -> Result<u8, TooLong> {
    u8::try_from(bytes.div_ceil(4)).map_err(|_| TooLong {
        limit: LIMIT,
        found: bytes,
    })
}

/// Appends a shim of INT 2.x, an MD header and the records of hops, the newest first.
///
/// Domain-specific metadata and checksum complements are all ones. HopML is raised to what the
/// bitmap needs, if it is less.
///
/// # Errors
/// They exceed 1020 bytes.
pub fn md(next: NextProtocol, header: &MdHeader, newest_first: &[Hop], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let needed = HopLayout::words_of_v2(header.instructions);
    let words = header.hop_words.get().max(needed.into());
    let header = MdHeader {
        hop_words: Uint::truncate(words),
        ..*header
    };
    let stack = newest_first.len() * words as usize * 4;
    shim(ShimType::Md, next, MdHeader::BYTES + stack, out)?;
    out.extend(header.to_bytes());
    if let Some(layout) = HopLayout::v2(header.instructions, words as u8) {
        for hop in newest_first {
            layout.write(hop, &[], None, out);
        }
    }
    Ok(())
}

/// Appends a shim of INT 2.x, an MX header and source-inserted metadata, padded with zeros to whole
/// words.
///
/// # Errors
/// They exceed 1020 bytes.
pub fn mx(next: NextProtocol, header: &MxHeader, source_metadata: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let bytes = source_metadata.len().next_multiple_of(4);
    shim(ShimType::Mx, next, MxHeader::BYTES + bytes, out)?;
    out.extend(header.to_bytes());
    out.extend(source_metadata);
    out.resize(out.len() + bytes - source_metadata.len(), 0);
    Ok(())
}

fn shim(kind: ShimType, next: NextProtocol, bytes: usize, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let length = length(bytes)?;
    out.extend(Shim { kind, next, length }.to_bytes());
    Ok(())
}

/// Appends INT of the lab format: shim with the original UDP destination port, header, and records,
/// the newest first; the last one has the bottom-of-stack bit.
///
/// # Errors
/// They exceed 1020 bytes.
pub fn lab(port: u16, remaining_hops: u8, newest_first: &[Hop], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let bytes = MdHeader::BYTES + newest_first.len() * lab::RECORD_BYTES;
    shim(ShimType::Md, NextProtocol::DestinationPort { port }, bytes, out)?;
    out.extend(lab::header(remaining_hops).to_bytes());
    for (index, hop) in newest_first.iter().enumerate() {
        lab::write_record(hop, index + 1 == newest_first.len(), out);
    }
    Ok(())
}

/// Appends a shim of INT 1.0, its header and the records of hops, the newest first, with the sizes
/// of the specification. HopML is that of the instruction bitmap.
///
/// # Errors
/// They exceed 1020 bytes.
pub fn v1(dscp: Uint<6>, header: &V1Header, newest_first: &[Hop], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let layout = HopLayout::specified_v1(header.instructions);
    let bytes = OldShim::BYTES + V1Header::BYTES + newest_first.len() * layout.bytes();
    let shim = OldShim {
        kind: OldShimType::HopByHop,
        length: length(bytes)?,
        dscp,
    };
    out.extend(shim.to_bytes());
    let hop_words = Uint::truncate(layout.words().into());
    out.extend(V1Header { hop_words, ..*header }.to_bytes());
    for hop in newest_first {
        layout.write(hop, &[], None, out);
    }
    Ok(())
}

/// Appends a shim of INT 0.x, its header, the records of hops, the newest first, and the tail.
/// Instruction count and total hop count are those of bitmap and hops.
///
/// # Errors
/// They exceed 1020 bytes.
pub fn v0(
    header: &V0Header,
    layout: V0Layout,
    newest_first: &[Hop],
    tail: Tail,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let hop_layout = HopLayout::specified_v0(header.instructions);
    let bytes = OldShim::BYTES + V0Header::BYTES + newest_first.len() * hop_layout.bytes() + Tail::BYTES;
    let shim = OldShim {
        kind: OldShimType::HopByHop,
        length: length(bytes)?,
        dscp: Uint::ZERO,
    };
    out.extend(shim.to_bytes());
    let header = V0Header {
        instruction_count: Uint::truncate(header.instructions.count_ones()),
        total_hops: u8::try_from(newest_first.len()).unwrap_or(u8::MAX),
        ..*header
    };
    out.extend(header.to_bytes(layout));
    for hop in newest_first {
        hop_layout.write(hop, &[], None, out);
    }
    out.extend(tail.to_bytes());
    Ok(())
}
