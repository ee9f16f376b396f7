//! The configuration of an IPC process.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_rina::arp::MacAddress;

/// The longest name of a process or DIF: ARP has a byte for its length.
pub const MAX_NAME: usize = 200;

/// The number of a port, as the switch counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortId(pub u32);

/// How PDUs with destinations of other members are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A switch forwards them, by the table that this IPC process computes.
    Router,
    /// PDUs for other members are dropped.
    Host,
    /// This IPC process forwards them itself.
    SoftwareRouter,
}

/// A port with a link to neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Its number.
    pub number: PortId,
    /// Its MAC address, `aa:bb:cc:dd:ee:ff`.
    #[serde(with = "mac_text")]
    pub mac: MacAddress,
    /// VLAN id of frames; 0: untagged.
    #[serde(default)]
    pub vlan: u16,
    /// The neighbour's name; without it any member of the DIF is a neighbour.
    pub neighbour: Option<String>,
    /// The cost of the link, at least 1.
    #[serde(default = "one")]
    pub cost: u32,
}

fn one() -> u32 {
    1
}

/// Intervals, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timers {
    /// Between two keepalive requests to a neighbour.
    pub keepalive: u64,
    /// Keepalive requests that may stay unanswered.
    pub keepalive_misses: u32,
    /// Between two ARP requests on a port without a neighbour.
    pub discovery: u64,
    /// Until a message of the enrolment is repeated.
    pub enrolment: u64,
    /// Until flooded states that are not acknowledged are sent again.
    pub flooding: u64,
    /// Between two computations of routes.
    pub routing: u64,
    /// Between two announcements of the same state.
    pub refresh: u64,
    /// Until a state that is not refreshed is not used any more.
    pub max_age: u64,
    /// Until a request for a flow is repeated.
    pub allocation: u64,
    /// Until a request for a flow has failed.
    pub allocation_limit: u64,
    /// Without PDUs of the other side, until it is asked whether it has the flow.
    pub flow_check: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Timers {
            keepalive: 1000,
            keepalive_misses: 3,
            discovery: 200,
            enrolment: 500,
            flooding: 200,
            routing: 20,
            refresh: 30_000,
            max_age: 900_000,
            allocation: 500,
            allocation_limit: 5000,
            flow_check: 10_000,
        }
    }
}

/// Limits of memory and work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Neighbours of a port, enrolled or not.
    pub neighbours_per_port: usize,
    /// Links in the link-state database.
    pub links: usize,
    /// Entries of the directory.
    pub directory: usize,
    /// Names that applications register here.
    pub registrations: usize,
    /// Flows of this IPC process.
    pub flows: usize,
    /// Outputs that wait for the owner; frames beyond are dropped and counted.
    pub outputs: usize,
}

impl Limits {
    /// Flows that wait for the answer of an application here: requests of others leave most of the
    /// flows to those that are used.
    pub(crate) fn requests(&self) -> usize {
        (self.flows / 4).max(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            neighbours_per_port: 64,
            links: 100_000,
            directory: 100_000,
            registrations: 1000,
            flows: 4096,
            outputs: 65_536,
        }
    }
}

/// The configuration of an IPC process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Its name, unique in the DIF.
    pub name: String,
    /// The name of the DIF.
    pub dif: String,
    /// How PDUs with destinations of other members are handled.
    pub role: Role,
    /// It is a member from the start. Exactly one IPC process of a DIF is its first.
    #[serde(default)]
    pub first: bool,
    /// The address that it proposes, 0 for any.
    #[serde(default)]
    pub address: u32,
    /// Addresses that this IPC process may assign, both ends inclusive.
    #[serde(default = "default_range")]
    pub address_range: (u32, u32),
    /// Addresses by name, which precede the range.
    #[serde(default)]
    pub address_table: BTreeMap<String, u32>,
    /// The password of the DIF; none: no authentication.
    pub password: Option<String>,
    /// Bytes of the longest PDU: 600 to 9000. Messages with the longest names fit 600.
    #[serde(default = "default_max_pdu")]
    pub max_pdu: usize,
    /// Bytes of the longest SDU.
    #[serde(default = "default_max_sdu")]
    pub max_sdu: usize,
    /// The EtherType of EFCP.
    #[serde(default = "default_ethertype")]
    pub ethertype: u16,
    /// Intervals.
    #[serde(default)]
    pub timers: Timers,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// Ports.
    #[serde(default, rename = "port")]
    pub ports: Vec<Port>,
}

