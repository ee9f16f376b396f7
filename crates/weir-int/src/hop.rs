//! The telemetry of one hop, independent of the version that carried it.

/// The width of a timestamp on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimestampWidth {
    /// 32 bits: INT 0.x and 1.0, reports 0.5 and 1.0. In ns it wraps after 4.3 s.
    Bits32,
    /// 48 bits: the lab format. In ns it wraps after 78 h.
    Bits48,
    /// 64 bits: INT 2.x, report 2.0.
    Bits64,
}

impl TimestampWidth {
    /// The width in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            TimestampWidth::Bits32 => 32,
            TimestampWidth::Bits48 => 48,
            TimestampWidth::Bits64 => 64,
        }
    }

    /// All bits of this width set, which on the wire means "unavailable".
    #[must_use]
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}

/// A timestamp of a node's clock.
///
/// INT fixes no unit (INT 2.1, section "What to monitor"); nanoseconds are common, and weir's own
/// programs use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// The value; never more than [`TimestampWidth::mask`].
    pub value: u64,
    /// Its width on the wire.
    pub width: TimestampWidth,
}

impl Timestamp {
    /// The time since an earlier timestamp, modulo the width; `None` if the widths differ.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> Option<u64> {
        if self.width.bits() != earlier.width.bits() {
            return None;
        }
        Some(self.value.wrapping_sub(earlier.value) & self.width.mask())
    }
}

/// The metadata that one hop contributed. `None`: not instructed, or unavailable (all ones on the
/// wire).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hop {
    /// Node id (switch id before INT 2.0).
    pub node_id: Option<u32>,
    /// Level 1 ingress interface id, mostly a physical port. 16 bits.
    pub ingress_port: Option<u16>,
    /// Level 1 egress interface id. 16 bits.
    pub egress_port: Option<u16>,
    /// Level 2 ingress interface id, mostly a logical port. 32 bits.
    pub l2_ingress_port: Option<u32>,
    /// Level 2 egress interface id. 32 bits.
    pub l2_egress_port: Option<u32>,
    /// Time that the packet spent in the node, in the node's unit (mostly ns). 32 bits.
    pub latency: Option<u32>,
    /// The egress queue. 8 bits.
    pub queue_id: Option<u8>,
    /// Occupancy of the queue in the node's unit (bytes, cells or packets). 24 bits.
    pub queue_occupancy: Option<u32>,
    /// When the packet came in.
    pub ingress_timestamp: Option<Timestamp>,
    /// When the packet left.
    pub egress_timestamp: Option<Timestamp>,
    /// Utilisation of the egress port in the node's unit. 32 bits.
    pub tx_utilisation: Option<u32>,
    /// The buffer. 8 bits.
    pub buffer_id: Option<u8>,
    /// Occupancy of the buffer in the node's unit. 24 bits.
    pub buffer_occupancy: Option<u32>,
}

impl Hop {
    /// This hop, with what it lacks taken from another record of the same node.
    #[must_use]
    pub fn or(self, other: Hop) -> Hop {
        Hop {
            node_id: self.node_id.or(other.node_id),
            ingress_port: self.ingress_port.or(other.ingress_port),
            egress_port: self.egress_port.or(other.egress_port),
            l2_ingress_port: self.l2_ingress_port.or(other.l2_ingress_port),
            l2_egress_port: self.l2_egress_port.or(other.l2_egress_port),
            latency: self.latency.or(other.latency),
            queue_id: self.queue_id.or(other.queue_id),
            queue_occupancy: self.queue_occupancy.or(other.queue_occupancy),
            ingress_timestamp: self.ingress_timestamp.or(other.ingress_timestamp),
            egress_timestamp: self.egress_timestamp.or(other.egress_timestamp),
            tx_utilisation: self.tx_utilisation.or(other.tx_utilisation),
            buffer_id: self.buffer_id.or(other.buffer_id),
            buffer_occupancy: self.buffer_occupancy.or(other.buffer_occupancy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hop, Timestamp, TimestampWidth};

    #[test]
    fn differences_of_timestamps_wrap_at_their_width() {
        let width = TimestampWidth::Bits48;
        let (before, after) = (width.mask() - 1, 3);
        let at = |value| Timestamp { value, width };
        assert_eq!(at(after).since(at(before)), Some(5));
        let other = Timestamp {
            value: 3,
            width: TimestampWidth::Bits32,
        };
        assert_eq!(at(after).since(other), None);
    }

    #[test]
    fn records_of_one_node_complete_each_other() {
        let first = Hop {
            node_id: Some(1),
            latency: Some(5),
            ..Hop::default()
        };
        let second = Hop {
            latency: Some(6),
            queue_id: Some(2),
            ..Hop::default()
        };
        let both = first.or(second);
        assert_eq!((both.latency, both.queue_id), (Some(5), Some(2)));
    }
}
