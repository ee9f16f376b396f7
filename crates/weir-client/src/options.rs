//! Options of a connection: address, TLS, identity of the client, and limits.

use crate::error::Error;
use crate::schema::Protocol;
use std::path::PathBuf;
use std::time::Duration;

/// The port of P4Runtime servers, as assigned by IANA.
pub const P4RUNTIME_PORT: u16 = 9559;
/// The port that BF Runtime servers use.
pub const BFRT_PORT: u16 = 50052;

/// Where a target listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A host, by name or number, and a port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Transport security: PEM texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificate authorities for the target's certificate. If empty, no certificate is trusted
    /// and the connection fails.
    pub authorities: Vec<u8>,
    /// The name in the target's certificate, if it is not the host.
    pub domain: Option<String>,
    /// The client's certificate and key, for targets that require mutual TLS.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// The identity of the client and the parameters of its connection. Made by [`Options::p4runtime`]
/// and [`Options::bfrt`].
///
/// ```
/// use std::time::Duration;
/// use weir_client::Options;
///
/// let options = Options::p4runtime("127.0.0.1:9559")?
///     .device(1)
///     .election(7)
///     .deadline(Duration::from_secs(10));
/// assert_eq!(options.address.to_string(), "127.0.0.1:9559");
/// # Ok::<(), weir_client::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The protocol.
    pub protocol: Protocol,
    /// Where the target listens.
    pub address: Address,
    /// Transport security; none by default.
    pub tls: Option<Tls>,
    /// The device id. Default: 1 for P4Runtime, 0 for BF Runtime.
    pub device_id: u64,
    /// P4Runtime: the role; the empty role may do everything.
    pub role: String,
    /// P4Runtime: the highest election id is primary. Default 1.
    pub election_id: u128,
    /// BF Runtime: the client id, unique at the target. Default 1.
    pub client_id: u32,
    /// BF Runtime: the program to bind to; `None` means the one that the target runs.
    pub program: Option<String>,
    /// Only read: neither become primary nor subscribe.
    pub is_observer: bool,
    /// Time limit for connecting, default 5 s.
    pub connect_timeout: Duration,
    /// Time limit for a request, default 60 s.
    pub deadline: Duration,
    /// Interval of probes (HTTP/2 ping) while the connection is silent, default 20 s; `None`
    /// disables them.
    pub keepalive: Option<Duration>,
    /// Delay between attempts to reconnect, default 200 ms. It doubles with each attempt, up to 30
    /// times as long. `None`: a broken connection stays broken.
    pub reconnect: Option<Duration>,
    /// Largest accepted message in bytes; default 1 GiB.
    pub max_message_bytes: usize,
    /// Largest accepted error trailer in bytes; default 16 MiB.
    pub max_error_bytes: u32,
    /// Flow-control window: bytes that the target may send ahead of this side; default 4 MiB.
    pub window_bytes: u32,
    /// For a [blocking client](crate::blocking::Client): the time for which a call busy-polls for
    /// its answer before it sleeps, default 200 µs. Zero disables polling, as always on a machine
    /// with one processor.
    pub busy_poll: Duration,
}

impl Options {
    /// Options for a P4Runtime target: `HOST[:PORT]`, `[IPV6]:PORT` or `unix:PATH`. The default
    /// port is 9559.
    ///
    /// # Errors
    /// The address is malformed.
    pub fn p4runtime(address: &str) -> Result<Options, Error> {
        Options::new(Protocol::P4Runtime, address, P4RUNTIME_PORT)
    }

    /// Options for a BF Runtime target. The default port is 50052.
    ///
    /// # Errors
    /// The address is malformed.
    pub fn bfrt(address: &str) -> Result<Options, Error> {
        Options::new(Protocol::BfRuntime, address, BFRT_PORT)
    }

    fn new(protocol: Protocol, address: &str, port: u16) -> Result<Options, Error> {
        Ok(Options {
            protocol,
            address: parse(address, port)?,
            tls: None,
            device_id: match protocol {
                Protocol::P4Runtime => 1,
                Protocol::BfRuntime => 0,
            },
            role: String::new(),
            election_id: 1,
            client_id: 1,
            program: None,
            is_observer: false,
            connect_timeout: Duration::from_secs(5),
            deadline: Duration::from_secs(60),
            keepalive: Some(Duration::from_secs(20)),
            reconnect: Some(Duration::from_millis(200)),
            max_message_bytes: 1 << 30,
            max_error_bytes: 16 << 20,
            window_bytes: 4 << 20,
            busy_poll: Duration::from_micros(200),
        })
    }

    /// Sets the device id.
    #[must_use]
    pub fn device(mut self, id: u64) -> Self {
        self.device_id = id;
        self
    }

    /// P4Runtime: sets the role.
    #[must_use]
    pub fn role(mut self, name: &str) -> Self {
        name.clone_into(&mut self.role);
        self
    }

    /// P4Runtime: sets the election id.
    #[must_use]
    pub fn election(mut self, id: u128) -> Self {
        self.election_id = id;
        self
    }

    /// BF Runtime: sets the client id.
    #[must_use]
    pub fn client(mut self, id: u32) -> Self {
        self.client_id = id;
        self
    }

    /// BF Runtime: sets the program to bind to.
    #[must_use]
    pub fn program(mut self, name: &str) -> Self {
        self.program = Some(name.to_owned());
        self
    }

    /// Only reads: neither becomes primary nor subscribes.
    #[must_use]
    pub fn observer(mut self) -> Self {
        self.is_observer = true;
        self
    }

    /// Transport security.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the time limit for a request.
    #[must_use]
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = time;
        self
    }

    /// Sets the time for which a blocking call busy-polls before it sleeps.
    #[must_use]
    pub fn busy_poll(mut self, time: Duration) -> Self {
        self.busy_poll = time;
        self
    }

    /// Sets the delay before a reconnection; `None` disables reconnecting.
    #[must_use]
    pub fn reconnect(mut self, wait: Option<Duration>) -> Self {
        self.reconnect = wait;
        self
    }
}

fn parse(text: &str, default_port: u16) -> Result<Address, Error> {
    let wrong = || Error::Options(format!("`{text}` is no address: HOST[:PORT], [IPV6]:PORT or unix:PATH"));
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() {
            return Err(wrong());
        }
        return Ok(Address::Unix(path.into()));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None if port.is_empty() => default_port,
            None => return Err(wrong()),
        };
        return Ok(Address::Tcp(host.to_owned(), port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
        None => (text, default_port),
    };
    let is_name = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if !is_name {
        return Err(wrong());
    }
    Ok(Address::Tcp(host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_ports_or_sockets() {
        let show = |text: &str| parse(text, 1).map(|a| a.to_string()).map_err(|e| e.to_string());
        assert_eq!(show("switch:9559"), Ok("switch:9559".to_owned()));
        assert_eq!(show("10.0.0.1"), Ok("10.0.0.1:1".to_owned()));
        assert_eq!(show("[::1]:80"), Ok("[::1]:80".to_owned()));
        assert_eq!(show("[::1]"), Ok("[::1]:1".to_owned()));
        assert_eq!(show("unix:/run/weir.sock"), Ok("unix:/run/weir.sock".to_owned()));
        for wrong in ["", ":1", "a:b", "a:99999", "http://a:1", "[::1", "unix:", "a b"] {
            assert!(show(wrong).is_err(), "{wrong}");
        }
    }
}
