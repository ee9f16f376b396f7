//! Commands of the process that runs the switch, beside the servers' requests.

use crate::dataplane::{Length, PortInfo, gather_by};
use crate::device::Device;
use crate::refusal::Refusal;
use crate::threads::{self, Failure};
use std::sync::Arc;
use weir_ir::Program;
use weir_switch::Switch;

impl Device {
    /// Executes a command on the switch that processes packets, in order with the Writes of all
    /// servers, and returns its result on the first replica. Its changes
    /// are kept if the device has persistent state.
    ///
    /// The command must be short: packets wait for it. It is executed on every replica and must do
    /// the same on each.
    ///
    /// # Errors
    /// No program has been set, the state cannot be kept, or the switch has ended.
    pub async fn command<T, F>(&self, command: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Fn(&mut Switch) -> T + Send + Sync + 'static,
    {
        self.check_state()?;
        let _phase = self.phases.join_writes().await;
        let pipelines = self.pipelines.read().await;
        let committed = pipelines.committed.as_ref();
        let pipeline = committed.ok_or_else(|| Refusal::precondition("no forwarding pipeline config has been set"))?;
        let guard = self.commands.lock().await;
        let results = gather_by(&*pipeline.plane, Length::Any, move |_, switch| command(switch));
        drop(guard);
        let first = results.await?.into_iter().next();
        self.persisted().await?;
        first.ok_or_else(|| crate::dataplane::Gone.into())
    }

    /// The program that processes packets, as the compiler made it.
    ///
    /// # Errors
    /// No program has been set.
    pub fn program(&self) -> Result<Arc<Program>, Refusal> {
        Ok(Arc::clone(&self.live()?.program))
    }

    /// The ports of the switch and their devices.
    #[must_use]
    pub fn port_list(&self) -> Vec<PortInfo> {
        self.plane.ports()
    }

    /// Connects a device to a new port while packets are forwarded.
    ///
    /// # Errors
    /// The data plane cannot, or the device cannot be used.
    pub async fn add_port(&self, port: u32, device: &str) -> Result<(), Refusal> {
        let (plane, device) = (Arc::clone(&self.plane), device.to_owned());
        self.change_ports(move || plane.add_port(port, &device)).await
    }

    /// Disconnects the device of a port while packets are forwarded.
    ///
    /// # Errors
    /// The data plane cannot, or the port does not exist.
    pub async fn remove_port(&self, port: u32) -> Result<(), Refusal> {
        let plane = Arc::clone(&self.plane);
        self.change_ports(move || plane.remove_port(port)).await
    }

    async fn change_ports(&self, change: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), Refusal> {
        let changed = threads::run("changing the ports", change).await;
        let changed = changed.map_err(|failure| match failure {
            Failure::NoThread(error) => Refusal::from(error),
            Failure::Panicked => crate::dataplane::Gone.into(),
        })?;
        changed.map_err(Refusal::malformed)?;
        self.ports.set_known(self.plane.ports());
        Ok(())
    }

    /// The switch's clock in ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.plane.now_ns()
    }
}
