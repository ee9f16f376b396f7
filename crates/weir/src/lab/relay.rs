//! TCP addresses of this machine at which controllers outside the lab reach its switches.
//!
//! The threads are started before the inner process leaves the network and the mounts of this
//! machine, and stay in both. They find the sockets of switches by the root folder of the process.

use anyhow::{Context, Result};
use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The listeners of switches that have not started yet.
pub struct Relay(Vec<Sender<PathBuf>>);

impl Relay {
    /// Listens for a number of switches: at this address, and at the next ports.
    ///
    /// # Errors
    /// An address is not free, or there is no thread.
    pub fn start(first: SocketAddr, count: usize) -> Result<Self> {
        let mut switches = Vec::new();
        for at in 0..count {
            let port = usize::from(first.port()) + at;
            let port = u16::try_from(port).context("--p4runtime: there is no port above 65535")?;
            let address = SocketAddr::new(first.ip(), port);
            let listener = TcpListener::bind(address).with_context(|| format!("--p4runtime: {address}"))?;
            let (sender, socket) = channel();
            std::thread::Builder::new()
                .name(format!("relay {port}"))
                .spawn(move || serve(&listener, &socket))
                .context("cannot start a thread")?;
            switches.push(sender);
        }
        Ok(Relay(switches))
    }

    /// Connects the addresses to the sockets of switches, which are paths of the lab.
    pub fn connect(&self, sockets: impl Iterator<Item = PathBuf>) {
        for (switch, socket) in self.0.iter().zip(sockets) {
            let below_root = socket.strip_prefix("/").unwrap_or(&socket);
            // The thread ends with the process only.
            let _ = switch.send(Path::new("/proc/self/root").join(below_root));
        }
    }
}

fn serve(listener: &TcpListener, socket: &Receiver<PathBuf>) {
    let Ok(socket) = socket.recv() else { return };
    // A connection that fails is the client's to notice.
    for client in listener.incoming().flatten() {
        if let Ok(switch) = UnixStream::connect(&socket) {
            let _ = carry(client, switch);
        }
    }
}

/// Carries bytes in both directions until both have ended.
fn carry(client: TcpStream, switch: UnixStream) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let (mut from_client, mut to_switch) = (client.try_clone()?, switch.try_clone()?);
    let (mut from_switch, mut to_client) = (switch, client);
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("to switch").spawn(move || {
        let _ = copy(&mut from_client, &mut to_switch);
        let _ = to_switch.shutdown(Shutdown::Write);
    })?;
    thread("from switch").spawn(move || {
        let _ = copy(&mut from_switch, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    })?;
    Ok(())
}
