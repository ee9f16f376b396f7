//! The checksums of RINA implementations.

/// The Internet checksum (RFC 1071): the one's complement of the one's complement sum of 16-bit
/// words in network order. An odd last byte is padded with 0.
///
/// A message that contains its own correct checksum has the checksum 0.
#[must_use]
pub fn internet(bytes: &[u8]) -> u16 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    if let [last] = rest {
        sum += u64::from(u16::from_be_bytes([*last, 0]));
    }
    !fold(sum)
}

/// The checksum after one 16-bit word of the message has changed (RFC 1624, equation 3).
#[must_use]
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// CRC-32 as IRATI computes it: Linux's `crc32_le`, polynomial 0xEDB88320 (reflected), seed 0,
/// no final complement.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |crc, byte| CRC_TABLE[usize::from((crc as u8) ^ byte)] ^ (crc >> 8))
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{crc32, internet, updated};

    #[test]
    fn the_crc_of_irati_has_its_check_value() {
        assert_eq!(crc32(b"123456789"), 0x2dfd_2d88);
    }

    #[test]
    fn a_message_with_its_checksum_has_the_checksum_zero() {
        // RFC 1071, section 3.
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet(&data), !0xddf2);
        let mut with_checksum = data.to_vec();
        with_checksum.extend((!0xddf2_u16).to_be_bytes());
        assert_eq!(internet(&with_checksum), 0);
    }

    #[test]
    fn an_updated_checksum_is_that_of_the_changed_message() {
        for (old, new) in [
            (0x0001_u16, 0x0000_u16),
            (0xffff, 0x0000),
            (0x0000, 0xffff),
            (0x4000, 0x3f00),
        ] {
            let message = |word: u16| [&[0x12, 0x34, 0x80, 0x01][..], &word.to_be_bytes()].concat();
            assert_eq!(updated(internet(&message(old)), old, new), internet(&message(new)));
        }
    }
}
