//! INT after a TCP or UDP header.

use super::detection::{Detection, VersionZero};
use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;
use crate::wire::SourceOnly;
use crate::wire::{
    HopLayout, MdHeader, MxHeader, NextProtocol, OldShim, OldShimType, Shim, ShimType, Stack, Tail, V0Header, V0Layout,
    V1Header, lab,
};

/// The INT header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntHeader {
    /// INT-MD 2.x.
    Md(MdHeader),
    /// INT-MX 2.x.
    Mx(MxHeader),
    /// INT 1.0.
    V1(V1Header),
    /// INT 0.4 or 0.5.
    V0(V0Header),
    /// The lab format.
    Lab(MdHeader),
    /// A destination header, whose format is not specified.
    Destination,
}

impl IntHeader {
    /// The remaining hop count; `None` if the header has none.
    #[must_use]
    pub fn remaining_hops(&self) -> Option<u8> {
        match self {
            IntHeader::Md(header) | IntHeader::Lab(header) => Some(header.remaining_hops),
            IntHeader::V1(header) => Some(header.remaining_hops),
            IntHeader::V0(header) => Some(header.max_hops.saturating_sub(header.total_hops)),
            IntHeader::Mx(_) | IntHeader::Destination => None,
        }
    }

    /// E: a node added nothing because the hop count was at its end.
    #[must_use]
    pub fn hop_count_exceeded(&self) -> bool {
        match self {
            IntHeader::Md(header) | IntHeader::Lab(header) => header.hop_count_exceeded,
            IntHeader::V1(header) => header.hop_count_exceeded,
            IntHeader::V0(header) => header.hop_count_exceeded,
            IntHeader::Mx(_) | IntHeader::Destination => false,
        }
    }

    /// M: a node added nothing because the packet would have exceeded the MTU.
    #[must_use]
    pub fn mtu_exceeded(&self) -> bool {
        match self {
            IntHeader::Md(header) | IntHeader::Lab(header) => header.mtu_exceeded,
            IntHeader::V1(header) => header.mtu_exceeded,
            IntHeader::V0(_) | IntHeader::Mx(_) | IntHeader::Destination => false,
        }
    }
}

/// The INT headers of a packet.
#[derive(Debug, Clone, Copy)]
pub struct IntView<'a> {
    /// The header.
    pub header: IntHeader,
    /// The metadata that hops have added.
    pub stack: Stack<'a>,
    /// Domain-specific metadata that the source inserted after an MX header.
    pub source_metadata: &'a [u8],
    /// The bytes that INT added to the packet by its length fields: probe marker, inserted UDP
    /// header, shim, header, stack, tail.
    pub bytes: u32,
}

impl<'a> IntView<'a> {
    const fn without_stack(header: IntHeader, bytes: u32, source_metadata: &'a [u8]) -> Self {
        IntView {
            header,
            stack: Stack::EMPTY,
            source_metadata,
            bytes,
        }
    }
}

/// What INT has replaced in a packet's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Original {
    /// Not known: the packet ends before the field that says so.
    Unknown,
    /// Nothing.
    Unchanged,
    /// The UDP destination port.
    DestinationPort(u16),
    /// The IP protocol; the original transport header follows.
    Inserted(u8),
}

/// How the INT headers of a packet were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Lab,
    UdpPort,
    ProbeMarker,
    Dscp,
}

const PROBE_MARKER_BYTES: usize = 8;
const UDP_BYTES: u32 = 8;

/// Reads INT into `view`, and what it has replaced into `original` as soon as that is known.
/// Headers have to be complete; the stack may be truncated. The reader continues after INT.
#[inline]
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    signal: Signal,
    detection: &Detection,
    view: &mut Option<IntView<'a>>,
    original: &mut Original,
) -> Result<(), WireError> {
    let marker = if signal == Signal::ProbeMarker {
        PROBE_MARKER_BYTES
    } else {
        0
    };
    reader.take(marker, "INT probe marker")?;
    // The type has 8 bits before INT 2.0, of which 4 are 0; it has 4 bits since.
    let is_old = reader.rest().first().is_some_and(|first| first >> 4 == 0);
    if !is_old || signal == Signal::Lab {
        return read_v2(reader, signal, detection, marker as u32, view, original);
    }
    let (mut int, found) = read_old(reader, signal, detection)?;
    int.bytes += marker as u32;
    *view = Some(int);
    *original = found;
    Ok(())
}

/// What a shim of INT 2.x says of the bytes after it.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// The offset of the shim.
    shim: usize,
    /// Bytes of header and stack.
    length: usize,
    /// Bytes that INT added in all.
    added: u32,
}

