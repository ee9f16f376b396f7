//! The control plane's servers of a run.

use super::control::Event;
use super::live::Live;
use crate::bmv2;
use crate::cli::Run;
use crate::output::Messages;
use crate::threads;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use weir_ir::Program;
use weir_server::bfrt::{self, BfRuntime};
use weir_server::p4rt::{self, P4Runtime};
use weir_server::{Address, CallCount, DataPlane, Device, Listener, ServeError, State, StateOptions, Tls, TlsPart};

/// Threads that serve control planes. Long lists of requests, and programs, are read and translated
/// on others; two for the rest contend for the same connection, whose requests take a tenth less
/// processor time with one.
const THREADS: usize = 1;

/// How nice the control plane's threads are where there is no core without a worker. A worker that
/// shares its core with several of them keeps three quarters of it while it has packets, where it
/// would get an equal part otherwise: packets that wait are lost, requests that wait are not.
/// Elsewhere threads move to a core that is free, and would only come after the controllers of this
/// machine.
const NICE: u8 = 10;

/// What BF Runtime's clients call a program whose file has no name.
const NO_NAME: &str = "p4";

/// How long the state may take to be written at the end.
const CHECKPOINT: Duration = Duration::from_secs(30);

/// Keeps the servers running.
pub struct Servers {
    runtime: Option<Runtime>,
    device: Arc<Device>,
    p4runtime: Option<P4Runtime>,
    bfrt: Option<BfRuntime>,
}

/// What servers have done.
pub struct ServersReport {
    /// Calls by service, method and outcome.
    pub calls: Vec<CallCount>,
    /// Services with the streams they have now, and the messages that slow ones have missed.
    pub streams: Vec<(&'static str, u64, u64)>,
    /// Packets for controllers that were lost.
    pub lost_packets: u64,
}

/// The sockets of the servers and the threads for them, before the servers start.
pub struct Listening {
    runtime: Runtime,
    tls: Option<Tls>,
    p4runtime: Option<Listener>,
    /// Beside it the device's number.
    bfrt: Option<(Listener, u32)>,
    simple_switch: Option<TcpListener>,
}

impl Listening {
    /// Listens at the addresses of the command line. Clients that connect wait for
    /// [`Listening::serve`].
    pub fn open(arguments: &Run, tls: Option<Tls>) -> Result<Self> {
        let shares_cores = weir_io::cores().len() <= arguments.workers;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(THREADS)
            .thread_name("control plane")
            .on_thread_start(move || {
                if shares_cores {
                    // Where that is not allowed, a controller's requests take a larger part of the
                    // core.
                    let _ = weir_io::be_nice(NICE);
                }
            })
            .enable_all();
        let runtime = threads::runtime("the control plane", &mut builder)?;
        let listen = |name: &str, address: &Address| {
            let listener = runtime.block_on(address.listen());
            listener.with_context(|| format!("cannot listen at {address} for {name}"))
        };
        let p4runtime = arguments.p4runtime.as_ref();
        let p4runtime = p4runtime.map(|address| listen("P4Runtime", address)).transpose()?;
        let mut bfrt = None;
        if let Some(address) = &arguments.bfrt {
            let device_id = u32::try_from(arguments.device_id);
            let device_id = device_id.context("--device-id is at most 4294967295 with --bfrt")?;
            bfrt = Some((listen("BF Runtime", address)?, device_id));
        }
        let mut simple_switch = None;
        if let Some(port) = arguments.bmv2.runtime_port {
            let address = bmv2::address(port);
            let listener = runtime.block_on(TcpListener::bind(address)).with_context(|| {
                format!("cannot listen at {address} for simple_switch_CLI; --thrift-port chooses another port")
            })?;
            simple_switch = Some(listener);
        }
        Ok(Listening {
            runtime,
            tls,
            p4runtime,
            bfrt,
            simple_switch,
        })
    }

