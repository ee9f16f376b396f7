//! The notation of ports and devices on the command line.

use crate::generator::GeneratorSpec;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// A port and what it is connected to: `PORT@DEVICE`.
///
/// ```
/// use weir_io::{DeviceSpec, PortSpec};
///
/// let port: PortSpec = "2@tap:t0".parse().unwrap();
/// assert_eq!(port, PortSpec { port: 2, device: DeviceSpec::Tap("t0".into()) });
/// let error = "eth0".parse::<PortSpec>().unwrap_err();
/// assert_eq!(error.to_string(), "`eth0` says no port number: write PORT@DEVICE, as in 1@eth0");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PortSpec {
    /// Number of the port.
    pub port: u32,
    /// What it is connected to.
    pub device: DeviceSpec,
}

/// What a port is connected to.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceSpec {
    /// `NAME`: a Linux interface, with AF_XDP where that works and does no harm, else with
    /// AF_PACKET. The description of the device says which, and why. AF_XDP would do harm on
    /// virtual interfaces, where senders leave checksums unfinished and it is not told, and where
    /// this machine has an address on the interface, at which it would not answer any more.
    Interface(String),
    /// `xdp:NAME`: a Linux interface with AF_XDP.
    Xdp(String),
    /// `packet:NAME[,bypass]`: a Linux interface with AF_PACKET.
    Packet(String, Sending),
    /// `tap:NAME`
    Tap(String),
    /// `udp:LOCAL,REMOTE`: a link to another process, here or on another machine; needs no
    /// privilege.
    Udp {
        /// Address and port of this end.
        local: SocketAddr,
        /// Those of the other end; the kernel takes datagrams of no other.
        remote: SocketAddr,
    },
    /// `pcap:IN[,OUT]`
    Pcap {
        /// The capture to play.
        input: PathBuf,
        /// Where to write what is sent.
        output: Option<PathBuf>,
    },
    /// `pcap:,OUT`: receives nothing; what is sent is written to a capture.
    PcapRecord(PathBuf),
    /// `gen:KEY=VALUE,…`
    Generator(GeneratorSpec),
    /// `null`
    Null,
}

/// How AF_PACKET sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sending {
    /// By the interface's queueing discipline: `tc` shapes what is sent, and `tcpdump` on the
    /// interface sees it.
    #[default]
    Queued,
    /// Past it, to the driver, which is faster (PACKET_QDISC_BYPASS of packet(7)).
    Bypass,
}

impl Sending {
    /// As it stands after an interface's name.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Sending::Queued => "",
            Sending::Bypass => ",bypass",
        }
    }
}

impl DeviceSpec {
    /// The Linux interface that this names, if it does.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self {
            DeviceSpec::Interface(name)
            | DeviceSpec::Xdp(name)
            | DeviceSpec::Packet(name, _)
            | DeviceSpec::Tap(name) => Some(name),
            DeviceSpec::Udp { .. }
            | DeviceSpec::Pcap { .. }
            | DeviceSpec::PcapRecord(_)
            | DeviceSpec::Generator(_)
            | DeviceSpec::Null => None,
        }
    }
}

/// What is wrong with a specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No `@`.
    #[error("`{0}` says no port number: write PORT@DEVICE, as in 1@eth0")]
    NoPort(String),
    /// What is before the `@` is no number.
    #[error("`{0}` is no port number: write PORT@DEVICE with a number from 0 to 4294967295")]
    BadPort(String),
    /// Nothing after the `@`.
    #[error(
        "port {0} has no device: write an interface's name, xdp:NAME, packet:NAME[,bypass], tap:NAME, udp:LOCAL,REMOTE, pcap:IN.pcap[,OUT.pcap], pcap:,OUT.pcap, gen:KEY=VALUE,… or null"
    )]
    NoDevice(u32),
    /// No name of an interface, and no kind of device either.
    #[error(
        "`{0}:` is no kind of device: there are xdp:NAME, packet:NAME[,bypass], tap:NAME, udp:LOCAL,REMOTE, pcap:IN.pcap[,OUT.pcap], pcap:,OUT.pcap, gen:KEY=VALUE,… and null; anything else is an interface's name"
    )]
    UnknownKind(String),
    /// Not a name that an interface can have.
    #[error("`{0}` cannot be the name of an interface: 1 to 15 characters, no blank, no slash, no colon")]
    BadName(String),
    /// Something after an interface's name and a comma.
    #[error("`{0}` is no option of packet:NAME; there is packet:NAME,bypass")]
    UnknownOption(String),
    /// `udp:` without two addresses.
    #[error("`udp:{0}`: write udp:LOCAL,REMOTE with two addresses and ports, as in udp:127.0.0.1:7001,127.0.0.1:7002")]
    NoLink(String),
    /// `pcap:` without a file, or without one after the comma.
    #[error("pcap: needs a file: write pcap:IN.pcap to play it, pcap:IN.pcap,OUT.pcap or pcap:,OUT.pcap to record")]
    NoFile,
    /// A part of a generator's specification without `=`.
    #[error("`{0}` is not KEY=VALUE; the keys are {keys}", keys = GeneratorSpec::KEYS)]
    NoValue(String),
    /// A key that a generator does not know.
    #[error("the generator knows no `{0}`; the keys are {keys}", keys = GeneratorSpec::KEYS)]
    UnknownKey(String),
    /// A value that its key does not take.
    #[error("{key}={value}: {key} takes {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

/// Whether an interface can have this name.
pub(crate) fn is_interface_name(name: &str) -> bool {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == ':';
    !name.is_empty() && name.len() <= 15 && name != "." && name != ".." && !name.contains(bad)
}