impl Extent {
    /// Bytes of the stack, after a header of `fixed` bytes.
    fn stack(self, fixed: usize) -> Result<usize, WireError> {
        covers(self.length, fixed, self.shim + 1)
    }
}

#[inline]
fn read_v2<'a>(
    reader: &mut Reader<'a>,
    signal: Signal,
    detection: &Detection,
    marker: u32,
    view: &mut Option<IntView<'a>>,
    original: &mut Original,
) -> Result<(), WireError> {
    let start = reader.offset();
    let shim = Shim::read(reader)?;
    let inserted;
    (*original, inserted) = match shim.next {
        NextProtocol::Unchanged { .. } => (Original::Unchanged, 0),
        NextProtocol::DestinationPort { port } => (Original::DestinationPort(port), 0),
        NextProtocol::Inserted { protocol } => (Original::Inserted(protocol), UDP_BYTES),
    };
    let mut length = usize::from(shim.length) * 4;
    if detection.length_has_shim {
        length = covers(length, Shim::BYTES, start + 1)?;
    }
    let extent = Extent {
        shim: start,
        length,
        added: marker + (Shim::BYTES + length) as u32 + inserted,
    };
    let mut body = reader.take_up_to(length);
    match shim.kind {
        ShimType::Destination => *view = Some(IntView::without_stack(IntHeader::Destination, extent.added, &[])),
        ShimType::Md if signal == Signal::Lab => read_lab(&mut body, extent, view)?,
        ShimType::Md => read_md(&mut body, extent, detection, view)?,
        ShimType::Mx => {
            extent.stack(MxHeader::BYTES)?;
            let header = IntHeader::Mx(MxHeader::read(&mut body)?);
            *view = Some(IntView::without_stack(header, extent.added, body.rest()));
        }
    }
    Ok(())
}

#[inline]
fn read_md<'a>(
    body: &mut Reader<'a>,
    extent: Extent,
    detection: &Detection,
    view: &mut Option<IntView<'a>>,
) -> Result<(), WireError> {
    let length = extent.stack(MdHeader::BYTES)?;
    let at = body.offset();
    let header = MdHeader::read(body)?;
    let layout = header.layout(at)?;
    let source_only = if header.domain.instructions == 0 {
        SourceOnly::None
    } else {
        detection.source_only(header.domain.id)
    };
    *view = Some(IntView {
        header: IntHeader::Md(header),
        stack: Stack::new(layout, body.rest(), length, source_only, body.offset())?,
        source_metadata: &[],
        bytes: extent.added,
    });
    Ok(())
}

fn read_lab<'a>(body: &mut Reader<'a>, extent: Extent, view: &mut Option<IntView<'a>>) -> Result<(), WireError> {
    let length = extent.stack(MdHeader::BYTES)?;
    let header = MdHeader::read(body)?;
    let offset = body.offset();
    let stack = Stack::new(HopLayout::lab(), body.rest(), length, SourceOnly::None, offset)?;
    lab::check_bottom(&stack, offset)?;
    *view = Some(IntView {
        header: IntHeader::Lab(header),
        stack,
        source_metadata: &[],
        bytes: extent.added,
    });
    Ok(())
}

/// The bytes that are left of a shim's length after fixed headers; `offset` is that of the length.
fn covers(length: usize, fixed: usize, offset: usize) -> Result<usize, WireError> {
    length.checked_sub(fixed).ok_or_else(|| {
        let expected = Expected::AtLeast((fixed / 4) as u32);
        let found = (length / 4) as u32;
        WireError::new(Reason::ShimLength, "INT shim length", offset, expected, found)
    })
}

fn read_old<'a>(
    reader: &mut Reader<'a>,
    signal: Signal,
    detection: &Detection,
) -> Result<(IntView<'a>, Original), WireError> {
    let start = reader.offset();
    let shim = OldShim::read(reader)?;
    let length_offset = start + 2;
    let mut total = usize::from(shim.length) * 4;
    if total == 0 {
        total = v0_length(reader, detection).unwrap_or(0);
    }
    let rest = covers(total, OldShim::BYTES, length_offset)?;
    let mut body = reader.take_up_to(rest);
    if shim.kind == OldShimType::Destination {
        let view = IntView::without_stack(IntHeader::Destination, total as u32, &[]);
        return Ok((view, Original::Unchanged));
    }
    let version = body.rest().first().map_or(0, |first| first >> 4);
    match (version, detection.version_zero) {
        (1, _) | (0, VersionZero::V1) => read_v1(&mut body, total, length_offset, detection),
        (0, VersionZero::V0(layout)) => read_v0(&mut body, total, length_offset, layout, signal, detection),
        // The version of 0.4 has 2 bits, so that replication bits may follow within the nibble.
        (2 | 3, VersionZero::V0(V0Layout::V04)) => {
            read_v0(&mut body, total, length_offset, V0Layout::V04, signal, detection)
        }
        (other, _) => {
            let expected = Expected::OneOf("0 (INT 0.x) or 1 (INT 1.0)");
            let offset = body.offset();
            Err(WireError::new(
                Reason::IntVersion,
                "INT version",
                offset,
                expected,
                other.into(),
            ))
        }
    }
}

