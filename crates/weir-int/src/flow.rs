//! The identity of a flow.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A flow's 5-tuple.
///
/// Ports are 0 where the protocol has none (ICMP), and for fragments other than the first. A packet
/// that ends before its ports has no flow key at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The source port, host order.
    pub source_port: u16,
    /// The destination port, host order; the original one where INT had replaced it.
    pub destination_port: u16,
    /// The IP protocol number, such as 6 for TCP; the original one where INT had replaced it.
    pub protocol: u8,
}

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

impl FlowKey {
    /// Whether a protocol's header begins with two ports of 16 bits.
    #[must_use]
    pub const fn has_ports(protocol: u8) -> bool {
        // TCP, UDP, DCCP, SCTP, UDP-Lite.
        matches!(protocol, TCP | UDP | 33 | 132 | 136)
    }

    /// The key of the opposite direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            TCP => f.write_str("tcp ")?,
            UDP => f.write_str("udp ")?,
            other => write!(f, "protocol {other} ")?,
        }
        if !Self::has_ports(self.protocol) {
            return write!(f, "{} -> {}", self.source, self.destination);
        }
        let source = SocketAddr::new(self.source, self.source_port);
        let destination = SocketAddr::new(self.destination, self.destination_port);
        write!(f, "{source} -> {destination}")
    }
}

#[cfg(test)]
mod tests {
    use super::FlowKey;

    #[test]
    fn keys_are_shown_with_brackets_around_ipv6_addresses() {
        let key = FlowKey {
            source: "2001:db8::1".parse().unwrap(),
            destination: "2001:db8::2".parse().unwrap(),
            source_port: 4000,
            destination_port: 53,
            protocol: 17,
        };
        assert_eq!(key.to_string(), "udp [2001:db8::1]:4000 -> [2001:db8::2]:53");
        assert_eq!(key.reverse().to_string(), "udp [2001:db8::2]:53 -> [2001:db8::1]:4000");
    }

    #[test]
    fn protocols_without_ports_are_shown_without() {
        let key = FlowKey {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            source_port: 0,
            destination_port: 0,
            protocol: 1,
        };
        assert_eq!(key.to_string(), "protocol 1 10.0.0.1 -> 10.0.0.2");
    }
}