fn default_range() -> (u32, u32) {
    (1, 65_535)
}

fn default_max_pdu() -> usize {
    1400
}

fn default_max_sdu() -> usize {
    1 << 20
}

fn default_ethertype() -> u16 {
    weir_rina::arp::ETHERTYPE_EFCP
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A name is empty, too long, or has a separator of names.
    #[error("{field}: expected 1 to {MAX_NAME} bytes without `|`, `/` and zeros, found `{found}`")]
    Name {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
    },
    /// A number is out of its range.
    #[error("{field}: expected {expected}, found {found}")]
    Range {
        /// The field.
        field: &'static str,
        /// Its range.
        expected: String,
        /// Its value.
        found: u64,
    },
    /// A port number stands twice.
    #[error("port {0} is configured twice")]
    Port(u32),
    /// A MAC address that no port can have.
    #[error("port {0}: expected a MAC address of one port, found {1}")]
    Mac(u32, MacAddress),
    /// Two names of the address table have one address.
    #[error("address_table: {0} is the address of two names")]
    AddressTwice(u32),
    /// The configured address cannot be assigned.
    #[error("address: expected one of address_range or of address_table, found {0}")]
    Address(u32),
    /// States would expire between two announcements.
    #[error("timers.max_age: expected more than timers.refresh")]
    MaxAge,
    /// A host has several ports.
    #[error("a host has one port, found {0}: a software_router may have several")]
    HostPorts(usize),
}

impl Config {
    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_name("name", &self.name)?;
        check_name("dif", &self.dif)?;
        let mut numbers = BTreeSet::new();
        for port in &self.ports {
            if let Some(name) = &port.neighbour {
                check_name("port.neighbour", name)?;
            }
            if !numbers.insert(port.number) {
                return Err(ConfigError::Port(port.number.0));
            }
            if port.mac.0[0] & 1 != 0 || port.mac == MacAddress::default() {
                return Err(ConfigError::Mac(port.number.0, port.mac));
            }
            range("port.vlan", port.vlan.into(), 0, 4094)?;
            range("port.cost", port.cost.into(), 1, 1_000_000)?;
        }
        if self.role == Role::Host && self.ports.len() > 1 {
            return Err(ConfigError::HostPorts(self.ports.len()));
        }
        let (first, last) = self.address_range;
        range("address", self.address.into(), 0, 65_535)?;
        range("address_range", first.into(), 1, 65_535)?;
        range("address_range", last.into(), first.into(), 65_535)?;
        let mut addresses = BTreeSet::new();
        for address in self.address_table.values() {
            range("address_table", u64::from(*address), 1, 65_535)?;
            if !addresses.insert(*address) {
                return Err(ConfigError::AddressTwice(*address));
            }
        }
        let is_assignable = (first..=last).contains(&self.address) || addresses.contains(&self.address);
        if self.address != 0 && !is_assignable {
            return Err(ConfigError::Address(self.address));
        }
        self.check_numbers()
    }

    fn check_numbers(&self) -> Result<(), ConfigError> {
        range("max_pdu", self.max_pdu as u64, 600, 9000)?;
        range("max_sdu", self.max_sdu as u64, 1, 16 << 20)?;
        range("timers.keepalive", self.timers.keepalive, 1, 3_600_000)?;
        range("timers.routing", self.timers.routing, 0, 60_000)?;
        range("timers.keepalive_misses", self.timers.keepalive_misses.into(), 1, 1000)?;
        // Below are lengths. ARP and VLAN tags have types of their own.
        range("ethertype", self.ethertype.into(), 0x0600, 0xffff)?;
        if [0x0806, 0x8100, 0x88a8].contains(&self.ethertype) {
            return Err(ConfigError::Range {
                field: "ethertype",
                expected: "another type than those of ARP and VLAN tags".to_owned(),
                found: self.ethertype.into(),
            });
        }
        let limits = &self.limits;
        for (field, value, most) in [
            ("limits.neighbours_per_port", limits.neighbours_per_port, 65_536),
            ("limits.links", limits.links, 10_000_000),
            ("limits.directory", limits.directory, 10_000_000),
            ("limits.registrations", limits.registrations, 1_000_000),
            // A CEP id has 16 bits, and has to be found free.
            ("limits.flows", limits.flows, 32_768),
            ("limits.outputs", limits.outputs, 10_000_000),
        ] {
            range(field, value as u64, 1, most)?;
        }
        for (field, value) in [
            ("timers.discovery", self.timers.discovery),
            ("timers.enrolment", self.timers.enrolment),
            ("timers.flooding", self.timers.flooding),
            ("timers.refresh", self.timers.refresh),
            ("timers.max_age", self.timers.max_age),
            ("timers.allocation", self.timers.allocation),
            ("timers.allocation_limit", self.timers.allocation_limit),
            ("timers.flow_check", self.timers.flow_check),
        ] {
            range(field, value, 1, 1_000_000_000)?;
        }
        if self.timers.max_age <= self.timers.refresh {
            return Err(ConfigError::MaxAge);
        }
        Ok(())
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), ConfigError> {
    let is_good = (1..=MAX_NAME).contains(&name.len()) && !name.contains(['|', '/', '\0']);
    is_good.then_some(()).ok_or_else(|| ConfigError::Name {
        field,
        found: name.to_owned(),
    })
}

