//! The metadata that a bitmap selects: which items, in which order, of which size.
//!
//! INT headers and report headers have bitmaps of 16 bits (bit 0 is the most significant). Each bit
//! that is set stands for an item of 1 or 2 words, in the order of the bits. Versions differ in the
//! items; a table per version says which bit stands for which.

use crate::hop::{Hop, Timestamp, TimestampWidth};

/// An item of metadata. All fields are in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// Node id, 32 bits.
    NodeId,
    /// Level 1 ingress and egress interface id, 16 bits each.
    Ports,
    /// Hop latency, 32 bits.
    Latency,
    /// Queue id, 8 bits; occupancy, 24 bits.
    Queue,
    /// Ingress timestamp, 32 bits.
    Ingress32,
    /// Ingress timestamp, 64 bits.
    Ingress64,
    /// Egress timestamp, 32 bits.
    Egress32,
    /// Egress timestamp, 64 bits.
    Egress64,
    /// Level 2 ingress and egress interface id, 32 bits each.
    L2Ports,
    /// Level 2 ingress and egress interface id, 16 bits each.
    L2PortsShort,
    /// Utilisation of the egress port, 32 bits.
    TxUtilisation,
    /// Buffer id, 8 bits; occupancy, 24 bits.
    Buffer,
    /// Queue id, 8 bits; drop reason, 8 bits; padding, 16 bits.
    Drop,
    /// Checksum complement, 32 bits; the last item of a hop.
    Complement,
    /// A word without meaning: a reserved bit.
    Reserved,
    /// A record of the lab format, 5 words.
    Lab,
}

impl Item {
    /// The size in words of 4 bytes.
    const fn words(self) -> u8 {
        match self {
            Item::NodeId
            | Item::Ports
            | Item::Latency
            | Item::Queue
            | Item::Ingress32
            | Item::Egress32
            | Item::L2PortsShort
            | Item::TxUtilisation
            | Item::Buffer
            | Item::Drop
            | Item::Complement
            | Item::Reserved => 1,
            Item::Ingress64 | Item::Egress64 | Item::L2Ports => 2,
            Item::Lab => 5,
        }
    }
}

/// The items of a bitmap's bits, bit 0 (the most significant) first.
type Table = [Item; 16];

/// A bitmap's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// INT 2.x, section "INT-MD Metadata Header Format".
    V2,
    /// INT 1.0 as specified, or with timestamps of 64 bits, or level 2 ports of 16 bits, or both.
    V1 {
        wide_timestamps: bool,
        short_l2_ports: bool,
    },
    /// INT 0.x as specified, or with timestamps of 64 bits.
    V0 { wide_timestamps: bool },
    /// The lab format: one item for bit 0.
    Lab,
    /// RepMdBits of report 2.0.
    ReportV2,
    /// RepMdBits of report 1.0, whose 6 bits are here the most significant ones of 16.
    ReportV1,
    /// The drop header and the local header of report 0.5 as bitmaps of one table.
    ReportV0_5,
}

const V2: Table = {
    use Item::*;
    [
        NodeId,
        Ports,
        Latency,
        Queue,
        Ingress64,
        Egress64,
        L2Ports,
        TxUtilisation,
        Buffer,
        Reserved,
        Reserved,
        Reserved,
        Reserved,
        Reserved,
        Reserved,
        Complement,
    ]
};

const fn v1(wide_timestamps: bool, short_l2_ports: bool) -> Table {
    let mut table = V2;
    table[4] = if wide_timestamps {
        Item::Ingress64
    } else {
        Item::Ingress32
    };
    table[5] = if wide_timestamps {
        Item::Egress64
    } else {
        Item::Egress32
    };
    table[6] = if short_l2_ports {
        Item::L2PortsShort
    } else {
        Item::L2Ports
    };
    table[8] = Item::Reserved;
    table
}

/// Bit 6 is the congestion of the queue, which [`Hop`] does not have.
const fn v0(wide_timestamps: bool) -> Table {
    let mut table = v1(wide_timestamps, false);
    table[6] = Item::Reserved;
    table[15] = Item::Reserved;
    table
}

const LAB: Table = {
    let mut table = [Item::Reserved; 16];
    table[0] = Item::Lab;
    table
};

const REPORT_V2: Table = {
    let mut table = V2;
    table[0] = Item::Reserved;
    table[15] = Item::Drop;
    table
};

