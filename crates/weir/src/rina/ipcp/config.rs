//! The file that describes an IPC process.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use weir_client::{Options, Tls};
use weir_io::DeviceSpec;
use weir_ipcp::{Config, PortId};

/// The file, in TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The IPC process.
    pub ipcp: Config,
    /// A router's switch.
    pub switch: Option<SwitchFile>,
    /// A host's devices by port.
    #[serde(default, deserialize_with = "devices")]
    pub devices: BTreeMap<PortId, DeviceSpec>,
    /// The socket for applications.
    pub socket: Option<PathBuf>,
    /// Where the address is kept over restarts.
    pub state: Option<PathBuf>,
    /// Serves metrics for Prometheus.
    pub http: Option<SocketAddr>,
}

/// Where the switch is, and how this IPC process controls it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchFile {
    /// `HOST[:PORT]` or `unix:PATH` of P4Runtime.
    pub address: String,
    /// Device id.
    #[serde(default = "one")]
    pub device_id: u64,
    /// Election id; the highest is primary.
    #[serde(default = "one")]
    pub election_id: u64,
    /// Role of P4Runtime; the empty role may do everything.
    #[serde(default)]
    pub role: String,
    /// Certificate authorities (PEM): TLS.
    pub authorities: Option<PathBuf>,
    /// Name in the switch's certificate, if it is not the host.
    pub domain: Option<String>,
    /// Certificate of this IPC process (PEM), with `key`: mutual TLS.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

fn one() -> u64 {
    1
}

fn devices<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<PortId, DeviceSpec>, D::Error> {
    use serde::de::Error;
    let texts = BTreeMap::<String, String>::deserialize(from)?;
    let device = |(port, text): (String, String)| {
        let number = port
            .parse()
            .map_err(|_| D::Error::custom(format!("expected a port number, found `{port}`")))?;
        let spec = text.parse().map_err(D::Error::custom)?;
        Ok((PortId(number), spec))
    };
    texts.into_iter().map(device).collect()
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no description of an IPC process.
    pub fn read(path: &Path) -> Result<Self> {
        let text = crate::input::text(path)?;
        let file: File = toml::from_str(&text).with_context(|| path.display().to_string())?;
        file.ipcp.check().with_context(|| path.display().to_string())?;
        Ok(file)
    }
}

impl SwitchFile {
    /// The options of a connection.
    ///
    /// # Errors
    /// The address is malformed, or certificates cannot be read.
    pub fn options(&self) -> Result<Options> {
        let options = Options::p4runtime(&self.address)?
            .device(self.device_id)
            .election(u128::from(self.election_id));
        let options = Options {
            role: self.role.clone(),
            ..options
        };
        let Some(authorities) = &self.authorities else {
            let is_plain = self.certificate.is_none() && self.key.is_none() && self.domain.is_none();
            ensure!(is_plain, "[switch] certificate, key and domain go with authorities");
            return Ok(options);
        };
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((crate::input::bytes(certificate)?, crate::input::bytes(key)?)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => anyhow::bail!("[switch] certificate and key go together"),
        };
        Ok(options.tls(Tls {
            authorities: crate::input::bytes(authorities)?,
            domain: self.domain.clone(),
            identity,
        }))
    }
}

/// A host with a device that is always silent.
#[cfg(test)]
pub const HOST: &str = "
socket = \"h.sock\"
[ipcp]
name = \"h\"
dif = \"d\"
role = \"host\"
[[ipcp.port]]
number = 1
mac = \"02:00:00:00:00:01\"
[devices]
1 = \"null\"
";

#[cfg(test)]
mod tests {
    use super::{File, HOST};

    #[test]
    fn the_files_of_the_documentation_are_right() {
        let text = include_str!("../../../../../docs/rina.md");
        let blocks = text
            .split("```toml\n")
            .skip(1)
            .filter_map(|block| block.split("```").next());
        let (mut routers, mut hosts, mut topologies) = (0, 0, 0);
        for block in blocks {
            if !block.contains("[ipcp]") {
                crate::rina::fabric::Topology::parse(block).unwrap();
                topologies += 1;
                continue;
            }
            // As a user has it: all of the block, in a file.
            let path = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(path.path(), block).unwrap();
            let file = File::read(path.path()).unwrap();
            let is_router = file.ipcp.role == weir_ipcp::Role::Router;
            assert_eq!(
                (is_router, !is_router),
                (file.switch.is_some(), !file.devices.is_empty()),
                "{block}"
            );
            match file.switch {
                Some(switch) => {
                    switch.options().unwrap();
                    routers += 1;
                }
                None => {
                    assert!(
                        file.ipcp
                            .ports
                            .iter()
                            .all(|port| file.devices.contains_key(&port.number))
                    );
                    assert_eq!(file.devices.len(), file.ipcp.ports.len());
                    hosts += 1;
                }
            }
        }
        assert!(routers > 0 && hosts > 1 && topologies > 0);
    }

    #[test]
    fn a_file_is_read_and_mistakes_are_named() {
        let file: File = toml::from_str(HOST).unwrap();
        assert_eq!((file.ipcp.ports.len(), file.devices.len()), (1, 1));
        let error = |text: &str| toml::from_str::<File>(text).unwrap_err().to_string();
        assert!(error(&HOST.replace("socket", "sockets")).contains("unknown field `sockets`"));
        assert!(error(&HOST.replace("02:00", "2:0")).contains("expected a MAC address"));
        assert!(error(&HOST.replace("\"null\"", "\"raw:x\"")).contains("is no kind of device"));
        assert!(error(&HOST.replace("1 = ", "one = ")).contains("expected a port number"));
        assert!(error(&HOST.replace("\"host\"", "\"hub\"")).contains("unknown variant `hub`"));
    }
}
