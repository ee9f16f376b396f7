//! Numbers as bytes (specification, section "Bytestrings").

use super::refusal::Refusal;
use weir_ir::Bits;

/// The number without the zeros before it; of zero one byte.
fn shortest(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    &bytes[zeros.min(bytes.len().saturating_sub(1))..]
}

/// An unsigned number of this many bits, given in any number of bytes, big-endian.
///
/// # Errors
/// There are no bytes, or the number does not fit.
pub fn decode(width: u32, bytes: &[u8]) -> Result<Bits, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::out_of_range("the value has no bytes; zero is one zero byte"));
    }
    let number = shortest(bytes);
    let bits = number.len() as u64 * 8 - u64::from(number[0].leading_zeros());
    if bits > u64::from(width) {
        return Err(Refusal::out_of_range(format!(
            "the value takes {bits} bits and its type has {width}"
        )));
    }
    Ok(Bits::from_bytes(width, number))
}

/// An unsigned number in as few bytes as it fits in, big-endian; zero in one.
#[must_use]
pub fn encode(value: &Bits) -> Vec<u8> {
    let bytes = value.to_bytes();
    if bytes.is_empty() {
        return vec![0];
    }
    shortest(&bytes).to_vec()
}

/// A two's complement number of this many bits, given in any number of bytes.
///
/// # Errors
/// There are no bytes, or the number does not fit.
pub fn decode_signed(width: u32, bytes: &[u8]) -> Result<Bits, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::out_of_range("the value has no bytes; zero is one zero byte"));
    }
    let given = u32::try_from(bytes.len() * 8).map_err(|_| Refusal::out_of_range("the value is too long"))?;
    let number = Bits::from_bytes(given, bytes);
    if given <= width {
        return Ok(number.sign_extend(width));
    }
    let value = number.slice(width.saturating_sub(1), 0);
    if width == 0 || value.sign_extend(given) != number {
        return Err(Refusal::out_of_range(format!("the value does not fit in int<{width}>")));
    }
    Ok(value)
}

/// A two's complement number in as few bytes as it fits in.
#[must_use]
pub fn encode_signed(value: &Bits) -> Vec<u8> {
    let bytes = value.sign_extend(value.width().max(1).next_multiple_of(8)).to_bytes();
    let mut from = 0;
    while from + 1 < bytes.len()
        && ((bytes[from] == 0 && bytes[from + 1] < 0x80) || (bytes[from] == 0xff && bytes[from + 1] >= 0x80))
    {
        from += 1;
    }
    bytes[from..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4rt::refusal::Cause;

    #[test]
    fn unsigned_numbers_come_in_any_length_and_leave_in_the_shortest() {
        for (width, given, kept) in [
            (8, &[0x63][..], &[0x63][..]),
            (16, &[0, 0x63], &[0x63]),
            (12, &[0, 0, 0x63], &[0x63]),
            (16, &[0x30, 0x64], &[0x30, 0x64]),
            (9, &[1, 0xff], &[1, 0xff]),
            (128, &[0], &[0]),
        ] {
            assert_eq!(encode(&decode(width, given).expect("fits")), kept);
        }
    }

    #[test]
    fn an_unsigned_number_that_is_empty_or_too_wide_is_out_of_range() {
        for (width, given) in [
            (8, &[1, 0x63][..]),
            (8, &[]),
            (16, &[1, 0, 0x63]),
            (12, &[0x10, 0x63]),
            (12, &[0, 0x40, 0x63]),
        ] {
            assert_eq!(decode(width, given).expect_err("refused").cause, Cause::OutOfRange);
        }
    }

    #[test]
    fn signed_numbers_are_extended_by_their_sign() {
        for (width, given, kept) in [
            (8, &[0x63][..], &[0x63][..]),
            (8, &[0x9d], &[0x9d]),
            (8, &[0xff, 0x9d], &[0x9d]),
            (12, &[0xfd, 0x1d], &[0xfd, 0x1d]),
            (16, &[0, 0], &[0]),
            (16, &[0xff], &[0xff]),
        ] {
            let value = decode_signed(width, given).expect("fits");
            assert_eq!((value.width(), encode_signed(&value).as_slice()), (width, kept));
        }
        for (width, given) in [(8, &[0, 0x9d][..]), (12, &[0x8d, 0x1d]), (16, &[])] {
            assert_eq!(
                decode_signed(width, given).expect_err("refused").cause,
                Cause::OutOfRange
            );
        }
    }
}
