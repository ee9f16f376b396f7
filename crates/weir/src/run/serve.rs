//! The control plane's servers of a run.

use super::control::Event;
use super::live::Live;
use crate::cli::Run;
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use tokio::runtime::Runtime;
use weir_ir::Program;
use weir_server::bfrt::{self, BfRuntime};
use weir_server::p4rt::{self, P4Runtime};
use weir_server::{Address, DataPlane, Device, Listener, ServeError, Tls};

/// Threads that serve control planes: one may translate a large request while another answers small ones.
const THREADS: usize = 2;

/// What BF Runtime's clients call a program whose file has no name.
const NO_NAME: &str = "p4";

/// Keeps the servers running.
pub struct Servers(Option<Runtime>);

impl Servers {
    /// Starts those that were asked for; each listens when this returns. One that ends by itself is an event.
    pub fn start(arguments: &Run, live: Live, program: Arc<Program>, events: &Sender<Event>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("control plane")
            .enable_all()
            .build()
            .context("cannot start the control plane's threads")?;
        let tls = tls(arguments)?;
        let plane: Arc<dyn DataPlane> = Arc::new(live);
        let packets = p4rt::Config::default().packet_queue;
        let device = {
            let _within = runtime.enter();
            let device = Device::new(plane, Some(program), &p4_name(arguments), packets);
            device.map_err(|e| anyhow::anyhow!("{e}"))?
        };
        let is_open = |address: &Address| !address.is_local() && tls.is_none();
        if let Some(address) = &arguments.p4runtime {
            let config = p4rt::Config {
                device_id: arguments.device_id,
                tls: tls.clone(),
                ..p4rt::Config::default()
            };
            let _within = runtime.enter();
            let server = P4Runtime::on(&device, config);
            let listener = listen(&runtime, "P4Runtime", address, is_open(address))?;
            let served = p4rt::serve_on(server, listener, std::future::pending());
            keep(&runtime, "P4Runtime", served, events.clone());
        }
        if let Some(address) = &arguments.bfrt {
            let device_id = u32::try_from(arguments.device_id);
            let config = bfrt::Config {
                device_id: device_id.context("--device-id is at most 4294967295 with --bfrt")?,
                tls: tls.clone(),
                ..bfrt::Config::default()
            };
            let _within = runtime.enter();
            let server = BfRuntime::on(&device, config);
            let listener = listen(&runtime, "BF Runtime", address, is_open(address))?;
            let served = bfrt::serve_on(server, listener, std::future::pending());
            keep(&runtime, "BF Runtime", served, events.clone());
        }
        Ok(Servers(Some(runtime)))
    }
}

/// What BF Runtime's clients call the program.
fn p4_name(arguments: &Run) -> String {
    let stem = arguments
        .source
        .program
        .file_stem()
        .map(|s| s.to_string_lossy().into_owned());
    arguments.p4_name.clone().or(stem).unwrap_or_else(|| NO_NAME.to_owned())
}

/// Listens for a server, and says where.
fn listen(runtime: &Runtime, name: &str, address: &Address, is_open: bool) -> Result<Listener> {
    let listener = runtime
        .block_on(address.listen())
        .with_context(|| format!("cannot listen at {address} for {name}"))?;
    let bound = listener.address().unwrap_or_else(|_| address.clone());
    eprintln!("{name} at {bound}");
    if is_open {
        eprintln!("warning: anybody who reaches {bound} controls the switch; see --tls-cert and --tls-client-ca");
    }
    Ok(listener)
}

/// Has a server go on until the run ends, and tells of one that ends before.
fn keep(
    runtime: &Runtime,
    name: &'static str,
    served: impl Future<Output = Result<(), ServeError>> + Send + 'static,
    events: Sender<Event>,
) {
    runtime.spawn(async move {
        let why = match served.await {
            Ok(()) => "it has ended".to_owned(),
            Err(error) => error.to_string(),
        };
        let _ = events.send(Event::ServerEnded(format!("{name}: {why}")));
    });
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Nobody waits for clients that keep a stream open.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Certificates, if there are any.
fn tls(arguments: &Run) -> Result<Option<Tls>> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let Some((certificate, key)) = arguments.tls_cert.as_deref().zip(arguments.tls_key.as_deref()) else {
        return Ok(None);
    };
    Ok(Some(Tls {
        certificate: read(certificate)?,
        key: read(key)?,
        client_authorities: arguments.tls_client_ca.as_deref().map(read).transpose()?,
    }))
}
