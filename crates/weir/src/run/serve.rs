//! The control plane's servers of a run.

use super::control::Event;
use super::live::Live;
use crate::cli::Run;
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use weir_ir::Program;
use weir_server::DataPlane;
use weir_server::p4rt::{Config, P4Runtime, Tls};

/// Threads that serve control planes: one may translate a large request while another answers small ones.
const THREADS: usize = 2;

/// Keeps the servers running.
pub struct Servers(Option<tokio::runtime::Runtime>);

impl Servers {
    /// Starts those that were asked for; each listens when this returns. One that ends by itself is an event.
    pub fn start(arguments: &Run, live: Live, program: Arc<Program>, events: &Sender<Event>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("control plane")
            .enable_all()
            .build()
            .context("cannot start the control plane's threads")?;
        let events = events.clone();
        if let Some(address) = arguments.p4runtime {
            let config = Config {
                listen: address,
                device_id: arguments.device_id,
                tls: tls(arguments)?,
                ..Config::default()
            };
            let is_open = !address.ip().is_loopback() && config.tls.is_none();
            let plane: Arc<dyn DataPlane> = Arc::new(live);
            let _within = runtime.enter();
            let server = P4Runtime::new(plane, Some(program), config).map_err(|e| anyhow::anyhow!("{e}"))?;
            let listener = runtime
                .block_on(tokio::net::TcpListener::bind(address))
                .with_context(|| format!("cannot listen at {address} for P4Runtime"))?;
            let bound = listener.local_addr().unwrap_or(address);
            runtime.spawn(async move {
                let served = weir_server::p4rt::serve_on(server, listener, std::future::pending()).await;
                let why = served
                    .err()
                    .map_or_else(|| "it has ended".to_owned(), |e| e.to_string());
                let _ = events.send(Event::ServerEnded(format!("P4Runtime: {why}")));
            });
            eprintln!("P4Runtime at {bound}");
            if is_open {
                eprintln!(
                    "warning: anybody who reaches {bound} controls the switch; see --tls-cert and --tls-client-ca"
                );
            }
        }
        Ok(Servers(Some(runtime)))
    }
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
