//! Captures in exchange with Wireshark's tools. Without them the test says so and passes, except in
//! CI.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::path::Path;
use std::process::Command;
use weir_io::pcap::{PcapReader, PcapWriter};
use weir_io::{Batch, Device, Generator};

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{program}: {output:?}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{program}: {error}");
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

fn packets(path: &Path) -> Vec<(Vec<u8>, u64)> {
    let file = std::fs::read(path).unwrap();
    let mut reader = PcapReader::new(file.as_slice()).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push((packet.data.to_vec(), packet.time_ns));
    }
    packets
}

#[test]
fn wireshark_reads_what_is_written_and_its_formats_are_read() {
    let folder = std::env::temp_dir().join(format!("weir-io-tools-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ours = folder.join("ours.pcap");
    let spec = "size=100,count=50,flows=7,proto=tcp,vlan=3";
    let mut generator = Generator::new(spec.parse().unwrap());
    let mut batch = Batch::new(50);
    generator.receive(&mut batch).unwrap();
    let mut writer = PcapWriter::new(std::fs::File::create(&ours).unwrap()).unwrap();
    for (i, frame) in batch.iter().enumerate() {
        writer.write(frame.data, 1_700_000_000_123_456_789 + i as u64).unwrap();
    }
    let written = packets(&ours);
    let name = |path: &Path| path.display().to_string();
    for (format, unit) in [("pcapng", 1), ("nsecpcap", 1), ("pcap", 1000)] {
        let theirs = folder.join(format);
        if run("editcap", &["-F", format, &name(&ours), &name(&theirs)]).is_none() {
            break;
        }
        let cut: Vec<_> = written
            .iter()
            .map(|(data, time)| (data.clone(), time / unit * unit))
            .collect();
        assert_eq!(packets(&theirs), cut, "{format}");
    }
    let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    let fields = ["-T", "fields", "-e", "ip.checksum.status", "-e", "tcp.checksum.status"];
    let file = name(&ours);
    let arguments = [&["-r", file.as_str()][..], &checks, &fields].concat();
    if let Some(text) = run("tshark", &arguments) {
        let good = text.lines().filter(|line| *line == "1\t1").count();
        assert_eq!(good, 50, "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
