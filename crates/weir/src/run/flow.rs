//! Which worker a packet is for: whatever belongs to one flow goes to the same one, so that it
//! stays in order.

/// VLAN tags that are skipped.
const TAGS: usize = 2;

/// A number that is the same for all packets of a flow: of its addresses, protocol and ports where
/// it is IP (fragments have no ports), else of its Ethernet addresses and type.
pub fn hash(frame: &[u8]) -> u64 {
    let mut sum = Mix(0x9e37_79b9_7f4a_7c15);
    match addresses(frame) {
        Some((addresses, protocol, ports)) => {
            sum.add(addresses);
            sum.add(&[protocol]);
            sum.add(ports);
        }
        None => sum.add(&frame[..frame.len().min(14)]),
    }
    sum.end()
}

/// The worker of a packet.
pub fn worker(frame: &[u8], workers: usize) -> usize {
    // The upper half times the number, as a fraction: even without a division.
    let half = hash(frame) >> 32;
    ((half * workers as u64) >> 32) as usize
}

/// Both addresses of an IP packet, its protocol, both its ports.
fn addresses(frame: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let mut start = 14;
    let mut kind = frame.get(12..14)?;
    for _ in 0..TAGS {
        if !matches!(kind, [0x81, 0x00] | [0x88, 0xa8]) {
            break;
        }
        kind = frame.get(start + 2..start + 4)?;
        start += 4;
    }
    let packet = frame.get(start..)?;
    match kind {
        [0x08, 0x00] => {
            let header = packet.get(..20)?;
            let fragment = header[6] & 0x3f != 0 || header[7] != 0;
            let length = usize::from(header[0] & 0xf) * 4;
            let ports = ports(packet, length, header[9], fragment);
            Some((&header[12..20], header[9], ports))
        }
        [0x86, 0xdd] => {
            let header = packet.get(..40)?;
            Some((&header[8..40], header[6], ports(packet, 40, header[6], false)))
        }
        _ => None,
    }
}

/// TCP, UDP, DCCP, SCTP and UDP-Lite begin with both ports.
fn ports(packet: &[u8], at: usize, protocol: u8, fragment: bool) -> &[u8] {
    if fragment || !matches!(protocol, 6 | 17 | 33 | 132 | 136) {
        return &[];
    }
    packet.get(at..at + 4).unwrap_or_default()
}

struct Mix(u64);

impl Mix {
    fn add(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = u64::from_le_bytes(word);
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn end(self) -> u64 {
        let mut h = self.0;
        h ^= h >> 32;
        h = h.wrapping_mul(0xd6e8_feb8_6659_fd93);
        h ^ h >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source: u8, port: u8, payload: u8) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 30, 0, payload, 0, 0, 64, 17, 0, 0]);
        frame.extend([
            10, 0, 0, source, 10, 0, 0, 9, 0, port, 0, 53, 0, 10, 0, 0, payload, payload,
        ]);
        frame
    }

    #[test]
    fn a_flow_has_one_worker_and_flows_are_spread() {
        assert_eq!(
            hash(&udp(1, 2, 3)),
            hash(&udp(1, 2, 4)),
            "the payload is no part of the flow"
        );
        assert_ne!(hash(&udp(1, 2, 3)), hash(&udp(1, 3, 3)));
        let mut counts = [0; 4];
        for source in 0..=255 {
            for port in 0..4 {
                counts[worker(&udp(source, port, 0), 4)] += 1;
            }
        }
        assert!(counts.iter().all(|n| (200..320).contains(n)), "{counts:?}");
    }

    #[test]
    fn tags_are_looked_behind_and_fragments_stay_together() {
        let plain = udp(1, 2, 3);
        let mut tagged = plain.clone();
        tagged.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
        assert_eq!(hash(&plain), hash(&tagged));
        let fragment = |port, offset| {
            let mut frame = udp(1, port, 3);
            frame[14 + 6] = 0x20;
            frame[14 + 7] = offset;
            frame
        };
        assert_eq!(hash(&fragment(2, 0)), hash(&fragment(99, 5)));
    }

    #[test]
    fn any_bytes_have_a_worker() {
        let frame = udp(1, 2, 3);
        for length in 0..frame.len() {
            assert!(worker(&frame[..length], 3) < 3);
        }
        assert_eq!(worker(&frame, 1), 0);
    }
}
