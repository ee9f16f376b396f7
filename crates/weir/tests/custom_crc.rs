//! Parameters of custom CRCs by `weir ctl`, over both protocols and on both engines: packets get
//! the CRC that was asked for.

#![cfg(target_os = "linux")]

mod common;

use common::{Running, weir};
use std::time::Duration;
use weir_client::{Client, Options, Overflow};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../weir-server/tests/p4/custom_crc.p4");
const TEXT: &[u8] = b"123456789";

/// A CRC of 32 bits that takes bytes least significant bit first, by its reflected polynomial:
/// another way than weir's.
fn reflected(polynomial: u32, data: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg());
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !data.iter().fold(!0, byte)
}

struct Switch {
    running: Running,
    p4runtime: String,
}

impl Switch {
    fn start(engine: &str, more: &[&str]) -> Self {
        let arguments = [
            PROGRAM,
            "-D",
            "CRC16",
            "-D",
            "CRC32",
            "-i",
            "1@null",
            "--cpu-port",
            "510",
        ];
        let servers = [
            "--p4runtime",
            "127.0.0.1:0",
            "--bfrt",
            "127.0.0.1:0",
            "--engine",
            engine,
        ];
        let running = Running::start(&[&arguments[..], &servers, more].concat(), "BF Runtime");
        let said = running.said.iter().find_map(|line| line.strip_prefix("P4Runtime at "));
        let p4runtime = said.expect("serves both").to_owned();
        Switch { running, p4runtime }
    }

    /// Exit code, stdout, stderr.
    fn ctl(&self, protocol: &str, arguments: &[&str]) -> (i32, String, String) {
        let address = match protocol {
            "--bfrt" => &self.running.address,
            _ => &self.p4runtime,
        };
        weir(&[&["ctl", protocol, address], arguments].concat())
    }

    fn done(&self, protocol: &str, arguments: &[&str]) -> String {
        let (code, out, error) = self.ctl(protocol, arguments);
        assert_eq!(code, 0, "{arguments:?}: {error}");
        out
    }

    /// What the program makes of the text: the CRCs of 16 and of 32 bits.
    fn answer(&self) -> (u16, u32) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let payload = runtime.block_on(async {
            let client = Client::connect(Options::p4runtime(&self.p4runtime).unwrap())
                .await
                .unwrap();
            client.primary().await.unwrap();
            let mut packets = client.packets(4, Overflow::Count);
            client.packet_out(TEXT.to_vec(), &[]).await.unwrap();
            let packet = tokio::time::timeout(Duration::from_secs(10), packets.next()).await;
            let packet = packet.expect("an answer comes").expect("the stream goes on");
            client.close().await;
            packet.payload
        });
        let [a, b, c, d, e, f] = payload[..] else {
            panic!("{payload:?} are not six bytes")
        };
        (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
    }
}

const CASTAGNOLI: [&str; 5] = [
    "polynomial=0x1edc6f41",
    "initial=0xffffffff",
    "xor_out=0xffffffff",
    "reflect_in=true",
    "reflect_out=true",
];
const CCITT: [&str; 4] = [
    "polynomial=0x1021",
    "initial=0xffff",
    "reflect_in=false",
    "reflect_out=false",
];

fn is_set_over_both_protocols(engine: &str) {
    let switch = Switch::start(engine, &[]);
    let crc32 = reflected(0xedb8_8320, TEXT);
    assert_eq!(switch.answer(), (0xbb3d, crc32));
    for protocol in ["--p4runtime", "--bfrt"] {
        let tables = switch.done(protocol, &["tables", "hash"]);
        assert!(tables.contains("$hash.crc32_custom  custom CRC"), "{tables}");
        assert!(tables.contains("    data    polynomial: bit<16>"), "{tables}");
        let shown = switch.done(protocol, &["show", "crc16_custom"]);
        assert!(shown.contains("polynomial=32773 initial=0"), "{shown}");
    }
    switch.done("--p4runtime", &[&["set", "crc32_custom"], &CASTAGNOLI[..]].concat());
    let castagnoli = reflected(0x82f6_3b78, TEXT);
    assert_eq!(castagnoli, 0xe306_9283);
    assert_eq!(switch.answer(), (0xbb3d, castagnoli));
    // BF Runtime leaves as it is what is not given.
    switch.done("--bfrt", &[&["set", "crc16_custom"], &CCITT[..]].concat());
    assert_eq!(switch.answer(), (0x29b1, castagnoli));

    // A dump brings both back, over the protocol that it is of.
    let folder = tempfile::tempdir().unwrap();
    for protocol in ["--p4runtime", "--bfrt"] {
        let file = folder.path().join("state.jsonl");
        std::fs::write(&file, switch.done(protocol, &["dump"])).unwrap();
        switch.done("--bfrt", &["clear", "crc16_custom", "crc32_custom"]);
        assert_eq!(switch.answer(), (0xbb3d, crc32));
        switch.done(protocol, &["load", &file.display().to_string()]);
        assert_eq!(switch.answer(), (0x29b1, castagnoli));
    }
    // CRC-32/BZIP2 and CRC-16/XMODEM, as directives of an .entries file.
    let file = folder.path().join("crcs.entries");
    let directives = "set_crc32_parameters crc32_custom 0x04c11db7 0xffffffff 0xffffffff false false\n\
                      set_crc16_parameters crc16_custom 0x1021 0 0 False 0\n";
    std::fs::write(&file, directives).unwrap();
    for protocol in ["--p4runtime", "--bfrt"] {
        switch.done("--bfrt", &["clear", "crc16_custom", "crc32_custom"]);
        switch.done(protocol, &["load", &file.display().to_string()]);
        assert_eq!(switch.answer(), (0x31c3, 0xfc89_1918));
    }
}

