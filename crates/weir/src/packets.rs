//! Packets from the command line: hexadecimal digits or a capture.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use weir_io::pcap::PcapReader;

/// More packets of one capture are not kept in memory.
const MAX_PACKETS: usize = 1 << 20;

/// All packets of an argument, which is a file that exists or else hexadecimal digits.
pub fn all(argument: &str) -> Result<Vec<Vec<u8>>> {
    let path = Path::new(argument);
    if !path.is_file() {
        return Ok(vec![from_hex(argument)?]);
    }
    let file = File::open(path).with_context(|| format!("cannot read {argument}"))?;
    read_capture(BufReader::new(file))
        .map(|p| p.into_iter().map(|(_, bytes)| bytes).collect())
        .with_context(|| format!("cannot read {argument}"))
}

/// One packet of an argument, counted from 1.
pub fn one(argument: &str, number: usize) -> Result<Vec<u8>> {
    let mut packets = all(argument)?;
    if number == 0 || number > packets.len() {
        bail!("there is no packet {number}: {argument} has {}", packets.len());
    }
    Ok(packets.swap_remove(number - 1))
}

/// Times and bytes of the packets of a capture.
pub fn read_capture(reader: impl Read) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut reader = PcapReader::new(reader)?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet()? {
        if packets.len() == MAX_PACKETS {
            bail!("more than {MAX_PACKETS} packets; cut the capture into pieces");
        }
        packets.push((packet.time_ns, packet.data.to_vec()));
    }
    Ok(packets)
}

/// The bytes of hexadecimal digits, which may be grouped by spaces and colons and begin with `0x`.
pub fn from_hex(text: &str) -> Result<Vec<u8>> {
    let trimmed = text.trim_start();
    let digits = trimmed.strip_prefix("0x").or_else(|| trimmed.strip_prefix("0X"));
    let digits: Vec<u32> = digits
        .unwrap_or(trimmed)
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .map(|c| {
            c.to_digit(16)
                .with_context(|| format!("`{text}` is neither a file nor hexadecimal digits: there is a `{c}`"))
        })
        .collect::<Result<_>>()?;
    if digits.is_empty() {
        bail!("a packet has at least one byte: two hexadecimal digits for each");
    }
    if !digits.len().is_multiple_of(2) {
        bail!(
            "a packet has an even number of hexadecimal digits, this has {}",
            digits.len()
        );
    }
    Ok(digits.chunks(2).map(|d| (d[0] * 16 + d[1]) as u8).collect())
}

/// Bytes as digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_may_be_grouped() {
        assert_eq!(one("0a:0b 0C", 1).unwrap(), [10, 11, 12]);
        assert_eq!(one("0x0a0b 0C", 1).unwrap(), [10, 11, 12]);
        assert_eq!(one(" 0X0a", 1).unwrap(), [10]);
        assert!(one("0x", 1).unwrap_err().to_string().contains("at least one byte"));
        assert!(one("0a0", 1).unwrap_err().to_string().contains("even number"));
        assert!(one("no.pcap", 1).unwrap_err().to_string().contains("neither a file"));
        assert!(one("0a", 2).unwrap_err().to_string().contains("has 1"));
    }

    #[test]
    fn the_demo_captures_can_be_read() {
        for (_, bytes) in crate::bundled::DEMO_CAPTURES {
            assert!(read_capture(*bytes).unwrap().len() > 100);
        }
    }
}