fn range(field: &'static str, found: u64, least: u64, most: u64) -> Result<(), ConfigError> {
    let is_good = (least..=most).contains(&found);
    is_good.then_some(()).ok_or_else(|| ConfigError::Range {
        field,
        expected: format!("a number from {least} to {most}"),
        found,
    })
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// MAC addresses as text.
mod mac_text {
    use super::MacAddress;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(mac: &MacAddress, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(mac)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MacAddress, D::Error> {
        let text = String::deserialize(from)?;
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2);
            let part = part.and_then(|part| u8::from_str_radix(part, 16).ok());
            *byte = part.ok_or_else(|| expected(&text))?;
        }
        match parts.next() {
            None => Ok(MacAddress(bytes)),
            Some(_) => Err(expected(&text)),
        }
    }

    fn expected<E: serde::de::Error>(found: &str) -> E {
        E::custom(format!(
            "expected a MAC address such as 02:00:00:00:00:01, found `{found}`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, ConfigError, Port, PortId, Role};
    use weir_rina::arp::MacAddress;

    fn config(change: impl FnOnce(&mut Config)) -> Result<(), ConfigError> {
        let mut config = Config {
            name: "a".to_owned(),
            dif: "d".to_owned(),
            role: Role::Router,
            first: true,
            address: 0,
            address_range: (1, 10),
            address_table: [("b".to_owned(), 20)].into(),
            password: None,
            max_pdu: 1400,
            max_sdu: 1 << 16,
            ethertype: 0xd1f0,
            timers: super::Timers::default(),
            limits: super::Limits::default(),
            ports: vec![Port {
                number: PortId(1),
                mac: MacAddress([2, 0, 0, 0, 0, 1]),
                vlan: 0,
                neighbour: None,
                cost: 1,
            }],
        };
        change(&mut config);
        config.check()
    }

    #[test]
    fn contradictions_are_named() {
        assert_eq!(config(|_| {}), Ok(()));
        assert_eq!(config(|c| c.address = 20), Ok(()));
        let wrong = |change: fn(&mut Config)| config(change).unwrap_err().to_string();
        assert!(wrong(|c| c.address = 500).contains("address_range or of address_table, found 500"));
        assert!(wrong(|c| c.address_table.extend([("x".to_owned(), 20)])).contains("20 is the address of two names"));
        assert!(wrong(|c| c.ports[0].mac = MacAddress::BROADCAST).contains("a MAC address of one port"));
        assert!(wrong(|c| c.ports[0].mac = MacAddress::default()).contains("a MAC address of one port"));
        assert!(wrong(|c| c.ethertype = 0x0806).contains("another type than those of ARP"));
        assert!(wrong(|c| c.timers.max_age = c.timers.refresh).contains("more than timers.refresh"));
        assert!(wrong(|c| c.timers.keepalive_misses = 0).contains("timers.keepalive_misses"));
        assert!(wrong(|c| c.limits.outputs = 0).contains("limits.outputs"));
        assert!(wrong(|c| c.limits.flows = 65_536).contains("limits.flows: expected a number from 1 to 32768"));
    }
}
