//! Captures made by hand, good and bad.

use super::*;
use proptest::prelude::*;

type Read3 = Vec<(Vec<u8>, u64, u32)>;

fn read(file: &[u8]) -> Result<Read3, PcapError> {
    let mut reader = PcapReader::new(file)?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet()? {
        packets.push((packet.data.to_vec(), packet.time_ns, packet.original_length));
    }
    Ok(packets)
}

/// Numbers of 32 bits in a byte order.
fn words(big: bool, words: &[u32]) -> Vec<u8> {
    let bytes = |w: &u32| {
        if big { w.to_be_bytes() } else { w.to_le_bytes() }
    };
    words.iter().flat_map(bytes).collect()
}

fn halves(big: bool, high: u16, low: u16) -> u32 {
    // Two 16-bit fields one after the other.
    if big {
        u32::from(high) << 16 | u32::from(low)
    } else {
        u32::from(low) << 16 | u32::from(high)
    }
}

fn classic(big: bool, magic: u32) -> Vec<u8> {
    let mut file = words(big, &[magic, halves(big, 2, 4), 0, 0, 65535, 1]);
    file.extend(words(big, &[10, 5, 3, 60]));
    file.extend([1, 2, 3]);
    file
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let length = padded.len() as u32 + 12;
    [words(big, &[kind, length]), padded, words(big, &[length])].concat()
}

fn section(big: bool) -> Vec<u8> {
    let body = words(big, &[0x1a2b_3c4d, halves(big, 1, 0), u32::MAX, u32::MAX]);
    block(big, 0x0a0d_0d0a, &body)
}

fn interface(big: bool, options: &[u8]) -> Vec<u8> {
    let body = words(big, &[halves(big, 1, 0), 2]);
    block(big, 1, &[body, options.to_vec()].concat())
}

fn enhanced(big: bool, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let header = words(big, &[interface, (ticks >> 32) as u32, ticks as u32, length, length]);
    block(big, 6, &[header, data.to_vec()].concat())
}

#[test]
fn classic_captures_of_both_units_and_byte_orders_are_read() {
    for big in [false, true] {
        let micro = read(&classic(big, 0xa1b2_c3d4)).unwrap();
        assert_eq!(micro, [(vec![1, 2, 3], 10_000_005_000, 60)]);
        let nano = read(&classic(big, 0xa1b2_3c4d)).unwrap();
        assert_eq!(nano, [(vec![1, 2, 3], 10_000_000_005, 60)]);
    }
}

#[test]
fn every_packet_block_of_pcapng_is_read_in_both_byte_orders() {
    for big in [false, true] {
        let old = words(big, &[halves(big, 0, 7), 0, 9_000_000, 1, 1]);
        let file = [
            section(big),
            interface(big, &[]),
            enhanced(big, 0, 1_500_000, &[1, 2, 3, 4, 5]),
            block(big, 3, &[words(big, &[9]), vec![7, 8]].concat()),
            block(big, 0x0bad, &[0; 5]),
            block(big, 2, &[old, vec![6]].concat()),
        ];
        let packets = read(&file.concat()).unwrap();
        let expected = [
            (vec![1, 2, 3, 4, 5], 1_500_000_000, 5),
            (vec![7, 8], 0, 9),
            (vec![6], 9_000_000_000, 1),
        ];
        assert_eq!(packets, expected);
    }
}

#[test]
fn times_of_pcapng_have_the_resolution_and_offset_of_their_interface() {
    let options = |resolution: u8, offset: i64| {
        let mut options = words(false, &[halves(false, 2, 3)]);
        options.extend(*b"lo\0\0");
        options.extend(words(false, &[halves(false, 9, 1)]));
        options.extend([resolution, 0, 0, 0]);
        options.extend(words(false, &[halves(false, 14, 8)]));
        options.extend(offset.to_le_bytes());
        options.extend(words(false, &[0]));
        options
    };
    let file = [
        section(false),
        interface(false, &options(9, 0)),
        interface(false, &options(0x80 | 10, 2)),
        interface(false, &options(127, -5)),
        enhanced(false, 0, 1_700_000_000_123_456_789, &[]),
        enhanced(false, 1, 1536, &[]),
        enhanced(false, 2, u64::MAX, &[]),
    ];
    let times: Vec<_> = read(&file.concat()).unwrap().iter().map(|p| p.1).collect();
    assert_eq!(times, [1_700_000_000_123_456_789, 3_500_000_000, 0]);
}

