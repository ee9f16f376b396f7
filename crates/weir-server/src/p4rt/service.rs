//! The service: what all its RPCs share, and how they are dispatched.

mod notify;
mod pipeline;
mod reading;
mod stream;
mod writing;

use super::arbitration::{self, Arbitration, StreamId};
use super::config::Config;
use super::digest::Digests;
use super::refusal::Refusal;
use crate::admission::{BudgetPermit, run_then_release};
use crate::dataplane::DataPlane;
use crate::device::{Device, lock};
use crate::tasks::run_detached;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use weir_compiler::Cancellation;
use weir_ir::Program;
use weir_proto::p4::v1 as pb;
use weir_proto::p4rt_raw;
use weir_proto::p4rt_raw::p4_runtime_server::P4Runtime as Service;

/// The BF Runtime name of the program of a device that was made for P4Runtime alone.
const NAME: &str = "p4";

/// An open stream.
pub(super) struct Stream {
    pub out: tokio::sync::mpsc::Sender<Result<pb::StreamMessageResponse, Status>>,
    /// Ends it from outside.
    pub end: Arc<tokio::sync::Notify>,
}

/// The state that all RPCs share.
pub(super) struct Shared {
    pub device: Arc<Device>,
    pub config: Config,
    pub arbitration: Mutex<Arbitration>,
    /// Held while arbitration changes and its notices are sent, which keeps their order.
    pub arbitration_order: tokio::sync::Mutex<()>,
    pub streams: Mutex<HashMap<StreamId, Stream>>,
    pub digests: Mutex<Digests>,
    next_stream: AtomicU64,
    /// Messages that slow streams have missed.
    pub missed: AtomicU64,
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
    /// A server for a switch. `program` is what it runs, as the compiler made it; `None`: nothing
    /// that P4Runtime may know of, until a client sets a forwarding pipeline config.
    ///
    /// Must be called within a tokio runtime: it starts tasks that end with the last clone of the
    /// server.
    ///
    /// # Errors
    /// The program has no P4Info.
    pub fn new(plane: Arc<dyn DataPlane>, program: Option<Arc<Program>>, config: Config) -> Result<Self, Refusal> {
        let device = Device::new(plane, program, NAME, config.packet_queue)?;
        Ok(Self::on(&device, config))
    }

    /// A server of a device that others may serve, too. Must be called within a tokio runtime, as
    /// [`P4Runtime::new`].
    #[must_use]
    pub fn on(device: &Arc<Device>, config: Config) -> Self {
        let limits = arbitration::Limits {
            streams_per_role: config.max_streams_per_role,
            roles: config.max_roles,
        };
        let shared = Arc::new(Shared {
            device: Arc::clone(device),
            config,
            arbitration: Mutex::new(Arbitration::new(limits)),
            arbitration_order: tokio::sync::Mutex::default(),
            streams: Mutex::default(),
            digests: Mutex::default(),
            next_stream: AtomicU64::new(1),
            missed: AtomicU64::new(0),
        });
        if let Some(state) = &device.state {
            lock(&shared.digests).configure(&state.digests());
        }
        notify::start(&shared);
        P4Runtime { shared }
    }

    /// Packets for the controller that were lost because they came faster than they could be sent.
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        self.shared.device.lost_packets()
    }

    /// Messages that were not sent because a stream was slow.
    #[must_use]
    pub fn missed_messages(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }

    /// Streams that have sent an arbitration update.
    #[must_use]
    pub fn streams(&self) -> usize {
        lock(&self.shared.arbitration).streams()
    }
}

#[tonic::async_trait]
impl Service for P4Runtime {
    async fn write(&self, request: Request<p4rt_raw::WriteRequest>) -> Result<Response<pb::WriteResponse>, Status> {
        let limit = writing::error_limit(&self.shared.config, request.metadata());
        let held = BudgetPermit::from_extensions(request.extensions());
        let work = writing::write(Arc::clone(&self.shared), request.into_inner(), limit);
        let task = run_detached(run_then_release(held, work));
        task.await.map(Response::new)
    }

    type ReadStream = ReceiverStream<Result<pb::ReadResponse, Status>>;

    async fn read(&self, request: Request<p4rt_raw::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let limit = writing::error_limit(&self.shared.config, request.metadata());
        let held = BudgetPermit::from_extensions(request.extensions());
        let stream = reading::read(Arc::clone(&self.shared), request.into_inner(), limit, held)?;
        Ok(Response::new(stream))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<p4rt_raw::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<pb::SetForwardingPipelineConfigResponse>, Status> {
        let held = BudgetPermit::from_extensions(request.extensions());
        // A client that leaves drops this, and so ends its compilation; what was compiled is
        // loaded.
        let (cancellation, _while_client_waits) = Cancellation::new();
        let work = pipeline::set(Arc::clone(&self.shared), request.into_inner(), cancellation);
        let task = run_detached(run_then_release(held, work));
        task.await
            .map(|()| Response::new(pb::SetForwardingPipelineConfigResponse {}))
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
