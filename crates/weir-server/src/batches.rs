//! How many updates of large batches there are at a time: what is made of each takes hundreds of
//! bytes, of two on the wire.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Updates from which on a batch is large.
const LARGE: usize = 1 << 12;

/// Updates of all large batches at a time. A batch may have more while no other such one is there.
const UPDATES: usize = 1 << 17;

/// The large batches of a device.
#[derive(Debug)]
pub(crate) struct Batches {
    /// A permit for each update.
    large: Semaphore,
    /// One for the batch that has more.
    very_large: Semaphore,
}

/// The room that a batch has, until all of it is told.
pub(crate) type Room<'a> = SemaphorePermit<'a>;

impl Default for Batches {
    fn default() -> Self {
        Batches {
            large: Semaphore::new(UPDATES),
            very_large: Semaphore::new(1),
        }
    }
}

impl Batches {
    /// Waits until there is room for a batch of so many updates beside the other large ones, if it
    /// is large. In the order in which they came, and before anything is made of the updates.
    pub async fn room(&self, updates: usize) -> Option<Room<'_>> {
        // Neither is ever closed.
        match updates {
            0..LARGE => None,
            LARGE..=UPDATES => self.large.acquire_many(updates as u32).await.ok(),
            _ => self.very_large.acquire().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::now;

    #[test]
    fn large_batches_have_so_many_updates_together_and_small_ones_wait_for_none() {
        let batches = Batches::default();
        let half = now(batches.room(UPDATES / 2));
        let other = now(batches.room(UPDATES / 2));
        assert!(half.is_some() && other.is_some());
        assert!(now(batches.room(LARGE)).is_none());
        assert!(now(batches.room(LARGE - 1)).is_some_and(|room| room.is_none()));
        // One of those with more has its own.
        let more = now(batches.room(UPDATES + 1));
        assert!(more.is_some() && now(batches.room(UPDATES * 9)).is_none());
        drop((half, more));
        assert!(now(batches.room(UPDATES / 2)).is_some());
        assert!(now(batches.room(UPDATES * 9)).is_some());
    }
}
