//! Compression: round trips, limits, and hostile input.

mod common;

use common::{Arg, Called, RESIZE, ROOM, function, hex, text};
use proptest::prelude::*;
use weir_externs::Status;

const OUT_STATUS: Arg<'_> = Arg::Out(8);
const ALGORITHMS: &[&str] = if cfg!(feature = "zstd") {
    &["lz4", "zstd"]
} else {
    &["lz4"]
};
const LONGEST: usize = 65_535;

fn compress(algorithm: &str, payload: &[u8]) -> Called {
    let name = format!("{algorithm}_compress");
    match algorithm {
        "zstd" => function(&name, &[RESIZE, Arg::In(8, 3), Arg::Out(32), OUT_STATUS], payload, 0),
        _ => function(&name, &[RESIZE, Arg::Out(32), OUT_STATUS], payload, 0),
    }
}

fn decompress(algorithm: &str, payload: &[u8], length: usize, room: usize) -> Called {
    let arguments = [RESIZE, Arg::In(32, length as u128), OUT_STATUS];
    function(&format!("{algorithm}_decompress"), &arguments, payload, room)
}

fn refuses(algorithm: &str, payload: &[u8], length: usize, room: usize, status: Status) {
    let called = decompress(algorithm, payload, length, room);
    assert_eq!((called.status(), &called.payload[..]), (status, payload), "{algorithm}");
}

#[test]
fn what_repeats_shrinks_and_comes_back() {
    for algorithm in ALGORITHMS {
        for length in (40..300).chain([1400, 9000, 65_534, LONGEST]) {
            let plain: Vec<u8> = text(7, 1).into_iter().cycle().take(length).collect();
            let called = compress(algorithm, &plain);
            assert_eq!(called.outputs[0].to_u64(), Some(length as u64));
            let packed = called.ok();
            assert!(packed.len() < length);
            let room = length - packed.len();
            assert_eq!(
                decompress(algorithm, &packed, length, room).ok(),
                plain,
                "{algorithm} {length}"
            );
            refuses(algorithm, &packed, length, room - 1, Status::NoRoom);
        }
    }
}

#[test]
fn what_does_not_shrink_stays() {
    for algorithm in ALGORITHMS {
        for length in [0, 1, 12, 300, 1400] {
            let plain = text(length, 9);
            let called = compress(algorithm, &plain);
            assert_eq!(called.outputs[0].to_u64(), Some(length as u64));
            assert_eq!((called.status(), called.payload), (Status::Incompressible, plain));
        }
        let plain = vec![0; LONGEST + 1];
        let called = compress(algorithm, &plain);
        assert_eq!(called.outputs[0].to_u64(), Some(0));
        assert_eq!((called.status(), called.payload), (Status::OutOfRange, plain));
    }
}

#[test]
fn lengths_are_bounded_and_must_be_right() {
    for algorithm in ALGORITHMS {
        let plain = [7; 1000];
        let packed = compress(algorithm, &plain).ok();
        for length in [0, 1, 999, 1001, LONGEST] {
            refuses(algorithm, &packed, length, LONGEST, Status::Malformed);
        }
        for length in [LONGEST + 1, 0xffff_ffff] {
            refuses(algorithm, &packed, length, LONGEST, Status::OutOfRange);
        }
        for end in 0..packed.len() {
            refuses(algorithm, &packed[..end], plain.len(), LONGEST, Status::Malformed);
        }
    }
}

#[cfg(feature = "zstd")]
#[test]
fn levels_are_those_of_zstd() {
    let plain = [text(500, 1), text(500, 1)].concat();
    for (level, status) in [
        (0, Status::OutOfRange),
        (1, Status::Ok),
        (19, Status::Ok),
        (20, Status::OutOfRange),
        (255, Status::OutOfRange),
    ] {
        let arguments = [RESIZE, Arg::In(8, level), Arg::Out(32), OUT_STATUS];
        let called = function("zstd_compress", &arguments, &plain, 0);
        assert_eq!(called.status(), status, "{level}");
        if status == Status::Ok {
            assert_eq!(decompress("zstd", &called.payload, plain.len(), 1000).ok(), plain);
        } else {
            assert_eq!(called.payload, plain);
        }
    }
}

/// A block by the format's description: 4 literals, then a match of 16 bytes at offset 4, then 5
/// literals.
#[test]
fn blocks_are_those_of_lz4() {
    let packed = hex("4c 61626364 0400 50 7778797a21");
    assert_eq!(decompress("lz4", &packed, 25, ROOM).ok(), b"abcdabcdabcdabcdabcdwxyz!");
    let before_the_start = hex("4c 61626364 0500 50 7778797a21");
    refuses("lz4", &before_the_start, 25, ROOM, Status::Malformed);
}

/// A frame by RFC 8878: magic number, single segment with a size of 5 bytes, one last raw block.
#[cfg(feature = "zstd")]
#[test]
fn frames_are_those_of_zstd() {
    let frame = hex("28b52ffd 20 05 290000 68656c6c6f");
    assert_eq!(decompress("zstd", &frame, 5, ROOM).ok(), b"hello");
}

proptest! {
    #[test]
    fn random_bytes_are_decompressed_or_refused(
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        length in 0usize..2000,
    ) {
        for algorithm in ALGORITHMS {
            let called = decompress(algorithm, &payload, length, 2000);
            if called.status() == Status::Ok {
                prop_assert_eq!(called.payload.len(), length);
            } else {
                prop_assert_eq!(&called.payload, &payload);
            }
        }
    }

    #[test]
    fn texts_of_few_letters_come_back(letters in proptest::collection::vec(0u8..4, 0..3000)) {
        for algorithm in ALGORITHMS {
            let called = compress(algorithm, &letters);
            if called.status() == Status::Ok {
                let packed = called.ok();
                prop_assert_eq!(&decompress(algorithm, &packed, letters.len(), 3000).ok(), &letters);
            } else {
                prop_assert_eq!(called.status(), Status::Incompressible);
                prop_assert_eq!(&called.payload, &letters);
            }
        }
    }
}
