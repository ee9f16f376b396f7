//! The settings of a P4Runtime server.

use crate::tls::Tls;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How a P4Runtime server listens and what it takes.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens. The default is port 9559 of the loopback interface; set
    /// `tls` before opening it to a network.
    pub listen: SocketAddr,
    /// Transport security; none by default.
    pub tls: Option<Tls>,
    /// The number of the device. Requests may also say 0 for it.
    pub device_id: u64,
    /// The most bytes of a message. The specification requires at least 4 MiB; default
    /// 256 MiB, as batches may be large. Independent of it, a Read is limited to 16 MiB, and
    /// requests other than Reads, Writes and programs to 4 MiB.
    pub max_message_bytes: usize,
    /// Bytes of all messages that are being received or whose requests are in progress, default 1
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
    /// Updates of one Write, default 1,000,000; never more than 8,388,608. Each has at most 8 MiB.
    pub max_updates: usize,
    /// The most that one atomic Write may cost, in updates of plain entries, default 65,536:
    /// packets wait until all of it is executed. An update of an entry with masks or ranges counts
    /// 64, a multicast group its number of replicas. The existing state that it traverses, such as
    /// the entries of a table that is cleared, has the same limit.
    pub max_atomic_updates: usize,
    /// Queries of one Read, default 10,000. Each has at most 8 MiB.
    pub max_queries: usize,
    /// Entities of one ReadResponse, and of one step of the switch while it is read, default 1024.
    /// A group counts as many as it has members or replicas, and 64 bytes of metadata as one.
    pub read_chunk: usize,
    /// Chunks that wait for a slow reader, default 64. While a Read of more than one chunk runs, no
    /// Write starts.
    pub read_ahead: usize,
    /// Longest time for a reader to receive the next chunk once `read_ahead` wait, default 2 s. For
    /// all chunks it has as long again, plus a second for each 50,000 entries. After that the Read
    /// is ABORTED. A Read that has blocked Writes for this time is aborted, too.
    pub read_timeout: Duration,
    /// Most open streams, default 64.
    pub max_streams: usize,
    /// Streams of one role, default 16.
    pub max_streams_per_role: usize,
    /// Roles that have streams, default 256. Of 16 times as many others the highest election id is
    /// remembered.
    pub max_roles: usize,
    /// Messages that wait for a slow stream, default 1024. Further packets, digests and
    /// notifications are lost; a stream with no room for an arbitration notice is ended.
    pub stream_queue: usize,
    /// Connections at a time, default 1024; never more than a third of the files that the process
    /// may open. Beyond the limit, the connection without a request or stream for longest is
    /// closed. If all have one, the new connection is closed.
    pub max_connections: usize,
    /// Silence after which a connection is probed (HTTP/2 ping), default 30 s. The client has 20 s
    /// to reply. TLS and the start of HTTP/2 must complete within the time of the silence.
    pub keepalive: Duration,
    /// Requests that are processed at a time on one connection, default 256.
    pub max_requests_per_connection: usize,
    /// Largest trailer with error details, in bytes, for clients with the defaults of gRPC, default
    /// 8 KiB. If the details are larger, their messages are truncated, then omitted; see
    /// [`batch_status`](super::batch_status). A client with a larger limit states it in the
    /// metadata field `weir-max-error-bytes`.
    pub small_error_bytes: usize,
    /// Largest trailer that is ever sent, default 16 MiB.
    pub max_error_bytes: usize,
    /// The polling interval of digests, default 5 ms. There is no polling if none are enabled.
    pub digest_interval: Duration,
    /// The polling interval of idle entries, default 100 ms. There is no polling if no table has
    /// idle timeouts.
    pub idle_interval: Duration,
    /// Packets that wait to become packet-ins, default 1024.
    pub packet_queue: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9559)),
            tls: None,
            device_id: 1,
            max_message_bytes: 256 << 20,
            max_request_bytes: 1 << 30,
            receive_timeout: Duration::from_secs(30),
            max_updates: 1_000_000,
            max_atomic_updates: 65_536,
            max_queries: 10_000,
            read_chunk: 1024,
            read_ahead: 64,
            read_timeout: Duration::from_secs(2),
            max_streams: 64,
            max_streams_per_role: 16,
            max_roles: 256,
            stream_queue: 1024,
            max_connections: 1024,
            keepalive: Duration::from_secs(30),
            max_requests_per_connection: 256,
            small_error_bytes: 8 << 10,
            max_error_bytes: 16 << 20,
            digest_interval: Duration::from_millis(5),
            idle_interval: Duration::from_millis(100),
            packet_queue: 1024,
        }
    }
}
