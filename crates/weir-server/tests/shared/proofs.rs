//! Several clients and packets at a time: no packet and no read meets half of a batch, and batches
//! have one order.

use super::batches::How;
use super::histories::{Operation, serialisable};
use super::packets::{NEVER, Watcher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use tonic::Status;
use weir_server::Standalone;

/// Entries of two tables that all have the same value: more than are written in one step of the
/// switch.
pub const CELLS: u16 = 600;

/// A client that writes to cells and reads them.
pub trait Cells: Send + Sync + 'static {
    /// Writes a value to all cells, in one batch whose end fails if it shall.
    fn write(&self, value: u32, how: How, fails: bool) -> impl Future<Output = Result<(), Status>> + Send;

    /// The values of all cells, in one Read.
    fn read(&self) -> impl Future<Output = Vec<u32>> + Send;
}

/// Has packets look at batches. `flip` writes a value to everything that gives the five answers of
/// a packet, in one batch whose end fails if it shall; that it does so is for `flip` to check.
/// Those of the ternary table are to have a priority that is another for odd values than for even
/// ones. The value 1 is there.
pub async fn packets_meet_whole_batches(switch: &Arc<Standalone>, flip: impl AsyncFn(u32, How, bool)) {
    let watcher = Watcher::start(Arc::clone(switch));
    let mut value = 1u32;
    while !watcher.is_done() || value < 200 {
        let how = match value % 4 / 2 {
            0 => How::Atomic,
            _ => How::Rollback,
        };
        if value.is_multiple_of(3) {
            // As odd or even as the value after this one.
            let never = if value.is_multiple_of(2) { NEVER } else { NEVER - 1 };
            flip(never, how, true).await;
        }
        value += 1;
        flip(value, how, false).await;
    }
    let seen = watcher.stop();
    assert!(
        seen.changes > 100 && seen.last > 100,
        "packets and batches did not meet: {seen:?}"
    );
}

/// Has six clients write and read cells at a time. The value 0 is there.
pub async fn clients_see_one_order<C: Cells>(connect: impl AsyncFn() -> C) {
    let now = Instant::now();
    let mut history = vec![Operation {
        value: 0,
        is_write: true,
        begin: now,
        end: now,
    }];
    let values = Arc::new(AtomicU32::new(1));
    let mut tasks = Vec::new();
    for number in 0..6 {
        let (client, values) = (connect().await, Arc::clone(&values));
        tasks.push(tokio::spawn(async move {
            let mut history = Vec::new();
            for round in 0..60 {
                history.extend(operation(&client, number, round, &values).await);
            }
            history
        }));
    }
    for task in tasks {
        history.extend(task.await.expect("no client has met half of a Write"));
    }
    let writes = history.iter().filter(|o| o.is_write).count();
    assert!(writes > 100 && history.len() > 250);
    assert_eq!(serialisable(&history), Ok(()));
}

/// A write or a read of a client. A write that fails is not recorded, so that a later read of its
/// value would find a value that was never written.
async fn operation(client: &impl Cells, number: usize, round: usize, values: &AtomicU32) -> Option<Operation> {
    let begin = Instant::now();
    let is_write = (number + round).is_multiple_of(2);
    let value = if is_write {
        let value = values.fetch_add(1, Ordering::Relaxed);
        let fails = round.is_multiple_of(5);
        // With CONTINUE_ON_ERROR too where nothing fails: the batch is several steps of the switch,
        // and no other client's steps come in between.
        let how = match fails {
            true => [How::Atomic, How::Rollback][round % 2],
            false => [How::Atomic, How::Rollback, How::Continue][round % 3],
        };
        let written = client.write(value, how, fails).await;
        assert_eq!(written.is_err(), fails, "{written:?}");
        if fails {
            return None;
        }
        value
    } else {
        whole(&client.read().await)
    };
    Some(Operation {
        value,
        is_write,
        begin,
        end: Instant::now(),
    })
}

/// The value that all cells have.
fn whole(values: &[u32]) -> u32 {
    assert_eq!(values.len(), usize::from(CELLS));
    assert!(
        values.iter().all(|v| *v == values[0]),
        "half of a Write is read: {values:?}"
    );
    values[0]
}
