//! SDU protection of IRATI without cryptography: a TTL before the PDU, a CRC-32 after it.
//!
//! TTL 8 | PDU | CRC 32, the CRC over TTL and PDU in host byte order. Each N-1 flow has its own
//! policy; both ends must agree.

use crate::checksum::crc32;
use crate::error::{Expected, Reason, WireError};
use crate::read::{ByteOrder, Reader, Width};

/// The protection of an N-1 flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protection {
    /// Whether a TTL of 1 byte precedes the PDU.
    pub ttl: bool,
    /// Whether a CRC of 4 bytes follows the PDU, and in which byte order.
    pub crc: Option<ByteOrder>,
}

/// A PDU that has passed the checks of its protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unprotected<'a> {
    /// The PDU.
    pub pdu: &'a [u8],
    /// The TTL to forward the PDU with; at least 1. `None` if the flow has no TTL.
    pub ttl: Option<u8>,
}

impl Protection {
    /// The TTL of a PDU that leaves its source.
    pub const TTL: u8 = 64;
    /// Neither TTL nor CRC.
    pub const NONE: Protection = Protection { ttl: false, crc: None };

    /// The number of bytes that protection adds.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.ttl as usize + if self.crc.is_some() { 4 } else { 0 }
    }

    /// Appends a protected PDU. `ttl` is ignored if the flow has no TTL.
    pub fn protect(self, pdu: &[u8], ttl: u8, out: &mut Vec<u8>) {
        let start = out.len();
        if self.ttl {
            out.push(ttl);
        }
        out.extend(pdu);
        let sum = crc32(&out[start..]);
        match self.crc {
            None => {}
            Some(ByteOrder::Big) => out.extend(sum.to_be_bytes()),
            Some(ByteOrder::Little) => out.extend(sum.to_le_bytes()),
        }
    }

    /// Checks a received PDU, removes its protection and decrements its TTL.
    ///
    /// # Errors
    /// Fewer bytes than the protection has, a wrong CRC, or a TTL that is exhausted.
    pub fn unprotect(self, bytes: &[u8]) -> Result<Unprotected<'_>, WireError> {
        let mut body = bytes;
        if let Some(order) = self.crc {
            let Some(length) = bytes.len().checked_sub(4) else {
                let expected = Expected::Bytes(4);
                let found = bytes.len() as u64;
                return Err(WireError::new(Reason::Truncated, "SDU CRC", 0, expected, found));
            };
            let mut reader = Reader::new(bytes);
            body = reader.take(length, "SDU")?.rest();
            let found = reader.uint(Width::Four, order, "SDU CRC")?;
            let sum = crc32(body);
            if found != sum {
                let expected = Expected::Exactly(sum.into());
                return Err(WireError::new(Reason::Checksum, "SDU CRC", length, expected, found));
            }
        }
        let mut reader = Reader::new(body);
        let ttl = if self.ttl {
            let ttl = reader.u8("SDU TTL")?;
            if ttl <= 1 {
                return Err(WireError::new(Reason::Ttl, "SDU TTL", 0, Expected::AtLeast(2), ttl));
            }
            Some(ttl - 1)
        } else {
            None
        };
        Ok(Unprotected {
            pdu: reader.rest(),
            ttl,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Protection, Unprotected};
    use crate::error::Reason;
    use crate::read::ByteOrder;

    const BOTH: Protection = Protection {
        ttl: true,
        crc: Some(ByteOrder::Little),
    };

    #[test]
    fn the_crc_is_appended_in_host_order() {
        let protection = Protection { ttl: false, ..BOTH };
        let mut bytes = Vec::new();
        protection.protect(b"123456789", 0, &mut bytes);
        assert_eq!(bytes, b"123456789\x88\x2d\xfd\x2d");
    }

    #[test]
    fn a_pdu_loses_one_hop_and_its_protection() {
        for (ttl, crc) in [(true, None), (true, BOTH.crc), (false, BOTH.crc), (false, None)] {
            let protection = Protection { ttl, crc };
            let mut bytes = Vec::new();
            protection.protect(b"pdu", 64, &mut bytes);
            assert_eq!(bytes.len(), 3 + protection.bytes());
            let pdu = b"pdu".as_slice();
            let ttl = ttl.then_some(63);
            assert_eq!(protection.unprotect(&bytes), Ok(Unprotected { pdu, ttl }));
        }
    }

    #[test]
    fn damaged_truncated_and_expired_pdus_are_refused() {
        let mut bytes = Vec::new();
        BOTH.protect(b"pdu", 1, &mut bytes);
        assert_eq!(BOTH.unprotect(&bytes).unwrap_err().reason, Reason::Ttl);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(BOTH.unprotect(&damaged).unwrap_err().reason, Reason::Checksum);
            assert!(BOTH.unprotect(&bytes[..at]).is_err());
        }
    }
}