    /// Starts the servers. One that ends by itself is an event.
    pub fn serve(
        self,
        arguments: &Run,
        live: Live,
        program: Option<Arc<Program>>,
        state: Option<State>,
        events: &Sender<Event>,
        messages: &Messages,
    ) -> Result<Servers> {
        let Listening { runtime, tls, .. } = self;
        let plane: Arc<dyn DataPlane> = Arc::new(live);
        let packets = p4rt::Config::default().packet_queue;
        let device = {
            let _within = runtime.enter();
            let name = p4_name(arguments);
            let device = match (state, program) {
                (Some(state), Some(program)) => Device::with_state(plane, program, &name, packets, state),
                (_, program) => Device::new(plane, program, &name, packets),
            };
            device.map_err(|e| anyhow::anyhow!("{e}"))?
        };
        let (mut p4runtime, mut bf_runtime) = (None, None);
        if let Some(listener) = self.p4runtime {
            let config = p4rt::Config {
                device_id: arguments.device_id,
                tls: tls.clone(),
                ..p4rt::Config::default()
            };
            let _within = runtime.enter();
            let server = P4Runtime::on(&device, config);
            p4runtime = Some(server.clone());
            announce("P4Runtime", &listener, tls.is_some(), messages)?;
            let served = p4rt::serve_on(server, listener, std::future::pending());
            keep(&runtime, "P4Runtime", served, events.clone());
        }
        if let Some((listener, device_id)) = self.bfrt {
            let config = bfrt::Config {
                device_id,
                tls: tls.clone(),
                ..bfrt::Config::default()
            };
            let _within = runtime.enter();
            let server = BfRuntime::on(&device, config);
            bf_runtime = Some(server.clone());
            announce("BF Runtime", &listener, tls.is_some(), messages)?;
            let served = bfrt::serve_on(server, listener, std::future::pending());
            keep(&runtime, "BF Runtime", served, events.clone());
        }
        if let Some(listener) = self.simple_switch {
            messages.line(format!("simple_switch_CLI at {}", listener.local_addr()?));
            let service = bmv2::Service {
                device: Arc::clone(&device),
                device_id: arguments.device_id,
                source: arguments.source.program.display().to_string(),
            };
            runtime.spawn(bmv2::serve(listener, service));
        }
        Ok(Servers {
            runtime: Some(runtime),
            device,
            p4runtime,
            bfrt: bf_runtime,
        })
    }
}

impl Servers {
    /// What is to be told of the servers.
    pub fn report(&self) -> ServersReport {
        let mut streams = Vec::new();
        if let Some(server) = &self.p4runtime {
            streams.push(("P4Runtime", server.streams() as u64, server.missed_messages()));
        }
        if let Some(server) = &self.bfrt {
            streams.push(("BfRuntime", server.clients() as u64, server.missed_messages()));
        }
        ServersReport {
            calls: self.device.calls(),
            streams,
            lost_packets: self.device.lost_packets(),
        }
    }

    /// Keeps the state as it is now, where it is to be kept.
    pub fn checkpoint(&self) -> Result<()> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let kept = async { tokio::time::timeout(CHECKPOINT, self.device.checkpoint()).await };
        let kept = runtime.block_on(kept).context("it takes too long")?;
        kept.map_err(|e| anyhow::anyhow!("{e}"))
    }
}

/// How a state is kept, with trouble told as an event.
pub fn state_options(arguments: &Run, events: &Sender<Event>) -> StateOptions {
    let events = events.clone();
    StateOptions {
        sync: arguments.state_sync,
        on_trouble: Some(Arc::new(move |what: &str| {
            let _ = events.send(Event::Trouble(what.to_owned()));
        })),
        ..StateOptions::default()
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

/// Says where a server listens, and whether others than this machine's users reach it.
fn announce(name: &str, listener: &Listener, has_tls: bool, messages: &Messages) -> Result<()> {
    let bound = listener.address()?;
    messages.line(format!("{name} at {bound}"));
    if !bound.is_local() && !has_tls {
        messages.line(format!(
            "warning: anybody who reaches {bound} controls the switch; see --tls-cert and --tls-client-ca"
        ));
    }
    Ok(())
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
        let _ = events.send(Event::Trouble(format!("{name}: {why}")));
    });
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Nobody waits for clients that keep a stream open.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Certificates and keys, if there are any; checked, so that a server that was asked for either
/// starts or is an error.
pub fn tls(arguments: &Run, messages: &Messages) -> Result<Option<Tls>> {
    let Some((certificate, key)) = arguments.tls_cert.as_deref().zip(arguments.tls_key.as_deref()) else {
        return Ok(None);
    };
    let authorities = arguments.tls_client_ca.as_deref();
    let pem = |path| crate::input::pem(path, weir_files::Readable::Regular);
    let tls = Tls {
        certificate: pem(certificate)?,
        key: pem(key)?,
        client_authorities: authorities.map(pem).transpose()?,
    };
    let file = |part| match part {
        TlsPart::Certificate => certificate.display(),
        TlsPart::Key => key.display(),
        TlsPart::ClientAuthorities | TlsPart::ServerAuthorities => authorities.unwrap_or(certificate).display(),
    };
    tls.check().map_err(|error| match error.part {
        TlsPart::Key => anyhow::anyhow!("{}: {error} (certificate: {})", key.display(), certificate.display()),
        part @ (TlsPart::Certificate | TlsPart::ClientAuthorities | TlsPart::ServerAuthorities) => {
            anyhow::anyhow!("{}: {error}", file(part))
        }
    })?;
    for found in tls.out_of_date(SystemTime::now()) {
        messages.line(format!("warning: {}: {found}", file(found.part)));
    }
    Ok(Some(tls))
}
