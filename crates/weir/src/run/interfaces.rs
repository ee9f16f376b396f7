//! Which interface each port has, by the kernel's number for it.
//!
//! Names do not suffice: an interface may have several (`ip link property add … altname …`), and
//! while a port's interface is away another one may be given its name.

use anyhow::{Result, bail};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use weir_io::PortSpec;

/// The interfaces of all ports.
#[derive(Debug, Default)]
pub struct Interfaces(Mutex<BTreeMap<u32, u32>>);

impl Interfaces {
    /// The interfaces of ports whose devices are open.
    ///
    /// # Errors
    /// Two ports have the same one.
    pub fn new(specs: &[PortSpec]) -> Result<Self> {
        let interfaces = Interfaces::default();
        for spec in specs {
            let Some(name) = spec.device.interface() else { continue };
            if let Err(other) = interfaces.claim(spec.port, name) {
                bail!(
                    "ports {other} and {} have the same interface: `{name}` is another name of it",
                    spec.port
                );
            }
        }
        Ok(interfaces)
    }

    /// Records that a port has the interface with this name, if it exists now.
    ///
    /// # Errors
    /// Another port has it: the number of that port.
    pub fn claim(&self, port: u32, name: &str) -> Result<(), u32> {
        let mut interfaces = self.0.lock();
        interfaces.remove(&port);
        let Some(index) = weir_io::interface_index(name) else {
            return Ok(());
        };
        if let Some((other, _)) = interfaces.iter().find(|(_, other)| **other == index) {
            return Err(*other);
        }
        interfaces.insert(port, index);
        Ok(())
    }

    /// A port has no interface any more.
    pub fn release(&self, port: u32) {
        self.0.lock().remove(&port);
    }
}
