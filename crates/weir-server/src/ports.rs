//! Ports as control planes of hardware see them: added, enabled, and up where there is a link.

use crate::bfrt::target::{OtherPipePorts, PORT_NUMBERS_PER_PIPE};
use crate::bfrt::value::Value;
use crate::dataplane::PortInfo;
use crate::device::lock;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use weir_switch::Switch;

/// Ports that there are at least where the data plane takes any number.
const ANY: u32 = 64;

/// The settings of a port by a control plane.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct PortConfig {
    /// It is to carry packets.
    pub enabled: bool,
    /// It takes in what it sends.
    pub loopback: bool,
    /// All that was given, by the number of the field.
    pub fields: BTreeMap<u32, Value>,
}

/// The ports that control planes have added and removed, and their settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Ports that were added.
    pub added: BTreeMap<u32, PortConfig>,
    /// Ports that were removed after they had been added: they carry nothing.
    removed: BTreeSet<u32>,
}

impl Settings {
    /// Adds a port or changes it; `None` removes it.
    pub fn set(&mut self, port: u32, config: Option<PortConfig>) {
        match config {
            Some(config) => {
                self.removed.remove(&port);
                self.added.insert(port, config);
            }
            None => {
                if self.added.remove(&port).is_some() {
                    self.removed.insert(port);
                }
            }
        }
    }

    /// Whether a port is to carry packets.
    fn is_on(&self, port: u32) -> bool {
        match self.added.get(&port) {
            Some(config) => config.enabled,
            None => !self.removed.contains(&port),
        }
    }

    /// Ports that were added or removed.
    fn mentioned(&self) -> impl Iterator<Item = u32> {
        self.added.keys().chain(&self.removed).copied()
    }
}

/// How a port is to be set at the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    pub port: u32,
    pub up: bool,
    pub loopback: bool,
}

/// All ports of a device.
///
/// A port that no control plane has ever added carries packets, as if there were no control plane;
/// from then on it follows its settings.
#[derive(Debug)]
pub(crate) struct Ports {
    /// Those that there are, in the order of the command line; empty: any.
    known: Mutex<Vec<PortInfo>>,
    settings: Mutex<Settings>,
    /// Ports whose link is down, as the data plane says.
    unlinked: Mutex<BTreeSet<u32>>,
}

impl Ports {
    pub fn new(known: Vec<PortInfo>) -> Self {
        Ports {
            known: Mutex::new(known),
            settings: Mutex::default(),
            unlinked: Mutex::default(),
        }
    }

    /// Other ports exist from now on.
    pub fn set_known(&self, known: Vec<PortInfo>) {
        *lock(&self.known) = known;
    }

    /// Their numbers, in order: the first is 1/0, the second 2/0 and so on.
    pub fn numbers(&self) -> Vec<u32> {
        match lock(&self.known).as_slice() {
            [] => (0..ANY).collect(),
            known => known.iter().map(|p| p.port).collect(),
        }
    }

    /// Whether packets may come from other pipes than the first.
    pub fn other_pipe_ports(&self, cpu_port: Option<u32>) -> OtherPipePorts {
        let known = lock(&self.known);
        if known.is_empty() {
            return OtherPipePorts::Unknown;
        }
        let mut all = known.iter().map(|p| p.port).chain(cpu_port);
        all.find(|p| *p >= PORT_NUMBERS_PER_PIPE)
            .map_or(OtherPipePorts::None, OtherPipePorts::AtLeast)
    }

    /// Whether there is a port of this number.
    pub fn exists(&self, port: u32) -> bool {
        let known = lock(&self.known);
        known.is_empty() || known.iter().any(|p| p.port == port)
    }

    /// The number of a port on the front, from 1; every port has one channel, 0.
    pub fn connector(&self, port: u32) -> u32 {
        match lock(&self.known).iter().position(|p| p.port == port) {
            Some(position) => u32::try_from(position + 1).unwrap_or(u32::MAX),
            None => port.saturating_add(1),
        }
    }

    /// The settings of ports.
    pub fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    /// Replaces the settings of ports.
    pub fn replace(&self, settings: Settings) {
        *lock(&self.settings) = settings;
    }

    /// A link came up or went down.
    pub fn link(&self, port: u32, up: bool) {
        let mut unlinked = lock(&self.unlinked);
        if up {
            unlinked.remove(&port);
        } else {
            unlinked.insert(port);
        }
    }

    /// Whether a port carries packets.
    pub fn is_up(&self, port: u32) -> bool {
        self.setting(&lock(&self.settings), port).up
    }

    /// How a port is to be set.
    pub fn setting(&self, settings: &Settings, port: u32) -> Setting {
        Setting {
            port,
            up: settings.is_on(port) && !lock(&self.unlinked).contains(&port),
            loopback: settings.added.get(&port).is_some_and(|c| c.loopback),
        }
    }

    /// Sets a switch that knows nothing of the ports yet.
    pub fn prepare(&self) -> impl Fn(&mut Switch) + Send + Sync + use<> {
        let settings = self.settings();
        let mut all: BTreeSet<u32> = settings.mentioned().collect();
        all.extend(lock(&self.unlinked).iter());
        let all: Vec<Setting> = all.into_iter().map(|p| self.setting(&settings, p)).collect();
        move |switch| {
            for setting in &all {
                switch.set_port(setting.port, setting.up);
                switch.set_loopback(setting.port, setting.loopback);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_carries_packets_until_it_is_added_and_then_as_it_is_said() {
        let ports = Ports::new(Vec::new());
        let mut settings = ports.settings();
        assert!(ports.is_up(3));
        settings.set(3, Some(PortConfig::default()));
        assert!(!ports.setting(&settings, 3).up);
        let enabled = PortConfig {
            enabled: true,
            ..PortConfig::default()
        };
        settings.set(3, Some(enabled));
        assert!(ports.setting(&settings, 3).up);
        ports.link(3, false);
        assert!(!ports.setting(&settings, 3).up);
        ports.link(3, true);
        settings.set(3, None);
        ports.replace(settings);
        assert!(!ports.is_up(3) && ports.is_up(4));
    }
}
