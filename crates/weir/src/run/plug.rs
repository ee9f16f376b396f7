//! Ports that are added and removed while the switch runs.

use super::control::{Control, Order};
use super::end::End;
use super::interfaces::Interfaces;
use super::reopen::{Reopener, Reopening};
use super::start;
use crate::cli::Run;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use weir_io::{DeviceSpec, Pool, PortSpec, PortsOptions, Recorder};

/// A port that a worker gets while it runs.
pub struct NewPort {
    /// Its device.
    pub end: End,
    /// What records it.
    pub recorder: Option<Recorder>,
}

/// What devices are opened with.
#[derive(Clone)]
pub struct Plugger {
    /// Frames of all ports.
    pub pool: Pool,
    /// How devices are opened.
    pub options: PortsOptions,
    /// The interfaces of all ports.
    pub interfaces: Arc<Interfaces>,
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
        let taken = |other: u32| anyhow::anyhow!("`{name}` is the interface of port {other}");
        self.interfaces.claim(port, &name).map_err(taken)?;
        let opened = weir_io::reopen(&device, &self.pool, &self.options);
        let mut opened = opened
            .with_context(|| format!("port {port}"))
            .inspect_err(|_| self.interfaces.release(port))?;
        // A TAP exists only now.
        self.interfaces.claim(port, &name).map_err(taken)?;
        let spec = PortSpec { port, device };
        let recorder = start::recorder(arguments, &spec, messages)?;
        if let Some(recorder) = &recorder {
            opened = recorder.record(opened);
        }
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

    /// Has the worker close the device of a port.
    ///
    /// # Errors
    /// There are several workers, or there is no such port.
    pub fn remove(&self, port: u32, known: &[PortSpec], control: &Control, messages: &Messages) -> Result<()> {
        if control.workers() > 1 {
            bail!("ports are added and removed while one worker forwards, not several (--workers)");
        }
        if known.iter().all(|spec| spec.port != port) {
            bail!("there is no port {port}");
        }
        control.tell(0, Order::RemovePort(port));
        self.interfaces.release(port);
        messages.line(format!("port {port} is removed"));
        Ok(())
    }
}
