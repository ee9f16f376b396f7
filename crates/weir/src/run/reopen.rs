//! Reopens a device when its interface reappears.
//!
//! A thread tries it, as opening takes longer than packets of other ports may wait.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use weir_io::{Device, IoError};

/// Time between attempts.
const INTERVAL: Duration = Duration::from_millis(500);

/// Opens a device.
pub type Open = Arc<dyn Fn() -> Result<Box<dyn Device>, IoError> + Send + Sync>;

/// How a device is opened again.
pub struct Reopening {
    open: Open,
    /// Where the device comes from; `None`: it has not gone.
    waiting: Option<Receiver<Box<dyn Device>>>,
}

impl Reopening {
    /// Of a device that is there.
    pub fn new(open: Open) -> Self {
        Reopening { open, waiting: None }
    }

    /// The device has gone.
    ///
    /// # Errors
    /// There is no thread: it is not opened again.
    pub fn start(&mut self) -> io::Result<()> {
        let (sender, receiver) = sync_channel(1);
        let open = Arc::clone(&self.open);
        let thread = std::thread::Builder::new().name("reopen".to_string());
        thread.spawn(move || attempts(&*open, &sender))?;
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

/// Tries until the device is open. The thread ends with the process otherwise.
fn attempts(open: &dyn Fn() -> Result<Box<dyn Device>, IoError>, sender: &SyncSender<Box<dyn Device>>) {
    loop {
        std::thread::sleep(INTERVAL);
        if let Ok(device) = open() {
            // Where the worker has ended, the device is closed again.
            let _ = sender.send(device);
            return;
        }
    }
}
