//! The changes that an egress port makes to packets: it writes the transmit time into them.

/// Bytes of `ptp_metadata_t`.
const INSTRUCTIONS: usize = 8;
/// Bytes of the time that is written.
const TIME: usize = 6;

/// Follows the eight bytes in front of a packet, which are not sent: adds the time to a number and
/// writes the sum somewhere; the checksum somewhere else is mended by what that has changed.
/// Offsets are counted from the packet's first byte; a checksum at 0, or one that is 0, is none.
/// Gives how many bytes are not sent; `None` if the packet is too short for that, which stays as it
/// is.
pub(super) fn update_delay(bytes: &mut [u8], now_ns: u64) -> Option<usize> {
    let (instructions, packet) = bytes.split_at_mut_checked(INSTRUCTIONS)?;
    let (checksum_at, time_at) = (usize::from(instructions[0]), usize::from(instructions[1]));
    let correction = instructions[2..].iter().fold(0, |n, b| n << 8 | u64::from(*b));
    let time = (correction.wrapping_add(now_ns) & 0xffff_ffff_ffff).to_be_bytes();
    let before: [u8; TIME] = packet.get(time_at..time_at + TIME)?.try_into().ok()?;
    let after: [u8; TIME] = time[8 - TIME..].try_into().ok()?;
    if checksum_at != 0 {
        packet.get(checksum_at..checksum_at + 2)?;
    }
    packet[time_at..time_at + TIME].copy_from_slice(&after);
    if checksum_at != 0 {
        mend(&mut packet[checksum_at..checksum_at + 2], time_at, &before, &after);
    }
    Some(INSTRUCTIONS)
}

/// Corrects a checksum for bytes that have changed, the first of them at an odd or even place (RFC
/// 1624).
fn mend(field: &mut [u8], offset: usize, before: &[u8; TIME], after: &[u8; TIME]) {
    let checksum = u16::from_be_bytes([field[0], field[1]]);
    if checksum == 0 {
        return;
    }
    let aligned = |bytes: &[u8]| {
        let mut all = vec![0; offset % 2];
        all.extend_from_slice(bytes);
        all
    };
    let sum = crate::hash::ones_sum(!checksum, &aligned(before), true);
    let sum = !crate::hash::ones_sum(sum, &aligned(after), false);
    let mended = if sum == 0 { 0xffff } else { sum };
    field.copy_from_slice(&mended.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::csum16;

    #[test]
    fn the_checksum_stays_right() {
        for time_at in [4, 5, 7] {
            let mut packet: Vec<u8> = (1..=20).collect();
            packet[2..4].fill(0);
            let checksum = csum16(&packet);
            packet[2..4].copy_from_slice(&checksum.to_be_bytes());
            let mut bytes = vec![2, time_at, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe];
            bytes.extend(&packet);
            let front = update_delay(&mut bytes, 0x1_0203_0405).expect("long enough");
            let sent = &bytes[front..];
            let at = usize::from(time_at);
            assert_eq!(sent[at..at + 6], [0, 1, 2, 3, 4, 3]);
            assert_eq!(csum16(sent), 0);
        }
    }

    #[test]
    fn short_packets_and_absent_checksums() {
        let sent = |bytes: &[u8], now_ns| {
            let mut bytes = bytes.to_vec();
            let front = update_delay(&mut bytes, now_ns)?;
            Some(bytes.split_off(front))
        };
        assert_eq!(sent(&[0; 7], 0), None);
        assert_eq!(sent(&[0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6], 0), None);
        assert_eq!(sent(&[200, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6], 0), None);
        let untouched = sent(&[6, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0], 9);
        assert_eq!(untouched, Some(vec![0, 0, 0, 0, 0, 9, 0, 0]));
    }
}
