//! The memory budget for answers that are sent as one message each.
//!
//! Such an answer is in memory as a whole from its first entry until its client has received it. It
//! therefore holds a permit of the server's budget. The permit is returned when the answer is both
//! complete and sent. It is the one budget for outgoing messages; requests have those of
//! [`crate::admission`] and [`crate::batches`].

use crate::refusal::Refusal;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio_stream::Stream;

/// Answers with fewer bytes do not count.
const MIN_COUNTED: usize = 1 << 20;

/// The budget in bytes, and its unused part.
#[derive(Debug)]
pub struct AnswerBudget {
    total: usize,
    free: AtomicUsize,
}

impl AnswerBudget {
    /// A budget of `total` bytes.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(AnswerBudget {
            total,
            free: AtomicUsize::new(total),
        })
    }

    /// The permit of an answer that has no bytes so far.
    pub fn permit(self: &Arc<Self>) -> Arc<AnswerPermit> {
        Arc::new(AnswerPermit {
            budget: Arc::clone(self),
            bytes: AtomicUsize::new(0),
        })
    }
}

/// The bytes that one answer holds; returned when the last handle is dropped.
#[derive(Debug)]
pub struct AnswerPermit {
    budget: Arc<AnswerBudget>,
    bytes: AtomicUsize,
}

impl AnswerPermit {
    /// Extends the permit to an answer of `to` bytes.
    ///
    /// # Errors
    /// The budget is exhausted.
    pub fn grow(&self, to: usize) -> Result<(), Refusal> {
        let more = match to {
            0..MIN_COUNTED => return Ok(()),
            _ => to.saturating_sub(self.bytes.load(Ordering::Relaxed)),
        };
        let subtract = |free: usize| free.checked_sub(more);
        let reserved = self
            .budget
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        reserved.map_err(|_| {
            Refusal::exhausted(format!(
                "the answers of all clients may have {} bytes at a time, and others have most of them; try again, or take several messages (metadata `weir-stream: 1`)",
                self.budget.total
            ))
        })?;
        self.bytes.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for AnswerPermit {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.budget.free.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A response stream that holds the answer's permit until all is sent or the client cancels.
#[derive(Debug)]
pub struct AnswerStream<S> {
    inner: S,
    _permit: Arc<AnswerPermit>,
}

impl<S> AnswerStream<S> {
    /// A stream with a permit.
    pub fn new(inner: S, permit: Arc<AnswerPermit>) -> Self {
        AnswerStream { inner, _permit: permit }
    }
}

impl<S: Stream + Unpin> Stream for AnswerStream<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.inner).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_an_answer_are_unavailable_to_others_until_it_is_dropped() {
        let answers = AnswerBudget::new(8 << 20);
        let [one, two, short] = [(); 3].map(|()| answers.permit());
        assert_eq!(one.grow(5 << 20), Ok(()));
        assert_eq!(one.grow(6 << 20), Ok(()));
        assert_eq!(two.grow(2 << 20), Ok(()));
        assert_eq!(short.grow(MIN_COUNTED - 1), Ok(()));
        assert!(two.grow(3 << 20).is_err() && short.grow(MIN_COUNTED).is_err());
        let sent = AnswerStream::new(tokio_stream::empty::<()>(), Arc::clone(&one));
        drop(one);
        assert!(two.grow(3 << 20).is_err());
        drop(sent);
        assert_eq!(two.grow(8 << 20), Ok(()));
        drop(two);
        assert_eq!(answers.free.load(Ordering::Relaxed), 8 << 20);
    }
}