/// `calc` hashes by CRC-16 in this program, and `calc_0` by CRC-32.
#[test]
fn a_calculation_is_set_shown_dumped_and_put_back_over_both_protocols() {
    let switch = Switch::start("jit", &[]);
    let (crc32, castagnoli) = (reflected(0xedb8_8320, TEXT), reflected(0x82f6_3b78, TEXT));
    let folder = tempfile::tempdir().unwrap();
    for protocol in ["--p4runtime", "--bfrt"] {
        let tables = switch.done(protocol, &["tables", "hash"]);
        assert!(tables.contains("$hash.calc_0  custom CRC"), "{tables}");
        switch.done(protocol, &[&["set", "calc_0"], &CASTAGNOLI[..]].concat());
        assert_eq!(switch.answer(), (0xbb3d, castagnoli));
        let shown = switch.done(protocol, &["show", "calc_0"]);
        assert!(shown.contains("polynomial=0x1edc6f41 initial=0xffffffff"), "{shown}");
        let file = folder.path().join("state.jsonl");
        std::fs::write(&file, switch.done(protocol, &["dump"])).unwrap();
        switch.done("--bfrt", &["clear", "calc_0"]);
        assert_eq!(switch.answer(), (0xbb3d, crc32));
        switch.done(protocol, &["load", &file.display().to_string()]);
        // What was not set has no parameters of its own after it, either.
        switch.done("--bfrt", &[&["set", "crc16_custom"], &CCITT[..]].concat());
        assert_eq!(switch.answer(), (0x29b1, castagnoli));
        switch.done("--bfrt", &["clear", "calc_0", "crc16_custom"]);
        assert_eq!(switch.answer(), (0xbb3d, crc32));
    }
    let file = folder.path().join("crcs.entries");
    let text = file.display().to_string();
    std::fs::write(
        &file,
        "set_crc32_parameters calc_0 0x1edc6f41 0xffffffff 0xffffffff true true\n",
    )
    .unwrap();
    for protocol in ["--p4runtime", "--bfrt"] {
        switch.done(protocol, &["load", &text]);
        assert_eq!(switch.answer(), (0xbb3d, castagnoli));
        switch.done("--bfrt", &["clear", "calc_0"]);
    }
    std::fs::write(&file, "set_crc32_parameters calc 1 0 0 true true\n").unwrap();
    let (code, _, error) = switch.ctl("--bfrt", &["load", &text]);
    let expected = "no hash by a CRC of 32 bits is named `calc`; there are crc32_custom, calc_0";
    assert_eq!((code, error.contains(expected)), (2, true), "{error}");
}

#[test]
fn parameters_are_set_over_both_protocols_with_the_interpreter() {
    is_set_over_both_protocols("interp");
}

#[test]
fn parameters_are_set_over_both_protocols_with_compiled_code() {
    is_set_over_both_protocols("jit");
}

#[test]
fn what_does_not_fit_is_told_before_anything_is_sent() {
    let switch = Switch::start("interp", &[]);
    for (arguments, expected) in [
        (
            &["set", "crc32_custom", "polynomial=1"][..],
            "all parameters are set at once",
        ),
        (
            &["set", "crc16_custom", "polynomial=0x10000"],
            "is no number of 16 bits",
        ),
        (&["set", "crc16_custom", "reflect_in=2"], "not true or false"),
        (&["clear", "crc16_custom"], "cannot be emptied"),
    ] {
        let (code, _, error) = switch.ctl("--p4runtime", arguments);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let (code, _, error) = switch.ctl("--p4runtime", &["delete", "crc16_custom"]);
    assert_eq!((code, error.contains("can only be modified")), (1, true), "{error}");
}

#[test]
fn parameters_are_there_again_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state").display().to_string();
    let mut switch = Switch::start("jit", &["--state", &file]);
    switch.done("--p4runtime", &[&["set", "crc32_custom"], &CASTAGNOLI[..]].concat());
    switch.done("--bfrt", &[&["set", "calc"], &CCITT[..]].concat());
    switch.running.kill();
    let switch = Switch::start("jit", &["--state", &file]);
    assert_eq!(switch.answer(), (0x29b1, 0xe306_9283));
}
