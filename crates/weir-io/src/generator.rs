//! Packets made up: Ethernet, IPv4, UDP or TCP, the same ones every time.

use crate::batch::{Batch, Frame};
use crate::checksum::Sum;
use crate::device::{Counters, Device};
use crate::error::IoError;
use crate::now_ns;
use crate::spec::SpecError;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::{Duration, Instant};

const ETHERNET: usize = 14;
const VLAN: usize = 4;
const IPV4: usize = 20;
const UDP: usize = 8;
const TCP: usize = 20;
const MAX_SIZE: usize = 65_535;

/// What is on top of IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// UDP.
    #[default]
    Udp,
    /// TCP: segments without a connection.
    Tcp,
}

impl Protocol {
    fn header(self) -> usize {
        match self {
            Protocol::Udp => UDP,
            Protocol::Tcp => TCP,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Tcp => "tcp",
        }
    }
}

/// What a generator makes: `KEY=VALUE,…`, everything optional.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratorSpec {
    /// `size`: bytes per frame as they are handed over, without the Ethernet checksum.
    pub size: usize,
    /// `rate`: frames per second; as fast as they are taken where not given.
    pub rate: Option<f64>,
    /// `count`: number of frames; endless where not given.
    pub count: Option<u64>,
    /// `smac`: source MAC address.
    pub source_mac: [u8; 6],
    /// `dmac`: destination MAC address.
    pub destination_mac: [u8; 6],
    /// `vlan`: identifier of a VLAN tag.
    pub vlan: Option<u16>,
    /// `src`: source IPv4 address of the first flow.
    pub source: Ipv4Addr,
    /// `dst`: destination IPv4 address.
    pub destination: Ipv4Addr,
    /// `sport`: source port of the first flow.
    pub source_port: u16,
    /// `dport`: destination port.
    pub destination_port: u16,
    /// `flows`: number of flows; they differ in source port, then in source address.
    pub flows: u32,
    /// `seed`: draw the flow of each frame at random from this; in turn where not given.
    pub seed: Option<u64>,
    /// `proto`: `udp` or `tcp`.
    pub protocol: Protocol,
}

impl Default for GeneratorSpec {
    fn default() -> Self {
        GeneratorSpec {
            size: 64,
            rate: None,
            count: None,
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            vlan: None,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 1, 1),
            source_port: 1024,
            destination_port: 9,
            flows: 1,
            seed: None,
            protocol: Protocol::Udp,
        }
    }
}

impl GeneratorSpec {
    /// The keys, for messages.
    pub(crate) const KEYS: &'static str =
        "size, rate, count, smac, dmac, vlan, src, dst, sport, dport, flows, seed and proto (udp or tcp)";

    fn headers(&self) -> usize {
        ETHERNET + self.vlan.map_or(0, |_| VLAN) + IPV4 + self.protocol.header()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        fn number<T: FromStr>(key: &str, value: &str, expected: &str) -> Result<T, SpecError> {
            value.parse().map_err(|_| bad(key, value, expected))
        }
        let address = "an IPv4 address, as in 10.0.0.1";
        let port = "a port from 0 to 65535";
        match key {
            "size" => self.size = number(key, value, "a number of bytes")?,
            "rate" => {
                let expected = "frames per second, more than 0";
                let rate: f64 = number(key, value, expected)?;
                if !(rate.is_finite() && rate > 0.0) {
                    return Err(bad(key, value, expected));
                }
                self.rate = Some(rate);
            }
            "count" => self.count = Some(number(key, value, "a number of frames")?),
            "smac" => self.source_mac = mac(key, value)?,
            "dmac" => self.destination_mac = mac(key, value)?,
            "vlan" => {
                let expected = "an identifier from 0 to 4095";
                let id = number(key, value, expected)?;
                self.vlan = Some(id).filter(|&id| id < 4096);
                self.vlan.ok_or_else(|| bad(key, value, expected))?;
            }
            "src" => self.source = number(key, value, address)?,
            "dst" => self.destination = number(key, value, address)?,
            "sport" => self.source_port = number(key, value, port)?,
            "dport" => self.destination_port = number(key, value, port)?,
            "flows" => {
                let expected = "a number of flows from 1 to 4294967295";
                self.flows = number(key, value, expected)?;
                if self.flows == 0 {
                    return Err(bad(key, value, expected));
                }
            }
            "seed" => self.seed = Some(number(key, value, "a number of 64 bits")?),
            "proto" => {
                self.protocol = match value {
                    "udp" => Protocol::Udp,
                    "tcp" => Protocol::Tcp,
                    _ => return Err(bad(key, value, "udp or tcp")),
                }
            }
            _ => return Err(SpecError::UnknownKey(key.to_string())),
        }
        Ok(())
    }
}

