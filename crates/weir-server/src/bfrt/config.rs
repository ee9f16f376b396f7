//! Settings of a BF Runtime server, and their defaults.

use crate::tls::Tls;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Address, limits and time limits of a BF Runtime server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen at. The default is port 50052 of the loopback interface. On any other
    /// interface `tls` should be set.
    pub listen: SocketAddr,
    /// Transport security; none by default.
    pub tls: Option<Tls>,
    /// The device id, default 0. Requests may always use 0 for it.
    pub device_id: u32,
    /// Longest accepted message in bytes; default 1 GiB, as the reference server has no limit.
    /// Independent of it, a Read is limited to 16 MiB, and requests other than Reads, Writes and
    /// programs to 4 MiB.
    pub max_message_bytes: usize,
    /// Bytes of all messages that are being received or whose requests are in progress, default 2
    /// GiB; never less than the longest message. Short messages that arrive in one piece do not
    /// count. A message counts with the length that its header claims, since that much is
    /// allocated. If the budget is exhausted, the request is RESOURCE_EXHAUSTED. One connection may
    /// use a quarter, or one message; an eighth is reserved for messages of less than 1 MiB.
    pub max_request_bytes: usize,
    /// The time for a client to send the rest of a request, or as much as makes 1 MiB per second;
    /// default 30 s, so 30 MiB. After it the request is DEADLINE_EXCEEDED. While other requests are
    /// refused because the budget is exhausted, the client must, in each thirtieth of this time,
    /// keep that rate and send a thirtieth of the message.
    pub receive_timeout: Duration,
    /// Most updates of one Write, default 4,000,000; never more than 8,388,608. Each has at most 8
    /// MiB.
    pub max_updates: usize,
    /// Highest cost of an atomic Write, in updates of plain entries, default 65,536: packets wait
    /// until all of it is executed. An update of an entry with masks or ranges counts 64, a
    /// multicast group its number of replicas. The existing state that it traverses, such as the
    /// entries of a table that is cleared, has the same limit.
    pub max_atomic_updates: usize,
    /// Most entities of one ReadRequest, default 100,000. Each has at most 8 MiB.
    pub max_queries: usize,
    /// Entities read in one step of the switch, default 1024. A list counts its number of elements.
    pub read_chunk: usize,
    /// Longest answer to a Read in bytes, default 1 GiB. Clients that receive several messages
    /// (`weir-stream`) may read more.
    pub max_read_bytes: usize,
    /// Bytes of all single-message answers to Reads until they are sent, default 2 GiB; never less
    /// than the longest answer. Answers of less than 1 MiB do not count. If the budget is
    /// exhausted, the Read is RESOURCE_EXHAUSTED.
    pub max_answer_bytes: usize,
    /// Longest time for a reader of several messages to receive the next one, default 2 s. For all
    /// messages it has as long again, plus a second for each 50,000 entries. A Read that has
    /// blocked Writes for this time is aborted, too.
    pub read_timeout: Duration,
    /// Most open streams, default 64.
    pub max_streams: usize,
    /// Messages queued for a slow stream, default 1024. Further ones are dropped and counted.
    pub stream_queue: usize,
    /// Most connections, default 1024; never more than a third of the files that the process may
    /// open. Beyond the limit, the connection without a request or stream for longest is closed. If
    /// all have one, the new connection is closed.
    pub max_connections: usize,
    /// Silence after which a connection is probed (HTTP/2 ping), default 30 s. The client has 20 s
    /// to reply. TLS and the start of HTTP/2 must complete within the time of the silence.
    pub keepalive: Duration,
    /// Most concurrent requests of one connection, default 256.
    pub max_requests_per_connection: usize,
    /// Largest error trailer in bytes, default 16 MiB. A client with a smaller limit states it in
    /// the metadata field `weir-max-error-bytes`.
    pub max_error_bytes: usize,
    /// Interval of polling digests, default 5 ms. Without subscribers there is no polling.
    pub digest_interval: Duration,
    /// Interval of polling idle entries, default 100 ms. Without subscribers there is no polling.
    pub idle_interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 50052)),
            tls: None,
            device_id: 0,
            max_message_bytes: 1 << 30,
            max_request_bytes: 2 << 30,
            receive_timeout: Duration::from_secs(30),
            max_updates: 4_000_000,
            max_atomic_updates: 65_536,
            max_queries: 100_000,
            read_chunk: 1024,
            max_read_bytes: 1 << 30,
            max_answer_bytes: 2 << 30,
            read_timeout: Duration::from_secs(2),
            max_streams: 64,
            stream_queue: 1024,
            max_connections: 1024,
            keepalive: Duration::from_secs(30),
            max_requests_per_connection: 256,
            max_error_bytes: 16 << 20,
            digest_interval: Duration::from_millis(5),
            idle_interval: Duration::from_millis(100),
        }
    }
}
