//! The Read RPC: resolves queries, reads them in steps, and encodes the answer.
//!
//! The answer is one message, as clients of the reference server expect. Clients that set
//! `weir-stream` in the metadata receive several. `crate::reading` runs the steps; this module does
//! not touch locks.

use super::answers::{AnswerPermit, AnswerStream};
use super::{Options, Shared};
use crate::admission::BudgetPermit;
use crate::bfrt::errors::{self, Reporter, batch_status};
use crate::bfrt::read::{self, Portion, Query, ReadContext, ReadItem};
use crate::bfrt::schema::Kind;
use crate::decoding::{self, ListLimits, OFFLOAD_OUTCOMES};
use crate::device::Pipeline;
use crate::reading::{self, PacedSender, Position, ReadStep, Refused};
use crate::refusal::Refusal;
use std::sync::Arc;
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_raw::{ReadRequest, ReadResponse, ReadResponseBuilder};
use weir_switch::Switch;

type Out = Sender<Result<ReadResponse, Status>>;

/// Messages queued for a client that receives several.
const QUEUED_MESSAGES: usize = 16;
/// Bytes from which on one of several messages is sent.
const MESSAGE_BYTES: usize = 1 << 20;

/// The resolved entities of a request.
struct Queries {
    context: ReadContext,
    queries: Vec<Result<Query, Refusal>>,
    differ: bool,
    chunk: usize,
}

impl Queries {
    fn new(shared: &Shared, pipeline: &Pipeline, request: &pb::ReadRequest) -> Result<Self, Refusal> {
        let addressed = shared.addressed(pipeline, &request.p4_name, request.client_id)?;
        let context = shared.read_context(&addressed.program);
        let scopes = shared.scopes();
        let queries = request.entities.iter().map(|entity| {
            if addressed.is_shared {
                only_device(&context, entity)?;
            }
            Query::new(&context, &scopes, request.target.as_ref(), entity)
        });
        let queries: Vec<Result<Query, Refusal>> = queries.collect();
        let differ = queries.iter().flatten().any(|q| q.differs_by_replica(&context.schema));
        Ok(Queries {
            context,
            queries,
            differ,
            chunk: shared.config.read_chunk,
        })
    }
}

impl reading::Queries for Queries {
    type Entity = ReadItem;
    type Cursor = u64;

    fn count(&self) -> usize {
        self.queries.len()
    }

    fn differ_between_replicas(&self) -> bool {
        self.differ
    }

    fn step(&self, switch: &Switch, from: Position<Self>, end: usize) -> ReadStep<Self> {
        let mut portion = Portion::new(self.chunk);
        let read = |number: usize, place, portion: &mut Portion| match &self.queries[number] {
            Ok(query) => query.read(&self.context, switch, place, portion),
            Err(refusal) => Err(refusal.clone()),
        };
        let (refused, next) = reading::run_queries(from, end, &mut portion, read);
        ReadStep {
            cost: portion.cost(),
            entities: portion.into_found(),
            refused,
            next,
        }
    }

    fn merge(&self, whole: &mut Vec<ReadItem>, other: &[ReadItem]) {
        read::merge(&self.context.schema, whole, other);
    }
}

/// Checks that an entity addresses a table of the device.
fn only_device(context: &ReadContext, entity: &pb::Entity) -> Result<(), Refusal> {
    let table = match &entity.entity {
        Some(Entity::TableEntry(e)) => e.table_id,
        Some(Entity::TableUsage(e)) => e.table_id,
        Some(Entity::TableAttribute(e)) => e.table_id,
        Some(Entity::Handle(e)) => e.table_id,
        _ => return Ok(()),
    };
    match context.schema.table(table)?.kind {
        Kind::Fixed(_) => Ok(()),
        _ => Err(Refusal::not_found("`$SHARED` has only the tables of the device")),
    }
}

/// Starts a Read; its result arrives on the returned stream.
pub fn read(
    shared: Arc<Shared>,
    request: ReadRequest,
    options: Options,
    held: Option<BudgetPermit>,
) -> AnswerStream<ReceiverStream<Result<ReadResponse, Status>>> {
    let (out, stream) = channel(QUEUED_MESSAGES);
    let permit = shared.answers.permit();
    let stream = AnswerStream::new(ReceiverStream::new(stream), Arc::clone(&permit));
    tokio::spawn(async move {
        let work = async {
            let request = complete(&shared, request, held.clone()).await;
            let request = request.map_err(|e| errors::status(&e))?;
            run(&shared, request, options, &out, &permit).await
        };
        let result = reading::until_closed(&out, options.with_deadline("Read", work)).await;
        if let Some(Err(status)) = result {
            let _ = out.send(Err(status)).await;
        }
        drop(held);
    });
    stream
}

