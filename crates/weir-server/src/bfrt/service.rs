//! The service: the state that all RPCs share, request options, and dispatch.
//!
//! Each RPC has its own module. Writes and program changes run as detached tasks: a client that
//! cancels its call leaves no work half done.

mod answers;
mod notify;
mod pipeline;
mod reading;
mod stream;
mod writing;

use self::answers::{AnswerBudget, AnswerStream};
use super::attribute::Attributes;
use super::clients::{Clients, StreamId};
use super::config::Config;
use super::program::Program;
use super::read::ReadContext;
use super::target::Scopes;
use super::{SHARED, errors};
use crate::admission::{BudgetPermit, run_then_release};
use crate::device::{Device, Pipeline, lock};
use crate::refusal::Refusal;
use crate::state::ATTRIBUTES;
use crate::tasks::run_detached;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};
use weir_compiler::Cancellation;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_raw;
use weir_proto::bfrt_raw::bf_runtime_server::BfRuntime as Service;

/// An open stream.
pub(super) struct Stream {
    out: tokio::sync::mpsc::Sender<Result<pb::StreamMessageResponse, Status>>,
}

/// State shared by all RPCs.
pub(super) struct Shared {
    pub device: Arc<Device>,
    pub config: Config,
    clients: Mutex<Clients>,
    streams: Mutex<HashMap<StreamId, Stream>>,
    /// Attributes set on tables of the current program.
    attributes: Mutex<Arc<Attributes>>,
    /// Serialises requests that change ports or attributes.
    settings_lock: tokio::sync::Mutex<()>,
    next_stream: AtomicU64,
    answers: Arc<AnswerBudget>,
    /// Notifications dropped because a stream was slow.
    missed: AtomicU64,
}

/// Options in the metadata of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Report one status per update or entity in the response (`error_in_resp`).
    error_in_resp: bool,
    /// Deleting a missing entry succeeds.
    ignore_not_found: bool,
    /// Deadline of the request, from `deadline_sec` and `deadline_nsec`.
    deadline: Option<Duration>,
    /// The client accepts a Read's entities in several responses (`weir-stream`).
    streams: bool,
    /// Largest error trailer in bytes.
    error_bytes: usize,
}

impl Options {
    fn new(config: &Config, metadata: &MetadataMap) -> Self {
        let text = |name: &str| metadata.get(name).and_then(|v| v.to_str().ok());
        let number = |name: &str| text(name).and_then(|t| t.trim().parse::<u64>().ok());
        let flag = |name: &str| number(name).is_some_and(|n| n != 0);
        let deadline = Duration::from_secs(number("deadline_sec").unwrap_or(0))
            .saturating_add(Duration::from_nanos(number("deadline_nsec").unwrap_or(0)));
        let error_bytes = number("weir-max-error-bytes").and_then(|n| usize::try_from(n).ok());
        Options {
            error_in_resp: flag("error_in_resp"),
            ignore_not_found: flag("ignore_not_found"),
            deadline: (!deadline.is_zero()).then_some(deadline),
            streams: flag("weir-stream"),
            error_bytes: error_bytes
                .unwrap_or(config.max_error_bytes)
                .min(config.max_error_bytes),
        }
    }

    /// Runs a request until the client's deadline, if it has one.
    async fn with_deadline<T>(self, what: &str, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let Some(deadline) = self.deadline else {
            return work.await;
        };
        let timed = tokio::time::timeout(deadline, work).await;
        timed.unwrap_or_else(|_| Err(Status::deadline_exceeded(format!("{what} RPC request timed out"))))
    }
}

/// The program that a request addresses.
pub(super) struct AddressedProgram {
    program: Arc<Program>,
    /// The request addresses `$SHARED`: only the tables of the device.
    is_shared: bool,
}

impl Shared {
    /// The program that a request names, or else the one that its client is bound to.
    fn addressed(&self, pipeline: &Pipeline, p4_name: &str, client: u32) -> Result<AddressedProgram, Refusal> {
        let program = pipeline.loaded.bfrt.clone()?;
        let bound;
        let name = if p4_name.is_empty() {
            bound = lock(&self.clients).bound(client)?;
            bound.as_str()
        } else {
            p4_name
        };
        let is_shared = name == SHARED;
        if !is_shared && name != program.name {
            return Err(Refusal::not_found(format!(
                "there is no program `{name}`; there are `{}` and `{SHARED}`",
                program.name
            )));
        }
        Ok(AddressedProgram { program, is_shared })
    }

