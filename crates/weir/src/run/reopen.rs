//! Reopens a device when its interface reappears.
//!
//! A thread tries it, as opening takes longer than packets of other ports may wait.

use super::interfaces::Interfaces;
use crate::output::Messages;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;
use weir_io::{Device, DeviceSpec, IoError, Pool, PortsOptions, Recorder};

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
    /// What records it.
    pub recorder: Option<Recorder>,
    /// The user.
    pub messages: Messages,
}

impl Reopener {
    /// The device, if its interface exists and no other port has it.
    ///
    /// # Errors
    /// Why it cannot be opened, for the user; `None` as long as the interface does not exist.
    fn try_open(&self) -> Result<Box<dyn Device>, Option<String>> {
        let name = self.device.interface().ok_or(None)?;
        self.claim(name)?;
        match weir_io::reopen(&self.device, &self.pool, &self.options) {
            // Another interface may have been given the name, and a TAP exists only now.
            Ok(device) => self.claim(name).map(|()| match &self.recorder {
                Some(recorder) => recorder.record(device),
                None => device,
            }),
            Err(IoError::NoInterface { .. } | IoError::Gone { .. }) => Err(None),
            Err(error) => Err(Some(format!("it cannot be opened: {error}"))),
        }
    }

    fn claim(&self, name: &str) -> Result<(), Option<String>> {
        self.interfaces.claim(self.port, name).map_err(|other| {
            Some(format!(
                "`{name}` is the interface of port {other} now; it is opened when it is another one"
            ))
        })
    }

    /// Tries until the device is open, and reports each new reason why it is not. The thread ends
    /// with the process otherwise.
    fn run(&self, sender: &SyncSender<Box<dyn Device>>, waiting: &Weak<()>) {
        let mut reported = None;
        loop {
            std::thread::sleep(INTERVAL);
            if waiting.upgrade().is_none() {
                // The port was removed.
                return;
            }
            match self.try_open() {
                Ok(device) => {
                    // If the worker has ended or the port was removed, the device is closed again.
                    if sender.send(device).is_err() {
                        self.interfaces.release(self.port);
                    }
                    return;
                }
                Err(reason) => {
                    if let Some(reason) = reason.as_ref().filter(|_| reason != reported) {
                        self.messages.line(format!("port {}: {reason}", self.port));
                    }
                    reported = reason;
                }
            }
        }
    }
}

/// A device that is opened again when it has gone.
pub struct Reopening {
    reopener: Reopener,
    /// Where the device comes from; `None`: it has not gone.
    waiting: Option<Receiver<Box<dyn Device>>>,
    /// Attempts end with this.
    alive: Arc<()>,
}

impl Reopening {
    /// Of a device that is open.
    pub fn new(reopener: Reopener) -> Self {
        Reopening {
            reopener,
            waiting: None,
            alive: Arc::default(),
        }
    }

    /// Starts attempts to open the device, which has gone.
    ///
    /// # Errors
    /// There is no thread: it is not opened again.
    pub fn start(&mut self) -> io::Result<()> {
        let (sender, receiver) = sync_channel(1);
        let (reopener, alive) = (self.reopener.clone(), Arc::downgrade(&self.alive));
        let thread = std::thread::Builder::new().name("reopen".to_string());
        thread.spawn(move || reopener.run(&sender, &alive))?;
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
