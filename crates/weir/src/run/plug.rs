//! Ports that are added and removed while the switch runs.

use super::control::{Control, Order};
use super::end::End;
use super::interfaces::Interfaces;
use super::recording::Recorders;
use super::reopen::{Reopener, Reopening};
use crate::cli::Run;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use weir_io::{Device, DeviceSpec, Pool, PortSpec, PortsOptions, Recorder};

/// How long the worker may take to close a device.
const PATIENCE: Duration = Duration::from_secs(5);

/// A port that a worker gets while it runs.
pub struct NewPort {
    /// Its device.
    pub end: End,
    /// What records it.
    pub recorder: Option<Recorder>,
}

/// What devices are opened with.
pub struct Plugger {
    /// Frames of all ports.
    pub pool: Pool,
    /// How devices are opened.
    pub options: PortsOptions,
    /// The interfaces of all ports.
    pub interfaces: Arc<Interfaces>,
    /// What records ports.
    pub recorders: Option<Recorders>,
}

impl Plugger {
    /// Opens a device and gives it to the worker. Returns the port as it is now.
    ///
    /// # Errors
    /// There are several workers, the device is no interface, another port has it, or it cannot be
    /// opened.
    pub fn add(
        &self,
        (port, device): (u32, &str),
        known: &[PortSpec],
        control: &Control,
        arguments: &Run,
        messages: &Messages,
    ) -> Result<PortSpec> {
        if control.workers() > 1 {
            bail!("ports are added and removed while one worker forwards, not several (--workers)");
        }
        if known.iter().any(|spec| spec.port == port) || arguments.cpu_port == Some(port) {
            bail!("there is a port {port} already");
        }
        let device: DeviceSpec = device.parse()?;
        let Some(name) = device.interface().map(str::to_owned) else {
            bail!("`{device}` is no interface: while the switch runs, only interfaces are added");
        };
        let spec = PortSpec { port, device };
        let taken = |other: u32| anyhow::anyhow!("`{name}` is the interface of port {other}");
        self.interfaces.claim(port, &name).map_err(taken)?;
        let opened = self.open(&spec, known, messages).and_then(|opened| {
            // A TAP exists only now.
            self.interfaces.claim(port, &name).map_err(taken)?;
            Ok(opened)
        });
        let (opened, recorder) = opened.inspect_err(|_| self.interfaces.release(port))?;
        messages.line(format!("port {port}: {}", opened.description()));
        let reopening = Reopening::new(Reopener {
            port,
            device: spec.device.clone(),
            pool: self.pool.clone(),
            options: self.options,
            interfaces: Arc::clone(&self.interfaces),
            recorder: recorder.clone(),
            messages: messages.clone(),
        });
        let end = End::new(port, opened, &self.pool, Some(reopening), messages);
        control.tell(0, Order::AddPort(Box::new(NewPort { end, recorder })));
        Ok(spec)
    }

    /// The device of a port, and its recorder.
    fn open(
        &self,
        spec: &PortSpec,
        known: &[PortSpec],
        messages: &Messages,
    ) -> Result<(Box<dyn Device>, Option<Recorder>)> {
        let recorders = self.recorders.as_ref();
        let recorder = recorders.map(|r| r.of_new_port(spec, known, messages)).transpose()?;
        let opened = weir_io::reopen(&spec.device, &self.pool, &self.options);
        let opened = opened.with_context(|| format!("port {}", spec.port))?;
        Ok(match &recorder {
            Some(recorder) => (recorder.record(opened), Some(recorder.clone())),
            None => (opened, None),
        })
    }

    /// Has the worker close the device of a port, and waits for that.
    ///
    /// # Errors
    /// There are several workers, there is no such port, or the worker does not answer.
    pub fn remove(&self, port: u32, known: &[PortSpec], control: &Control, messages: &Messages) -> Result<()> {
        if control.workers() > 1 {
            bail!("ports are added and removed while one worker forwards, not several (--workers)");
        }
        if known.iter().all(|spec| spec.port != port) {
            bail!("there is no port {port}");
        }
        let (done, is_done) = sync_channel(1);
        control.tell(0, Order::RemovePort(port, done));
        is_done
            .recv_timeout(PATIENCE)
            .with_context(|| format!("port {port} is not closed yet: the switch is busy or ends"))?;
        self.interfaces.release(port);
        messages.line(format!("port {port} is removed"));
        Ok(())
    }
}