    fn scopes(&self) -> Scopes {
        Scopes {
            device: self.config.device_id,
            other_pipe_ports: self.device.ports.other_pipe_ports(self.device.plane.cpu_port()),
        }
    }

    fn read_context(&self, program: &Program) -> ReadContext {
        ReadContext {
            schema: Arc::clone(&program.schema),
            ports: Arc::clone(&self.device.ports),
            cpu_port: self.device.plane.cpu_port(),
            attributes: Arc::clone(&lock(&self.attributes)),
        }
    }

    fn check_device(&self, device: u32) -> Result<(), Refusal> {
        self.scopes().check_device(device)
    }

    fn next_stream(&self) -> StreamId {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }
}

/// A BF Runtime server of one device. Clones share one server.
#[derive(Clone)]
pub struct BfRuntime {
    pub(super) shared: Arc<Shared>,
}

impl BfRuntime {
    /// Creates a server for a device; other servers may serve the same device.
    ///
    /// Must be called within a tokio runtime: it starts tasks, which end with the last clone of the
    /// server.
    #[must_use]
    pub fn on(device: &Arc<Device>, config: Config) -> Self {
        let saved = device.setting(ATTRIBUTES).map(Attributes::from_saved);
        let shared = Arc::new(Shared {
            device: Arc::clone(device),
            answers: AnswerBudget::new(config.max_answer_bytes.max(config.max_read_bytes)),
            config,
            clients: Mutex::default(),
            streams: Mutex::default(),
            attributes: Mutex::new(Arc::new(saved.unwrap_or_default())),
            settings_lock: tokio::sync::Mutex::default(),
            next_stream: AtomicU64::new(1),
            missed: AtomicU64::new(0),
        });
        notify::start(&shared);
        BfRuntime { shared }
    }

    /// The number of notifications dropped because a stream was slow.
    #[must_use]
    pub fn missed_messages(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }

    /// The number of subscribed clients.
    #[must_use]
    pub fn clients(&self) -> usize {
        lock(&self.shared.clients).all().count()
    }
}

#[tonic::async_trait]
impl Service for BfRuntime {
    async fn write(&self, request: Request<bfrt_raw::WriteRequest>) -> Result<Response<pb::WriteResponse>, Status> {
        let options = Options::new(&self.shared.config, request.metadata());
        let held = BudgetPermit::from_extensions(request.extensions());
        let work = writing::write(Arc::clone(&self.shared), request.into_inner(), options);
        let task = run_detached(run_then_release(held, work));
        let written = options.with_deadline("Write", task).await;
        written.map(Response::new)
    }

    type ReadStream = AnswerStream<ReceiverStream<Result<bfrt_raw::ReadResponse, Status>>>;

    async fn read(&self, request: Request<bfrt_raw::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let options = Options::new(&self.shared.config, request.metadata());
        let held = BudgetPermit::from_extensions(request.extensions());
        let stream = reading::read(Arc::clone(&self.shared), request.into_inner(), options, held);
        Ok(Response::new(stream))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<bfrt_raw::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<pb::SetForwardingPipelineConfigResponse>, Status> {
        let held = BudgetPermit::from_extensions(request.extensions());
        // Cancelling the call drops the guard and cancels the compilation. A program that is
        // already compiled is still loaded.
        let (cancellation, _while_client_waits) = Cancellation::new();
        let work = pipeline::set(Arc::clone(&self.shared), request.into_inner(), cancellation);
        let task = run_detached(run_then_release(held, work));
        task.await.map(Response::new)
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<pb::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<pb::GetForwardingPipelineConfigResponse>, Status> {
        let answer = pipeline::get(&self.shared, request.into_inner()).await;
        answer.map(Response::new).map_err(|e| errors::status(&e))
    }

    type StreamChannelStream = ReceiverStream<Result<pb::StreamMessageResponse, Status>>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<pb::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let stream = stream::open(&self.shared, request.into_inner());
        stream.map(Response::new).map_err(|e| errors::status(&e))
    }
}
