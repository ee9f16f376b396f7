//! The protocol between `simple_switch_CLI` and a switch, at the port where bmv2 serves Thrift.
//!
//! It is weir's own: each side writes JSON objects, one a line. The server begins with a
//! [`Greeting`]; then each [`Request`] has a [`Reply`]. It is served on the loopback interface
//! only, as it has no authentication, like bmv2's Thrift. A client of Thrift is answered with a
//! line that says so. A client beyond the limit of connections gets a [`Reply::Error`] instead of
//! the greeting.

use super::runtime::{self, Info, Names, Output, PortChange};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use weir_server::Device;

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// Longest request in bytes.
const LONGEST: u64 = 64 << 10;
/// Connections at a time; more are refused.
const CONNECTIONS: usize = 64;

/// The server's first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Version of the protocol, by the name of who speaks it.
    pub weir_runtime: u32,
    /// Name of the program's source; `None`: there is no program.
    pub program: Option<String>,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Execute a command.
    Execute {
        /// The command with its arguments.
        line: String,
        /// Where a long output continues, at first 0.
        from: u64,
    },
    /// The names of the program.
    Names,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// What a command printed.
    Output {
        /// The text.
        text: String,
        /// Where it continues.
        next: Option<u64>,
    },
    /// The names of the program.
    Names(Names),
    /// Why not.
    Error(String),
}

/// What is served.
pub struct Service {
    /// The switch.
    pub device: Arc<Device>,
    /// Its number.
    pub device_id: u64,
    /// Name of the source file that the switch was started with.
    pub source: String,
}

/// The text that a client of another protocol gets.
const NOT_THRIFT: &str = "this is the port of weir's simple_switch_CLI; Thrift is not spoken here\n";

/// Serves connections until the runtime ends.
pub async fn serve(listener: TcpListener, service: Service) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    let service = Arc::new(service);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    refuse(stream);
                    continue;
                };
                let service = Arc::clone(&service);
                tokio::spawn(async move {
                    // A client that has gone needs no answer.
                    let _ = connection(stream, port, &service).await;
                    drop(place);
                });
            }
            // As where there are too many open files: later there may be fewer.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}

/// Refuses a client for which there is no place.
fn refuse(stream: TcpStream) {
    let why = format!("{CONNECTIONS} clients are connected, and the switch serves no more: close one of them");
    if let Ok(mut line) = serde_json::to_vec(&Reply::Error(why)) {
        line.push(b'\n');
        // A new connection has room for a line. A client that has gone needs none.
        let _ = stream.try_write(&line);
    }
}

/// Where the protocol is served.
pub fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

async fn send(stream: &mut BufReader<TcpStream>, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

async fn connection(stream: TcpStream, port: u16, service: &Service) -> std::io::Result<()> {
    // A client may send requests before it reads replies; those must not wait for its ACKs.
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let program = service.device.program().ok().map(|_| service.source.clone());
    let greeting = Greeting {
        weir_runtime: VERSION,
        program,
    };
    send(&mut stream, &greeting).await?;
    // Requests are objects of JSON, or strings where they have no fields.
    if stream
        .fill_buf()
        .await?
        .first()
        .is_some_and(|byte| !b"{\"".contains(byte))
    {
        return stream.write_all(NOT_THRIFT.as_bytes()).await;
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut stream).take(LONGEST).read_until(b'\n', &mut line).await?;
        if line.last() != Some(&b'\n') {
            // The end, or a line that is too long.
            return Ok(());
        }
        let reply = match serde_json::from_slice(&line) {
            Ok(request) => answer(service, port, request).await,
            Err(error) => Reply::Error(format!("this is no request: {error}")),
        };
        send(&mut stream, &reply).await?;
    }
}

async fn answer(service: &Service, port: u16, request: Request) -> Reply {
    let device = &service.device;
    if let Request::Execute { line, .. } = &request
        && let Some(change) = runtime::port_change(line)
    {
        return change_ports(device, change)
            .await
            .unwrap_or_else(|error| Reply::Error(crate::cli::causes(&error)));
    }
    let outcome = match request {
        Request::Names => device.command(|switch| Names::of(switch)).await.map(Reply::Names),
        Request::Execute { line, from } => match info(service, port) {
            Ok(info) => device
                .command(move |switch| runtime::execute(switch, &info, &line, from))
                .await
                .map(|done| match done {
                    Ok(Output { text, next }) => Reply::Output { text, next },
                    Err(error) => Reply::Error(crate::cli::causes(&error)),
                }),
            Err(refusal) => Err(refusal),
        },
    };
    outcome.unwrap_or_else(|refusal| Reply::Error(refusal.message.into_owned()))
}

async fn change_ports(device: &Device, change: anyhow::Result<PortChange>) -> anyhow::Result<Reply> {
    let outcome = match change? {
        PortChange::Add { port, device: name } => {
            if let Ok(program) = device.program() {
                crate::load::check_port(&program, port)?;
            }
            device.add_port(port, &super::server::device(&name)).await
        }
        PortChange::Remove(port) => device.remove_port(port).await,
    };
    Ok(match outcome {
        Ok(()) => Reply::Output {
            text: String::new(),
            next: None,
        },
        Err(refusal) => Reply::Error(refusal.message.into_owned()),
    })
}

fn info(service: &Service, port: u16) -> Result<Info, weir_server::Refusal> {
    Ok(Info {
        device_id: service.device_id,
        runtime_port: port,
        ports: service.device.port_list(),
        source: service.source.clone(),
        program: service.device.program()?,
    })
}