const REPORT_V1: Table = {
    use Item::*;
    let mut table = [Reserved; 16];
    table[0] = Ports;
    table[1] = Latency;
    table[2] = Queue;
    table[3] = Egress32;
    table[4] = Drop;
    table[5] = TxUtilisation;
    table
};

const REPORT_V0_5: Table = {
    use Item::*;
    let mut table = [Reserved; 16];
    table[0] = NodeId;
    table[1] = Ports;
    table[2] = Queue;
    table[3] = Egress32;
    table[4] = Drop;
    table
};

impl Format {
    const fn table(self) -> &'static Table {
        match self {
            Format::V2 => &V2,
            Format::V1 {
                wide_timestamps,
                short_l2_ports,
            } => match (wide_timestamps, short_l2_ports) {
                (false, false) => const { &v1(false, false) },
                (false, true) => const { &v1(false, true) },
                (true, false) => const { &v1(true, false) },
                (true, true) => const { &v1(true, true) },
            },
            Format::V0 { wide_timestamps: false } => const { &v0(false) },
            Format::V0 { wide_timestamps: true } => const { &v0(true) },
            Format::Lab => &LAB,
            Format::ReportV2 => &REPORT_V2,
            Format::ReportV1 => &REPORT_V1,
            Format::ReportV0_5 => &REPORT_V0_5,
        }
    }

    /// Whether bit 15 is the checksum complement.
    pub(crate) const fn has_complement(self) -> bool {
        match self {
            Format::V2 | Format::V1 { .. } => true,
            Format::V0 { .. } | Format::Lab | Format::ReportV2 | Format::ReportV1 | Format::ReportV0_5 => false,
        }
    }
}

/// The bits of a bitmap that are set, with their items.
#[inline]
fn items(format: Format, mut bitmap: u16) -> impl Iterator<Item = Item> {
    let table = format.table();
    std::iter::from_fn(move || {
        let bit = bitmap.leading_zeros();
        let item = *table.get(bit as usize)?;
        bitmap &= !(0x8000 >> bit);
        Some(item)
    })
}

/// The size in words of the items of a bitmap.
#[inline]
pub(crate) fn words(format: Format, bitmap: u16) -> u8 {
    // At most 16 items of 2 words.
    items(format, bitmap).map(Item::words).sum()
}

/// What the items of a bitmap say, to encode them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// The values of the hop.
    pub hop: Hop,
    /// Why the packet was dropped.
    pub drop_reason: Option<u8>,
}

/// Decodes the items of a bitmap from the start of some bytes; items after their end stay what
/// they were.
#[inline]
pub(crate) fn decode(format: Format, bitmap: u16, bytes: &[u8], hop: &mut Hop, drop_reason: &mut Option<u8>) {
    // An item that is truncated ends the decoding.
    let _ = match format {
        Format::ReportV2 => decode_constant::<ReportV2Items>(bitmap, bytes, hop, drop_reason),
        Format::V2 | Format::V1 { .. } | Format::V0 { .. } | Format::Lab | Format::ReportV1 | Format::ReportV0_5 => {
            decode_any(format, bitmap, bytes, hop, drop_reason)
        }
    };
}

/// Decodes the record of a hop.
///
/// Inlined for INT 2.x, so that values that the caller does not use cost nothing and a hop is not
/// written to memory.
#[inline(always)]
pub(crate) fn decode_hop(format: Format, bitmap: u16, bytes: &[u8]) -> Hop {
    if format == Format::V2 {
        let mut hop = Hop::default();
        let _ = decode_constant::<V2Items>(bitmap, bytes, &mut hop, &mut None);
        return hop;
    }
    decode_other_hop(format, bitmap, bytes)
}

#[inline(never)]
fn decode_other_hop(format: Format, bitmap: u16, bytes: &[u8]) -> Hop {
    let mut hop = Hop::default();
    let _ = decode_any(format, bitmap, bytes, &mut hop, &mut None);
    hop
}

fn decode_any(
    format: Format,
    bitmap: u16,
    mut bytes: &[u8],
    hop: &mut Hop,
    drop_reason: &mut Option<u8>,
) -> Option<()> {
    items(format, bitmap).try_for_each(|item| decode_item(item, &mut bytes, hop, drop_reason))
}

/// A table that is known at compile time.
trait Items {
    const TABLE: Table;
}

struct V2Items;
impl Items for V2Items {
    const TABLE: Table = V2;
}

struct ReportV2Items;
impl Items for ReportV2Items {
    const TABLE: Table = REPORT_V2;
}