fn bad(key: &str, value: &str, expected: &str) -> SpecError {
    SpecError::BadValue {
        key: key.to_string(),
        value: value.to_string(),
        expected: expected.to_string(),
    }
}

fn mac(key: &str, value: &str) -> Result<[u8; 6], SpecError> {
    let expected = "a MAC address, as in 02:00:00:00:00:01";
    let mut address = [0; 6];
    let mut parts = value.split(':');
    for byte in &mut address {
        let part = parts.next().filter(|p| !p.is_empty() && p.len() <= 2);
        let parsed = part.and_then(|p| u8::from_str_radix(p, 16).ok());
        *byte = parsed.ok_or_else(|| bad(key, value, expected))?;
    }
    match parts.next() {
        None => Ok(address),
        Some(_) => Err(bad(key, value, expected)),
    }
}

impl FromStr for GeneratorSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut spec = GeneratorSpec::default();
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(SpecError::NoValue(part.to_string()));
            };
            spec.set(key, value)?;
        }
        let least = spec.headers();
        if !(least..=MAX_SIZE).contains(&spec.size) {
            let tagged = spec.vlan.map_or("", |_| " with a VLAN tag");
            let name = spec.protocol.name();
            let expected = format!("a number of bytes from {least} to {MAX_SIZE} for {name}{tagged}");
            return Err(bad("size", &spec.size.to_string(), &expected));
        }
        Ok(spec)
    }
}

impl fmt::Display for GeneratorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mac = |m: [u8; 6]| m.map(|b| format!("{b:02x}")).join(":");
        write!(f, "size={},proto={}", self.size, self.protocol.name())?;
        self.rate.iter().try_for_each(|v| write!(f, ",rate={v}"))?;
        self.count.iter().try_for_each(|v| write!(f, ",count={v}"))?;
        self.vlan.iter().try_for_each(|v| write!(f, ",vlan={v}"))?;
        self.seed.iter().try_for_each(|v| write!(f, ",seed={v}"))?;
        write!(
            f,
            ",flows={},src={},dst={},sport={},dport={},smac={},dmac={}",
            self.flows,
            self.source,
            self.destination,
            self.source_port,
            self.destination_port,
            mac(self.source_mac),
            mac(self.destination_mac)
        )
    }
}

/// Makes packets. What is sent to it is counted and gone.
#[derive(Debug)]
pub struct Generator {
    spec: GeneratorSpec,
    frame: Vec<u8>,
    made: u64,
    random: u64,
    started: Option<Instant>,
    counters: Counters,
}

/// Where the parts of a frame are.
struct Layout {
    ip: usize,
    l4: usize,
    payload: usize,
}

impl Generator {
    /// A generator that has made nothing yet.
    #[must_use]
    pub fn new(spec: GeneratorSpec) -> Self {
        let frame = template(&spec);
        let random = spec.seed.unwrap_or(0);
        Generator {
            spec,
            frame,
            made: 0,
            random,
            started: None,
            counters: Counters::default(),
        }
    }

    fn left(&self) -> u64 {
        self.spec.count.map_or(u64::MAX, |c| c.saturating_sub(self.made))
    }

    /// Number of frames that the rate asks for by now.
    fn due(&mut self) -> u64 {
        let Some(rate) = self.spec.rate else {
            return self.left();
        };
        let started = *self.started.get_or_insert_with(Instant::now);
        let due = (started.elapsed().as_secs_f64() * rate) as u64 + 1;
        due.saturating_sub(self.made).min(self.left())
    }