/// The error of a refused entity.
fn entity_error(
    reporter: &mut Reporter,
    request: &pb::ReadRequest,
    queries: &Queries,
    number: usize,
    refusal: &Refusal,
) -> pb::Error {
    let (what, table) = match request.entities.get(number).and_then(|e| e.entity.as_ref()) {
        Some(Entity::TableEntry(e)) if e.is_default_entry => ("Error getting default entry of", e.table_id),
        Some(Entity::TableEntry(e)) => ("Error getting entry of", e.table_id),
        Some(Entity::TableUsage(e)) => ("Unable to get usage", e.table_id),
        Some(Entity::TableAttribute(e)) => ("Table Attribute get failed", e.table_id),
        Some(Entity::Handle(e)) => ("Table Handle get failed", e.table_id),
        _ => ("Read failed", 0),
    };
    let table = queries.context.schema.table(table).map_or("", |t| t.name.as_str());
    reporter.error(what, table, refusal)
}

/// Encodes the answer and sends it.
struct Answer<'a> {
    reader: PacedSender<'a, ReadResponse>,
    shared: &'a Shared,
    builder: ReadResponseBuilder,
    /// Its permit of the budget for single-message answers.
    permit: &'a AnswerPermit,
    streams: bool,
}

impl reading::EntitySink<ReadItem> for Answer<'_> {
    async fn add(&mut self, found: Vec<ReadItem>, _cost: usize) -> Result<(), Refusal> {
        for found in found {
            match found {
                ReadItem::Entity(entity) => self.builder.entity(&entity),
                ReadItem::Rows(rows) => self.builder.entities(rows.bytes),
            }
            if self.streams && self.builder.len() >= MESSAGE_BYTES {
                self.send().await?;
            }
        }
        if self.reader.is_gone() {
            return Err(Refusal::unavailable("the client has gone"));
        }
        let limit = self.shared.config.max_read_bytes;
        if self.builder.len() > limit {
            return Err(Refusal::exhausted(format!(
                "the answer exceeds {limit} bytes; read fewer entities at a time, or take several messages (metadata `weir-stream: 1`)"
            )));
        }
        match self.streams {
            true => Ok(()),
            false => self.permit.grow(self.builder.len()),
        }
    }
}

impl Answer<'_> {
    async fn send(&mut self) -> Result<(), Refusal> {
        let entries = reading::cost_of_bytes(self.builder.len());
        let response = std::mem::take(&mut self.builder).build();
        self.reader.send(response, entries, 1).await
    }
}

/// Decodes the entities of the request, if their number is within the limit.
async fn complete(
    shared: &Shared,
    request: ReadRequest,
    held: Option<BudgetPermit>,
) -> Result<pb::ReadRequest, Refusal> {
    ListLimits::read(shared.config.max_queries, "entities").check(&request.list)?;
    if let Some(target) = &request.rest.target {
        shared.check_device(target.device_id)?;
    }
    Ok(pb::ReadRequest {
        entities: decoding::decode_all(request.list, held).await?,
        ..request.rest
    })
}

/// Reads, and sends the entities and errors.
async fn run(
    shared: &Shared,
    request: pb::ReadRequest,
    options: Options,
    out: &Out,
    permit: &AnswerPermit,
) -> Result<(), Status> {
    let timeout = shared.config.read_timeout;
    let mut answer = Answer {
        reader: PacedSender::new(out, timeout),
        shared,
        builder: ReadResponseBuilder::default(),
        permit,
        streams: options.streams,
    };
    let queries = |pipeline: &Pipeline| Queries::new(shared, pipeline, &request);
    let read = reading::read(&shared.device, timeout, queries, &mut answer).await;
    let (queries, refused) = read.map_err(|e| errors::status(&e))?;
    let is_large = request.entities.len() > OFFLOAD_OUTCOMES;
    let mut builder = std::mem::take(&mut answer.builder);
    // Encoding 100,000 statuses is slow, also for the other requests of this thread.
    let reported = decoding::offload_if(is_large, move || {
        let result = report(&mut builder, &request, &queries, refused, options);
        (builder, result)
    });
    let (builder, result) = reported.await.map_err(|e| errors::status(&e))?;
    answer.builder = builder;
    answer.send().await.map_err(|e| errors::status(&e))?;
    result
}

/// Reports refusals in ascending order: in the answer if `error_in_resp` is set, else as a status.
#[allow(clippy::result_large_err, reason = "the error is what gRPC sends")]
fn report(
    builder: &mut ReadResponseBuilder,
    request: &pb::ReadRequest,
    queries: &Queries,
    refused: Refused,
    options: Options,
) -> Result<(), Status> {
    let mut reporter = Reporter::new();
    let errors = refused
        .iter()
        .map(|(number, refusal)| (*number, entity_error(&mut reporter, request, queries, *number, refusal)));
    if options.error_in_resp {
        let mut errors = errors.peekable();
        for number in 0..request.entities.len() {
            let error = errors.next_if(|(n, _)| *n == number).map(|(_, e)| e);
            builder.status(&error.unwrap_or_default());
        }
        return Ok(());
    }
    if refused.is_empty() {
        return Ok(());
    }
    let mut all = vec![pb::Error::default(); request.entities.len()];
    for (number, error) in errors {
        all[number] = error;
    }
    Err(batch_status("Read Error Status", all, options.error_bytes))
}