/// The compiler unrolls the items of a constant table.
#[inline(always)]
fn decode_constant<I: Items>(bitmap: u16, mut bytes: &[u8], hop: &mut Hop, drop_reason: &mut Option<u8>) -> Option<()> {
    macro_rules! bits {
        ($($bit:literal)*) => {
            $(if bitmap & 0x8000 >> $bit != 0 {
                decode_item(const { I::TABLE[$bit] }, &mut bytes, hop, drop_reason)?;
            })*
        };
    }
    bits!(0 1 2 3 4 5 6 7 8);
    // Reserved bits are rare.
    if bitmap & 0x007f != 0 {
        bits!(9 10 11 12 13 14 15);
    }
    Some(())
}

#[inline(always)]
fn word(rest: &mut &[u8]) -> Option<u32> {
    let (word, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u32::from_be_bytes(*word))
}

#[inline(always)]
fn double(rest: &mut &[u8]) -> Option<u64> {
    let (double, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u64::from_be_bytes(*double))
}

/// A value, unless all bits of its width are set.
#[inline(always)]
fn known(value: u32) -> Option<u32> {
    (value != u32::MAX).then_some(value)
}

/// Two values of 16 bits, each `None` if all its bits are set.
#[inline(always)]
fn halves(word: u32) -> (Option<u16>, Option<u16>) {
    let half = |value: u16| (value != u16::MAX).then_some(value);
    (half((word >> 16) as u16), half(word as u16))
}

/// An id of 8 bits and an occupancy of 24. Id 255 is one, unless the whole word has all bits set.
#[inline(always)]
fn occupancy(word: u32) -> (Option<u8>, Option<u32>) {
    let id = (word != u32::MAX).then_some((word >> 24) as u8);
    let value = word & 0xff_ffff;
    (id, (value != 0xff_ffff).then_some(value))
}

#[inline(always)]
fn timestamp(value: u64, width: TimestampWidth) -> Option<Timestamp> {
    (value != width.mask()).then_some(Timestamp { value, width })
}

#[inline(always)]
fn decode_item(item: Item, rest: &mut &[u8], hop: &mut Hop, drop_reason: &mut Option<u8>) -> Option<()> {
    match item {
        Item::NodeId => hop.node_id = known(word(rest)?),
        Item::Ports => (hop.ingress_port, hop.egress_port) = halves(word(rest)?),
        Item::Latency => hop.latency = known(word(rest)?),
        Item::Queue => (hop.queue_id, hop.queue_occupancy) = occupancy(word(rest)?),
        Item::Ingress32 => hop.ingress_timestamp = timestamp(word(rest)?.into(), TimestampWidth::Bits32),
        Item::Egress32 => hop.egress_timestamp = timestamp(word(rest)?.into(), TimestampWidth::Bits32),
        Item::Ingress64 => hop.ingress_timestamp = timestamp(double(rest)?, TimestampWidth::Bits64),
        Item::Egress64 => hop.egress_timestamp = timestamp(double(rest)?, TimestampWidth::Bits64),
        Item::L2Ports => {
            let ports = double(rest)?;
            hop.l2_ingress_port = known((ports >> 32) as u32);
            hop.l2_egress_port = known(ports as u32);
        }
        Item::L2PortsShort => {
            let (ingress, egress) = halves(word(rest)?);
            hop.l2_ingress_port = ingress.map(u32::from);
            hop.l2_egress_port = egress.map(u32::from);
        }
        Item::TxUtilisation => hop.tx_utilisation = known(word(rest)?),
        Item::Buffer => (hop.buffer_id, hop.buffer_occupancy) = occupancy(word(rest)?),
        Item::Drop => {
            let value = word(rest)?;
            let queue = (value >> 24) as u8;
            hop.queue_id = hop.queue_id.or((queue != u8::MAX).then_some(queue));
            *drop_reason = Some((value >> 16) as u8);
        }
        Item::Complement | Item::Reserved => {
            word(rest)?;
        }
        Item::Lab => decode_lab(rest, hop)?,
    }
    Some(())
}

/// Ingress timestamp 48, empty 16, egress timestamp 48, ingress port 16, egress port 16, bottom of
/// stack 1, reserved 15.
fn decode_lab(rest: &mut &[u8], hop: &mut Hop) -> Option<()> {
    let (ingress, egress, ports) = (double(rest)?, double(rest)?, word(rest)?);
    hop.ingress_timestamp = timestamp(ingress >> 16, TimestampWidth::Bits48);
    hop.egress_timestamp = timestamp(egress >> 16, TimestampWidth::Bits48);
    (hop.ingress_port, _) = halves((egress as u32) << 16);
    (hop.egress_port, _) = halves(ports);
    Some(())
}