#[test]
fn a_new_section_forgets_interfaces_and_may_change_the_byte_order() {
    let good = [
        section(false),
        interface(false, &[]),
        enhanced(false, 0, 0, &[1]),
        section(true),
        interface(true, &[]),
        enhanced(true, 0, 0, &[2]),
    ];
    assert_eq!(read(&good.concat()).unwrap().len(), 2);
    let bad = [
        section(false),
        interface(false, &[]),
        section(true),
        enhanced(true, 0, 0, &[2]),
    ];
    let error = read(&bad.concat()).unwrap_err();
    assert!(matches!(error.kind, PcapErrorKind::Interface(0, 0)), "{error}");
}

#[test]
fn a_truncated_file_gives_its_packets_then_an_error_with_its_place() {
    for whole in [
        classic(false, 0xa1b2_c3d4),
        [section(true), interface(true, &[]), enhanced(true, 0, 0, &[1; 9])].concat(),
    ] {
        for end in 1..whole.len() {
            match read(&whole[..end]) {
                Ok(packets) => assert!(packets.is_empty(), "cut between two parts"),
                Err(error) => assert_eq!(error.offset, end as u64, "{error}"),
            }
        }
    }
}

#[test]
fn lengths_that_cannot_be_are_errors_and_not_allocations() {
    let mut file = classic(false, 0xa1b2_c3d4);
    file[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read(&file).unwrap_err();
    assert_eq!(
        error.to_string(),
        "at byte 40: a packet of 4294967295 bytes; none is longer than 262144"
    );
    for length in [0u32, 8, 13, 16] {
        let mut file = [section(false), interface(false, &[])].concat();
        let packet = file.len();
        file.extend(enhanced(false, 0, 0, &[1; 4]));
        file[packet + 4..packet + 8].copy_from_slice(&length.to_le_bytes());
        let error = read(&file).unwrap_err();
        assert!(
            matches!(error.kind, PcapErrorKind::BlockLength(n) if n == length),
            "{error}"
        );
    }
    let error = read(b"GIF89a..").unwrap_err();
    assert!(matches!(error.kind, PcapErrorKind::Magic(0x4749_4638)));
}

#[test]
fn the_two_lengths_of_a_block_must_agree() {
    let mut file = section(false);
    let end = file.len();
    file[end - 4] ^= 4;
    assert!(matches!(read(&file).unwrap_err().kind, PcapErrorKind::BlockEnd(28, 24)));
}

#[test]
fn what_is_written_is_read_again() {
    let mut file = Vec::new();
    let mut writer = PcapWriter::new(&mut file).unwrap();
    writer.write(&[9; 1514], 1_700_000_000_000_000_001).unwrap();
    writer.write(&[], 0).unwrap();
    let packets = read(&file).unwrap();
    assert_eq!(packets[0], (vec![9; 1514], 1_700_000_000_000_000_001, 1514));
    assert_eq!(packets[1], (vec![], 0, 0));
}

#[test]
fn a_device_plays_one_file_and_writes_another() {
    use crate::{Batch, Device, Frame};
    let folder = std::env::temp_dir().join(format!("weir-io-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (input, output) = (folder.join("in.pcap"), folder.join("out.pcap"));
    std::fs::write(&input, classic(true, 0xa1b2_3c4d)).unwrap();
    let mut device = PcapDevice::open(&input, Some(&output)).unwrap();
    let mut batch = Batch::new(4);
    assert_eq!(device.receive(&mut batch).unwrap(), 1);
    assert!(device.is_exhausted());
    let frame = Frame {
        data: &[5; 60],
        time_ns: 7,
    };
    assert_eq!(device.transmit(&[frame]).unwrap(), 1);
    device.flush().unwrap();
    assert_eq!(read(&std::fs::read(&output).unwrap()).unwrap(), [(vec![5; 60], 7, 60)]);
    let error = PcapDevice::open(&folder.join("none"), None).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

proptest! {
    #[test]
    fn no_file_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        for start in [classic(false, 0xa1b2_c3d4), [section(true), interface(true, &[])].concat()] {
            let _ = read(&[start, bytes.clone()].concat());
        }
    }

    #[test]
    fn no_damage_makes_the_reader_panic(place in 0usize..200, value in any::<u8>()) {
        let mut file = [section(false), interface(false, &[0; 24]), enhanced(false, 0, 5, &[1; 30])].concat();
        let place = place % file.len();
        file[place] = value;
        let _ = read(&file);
    }
}
