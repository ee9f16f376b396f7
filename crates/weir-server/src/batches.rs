//! Admission of large batches: a budget of updates that are decoded at a time.
//!
//! A decoded update takes hundreds of bytes for two on the wire. Batches wait for the budget in
//! order of arrival, before any update is decoded. Small batches are not counted. The bytes of the
//! encoded request are charged separately ([`crate::admission`]).

use tokio::sync::{Semaphore, SemaphorePermit};

/// A batch of this many updates or more is charged to the budget.
const MIN_LARGE_BATCH: usize = 1 << 12;

/// The budget: updates of all large batches together. One oversized batch may run beside them.
const BUDGET_UPDATES: usize = 1 << 17;

/// The budget of a device.
#[derive(Debug)]
pub(crate) struct BatchBudget {
    /// A permit for each update of a large batch.
    large: Semaphore,
    /// One permit, for a batch of more than [`BUDGET_UPDATES`].
    oversized: Semaphore,
}

/// A batch's share of the budget, held until its answer is complete.
pub(crate) type BatchPermit<'a> = SemaphorePermit<'a>;

impl Default for BatchBudget {
    fn default() -> Self {
        BatchBudget {
            large: Semaphore::new(BUDGET_UPDATES),
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
            0..MIN_LARGE_BATCH => None,
            MIN_LARGE_BATCH..=BUDGET_UPDATES => self.large.acquire_many(updates as u32).await.ok(),
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
        let half = now(budget.admit(BUDGET_UPDATES / 2));
        let other = now(budget.admit(BUDGET_UPDATES / 2));
        assert!(half.is_some() && other.is_some());
        assert!(now(budget.admit(MIN_LARGE_BATCH)).is_none());
        assert!(now(budget.admit(MIN_LARGE_BATCH - 1)).is_some_and(|permit| permit.is_none()));
        // An oversized batch has a permit of its own.
        let oversized = now(budget.admit(BUDGET_UPDATES + 1));
        assert!(oversized.is_some() && now(budget.admit(BUDGET_UPDATES * 9)).is_none());
        drop((half, oversized));
        assert!(now(budget.admit(BUDGET_UPDATES / 2)).is_some());
        assert!(now(budget.admit(BUDGET_UPDATES * 9)).is_some());
    }
}
