//! Reopens a device when its interface reappears.
//!
//! A thread tries it, as opening takes longer than packets of other ports may wait.

use super::interfaces::Interfaces;
use crate::output::Messages;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use weir_io::{Device, DeviceSpec, Pool, PortsOptions};

/// Time between attempts.
const INTERVAL: Duration = Duration::from_millis(500);

/// What is needed to open a port's device again.
#[derive(Clone)]
pub struct Reopener {
    /// The port.
    pub port: u32,
    /// Its device.
    pub device: DeviceSpec,
    /// Frames.
    pub pool: Pool,
    /// How it was opened.
    pub options: PortsOptions,
    /// The interfaces of all ports: another port's is not opened.
    pub interfaces: Arc<Interfaces>,
    /// The user.
    pub messages: Messages,
}

impl Reopener {
    /// The device, if its interface is there and no other port has it. `is_reported`: the user
    /// knows that another port has it.
    fn try_open(&self, is_reported: &mut bool) -> Option<Box<dyn Device>> {
        let name = self.device.interface()?;
        if let Err(other) = self.interfaces.claim(self.port, name) {
            if !std::mem::replace(is_reported, true) {
                self.messages.line(format!(
                    "port {}: `{name}` is the interface of port {other} now; \
                     it is opened when it is another one",
                    self.port
                ));
            }
            return None;
        }
        *is_reported = false;
        weir_io::reopen(&self.device, &self.pool, &self.options).ok()
    }

    /// Tries until the device is open. The thread ends with the process otherwise.
    fn run(&self, sender: &SyncSender<Box<dyn Device>>) {
        let mut is_reported = false;
        loop {
            std::thread::sleep(INTERVAL);
            if let Some(device) = self.try_open(&mut is_reported) {
                // Where the worker has ended, the device is closed again.
                let _ = sender.send(device);
                return;
            }
        }
    }
}

/// A device that is opened again when it has gone.
pub struct Reopening {
    reopener: Reopener,
    /// Where the device comes from; `None`: it has not gone.
    waiting: Option<Receiver<Box<dyn Device>>>,
}

impl Reopening {
    /// Of a device that is open.
    pub fn new(reopener: Reopener) -> Self {
        Reopening {
            reopener,
            waiting: None,
        }
    }

    /// Starts attempts to open the device, which has gone.
    ///
    /// # Errors
    /// There is no thread: it is not opened again.
    pub fn start(&mut self) -> io::Result<()> {
        let (sender, receiver) = sync_channel(1);
        let reopener = self.reopener.clone();
        let thread = std::thread::Builder::new().name("reopen".to_string());
        thread.spawn(move || reopener.run(&sender))?;
        self.waiting = Some(receiver);
        Ok(())
    }

    /// Whether the device has gone and may come back.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The device, once it is back.
    pub fn device(&mut self) -> Option<Box<dyn Device>> {
        let device = self.waiting.as_ref()?.try_recv().ok()?;
        self.waiting = None;
        Some(device)
    }
}
