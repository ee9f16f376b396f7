//! The service: what all its RPCs share, and how they are dispatched.

mod notify;
mod pipeline;
mod reading;
mod stream;
mod writing;

use super::arbitration::{self, Arbitration, StreamId};
use super::config::Config;
use super::digest::Digests;
use super::program::Loaded;
use super::read;
use super::refusal::Refusal;
use crate::dataplane::{DataPlane, Events};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use weir_ir::Program;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::p4_runtime_server::P4Runtime as Service;

/// A program that is loaded, the switch that runs it, and what the server keeps for it.
pub(super) struct Pipeline {
    pub plane: Arc<dyn DataPlane>,
    pub loaded: Arc<Loaded>,
    /// Digests that are sent.
    pub digests: Arc<read::Digests>,
}

/// The programs of the device.
#[derive(Default)]
pub(super) struct Pipelines {
    /// The one that processes packets.
    pub committed: Option<Pipeline>,
    /// One that was saved and not committed yet. It is what is written and read until then, on a switch without packets.
    pub saved: Option<Pipeline>,
}

impl Pipelines {
    /// The one that is written and read.
    pub fn current(&self) -> Result<&Pipeline, Refusal> {
        let current = self.saved.as_ref().or(self.committed.as_ref());
        current.ok_or_else(|| Refusal::precondition("no forwarding pipeline config has been set"))
    }
}

/// An open stream.
pub(super) struct Stream {
    pub out: tokio::sync::mpsc::Sender<Result<pb::StreamMessageResponse, Status>>,
    /// Ends it from outside.
    pub end: Arc<tokio::sync::Notify>,
}

/// What all RPCs share.
pub(super) struct Shared {
    /// The switch.
    pub plane: Arc<dyn DataPlane>,
    pub config: Config,
    /// Writes and short reads share it; long reads and new programs have it alone.
    pub pipelines: tokio::sync::RwLock<Pipelines>,
    /// The program that processes packets, for whoever must not wait for long reads.
    pub live: Mutex<Option<Arc<Loaded>>>,
    /// The switch that writes go to, for whoever must wait until they are done.
    pub written: Mutex<Arc<dyn DataPlane>>,
    pub arbitration: Mutex<Arbitration>,
    /// One change of arbitration, with everybody told, before the next.
    pub arbitration_turn: tokio::sync::Mutex<()>,
    pub streams: Mutex<HashMap<StreamId, Stream>>,
    pub digests: Mutex<Digests>,
    next_stream: AtomicU64,
    /// Messages that slow streams have missed.
    pub missed: AtomicU64,
    events: Events,
}

/// What a lock protects, whether or not somebody panicked with it: everything under these locks is whole at all times.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Requests may say 0, which the specification forbids and common clients do.
    pub fn check_device(&self, device: u64) -> Result<(), Refusal> {
        if device == self.config.device_id || device == 0 {
            return Ok(());
        }
        Err(Refusal::not_found(format!(
            "there is no device {device}; this one is {}",
            self.config.device_id
        )))
    }

    /// The program that processes packets.
    pub fn live(&self) -> Result<Arc<Loaded>, Refusal> {
        let live = lock(&self.live).clone();
        live.ok_or_else(|| Refusal::precondition("no forwarding pipeline config has been set"))
    }

    pub fn next_stream(&self) -> StreamId {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }
}

/// A P4Runtime server of one device. Clones are the same server.
#[derive(Clone)]
pub struct P4Runtime {
    pub(super) shared: Arc<Shared>,
}