    fn next_flow(&mut self) -> u32 {
        if self.spec.flows == 1 {
            return 0;
        }
        if self.spec.seed.is_none() {
            return (self.made % u64::from(self.spec.flows)) as u32;
        }
        // splitmix64
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * u128::from(self.spec.flows)) >> 64) as u32
    }

    /// Makes the next frame in place.
    fn make(&mut self) {
        let flow = self.next_flow();
        let layout = layout(&self.spec);
        // 16384 ports per address.
        let source = Ipv4Addr::from_bits(self.spec.source.to_bits().wrapping_add(flow >> 14));
        let port = self.spec.source_port.wrapping_add((flow & 0x3fff) as u16);
        let frame = &mut self.frame;
        let id = (self.made as u16).to_be_bytes();
        frame[layout.ip + 4..layout.ip + 6].copy_from_slice(&id);
        frame[layout.ip + 12..layout.ip + 16].copy_from_slice(&source.octets());
        frame[layout.ip + 10..layout.ip + 12].fill(0);
        let sum = Sum::default().add(&frame[layout.ip..layout.l4]).finish();
        frame[layout.ip + 10..layout.ip + 12].copy_from_slice(&sum.to_be_bytes());
        frame[layout.l4..layout.l4 + 2].copy_from_slice(&port.to_be_bytes());
        // The number of the frame, as much of it as there is room for.
        let number = self.made.to_be_bytes();
        let room = (frame.len() - layout.payload).min(number.len());
        frame[layout.payload..layout.payload + room].copy_from_slice(&number[8 - room..]);
        if self.spec.protocol == Protocol::Tcp {
            let sequence = (self.made as u32).to_be_bytes();
            frame[layout.l4 + 4..layout.l4 + 8].copy_from_slice(&sequence);
        }
        let (field, protocol) = match self.spec.protocol {
            Protocol::Udp => (layout.l4 + 6, 17),
            Protocol::Tcp => (layout.l4 + 16, 6),
        };
        frame[field..field + 2].fill(0);
        let length = frame.len() - layout.l4;
        let sum = Sum::default().add(&frame[layout.ip + 12..layout.l4]).word(protocol);
        let mut sum = sum.word(length as u16).add(&frame[layout.l4..]).finish();
        if sum == 0 && self.spec.protocol == Protocol::Udp {
            sum = 0xffff;
        }
        frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        self.made += 1;
    }
}

fn layout(spec: &GeneratorSpec) -> Layout {
    let ip = ETHERNET + spec.vlan.map_or(0, |_| VLAN);
    let l4 = ip + IPV4;
    Layout {
        ip,
        l4,
        payload: l4 + spec.protocol.header(),
    }
}

/// A frame with everything in it that is the same in all.
fn template(spec: &GeneratorSpec) -> Vec<u8> {
    let layout = layout(spec);
    let size = spec.size.clamp(layout.payload, MAX_SIZE);
    let mut frame = vec![0; size];
    frame[..6].copy_from_slice(&spec.destination_mac);
    frame[6..12].copy_from_slice(&spec.source_mac);
    if let Some(id) = spec.vlan {
        frame[12..14].copy_from_slice(&[0x81, 0x00]);
        frame[14..16].copy_from_slice(&id.to_be_bytes());
    }
    frame[layout.ip - 2..layout.ip].copy_from_slice(&[0x08, 0x00]);
    let ip = &mut frame[layout.ip..];
    let length = ip.len() as u16;
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[8] = 64;
    ip[16..20].copy_from_slice(&spec.destination.octets());
    let l4 = &mut frame[layout.l4..];
    l4[2..4].copy_from_slice(&spec.destination_port.to_be_bytes());
    match spec.protocol {
        Protocol::Udp => {
            let length = l4.len() as u16;
            l4[4..6].copy_from_slice(&length.to_be_bytes());
            frame[layout.ip + 9] = 17;
        }
        Protocol::Tcp => {
            // Five words of header, ACK, a window.
            l4[12..16].copy_from_slice(&[0x50, 0x10, 0xff, 0xff]);
            frame[layout.ip + 9] = 6;
        }
    }
    for (i, byte) in frame[layout.payload..].iter_mut().enumerate() {
        *byte = i as u8;
    }
    frame
}

