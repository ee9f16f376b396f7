//! The Read RPC.

use super::{Shared, lock};
use crate::admission::BudgetPermit;
use crate::decoding::{self, ListLimits, OFFLOAD_OUTCOMES};
use crate::device::Pipeline;
use crate::p4rt::program::LoadedProgram;
use crate::p4rt::read::{self, Cursor, Digests, Portion, Reader};
use crate::p4rt::refusal::{Refusal, batch_status};
use crate::p4rt::role::Scope;
use crate::reading::{self, PacedSender, Position, ReadStep, Refused};
use std::sync::Arc;
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use weir_proto::listed::EncodedList;
use weir_proto::p4::v1 as pb;
use weir_proto::p4rt_raw::ReadRequest;
use weir_switch::Switch;

type Out = Sender<Result<pb::ReadResponse, Status>>;

/// The queries of a request.
struct Queries {
    loaded: Arc<LoadedProgram>,
    digests: Arc<Digests>,
    scope: Arc<Scope>,
    entities: Arc<[pb::Entity]>,
    differ: bool,
    chunk: usize,
}

impl reading::Queries for Queries {
    type Entity = pb::Entity;
    type Cursor = Cursor;

    fn count(&self) -> usize {
        self.entities.len()
    }

    fn differ_between_replicas(&self) -> bool {
        self.differ
    }

    fn step(&self, switch: &Switch, from: Position<Self>, end: usize) -> ReadStep<Self> {
        let mut portion = Portion::new(self.chunk);
        let scope = |id: u32| self.scope.has(id);
        let reader = Reader {
            schema: &self.loaded.schema,
            errors: &self.loaded.program.errors,
            digests: &self.digests,
            switch,
            scope: (*self.scope != Scope::Everything).then_some(&scope),
            with_dormant: false,
        };
        let (refused, next) = reading::run_queries(from, end, &mut portion, |number, cursor, portion| {
            reader.read(&self.entities[number], cursor, portion)
        });
        ReadStep {
            cost: portion.cost(),
            entities: portion.entities,
            refused,
            next,
        }
    }

    fn merge(&self, whole: &mut Vec<pb::Entity>, other: &[pb::Entity]) {
        read::merge(whole, other);
    }
}

/// Sends each step's entities as a message.
struct MessageSink<'a> {
    reader: PacedSender<'a, pb::ReadResponse>,
    /// The cost of a usual message, in plain entries.
    chunk: usize,
}

impl reading::EntitySink<pb::Entity> for MessageSink<'_> {
    async fn add(&mut self, entities: Vec<pb::Entity>, cost: usize) -> Result<(), Refusal> {
        if entities.is_empty() {
            return Ok(());
        }
        let capacity = cost / self.chunk.max(1);
        self.reader.send(pb::ReadResponse { entities }, cost, capacity).await
    }
}

/// Starts a Read; its results are sent to the stream.
#[allow(clippy::result_large_err, reason = "the error is what gRPC sends")]
pub fn read(
    shared: Arc<Shared>,
    request: ReadRequest,
    limit: usize,
    permit: Option<BudgetPermit>,
) -> Result<ReceiverStream<Result<pb::ReadResponse, Status>>, Status> {
    let ReadRequest { rest: request, list } = request;
    let checked = ListLimits::read(shared.config.max_queries, "queries")
        .check(&list)
        .and_then(|()| shared.check_device(request.device_id))
        .and_then(|()| lock(&shared.arbitration).scope(&request.role));
    let scope = checked.map_err(|e| e.status())?;
    let (out, stream) = channel(shared.config.read_ahead.max(1));
    tokio::spawn(async move {
        let work = answer(&shared, list, scope, limit, &out, permit.clone());
        if let Some(Err(status)) = reading::until_closed(&out, work).await {
            let _ = out.send(Err(status)).await;
        }
        drop(permit);
    });
    Ok(ReceiverStream::new(stream))
}

/// Sends the results of the queries; the error lists those that were refused.
async fn answer(
    shared: &Shared,
    list: EncodedList,
    scope: Arc<Scope>,
    limit: usize,
    out: &Out,
    permit: Option<BudgetPermit>,
) -> Result<(), Status> {
    let queries = list.len();
    let refused = run(shared, list, scope, out, permit).await.map_err(|e| e.status())?;
    if refused.is_empty() {
        return Ok(());
    }
    let large = shared.config.max_error_bytes;
    let status = move || {
        let mut outcomes: Vec<Result<(), Refusal>> = vec![Ok(()); queries];
        for (number, refusal) in refused {
            outcomes[number] = Err(refusal);
        }
        batch_status(&outcomes, "queries", limit, large)
    };
    let status = decoding::offload_if(queries > OFFLOAD_OUTCOMES, status).await;
    Err(status.unwrap_or_else(|e| e.status()))
}

async fn run(
    shared: &Shared,
    list: EncodedList,
    scope: Arc<Scope>,
    out: &Out,
    permit: Option<BudgetPermit>,
) -> Result<Refused, Refusal> {
    let entities: Arc<[pb::Entity]> = decoding::decode_all(list, permit).await?.into();
    let differ = entities.iter().any(read::differs_by_replica);
    let queries = |pipeline: &Pipeline| {
        Ok(Queries {
            loaded: Arc::clone(&pipeline.loaded),
            digests: Arc::clone(&pipeline.digests),
            scope: Arc::clone(&scope),
            entities: Arc::clone(&entities),
            differ,
            chunk: shared.config.read_chunk,
        })
    };
    let timeout = shared.config.read_timeout;
    let mut answer = MessageSink {
        reader: PacedSender::new(out, timeout),
        chunk: shared.config.read_chunk,
    };
    let (_, refused) = reading::read(&shared.device, timeout, queries, &mut answer).await?;
    Ok(refused)
}