impl FromStr for PortSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let Some((port, device)) = text.split_once('@') else {
            return Err(SpecError::NoPort(text.to_string()));
        };
        let port = port.parse().map_err(|_| SpecError::BadPort(port.to_string()))?;
        if device.is_empty() {
            return Err(SpecError::NoDevice(port));
        }
        Ok(PortSpec {
            port,
            device: device.parse()?,
        })
    }
}

impl FromStr for DeviceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let name = |name: &str| {
            let good = is_interface_name(name);
            good.then(|| name.to_string())
                .ok_or_else(|| SpecError::BadName(name.to_string()))
        };
        match text.split_once(':') {
            None if text == "null" => Ok(DeviceSpec::Null),
            None if text == "gen" => Ok(DeviceSpec::Generator(GeneratorSpec::default())),
            None => Ok(DeviceSpec::Interface(name(text)?)),
            Some(("xdp", rest)) => Ok(DeviceSpec::Xdp(name(rest)?)),
            Some(("packet", rest)) => match rest.split_once(',') {
                None => Ok(DeviceSpec::Packet(name(rest)?, Sending::Queued)),
                Some((interface, "bypass")) => Ok(DeviceSpec::Packet(name(interface)?, Sending::Bypass)),
                Some((_, option)) => Err(SpecError::UnknownOption(option.to_string())),
            },
            Some(("tap", rest)) => Ok(DeviceSpec::Tap(name(rest)?)),
            Some(("udp", rest)) => {
                let ends = rest.split_once(',');
                let ends = ends.and_then(|(local, remote)| Some((local.parse().ok()?, remote.parse().ok()?)));
                let (local, remote) = ends.ok_or_else(|| SpecError::NoLink(rest.to_string()))?;
                Ok(DeviceSpec::Udp { local, remote })
            }
            Some(("pcap", rest)) => {
                let (input, output) = match rest.split_once(',') {
                    Some((input, output)) => (input, Some(output)),
                    None => (rest, None),
                };
                match (input, output) {
                    ("", None) | (_, Some("")) => Err(SpecError::NoFile),
                    ("", Some(output)) => Ok(DeviceSpec::PcapRecord(output.into())),
                    (input, output) => Ok(DeviceSpec::Pcap {
                        input: input.into(),
                        output: output.map(PathBuf::from),
                    }),
                }
            }
            Some(("gen", rest)) => Ok(DeviceSpec::Generator(rest.parse()?)),
            Some((kind, _)) => Err(SpecError::UnknownKind(kind.to_string())),
        }
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.port, self.device)
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSpec::Interface(name) => f.write_str(name),
            DeviceSpec::Xdp(name) => write!(f, "xdp:{name}"),
            DeviceSpec::Packet(name, sending) => write!(f, "packet:{name}{}", sending.suffix()),
            DeviceSpec::Tap(name) => write!(f, "tap:{name}"),
            DeviceSpec::Udp { local, remote } => write!(f, "udp:{local},{remote}"),
            DeviceSpec::Pcap { input, output } => {
                write!(f, "pcap:{}", input.display())?;
                output.iter().try_for_each(|path| write!(f, ",{}", path.display()))
            }
            DeviceSpec::PcapRecord(path) => write!(f, "pcap:,{}", path.display()),
            DeviceSpec::Generator(spec) => write!(f, "gen:{spec}"),
            DeviceSpec::Null => f.write_str("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_is_understood_and_written_back() {
        for text in [
            "0@eth0",
            "7@xdp:eth0",
            "8@packet:eth0.5",
            "9@packet:eth0,bypass",
            "511@tap:weir0",
            "1@udp:127.0.0.1:7001,[::1]:7002",
            "1@pcap:a.pcap",
            "1@pcap:a.pcap,b.pcap",
            "1@pcap:,b.pcap",
            "3@null",
            "4@gen:size=128,rate=1000,count=5,flows=3,seed=9,proto=tcp,src=10.1.0.1,dst=10.2.0.1,sport=7,dport=8,smac=02:00:00:00:00:01,dmac=02:00:00:00:00:02,vlan=12",
        ] {
            let spec: PortSpec = text.parse().unwrap();
            assert_eq!(spec.to_string().parse::<PortSpec>().unwrap(), spec, "{text}");
        }
        assert_eq!("1@a.b".parse::<PortSpec>().unwrap().to_string(), "1@a.b");
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        let error = |text: &str| text.parse::<PortSpec>().unwrap_err().to_string();
        assert!(error("x@eth0").contains("`x` is no port number"));
        assert!(error("1@").contains("tap:NAME"));
        assert!(error("1@raw:eth0").contains("`raw:` is no kind of device: there are xdp:NAME, packet:NAME"));
        assert!(error("1@xdp:").contains("1 to 15 characters"));
        assert!(error("1@packet:a:b").contains("no colon"));
        assert!(error("1@tap:").contains("1 to 15 characters"));
        assert!(error("1@a name").contains("1 to 15 characters"));
        assert!(error("1@udp:1.2.3.4:5").contains("udp:LOCAL,REMOTE"));
        assert!(error("1@udp:host:5,1.2.3.4:5").contains("two addresses"));
        assert!(error("1@pcap:").contains("pcap:IN.pcap"));
        assert!(error("1@pcap:a,").contains("pcap:,OUT.pcap"));
        assert!(error("1@pcap:,").contains("pcap:,OUT.pcap"));
        assert!(error("1@gen:speed=1").contains("the keys are size, rate"));
        assert!(error("1@gen:size").contains("KEY=VALUE"));
        assert_eq!(
            error("1@gen:size=10"),
            "size=10: size takes a number of bytes from 42 to 65535 for udp"
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = text.parse::<PortSpec>();
            let _ = format!("1@{text}").parse::<PortSpec>();
            let _ = format!("1@gen:{text}").parse::<PortSpec>();
        }
    }
}