impl Device for Generator {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        let due = self.due().min(batch.room() as u64);
        let time_ns = if due == 0 { 0 } else { now_ns() };
        let mut added = 0;
        while added < due && batch.room() > 0 {
            let before = (self.made, self.random);
            self.make();
            if !batch.push(&self.frame, time_ns) {
                // Made again when there is room: none is skipped.
                (self.made, self.random) = before;
                break;
            }
            self.counters.count_received(self.frame.len());
            added += 1;
        }
        Ok(added as usize)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        self.counters.count_sent(frames);
        Ok(frames.len())
    }

    fn description(&self) -> String {
        format!("gen:{}", self.spec)
    }

    fn is_exhausted(&self) -> bool {
        self.left() == 0
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn ready_in(&self) -> Option<Duration> {
        let (Some(rate), Some(started)) = (self.spec.rate, self.started) else {
            return Some(Duration::ZERO);
        };
        let next = Duration::try_from_secs_f64(self.made as f64 / rate).unwrap_or(Duration::MAX);
        Some(next.saturating_sub(started.elapsed()))
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(spec: &str, count: usize) -> Vec<Vec<u8>> {
        let mut generator = Generator::new(spec.parse().unwrap());
        let mut batch = Batch::new(count);
        generator.receive(&mut batch).unwrap();
        batch.iter().map(|f| f.data.to_vec()).collect()
    }

    fn is_right(frame: &[u8], ip: usize, protocol: u16) -> bool {
        let l4 = ip + 20;
        let length = (frame.len() - l4) as u16;
        let sum = Sum::default().add(&frame[ip + 12..l4]).word(protocol);
        let l4_sum = sum.word(length).add(&frame[l4..]).finish();
        Sum::default().add(&frame[ip..l4]).finish() == 0 && l4_sum == 0
    }

    #[test]
    fn packets_have_the_size_asked_for_and_right_checksums() {
        for (spec, ip, protocol) in [
            ("size=42", 14, 17),
            ("size=65,flows=9", 14, 17),
            ("size=1514,proto=tcp,flows=100000,seed=3", 14, 6),
            ("size=65535,vlan=7", 18, 17),
        ] {
            for frame in frames(spec, 5) {
                assert!(is_right(&frame, ip, protocol), "{spec}");
            }
        }
        assert_eq!(frames("size=99", 1)[0].len(), 99);
    }

    #[test]
    fn the_same_specification_makes_the_same_packets() {
        let spec = "flows=1000,seed=42,count=20";
        assert_eq!(frames(spec, 20), frames(spec, 20));
        assert_ne!(frames(spec, 20), frames("flows=1000,seed=43,count=20", 20));
    }

    #[test]
    fn a_batch_that_is_too_small_loses_no_packet() {
        let mut generator = Generator::new("count=5,size=60000".parse().unwrap());
        let mut batch = Batch::new(8);
        let mut sizes = Vec::new();
        while !generator.is_exhausted() {
            batch.clear();
            sizes.push(generator.receive(&mut batch).unwrap());
            let last = batch.get(batch.len() - 1).unwrap().data[42..50].to_vec();
            assert_eq!(last, (sizes.iter().sum::<usize>() as u64 - 1).to_be_bytes());
        }
        assert_eq!(sizes.iter().sum::<usize>(), 5);
    }

    #[test]
    fn flows_differ_in_port_then_address() {
        let spec = "flows=16385";
        let all = frames(spec, 16385);
        assert_eq!(all[0][26..30], [10, 0, 0, 1]);
        assert_eq!(all[16384][26..30], [10, 0, 0, 2]);
        assert_eq!(all[0][34..36], all[16384][34..36]);
    }

    #[test]
    fn a_rate_holds_packets_back() {
        let mut generator = Generator::new("rate=0.001".parse().unwrap());
        let mut batch = Batch::new(8);
        assert_eq!(generator.receive(&mut batch).unwrap(), 1);
        assert_eq!(generator.receive(&mut batch).unwrap(), 0);
        assert!(generator.ready_in().unwrap() > Duration::from_secs(900));
    }
}
