//! Keys of externs by `weir ctl key`, over both protocols and with several workers. No output shows
//! a key.

#![cfg(target_os = "linux")]

mod common;

use common::{Running, weir};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_client::{Client, Options, Overflow};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../weir-server/tests/p4/extern_keys.p4");
/// The test vector of SipHash-2-4's authors: the hash of 00 to 0e with the key 00 to 0f.
const HASH: u64 = 0xa129_ca61_49be_45e5;
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const CPU: u8 = 5;

struct Switch {
    running: Running,
    p4runtime: String,
}

impl Switch {
    fn start(workers: &str) -> Self {
        let arguments = [
            PROGRAM,
            "-i",
            "1@null",
            "-i",
            "2@null",
            "--cpu-port",
            "5",
            "--workers",
            workers,
        ];
        let servers = ["--p4runtime", "127.0.0.1:0", "--bfrt", "127.0.0.1:0"];
        let arguments = [&arguments[..], &servers].concat();
        let running = Running::start(&arguments, "BF Runtime");
        let said = running.said.iter().find_map(|line| line.strip_prefix("P4Runtime at "));
        let p4runtime = said.expect("serves both").to_owned();
        Switch { running, p4runtime }
    }

    fn at<'a>(&'a self, protocol: &'a str) -> [&'a str; 2] {
        let address = match protocol {
            "--bfrt" => &self.running.address,
            _ => &self.p4runtime,
        };
        [protocol, address]
    }

    /// Exit code, stdout, stderr.
    fn ctl(&self, protocol: &str, arguments: &[&str]) -> (i32, String, String) {
        weir(&[&["ctl"][..], &self.at(protocol), arguments].concat())
    }

    /// As [`Switch::ctl`], with something on stdin.
    fn ctl_with(&self, protocol: &str, arguments: &[&str], input: &[u8]) -> (bool, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("ctl")
            .args(self.at(protocol))
            .args(arguments)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let out = child.wait_with_output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    }

    /// The hash and the sequence number for a packet of the control plane.
    async fn answer(&self, key: u8) -> (u64, u32) {
        let client = Client::connect(Options::p4runtime(&self.p4runtime).unwrap())
            .await
            .unwrap();
        let primary = tokio::time::timeout(Duration::from_secs(20), client.primary()).await;
        primary.expect("nobody else controls it").unwrap();
        let mut packets = client.packets(4, Overflow::Count);
        client
            .packet_out(std::iter::once(key).chain(0..15).collect(), &[])
            .await
            .unwrap();
        let packet = tokio::time::timeout(Duration::from_secs(20), packets.next()).await;
        let bytes = packet.expect("an answer").expect("is connected").payload;
        client.close().await;
        let hash = u64::from_be_bytes(bytes[1..9].try_into().unwrap());
        (hash, u32::from_be_bytes(bytes[9..13].try_into().unwrap()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_set_listed_and_removed_over_both_protocols() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tags.key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let file = file.to_str().unwrap();
    let raw: Vec<u8> = (0..16).collect();
    for protocol in ["--p4runtime", "--bfrt"] {
        let switch = Switch::start("1");
        assert_eq!(switch.answer(CPU).await.0, 0, "no key {CPU}");
        for index in ["1", "3"] {
            assert_eq!(
                switch.ctl(protocol, &["key", "set", "tags", index, file]),
                (0, String::new(), String::new())
            );
        }
        assert_eq!(switch.answer(1).await.0, HASH);
        assert_eq!(switch.ctl(protocol, &["key", "list", "tags"]).1, "1\n3\n");
        let json = switch.ctl(protocol, &["key", "list", "tags", "--json"]).1;
        assert_eq!(json, "{\"index\":1,\"is_set\":true}\n{\"index\":3,\"is_set\":true}\n");
        let shown = switch.ctl(protocol, &["show", "tags"]).1;
        assert!(
            shown.contains("$KEY_INDEX=3") && shown.contains("$IS_SET=true"),
            "{shown}"
        );
        // From stdin, as digits and as bytes.
        for (index, more, input) in [("0", &[][..], KEY.as_bytes()), ("2", &["--raw"], &raw[..])] {
            let arguments = [&["key", "set", "tags", index, "-"], more].concat();
            assert_eq!(switch.ctl_with(protocol, &arguments, input), (true, String::new()));
        }
        assert_eq!((switch.answer(0).await.0, switch.answer(2).await.0), (HASH, HASH));
        assert_eq!(switch.ctl(protocol, &["key", "remove", "tags", "1"]).0, 0);
        assert_eq!(switch.answer(1).await.0, 0);
        let (code, dump, _) = switch.ctl(protocol, &["dump"]);
        assert!(code == 0 && !dump.contains("$KEY"), "{dump}");
        switch.running.terminate();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_and_the_key_is_not_shown() {
    let switch = Switch::start("1");
    let secret = "abababababababababababababababab";
    for (arguments, input, expected) in [
        (
            &["key", "set", "tags", "4", "-"][..],
            secret,
            "there is no key 4: the instance has keys 0 to 3",
        ),
        (
            &["key", "set", "tags", "0", "-"],
            &secret[2..],
            "a key of 15 bytes, but 16 are expected",
        ),
        (&["key", "set", "tags", "0", "-"], "abx", "character 3 is none"),
        (&["key", "set", "tags", "0", "-"], "aba", "there is an odd number"),
        (&["key", "set", "tags", "0", "-"], "", "there are none"),
        (&["key", "set", "tags", "0", "-", "--raw"], "", "no bytes"),
        (
            &["key", "set", "numbers", "0", "-"],
            secret,
            "0 (which resets the association) are expected",
        ),
        (&["key", "set", "nothing", "0", "-"], secret, "nothing"),
        (&["key", "set", "$MULTICAST_GROUPS", "0", "-"], secret, "has no keys"),
        (&["key", "remove", "tags", "0"], "", "key 0 of `I.tags` is not set"),
        (&["insert", "tags", "0", "$KEY=0xabab"], "", "weir ctl key set"),
    ] {
        let (succeeded, said) = switch.ctl_with("--p4runtime", arguments, input.as_bytes());
        assert!(!succeeded && said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains("abab") && !said.contains("43947"), "{said}");
    }
    assert_eq!(switch.ctl("--p4runtime", &["key", "list", "tags"]).1, "");
    assert!(!Path::new("-").exists());
    switch.running.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_workers_share_a_key_and_an_association_is_reset_once() {
    let switch = Switch::start("2");
    let (ok, said) = switch.ctl_with("--bfrt", &["key", "set", "tags", "1", "-"], KEY.as_bytes());
    assert!(ok, "{said}");
    for number in 1..=5 {
        assert_eq!(switch.answer(1).await, (HASH, number));
    }
    assert_eq!(switch.ctl("--bfrt", &["key", "remove", "numbers", "1"]).0, 0);
    assert_eq!(switch.answer(1).await, (HASH, 1));
    switch.running.terminate();
}
