//! The Read RPC.
//!
//! What fits into one chunk is read in one step of the switch. What does not is read chunk by chunk, and no Write begins
//! meanwhile, so that a Read never shows half of one.

use super::{Shared, lock};
use crate::dataplane::gather;
use crate::device::Pipeline;
use crate::p4rt::program::Loaded;
use crate::p4rt::read::{self, Cursor, Digests, Portion, Reader};
use crate::p4rt::refusal::{Refusal, batch_status};
use crate::p4rt::role::Scope;
use std::sync::Arc;
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use weir_proto::p4::v1 as pb;
use weir_switch::Switch;

type Out = Sender<Result<pb::ReadResponse, Status>>;

/// The queries of a request, shared by the steps that read them.
struct Queries {
    loaded: Arc<Loaded>,
    digests: Arc<Digests>,
    scope: Arc<Scope>,
    entities: Vec<pb::Entity>,
    /// Whether replicas of the switch differ in what is found.
    differs: bool,
    chunk: usize,
}

/// Where a Read goes on: the query, and the place in what it asks for.
type Position = (usize, Cursor);

/// What one step has read.
struct Step {
    entities: Vec<pb::Entity>,
    /// Queries that were refused.
    refused: Vec<(usize, Refusal)>,
    next: Option<Position>,
}

impl Queries {
    fn step(&self, replica: usize, switch: &Switch, from: Position) -> Step {
        let mut portion = Portion::new(self.chunk);
        let mut refused = Vec::new();
        let scope = |id: u32| self.scope.has(id);
        let reader = Reader {
            schema: &self.loaded.schema,
            errors: &self.loaded.program.errors,
            digests: &self.digests,
            switch,
            scope: (*self.scope != Scope::Everything).then_some(&scope),
            tells_dormant: false,
        };
        let (first, mut cursor) = from;
        let mut next = None;
        // The first replica has everything that does not differ.
        let queries = if replica == 0 || self.differs {
            self.entities.len()
        } else {
            0
        };
        for number in first..queries {
            match reader.read(&self.entities[number], cursor, &mut portion) {
                Ok(None) => {}
                Ok(Some(more)) => {
                    next = Some((number, more));
                    break;
                }
                Err(refusal) => refused.push((number, refusal)),
            }
            cursor = Cursor::default();
        }
        Step {
            entities: portion.entities,
            refused,
            next,
        }
    }

    /// A step of all replicas, as one. The replicas have been asked when this returns.
    fn read(
        self: &Arc<Self>,
        pipeline: &Pipeline,
        from: Position,
    ) -> impl Future<Output = Result<Step, Refusal>> + Send + use<> {
        let queries = Arc::clone(self);
        let steps = gather(&*pipeline.plane, move |replica, switch| {
            queries.step(replica, switch, from)
        });
        let differs = self.differs;
        async move {
            let mut steps = steps.await?.into_iter();
            let mut whole = steps.next().ok_or(crate::Gone)?;
            if differs {
                steps.for_each(|other| read::merge(&mut whole.entities, &other.entities));
            }
            Ok(whole)
        }
    }
}

/// Begins a Read; what it finds comes by the stream.
#[allow(clippy::result_large_err, reason = "the error is what gRPC sends")]
pub fn read(
    shared: Arc<Shared>,
    request: pb::ReadRequest,
    limit: usize,
) -> Result<ReceiverStream<Result<pb::ReadResponse, Status>>, Status> {
    let checked = shared.check_device(request.device_id).and_then(|()| {
        let limit = shared.config.max_queries;
        match request.entities.len() > limit {
            true => Err(Refusal::full(format!("at most {limit} queries in one Read"))),
            false => lock(&shared.arbitration).scope(&request.role),
        }
    });
    let scope = checked.map_err(|e| e.status())?;
    let (out, stream) = channel(shared.config.read_ahead.max(1));
    tokio::spawn(async move {
        let queries = request.entities.len();
        match run(&shared, request.entities, scope, &out).await {
            Err(refusal) => {
                let _ = out.send(Err(refusal.status())).await;
            }
            Ok(refused) if refused.is_empty() => {}
            Ok(refused) => {
                let mut outcomes: Vec<Result<(), Refusal>> = vec![Ok(()); queries];
                for (number, refusal) in refused {
                    outcomes[number] = Err(refusal);
                }
                let large = shared.config.max_error_bytes;
                let _ = out.send(Err(batch_status(&outcomes, "queries", limit, large))).await;
            }
        }
    });
    Ok(ReceiverStream::new(stream))
}

async fn run(
    shared: &Shared,
    entities: Vec<pb::Entity>,
    scope: Arc<Scope>,
    out: &Out,
) -> Result<Vec<(usize, Refusal)>, Refusal> {
    let differs = entities.iter().any(read::differs_by_replica);
    let queries = |pipeline: &Pipeline| {
        Arc::new(Queries {
            loaded: Arc::clone(&pipeline.loaded),
            digests: Arc::clone(&pipeline.digests),
            scope: Arc::clone(&scope),
            entities: entities.clone(),
            differs,
            chunk: shared.config.read_chunk,
        })
    };
    let short = {
        let pipelines = shared.device.pipelines.read().await;
        let pipeline = pipelines.current()?;
        queries(pipeline).read(pipeline, (0, Cursor::default())).await?
    };
    if short.next.is_none() {
        send(shared, out, short.entities).await?;
        return Ok(short.refused);
    }
    // From the beginning again, with the state to ourselves.
    let pipelines = shared.device.pipelines.write().await;
    let pipeline = pipelines.current()?;
    let queries = queries(pipeline);
    let mut refused = Vec::new();
    let mut coming = Some(queries.read(pipeline, (0, Cursor::default())));
    while let Some(step) = coming {
        let step = step.await?;
        // The switch reads on while this is sent.
        coming = step.next.map(|from| queries.read(pipeline, from));
        send(shared, out, step.entities).await?;
        refused.extend(step.refused);
    }
    Ok(refused)
}

async fn send(shared: &Shared, out: &Out, entities: Vec<pb::Entity>) -> Result<(), Refusal> {
    if entities.is_empty() {
        return Ok(());
    }
    let sent = tokio::time::timeout(shared.config.read_patience, out.send(Ok(pb::ReadResponse { entities })));
    match sent.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Refusal::gone("the client has gone")),
        Err(_) => Err(Refusal::too_slow("the reader is too slow; others wait to write")),
    }
}
