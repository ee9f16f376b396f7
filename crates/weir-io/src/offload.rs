//! Undoing what senders leave to their hardware.
//!
//! Between interfaces of one machine no wire forces anybody to finish a packet: a frame may come
//! with a checksum that only covers the pseudo-header, or as one piece of up to 64 KiB that is
//! meant to be cut into segments. The kernel says so in a header before the frame ([`VnetHeader`]);
//! the functions here do what is left to do, so that a switch sees what would have been on the
//! wire.

use crate::checksum::Sum;

/// What the kernel says of a frame: `struct virtio_net_hdr` in the machine's byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VnetHeader {
    /// The checksum is not finished.
    pub needs_checksum: bool,
    /// How the frame is to be cut.
    pub segmentation: Segmentation,
    /// Payload bytes per segment.
    pub segment_size: u16,
    /// Where the checksum begins to count.
    pub checksum_start: u16,
    /// Where it goes, from there.
    pub checksum_offset: u16,
}

/// How a frame is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Segmentation {
    /// Not at all.
    #[default]
    None,
    /// Into TCP segments.
    Tcp,
    /// Into UDP datagrams.
    Udp,
    /// In a way that is not known here.
    Unknown,
}

impl VnetHeader {
    /// Its length.
    pub const LENGTH: usize = 10;

    /// Reads one.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LENGTH]) -> Self {
        const NEEDS_CHECKSUM: u8 = 1;
        const EXPLICIT_CONGESTION: u8 = 0x80;
        let word = |i: usize| u16::from_ne_bytes([bytes[i], bytes[i + 1]]);
        VnetHeader {
            needs_checksum: bytes[0] & NEEDS_CHECKSUM != 0,
            segmentation: match bytes[1] & !EXPLICIT_CONGESTION {
                0 => Segmentation::None,
                1 | 4 => Segmentation::Tcp,
                5 => Segmentation::Udp,
                _ => Segmentation::Unknown,
            },
            segment_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }
}

/// Finishes the checksum of a frame. Its field holds the sum over the pseudo-header. False where
/// the header points outside the frame.
pub fn finish_checksum(frame: &mut [u8], header: &VnetHeader) -> bool {
    const UDP_FIELD: u16 = 6;
    let start = usize::from(header.checksum_start);
    let field = start + usize::from(header.checksum_offset);
    if field + 2 > frame.len() {
        return false;
    }
    let mut sum = Sum::default().add(&frame[start..]).finish();
    if sum == 0 && header.checksum_offset == UDP_FIELD {
        // In UDP a zero says that there is no checksum.
        sum = 0xffff;
    }
    frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Longest headers, Ethernet to TCP, of a frame that can be cut.
const MAX_HEADERS: usize = 256;

/// Cuts a frame into segments.
#[derive(Debug)]
pub struct Segments<'f> {
    frame: &'f [u8],
    headers: usize,
    ip: usize,
    version: u8,
    l4: usize,
    protocol: Protocol,
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
}

/// The headers of one segment; its payload is a part of the frame.
#[derive(Debug)]
pub struct Segment<'f> {
    headers: [u8; MAX_HEADERS],
    length: usize,
    /// What follows the headers.
    pub payload: &'f [u8],
}

impl Segment<'_> {
    /// Ethernet to TCP or UDP, finished.
    #[must_use]
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.length]
    }
}

impl<'f> Segments<'f> {
    /// `None` where the frame cannot be cut as its header says.
    #[must_use]
    pub fn new(frame: &'f [u8], header: &VnetHeader) -> Option<Self> {
        let protocol = match header.segmentation {
            Segmentation::Tcp => Protocol::Tcp,
            Segmentation::Udp => Protocol::Udp,
            Segmentation::None | Segmentation::Unknown => return None,
        };
        let l4 = usize::from(header.checksum_start);
        let ip = network_header(frame)?;
        let version = frame.get(ip)? >> 4;
        let least = if version == 6 { 40 } else { 20 };
        if !matches!(version, 4 | 6) || l4 < ip + least {
            return None;
        }
        let l4_length = match protocol {
            Protocol::Udp => 8,
            Protocol::Tcp => usize::from(frame.get(l4 + 12)? >> 4) * 4,
        };
        let shortest = if protocol == Protocol::Tcp { 20 } else { 8 };
        let headers = l4 + l4_length;
        let fits = l4_length >= shortest && headers <= MAX_HEADERS && headers <= frame.len();
        let size = usize::from(header.segment_size);
        (fits && size > 0).then_some(Segments {
            frame,
            headers,
            ip,
            version,
            l4,
            protocol,
            size,
        })
    }

    /// Number of segments.
    #[must_use]
    pub fn count(&self) -> usize {
        (self.frame.len() - self.headers).div_ceil(self.size).max(1)
    }