impl P4Runtime {
    /// A server for a switch. `program` is what it runs, as the compiler made it; `None`: nothing that P4Runtime may know
    /// of, until a client sets a forwarding pipeline config.
    ///
    /// Must be called within a tokio runtime: it starts tasks that end with the last clone of the server.
    ///
    /// # Errors
    /// The program has no P4Info.
    pub fn new(plane: Arc<dyn DataPlane>, program: Option<Arc<Program>>, config: Config) -> Result<Self, Refusal> {
        let committed = match program {
            None => None,
            Some(program) => Some(Pipeline {
                plane: Arc::clone(&plane),
                loaded: Arc::new(Loaded::running(program)?),
                digests: Arc::default(),
            }),
        };
        let limits = arbitration::Limits {
            streams_per_role: config.max_streams_per_role,
            roles: config.max_roles,
        };
        let (events, inbox) = Events::new(config.packet_queue);
        plane.connect(events.clone());
        let shared = Arc::new(Shared {
            live: Mutex::new(committed.as_ref().map(|p| Arc::clone(&p.loaded))),
            written: Mutex::new(Arc::clone(&plane)),
            plane,
            config,
            pipelines: tokio::sync::RwLock::new(Pipelines { committed, saved: None }),
            arbitration: Mutex::new(Arbitration::new(limits)),
            arbitration_turn: tokio::sync::Mutex::default(),
            streams: Mutex::default(),
            digests: Mutex::default(),
            next_stream: AtomicU64::new(1),
            missed: AtomicU64::new(0),
            events,
        });
        notify::start(&shared, inbox);
        Ok(P4Runtime { shared })
    }

    /// Packets for the controller that were lost because they came faster than they could be sent.
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        self.shared.events.lost()
    }

    /// Messages that were not sent because a stream was slow.
    #[must_use]
    pub fn missed_messages(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }

    /// Streams that have said who they are.
    #[must_use]
    pub fn streams(&self) -> usize {
        lock(&self.shared.arbitration).streams()
    }
}

#[tonic::async_trait]
impl Service for P4Runtime {
    async fn write(&self, request: Request<pb::WriteRequest>) -> Result<Response<pb::WriteResponse>, Status> {
        // The task goes on where the client does not wait: a batch is done whole or not at all.
        let limit = writing::error_limit(&self.shared.config, request.metadata());
        let task = tokio::spawn(writing::write(Arc::clone(&self.shared), request.into_inner(), limit));
        joined(task.await).map(Response::new)
    }

    type ReadStream = ReceiverStream<Result<pb::ReadResponse, Status>>;

    async fn read(&self, request: Request<pb::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let limit = writing::error_limit(&self.shared.config, request.metadata());
        let stream = reading::read(Arc::clone(&self.shared), request.into_inner(), limit)?;
        Ok(Response::new(stream))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<pb::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<pb::SetForwardingPipelineConfigResponse>, Status> {
        let task = tokio::spawn(pipeline::set(Arc::clone(&self.shared), request.into_inner()));
        joined(task.await).map(|()| Response::new(pb::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<pb::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<pb::GetForwardingPipelineConfigResponse>, Status> {
        let answer = pipeline::get(&self.shared, request.into_inner()).await;
        answer.map(Response::new).map_err(|e| e.status())
    }

    type StreamChannelStream = ReceiverStream<Result<pb::StreamMessageResponse, Status>>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<pb::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let stream = stream::open(&self.shared, request.into_inner());
        stream.map(Response::new).map_err(|e| e.status())
    }

    async fn capabilities(
        &self,
        request: Request<pb::CapabilitiesRequest>,
    ) -> Result<Response<pb::CapabilitiesResponse>, Status> {
        let checked = self.shared.check_device(request.into_inner().device_id);
        checked.map_err(|e| e.status())?;
        Ok(Response::new(pb::CapabilitiesResponse {
            p4runtime_api_version: super::VERSION.to_string(),
            experimental: None,
        }))
    }
}

/// What a task gave. One that panicked is a mistake in weir, and an error to the client.
fn joined<T>(outcome: Result<Result<T, Status>, tokio::task::JoinError>) -> Result<T, Status> {
    outcome.unwrap_or_else(|_| {
        Err(Status::internal(
            "the request has met a mistake in weir: please report it",
        ))
    })
}
