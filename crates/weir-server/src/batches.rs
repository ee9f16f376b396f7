//! The budget of large batches: how many updates of them are decoded at a time.
//!
//! A decoded update takes hundreds of bytes where the wire has two. Batches wait here, in order of
//! arrival, before any update is decoded. Small batches are not counted.

use tokio::sync::{Semaphore, SemaphorePermit};

/// A batch of this many updates or more is large.
const LARGE: usize = 1 << 12;

/// Updates of all large batches at a time. One batch with more may run beside them, alone of its
/// kind.
const UPDATES: usize = 1 << 17;

/// The budget of a device.
#[derive(Debug)]
pub(crate) struct BatchBudget {
    /// A permit for each update.
    large: Semaphore,
    /// One permit, for a batch of more than [`UPDATES`].
    oversized: Semaphore,
}

/// A batch's share of the budget, held until its answer is complete.
pub(crate) type BatchPermit<'a> = SemaphorePermit<'a>;

impl Default for BatchBudget {
    fn default() -> Self {
        BatchBudget {
            large: Semaphore::new(UPDATES),
            oversized: Semaphore::new(1),
        }
    }
}

impl BatchBudget {
    /// Waits, in order of arrival, until the budget allows a batch of `updates`. Small batches need
    /// no permit: `None`.
    pub async fn admit(&self, updates: usize) -> Option<BatchPermit<'_>> {
        // Neither semaphore is ever closed.
        match updates {
            0..LARGE => None,
            LARGE..=UPDATES => self.large.acquire_many(updates as u32).await.ok(),
            _ => self.oversized.acquire().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::now;

    #[test]
    fn large_batches_share_a_budget_and_small_ones_need_no_permit() {
        let budget = BatchBudget::default();
        let half = now(budget.admit(UPDATES / 2));
        let other = now(budget.admit(UPDATES / 2));
        assert!(half.is_some() && other.is_some());
        assert!(now(budget.admit(LARGE)).is_none());
        assert!(now(budget.admit(LARGE - 1)).is_some_and(|permit| permit.is_none()));
        // An oversized batch has a permit of its own.
        let oversized = now(budget.admit(UPDATES + 1));
        assert!(oversized.is_some() && now(budget.admit(UPDATES * 9)).is_none());
        drop((half, oversized));
        assert!(now(budget.admit(UPDATES / 2)).is_some());
        assert!(now(budget.admit(UPDATES * 9)).is_some());
    }
}