    /// The segment at a position, from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Segment<'f>> {
        if index >= self.count() {
            return None;
        }
        let payload = &self.frame[self.headers..];
        let from = (index * self.size).min(payload.len());
        let payload = &payload[from..payload.len().min(from + self.size)];
        let mut headers = [0; MAX_HEADERS];
        headers[..self.headers].copy_from_slice(&self.frame[..self.headers]);
        let filled = &mut headers[..self.headers];
        self.write_ip(filled, index, payload.len());
        match self.protocol {
            Protocol::Tcp => self.write_tcp(filled, index, from),
            Protocol::Udp => {
                let length = (self.headers - self.l4 + payload.len()) as u16;
                filled[self.l4 + 4..self.l4 + 6].copy_from_slice(&length.to_be_bytes());
            }
        }
        self.write_checksum(filled, payload);
        Some(Segment {
            headers,
            length: self.headers,
            payload,
        })
    }

    fn write_ip(&self, headers: &mut [u8], index: usize, payload: usize) {
        let ip = self.ip;
        let length = headers.len() - ip + payload;
        if self.version == 6 {
            let length = (length - 40) as u16;
            headers[ip + 4..ip + 6].copy_from_slice(&length.to_be_bytes());
            return;
        }
        headers[ip + 2..ip + 4].copy_from_slice(&(length as u16).to_be_bytes());
        let id = u16::from_be_bytes([headers[ip + 4], headers[ip + 5]]).wrapping_add(index as u16);
        headers[ip + 4..ip + 6].copy_from_slice(&id.to_be_bytes());
        headers[ip + 10..ip + 12].fill(0);
        let sum = Sum::default().add(&headers[ip..self.l4]).finish();
        headers[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    }

    fn write_tcp(&self, headers: &mut [u8], index: usize, from: usize) {
        const FIN_AND_PUSH: u8 = 0x09;
        const WINDOW_REDUCED: u8 = 0x80;
        let l4 = self.l4;
        let mut sequence = [0; 4];
        sequence.copy_from_slice(&headers[l4 + 4..l4 + 8]);
        let sequence = u32::from_be_bytes(sequence).wrapping_add(from as u32);
        headers[l4 + 4..l4 + 8].copy_from_slice(&sequence.to_be_bytes());
        if index > 0 {
            headers[l4 + 13] &= !WINDOW_REDUCED;
        }
        if index + 1 < self.count() {
            headers[l4 + 13] &= !FIN_AND_PUSH;
        }
    }

    fn write_checksum(&self, headers: &mut [u8], payload: &[u8]) {
        let (field, protocol) = match self.protocol {
            Protocol::Tcp => (self.l4 + 16, 6),
            Protocol::Udp => (self.l4 + 6, 17),
        };
        headers[field..field + 2].fill(0);
        let addresses = match self.version {
            6 => self.ip + 8..self.ip + 40,
            _ => self.ip + 12..self.ip + 20,
        };
        let length = (headers.len() - self.l4 + payload.len()) as u16;
        let sum = Sum::default().add(&headers[addresses]).word(protocol);
        // The header is of even length, so that the payload goes on where it ends.
        let sum = sum.word(length).add(&headers[self.l4..]).add(payload);
        let mut sum = sum.finish();
        if sum == 0 && self.protocol == Protocol::Udp {
            sum = 0xffff;
        }
        headers[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Where the IP header begins: after Ethernet and any VLAN tags.
fn network_header(frame: &[u8]) -> Option<usize> {
    let mut offset = 12;
    loop {
        let kind = u16::from_be_bytes([*frame.get(offset)?, *frame.get(offset + 1)?]);
        match kind {
            0x0800 | 0x86dd => return Some(offset + 2),
            0x8100 | 0x88a8 | 0x9100 => offset += 4,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An unfinished frame with `payload` bytes on top of TCP or UDP, and the offset of IP.
    fn frame(v6: bool, tcp: bool, tagged: bool, payload: usize) -> (Vec<u8>, VnetHeader) {
        let mut frame = vec![2; 12];
        if tagged {
            frame.extend([0x81, 0x00, 0x00, 0x05]);
        }
        frame.extend(if v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        let next = if tcp { 6 } else { 17 };
        if v6 {
            frame.extend([0x60, 0, 0, 0, 0, 0, next, 64]);
            frame.extend([7; 32]);
        } else {
            frame.extend([0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, next, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let start = frame.len();
        if tcp {
            frame.extend([
                0, 80, 1, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x60, 0x99, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0,
            ]);
        } else {
            frame.extend([0, 80, 1, 1, 0, 0, 0, 0]);
        }
        frame.extend((0..payload).map(|i| i as u8));
        let header = VnetHeader {
            needs_checksum: true,
            segmentation: if tcp { Segmentation::Tcp } else { Segmentation::Udp },
            segment_size: 1000,
            checksum_start: start as u16,
            checksum_offset: if tcp { 16 } else { 6 },
        };
        (frame, header)
    }

    fn l4_sum(bytes: &[u8], v6: bool, l4: usize, ip: usize) -> u16 {
        let (addresses, next) = match v6 {
            true => (ip + 8..ip + 40, bytes[ip + 6]),
            false => (ip + 12..ip + 20, bytes[ip + 9]),
        };
        let sum = Sum::default().add(&bytes[addresses]).word(u16::from(next));
        sum.word((bytes.len() - l4) as u16).add(&bytes[l4..]).finish()
    }

    #[test]
    fn segments_have_right_lengths_checksums_and_flags() {
        for (v6, tcp, tagged) in [
            (false, true, false),
            (true, true, true),
            (false, false, true),
            (true, false, false),
        ] {
            let (whole, header) = frame(v6, tcp, tagged, 2500);
            let l4 = usize::from(header.checksum_start);
            let segments = Segments::new(&whole, &header).unwrap();
            assert_eq!(segments.count(), 3);
            let ip = segments.ip;
            let mut payload: Vec<u8> = Vec::new();
            for i in 0..3 {
                let segment = segments.get(i).unwrap();
                payload.extend(segment.payload);
                let bytes = [segment.headers(), segment.payload].concat();
                assert_eq!(l4_sum(&bytes, v6, l4, ip), 0);
                if v6 {
                    let length = u16::from_be_bytes([bytes[ip + 4], bytes[ip + 5]]);
                    assert_eq!(usize::from(length), bytes.len() - ip - 40);
                } else {
                    assert_eq!(Sum::default().add(&bytes[ip..l4]).finish(), 0);
                    let length = u16::from_be_bytes([bytes[ip + 2], bytes[ip + 3]]);
                    assert_eq!(usize::from(length), bytes.len() - ip);
                    assert_eq!(
                        u16::from_be_bytes([bytes[ip + 4], bytes[ip + 5]]),
                        0xffffu16.wrapping_add(i as u16)
                    );
                }
                if tcp {
                    assert_eq!(bytes[l4 + 4..l4 + 8], (i as u32 * 1000).wrapping_sub(1).to_be_bytes());
                    assert_eq!(bytes[l4 + 13], [0x90, 0x10, 0x19][i]);
                }
            }
            assert!(segments.get(3).is_none());
            assert_eq!(payload, whole[whole.len() - 2500..]);
        }
    }

    #[test]
    fn an_open_checksum_is_finished() {
        let (mut bytes, header) = frame(false, false, false, 5);
        let l4 = usize::from(header.checksum_start);
        let pseudo = Sum::default().add(&bytes[l4 - 8..l4]).word(17).word(13);
        bytes[l4 + 6..l4 + 8].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
        assert!(finish_checksum(&mut bytes, &header));
        assert_eq!(l4_sum(&bytes, false, l4, 14), 0);
        let outside = VnetHeader {
            checksum_start: 46,
            ..header
        };
        assert!(!finish_checksum(&mut bytes, &outside));
    }

    #[test]
    fn the_header_of_the_kernel_is_understood() {
        let mut bytes = [0; 10];
        bytes[0] = 1;
        bytes[1] = 0x81;
        bytes[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        bytes[6..8].copy_from_slice(&34u16.to_ne_bytes());
        bytes[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let expected = VnetHeader {
            needs_checksum: true,
            segmentation: Segmentation::Tcp,
            segment_size: 1448,
            checksum_start: 34,
            checksum_offset: 16,
        };
        assert_eq!(VnetHeader::parse(&bytes), expected);
    }

    proptest! {
        #[test]
        fn no_frame_makes_cutting_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            mut place in 0usize..100, value in any::<u8>(), start in 0u16..500, size in 0u16..50,
        ) {
            let made = [
                (bytes, frame(false, true, false, 0).1),
                frame(true, true, true, 77),
                frame(false, false, false, 9),
            ];
            for (base, header) in made {
                let mut base = base;
                place = place.min(base.len().saturating_sub(1));
                if let Some(byte) = base.get_mut(place) {
                    *byte = value;
                }
                for start in [start, header.checksum_start] {
                    let header = VnetHeader { checksum_start: start, segment_size: size, ..header };
                    if let Some(segments) = Segments::new(&base, &header) {
                        for i in 0..segments.count() {
                            prop_assert!(segments.get(i).is_some());
                        }
                    }
                    finish_checksum(&mut base, &header);
                }
            }
        }
    }
}
