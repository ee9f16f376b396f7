//! The devices of a host. One that fails, such as an interface that is removed, is a port that is
//! down until the device can be opened again.

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, DeviceSpec, Frame, IoError};
use weir_ipcp::PortId;

/// Between two attempts to open a device.
const RETRY: Duration = Duration::from_secs(1);
/// Frames of a device that are taken before anything else is done.
const BATCH: usize = 64;

type Opener = Box<dyn FnMut(&DeviceSpec) -> Result<Box<dyn Device>, IoError>>;

/// A change of a port.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Its device has failed.
    Lost(PortId, String),
    /// Its device works again.
    Back(PortId),
}

/// The devices by port.
pub struct Devices {
    specs: BTreeMap<PortId, DeviceSpec>,
    open: BTreeMap<PortId, Box<dyn Device>>,
    changes: Vec<Change>,
    next_attempt: Instant,
    opener: Opener,
    batch: Batch,
}

impl Devices {
    /// Opens the device of each port.
    ///
    /// # Errors
    /// A port has no device, a device has no port, or one cannot be opened.
    pub fn open(specs: &BTreeMap<PortId, DeviceSpec>, ports: &[weir_ipcp::Port]) -> Result<Self> {
        Devices::open_with(specs, ports, Box::new(weir_io::open))
    }

    fn open_with(specs: &BTreeMap<PortId, DeviceSpec>, ports: &[weir_ipcp::Port], mut opener: Opener) -> Result<Self> {
        for port in specs.keys() {
            ensure!(
                ports.iter().any(|known| known.number == *port),
                "[devices] {}: there is no such port",
                port.0
            );
        }
        let mut open = |port: &weir_ipcp::Port| {
            let spec = specs.get(&port.number);
            let spec = spec.with_context(|| format!("port {} has no device in [devices]", port.number.0))?;
            let device = opener(spec).with_context(|| format!("port {}", port.number.0))?;
            Ok((port.number, device))
        };
        let open = ports.iter().map(&mut open).collect::<Result<_>>()?;
        Ok(Devices {
            specs: specs.clone(),
            open,
            changes: Vec::new(),
            next_attempt: Instant::now(),
            opener,
            batch: Batch::new(BATCH),
        })
    }

    /// Files that become readable with frames.
    pub fn files(&self) -> impl Iterator<Item = PollFd<'_>> {
        let files = self.open.values().filter_map(|device| device.poll_fd());
        files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
    }

    /// Hands on the frames that have arrived, some of each device.
    pub fn receive(&mut self, mut take: impl FnMut(PortId, &[u8])) {
        let mut lost = Vec::new();
        for (port, device) in &mut self.open {
            self.batch.clear();
            match device.receive(&mut self.batch) {
                Ok(_) => {}
                Err(error) => lost.push((*port, error)),
            }
            self.batch.iter().for_each(|frame| take(*port, frame.data));
        }
        lost.into_iter().for_each(|(port, error)| self.lose(port, &error));
    }

    /// Sends frames in their order, those of a port with as few calls as possible. Those that a
    /// device does not take now are lost, as on a wire: connections send them again.
    pub fn send(&mut self, frames: &[(PortId, Vec<u8>)]) {
        for of_port in frames.chunk_by(|a, b| a.0 == b.0) {
            let Some((port, _)) = of_port.first() else {
                continue;
            };
            let Some(device) = self.open.get_mut(port) else {
                continue;
            };
            let batch: Vec<Frame<'_>> = of_port.iter().map(|(_, data)| Frame { data, time_ns: 0 }).collect();
            if let Err(error) = device.transmit(&batch).and_then(|_| device.flush()) {
                self.lose(*port, &error);
            }
        }
    }

    fn lose(&mut self, port: PortId, error: &IoError) {
        if self.open.remove(&port).is_some() {
            self.next_attempt = Instant::now() + RETRY;
            self.changes.push(Change::Lost(port, error.to_string()));
        }
    }

    /// Opens devices that have failed again, at most once a second.
    pub fn retry(&mut self, now: Instant) {
        if now < self.next_attempt || self.open.len() == self.specs.len() {
            return;
        }
        self.next_attempt = now + RETRY;
        for (port, spec) in &self.specs {
            if !self.open.contains_key(port)
                && let Ok(device) = (self.opener)(spec)
            {
                self.open.insert(*port, device);
                self.changes.push(Change::Back(*port));
            }
        }
    }

    /// The changes since the last call.
    pub fn changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A device that fails while there is no interface.
    struct Fake(Arc<AtomicBool>);

    impl Fake {
        fn check(&self) -> Result<usize, IoError> {
            let is_there = self.0.load(Ordering::Relaxed);
            is_there.then_some(0).ok_or_else(gone)
        }
    }

    fn gone() -> IoError {
        weir_io::open(&"pcap:/nowhere/x.pcap".parse().unwrap()).err().unwrap()
    }

    impl Device for Fake {
        fn receive(&mut self, _batch: &mut Batch) -> Result<usize, IoError> {
            self.check()
        }

        fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
            self.check().map(|_| frames.len())
        }

        fn description(&self) -> String {
            "fake".to_owned()
        }

        fn counters(&self) -> weir_io::Counters {
            weir_io::Counters::default()
        }
    }

    #[test]
    fn an_interface_that_disappears_is_a_port_that_is_down_until_it_returns() {
        let is_there = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&is_there);
        let opener = move |_: &DeviceSpec| {
            let fake = Fake(Arc::clone(&flag));
            fake.check().map(|_| Box::new(fake) as Box<dyn Device>)
        };
        let port = PortId(1);
        let file: super::super::config::File = toml::from_str(super::super::config::HOST).unwrap();
        let specs = file.devices;
        let mut devices = Devices::open_with(&specs, &file.ipcp.ports, Box::new(opener)).unwrap();
        devices.send(&[(port, vec![0; 60])]);
        assert_eq!(devices.changes(), []);
        is_there.store(false, Ordering::Relaxed);
        devices.send(&[(port, vec![0; 60])]);
        devices.receive(|_, _| {});
        let changes = devices.changes();
        assert!(matches!(changes[..], [Change::Lost(PortId(1), _)]), "{changes:?}");
        let later = Instant::now() + RETRY * 2;
        devices.retry(later);
        assert_eq!(devices.changes(), [], "it is not there yet");
        is_there.store(true, Ordering::Relaxed);
        devices.retry(later + RETRY * 2);
        assert_eq!(devices.changes(), [Change::Back(port)]);
    }
}