/// Appends the items of a bitmap; what is `None` has all bits set.
///
/// Timestamps are cut to the item's width.
pub(crate) fn encode(format: Format, bitmap: u16, metadata: &Metadata, out: &mut Vec<u8>) {
    for item in items(format, bitmap) {
        encode_item(item, metadata, out);
    }
}

fn pair(high: Option<u16>, low: Option<u16>) -> u32 {
    u32::from(high.unwrap_or(u16::MAX)) << 16 | u32::from(low.unwrap_or(u16::MAX))
}

fn id_and_value(id: Option<u8>, value: Option<u32>) -> u32 {
    u32::from(id.unwrap_or(u8::MAX)) << 24 | value.unwrap_or(u32::MAX) & 0xff_ffff
}

/// The low bits of a timestamp; all ones if there is none.
fn time(timestamp: Option<Timestamp>, width: TimestampWidth) -> u64 {
    timestamp.map_or(u64::MAX, |t| t.value) & width.mask()
}

fn encode_item(item: Item, metadata: &Metadata, out: &mut Vec<u8>) {
    let hop = &metadata.hop;
    let short = |port: Option<u32>| port.map(|p| p as u16);
    let word = match item {
        Item::NodeId => hop.node_id.unwrap_or(u32::MAX),
        Item::Ports => pair(hop.ingress_port, hop.egress_port),
        Item::Latency => hop.latency.unwrap_or(u32::MAX),
        Item::Queue => id_and_value(hop.queue_id, hop.queue_occupancy),
        Item::Ingress32 => time(hop.ingress_timestamp, TimestampWidth::Bits32) as u32,
        Item::Egress32 => time(hop.egress_timestamp, TimestampWidth::Bits32) as u32,
        Item::L2PortsShort => pair(short(hop.l2_ingress_port), short(hop.l2_egress_port)),
        Item::TxUtilisation => hop.tx_utilisation.unwrap_or(u32::MAX),
        Item::Buffer => id_and_value(hop.buffer_id, hop.buffer_occupancy),
        Item::Drop => {
            let reason = u32::from(metadata.drop_reason.unwrap_or(u8::MAX));
            u32::from(hop.queue_id.unwrap_or(u8::MAX)) << 24 | reason << 16
        }
        Item::Complement | Item::Reserved => u32::MAX,
        Item::Ingress64 => {
            return out.extend(time(hop.ingress_timestamp, TimestampWidth::Bits64).to_be_bytes());
        }
        Item::Egress64 => {
            return out.extend(time(hop.egress_timestamp, TimestampWidth::Bits64).to_be_bytes());
        }
        Item::L2Ports => {
            out.extend(hop.l2_ingress_port.unwrap_or(u32::MAX).to_be_bytes());
            hop.l2_egress_port.unwrap_or(u32::MAX)
        }
        Item::Lab => {
            let ingress = time(hop.ingress_timestamp, TimestampWidth::Bits48) << 16;
            let egress = time(hop.egress_timestamp, TimestampWidth::Bits48) << 16;
            let port = u64::from(hop.ingress_port.unwrap_or(u16::MAX));
            out.extend(ingress.to_be_bytes());
            out.extend((egress | port).to_be_bytes());
            // The bottom-of-stack bit is set by the encoder of the stack.
            u32::from(hop.egress_port.unwrap_or(u16::MAX)) << 16
        }
    };
    out.extend(word.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Format, words};

    #[test]
    fn sizes_follow_the_versions() {
        assert_eq!(words(Format::V2, 0xffff), 16 + 3);
        let v1 = |wide_timestamps, short_l2_ports| Format::V1 {
            wide_timestamps,
            short_l2_ports,
        };
        assert_eq!(words(v1(false, false), 0xff00), 9);
        assert_eq!(words(v1(false, false), 0xcc00), 4);
        assert_eq!(words(v1(true, true), 0xff00), 10);
        assert_eq!(words(v1(true, true), 0xcc00), 6);
        let v0 = Format::V0 { wide_timestamps: false };
        assert_eq!(words(v0, 0xff00), 8);
        assert_eq!(words(Format::Lab, 0x8000), 5);
    }
}
