//! What a server can be told before it starts.

use crate::tls::Tls;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How a BF Runtime server listens and what it takes.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens. The default is port 50052 of the loopback interface; whoever opens it to a
    /// network should set `tls`, too.
    pub listen: SocketAddr,
    /// Transport security; none by default.
    pub tls: Option<Tls>,
    /// The number of the device, default 0. Requests may always say 0 for it.
    pub device_id: u32,
    /// Longest message that is taken in, in bytes; default 1 GiB, as the reference takes any.
    /// Whatever it is, a Read has at most 16 MiB, and all but Reads, Writes and programs 4 MiB.
    pub max_message_bytes: usize,
    /// Bytes of all messages that are being received, or whose requests are not done, default 2
    /// GiB; never less than the longest message. Short messages that come in one piece do not
    /// count. A message counts with the length that it claims from its beginning, as room is made
    /// for it; one for which there is none is RESOURCE_EXHAUSTED. One connection has at most a
    /// quarter, or one message, and an eighth is for messages of less than 1 MiB.
    pub max_request_bytes: usize,
    /// In this time a client sends the rest of a request, or as much as makes 1 MiB per second;
    /// default 30 s, so 30 MiB. Otherwise the request is DEADLINE_EXCEEDED. While others are
    /// refused for want of room, it sends in each thirtieth of it that pace and a thirtieth of the
    /// message.
    pub request_patience: Duration,
    /// Updates of one Write, default 4,000,000; never more than 8,388,608. Each has at most 8 MiB.
    pub max_updates: usize,
    /// What one Write that is all or nothing may cost, in updates of plain entries, default 65,536:
    /// packets wait until all of it is done. One of an entry with masks or ranges counts 64, a
    /// multicast group as many as it has replicas. What it goes through that is there, such as the
    /// entries of a table that is cleared, is bounded by as much.
    pub max_atomic_updates: usize,
    /// Entities of one ReadRequest, default 100,000. Each has at most 8 MiB.
    pub max_queries: usize,
    /// Entities of one step of the switch while it is read, default 1024. A list counts as many as
    /// it has elements.
    pub read_chunk: usize,
    /// Longest answer to a Read in bytes, default 1 GiB. Clients that take several messages
    /// (`weir-stream`) may read more.
    pub max_read_bytes: usize,
    /// Bytes of all answers to Reads that are one message each, until they are sent, default 2 GiB;
    /// never less than those of the longest. Answers of less than 1 MiB do not count. One for which
    /// there is no room is RESOURCE_EXHAUSTED.
    pub max_answer_bytes: usize,
    /// How long a reader of several messages may take for the next one, default 2 s; and in all, as
    /// long again and a second for each 50,000 entries. A Read that has kept others waiting to
    /// write for so long is ended, too.
    pub read_patience: Duration,
    /// Streams in all, default 64.
    pub max_streams: usize,
    /// Messages that wait for a slow stream, default 1024. Further ones are lost, and counted.
    pub stream_queue: usize,
    /// Connections at a time, default 1024; never more than a third of the files that the process
    /// may open. For a further one that is ended which has had no request or stream for longest;
    /// where all have one, it is closed itself.
    pub max_connections: usize,
    /// How long a connection is silent before the client is asked whether it is there, default 30
    /// s. It has 20 s to answer. For TLS and the beginning of HTTP/2 it has the time of the
    /// silence.
    pub keepalive: Duration,
    /// Requests that are processed at a time on one connection, default 256.
    pub max_requests_per_connection: usize,
    /// Largest trailer with errors in bytes, default 16 MiB. A client that takes less says so by
    /// the field `weir-max-error-bytes` in the metadata of its request.
    pub max_error_bytes: usize,
    /// How often the switch is asked for digests, default 5 ms. It is not asked where no client
    /// wants any.
    pub digest_interval: Duration,
    /// How often the switch is asked for idle entries, default 100 ms. It is not asked where no
    /// client wants to know.
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
            request_patience: Duration::from_secs(30),
            max_updates: 4_000_000,
            max_atomic_updates: 65_536,
            max_queries: 100_000,
            read_chunk: 1024,
            max_read_bytes: 1 << 30,
            max_answer_bytes: 2 << 30,
            read_patience: Duration::from_secs(2),
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
