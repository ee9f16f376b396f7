//! How the orders of one batch are given: in a row, with nobody else's in between, but for long
//! batches of which others may see a part.

use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// How long a batch has that others may see a part of, until they come in between.
const ALONE: Duration = Duration::from_secs(1);

/// Orders are given as long as this is there.
#[derive(Debug)]
pub(crate) struct Giving<'d> {
    orders: &'d Mutex<()>,
    held: Option<MutexGuard<'d, ()>>,
    since: Instant,
}

impl<'d> Giving<'d> {
    /// Waits until nobody else gives orders.
    pub async fn begin(orders: &'d Mutex<()>) -> Self {
        let held = Some(orders.lock().await);
        Giving {
            orders,
            held,
            since: Instant::now(),
        }
    }

    /// Between two parts of a batch of which others may see a part. Once it has had its time, those
    /// that wait now come first: each of them waits for one part.
    pub async fn pause(&mut self) {
        if self.since.elapsed() >= ALONE {
            self.held = None;
            // Whoever waits has asked before, and is asked first.
            self.held = Some(self.orders.lock().await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn others_come_in_between_the_parts_of_a_batch_that_has_had_its_time() {
        let orders = Arc::new(Mutex::new(()));
        let mut giving = Giving::begin(&orders).await;
        let other = tokio::spawn({
            let orders = Arc::clone(&orders);
            async move { drop(Giving::begin(&orders).await) }
        });
        tokio::task::yield_now().await;
        tokio::time::advance(ALONE / 2).await;
        giving.pause().await;
        assert!(!other.is_finished());
        tokio::time::advance(ALONE / 2).await;
        giving.pause().await;
        tokio::time::timeout(ALONE, other)
            .await
            .expect("comes in")
            .expect("gives");
        // Afterwards it is alone again until the next part.
        assert!(orders.try_lock().is_err());
        drop(giving);
        assert!(orders.try_lock().is_ok());
    }
}