/// The length of INT 0.x whose shim says 0, as some generators do: by the counts of its header.
fn v0_length(reader: &Reader<'_>, detection: &Detection) -> Option<usize> {
    let VersionZero::V0(layout) = detection.version_zero else {
        return None;
    };
    let header = V0Header::read(&mut { *reader }, layout).ok()?;
    let words = header.instruction_count.get() as usize * usize::from(header.total_hops);
    Some(OldShim::BYTES + V0Header::BYTES + words * 4 + Tail::BYTES)
}

fn read_v1<'a>(
    body: &mut Reader<'a>,
    total: usize,
    length_offset: usize,
    detection: &Detection,
) -> Result<(IntView<'a>, Original), WireError> {
    let length = covers(total, OldShim::BYTES + V1Header::BYTES, length_offset)?;
    let at = body.offset();
    let header = V1Header::read_any_version(body)?;
    let layout = header.layout(detection.v1_profile, at)?;
    let view = IntView {
        header: IntHeader::V1(header),
        stack: Stack::new(layout, body.rest(), length, SourceOnly::None, body.offset())?,
        source_metadata: &[],
        bytes: total as u32,
    };
    Ok((view, Original::Unchanged))
}

fn read_v0<'a>(
    body: &mut Reader<'a>,
    total: usize,
    length_offset: usize,
    layout: V0Layout,
    signal: Signal,
    detection: &Detection,
) -> Result<(IntView<'a>, Original), WireError> {
    let length = covers(total, OldShim::BYTES + V0Header::BYTES + Tail::BYTES, length_offset)?;
    let at = body.offset();
    let header = V0Header::read(body, layout)?;
    let stack = v0_stack(&header, body.take_up_to(length), length, at, detection)?;
    let original = match (signal, Tail::read(body)) {
        // Port 0 is reserved: a source that did not fill its tail.
        (Signal::UdpPort, Ok(tail)) if tail.destination_port == 0 => Original::Unchanged,
        (Signal::UdpPort, Ok(tail)) => Original::DestinationPort(tail.destination_port),
        (Signal::UdpPort, Err(_)) => Original::Unknown,
        // The port is the packet's own, and some sources write another one into the tail of TCP.
        (Signal::Lab | Signal::ProbeMarker | Signal::Dscp, _) => Original::Unchanged,
    };
    let view = IntView {
        header: IntHeader::V0(header),
        stack,
        source_metadata: &[],
        bytes: total as u32,
    };
    Ok((view, original))
}

/// The stack of INT 0.x: the number of hops is given, not the words of each.
fn v0_stack<'a>(
    header: &V0Header,
    bytes: Reader<'a>,
    length: usize,
    header_offset: usize,
    detection: &Detection,
) -> Result<Stack<'a>, WireError> {
    let hops = usize::from(header.total_hops);
    if hops == 0 && length == 0 {
        return Ok(Stack::EMPTY);
    }
    let per_hop = length.checked_div(hops).unwrap_or(0);
    if per_hop == 0 || per_hop * hops != length || !per_hop.is_multiple_of(4) {
        let expected = Expected::MultipleOf(u32::from(header.total_hops) * 4);
        let field = "INT 0.x metadata stack";
        return Err(WireError::new(
            Reason::StackLength,
            field,
            bytes.offset(),
            expected,
            length as u32,
        ));
    }
    let instructions = if detection.v0_low_byte {
        header.instructions << 8
    } else {
        header.instructions
    };
    let words = (per_hop / 4) as u8;
    let layout = HopLayout::v0(instructions, words).ok_or_else(|| {
        let expected = Expected::OneOf("the words of the instruction bitmap");
        let field = "INT 0.x words per hop";
        WireError::new(Reason::HopLength, field, header_offset + 4, expected, words.into())
    })?;
    Stack::new(layout, bytes.rest(), length, SourceOnly::None, bytes.offset())
}
