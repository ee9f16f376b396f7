//! Batches whose outcome a model foretells.

use super::Numbers;

/// Batches that are compared with the model.
pub const BATCHES: usize = 1000;

/// What becomes of a batch if an update of it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Continue,
    Rollback,
    Atomic,
}

impl How {
    pub const ALL: [How; 3] = [How::Continue, How::Rollback, How::Atomic];
}

/// The updates of the batch with this number: some batches are so short that all of their updates
/// may succeed. Every way to fail has its turn.
pub fn batch_of<U>(n: &mut Numbers, batch: usize, random: impl Fn(&mut Numbers) -> U) -> (Vec<U>, How) {
    let length = 1 + n.below(if batch.is_multiple_of(4) { 4 } else { 30 });
    let updates = (0..length).map(|_| random(n)).collect();
    (updates, How::ALL[batch % How::ALL.len()])
}
