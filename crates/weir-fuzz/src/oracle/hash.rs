//! Hashes and checksums, bit by bit.

/// A cyclic redundancy check whose input and register are reflected, as those of v1model are: the
/// polynomial is written in that order of bits.
fn crc(data: &[u8], polynomial: u32, initial: u32) -> u32 {
    let mut register = initial;
    for byte in data {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            let is_odd = register & 1 == 1;
            register >>= 1;
            if is_odd {
                register ^= polynomial;
            }
        }
    }
    register
}

/// CRC-16/ARC.
pub(super) fn crc16(data: &[u8]) -> u64 {
    crc(data, 0xa001, 0).into()
}

/// CRC-32 of Ethernet.
pub(super) fn crc32(data: &[u8]) -> u64 {
    (!crc(data, 0xedb8_8320, 0xffff_ffff)).into()
}

/// 16-bit words; a zero byte is put after an odd number of bytes.
fn words(data: &[u8]) -> impl Iterator<Item = u64> {
    data.chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
}

/// The Internet checksum (RFC 1071).
pub(super) fn csum16(data: &[u8]) -> u64 {
    let mut sum: u64 = words(data).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum & 0xffff
}

/// Exclusive or of 16-bit words.
pub(super) fn xor16(data: &[u8]) -> u64 {
    words(data).fold(0, |a, b| a ^ b)
}

/// The first eight bytes as a number.
pub(super) fn identity(data: &[u8]) -> u64 {
    data.iter().take(8).fold(0, |a, b| a << 8 | u64::from(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_catalogue() {
        assert_eq!(crc16(b"123456789"), 0xbb3d);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(
            csum16(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2 & 0xffff
        );
        assert_eq!(xor16(&[0x12, 0x34, 0x56]), 0x4434);
        assert_eq!(identity(&[1, 2]), 0x102);
    }
}
