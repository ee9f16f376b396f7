//! AnswerBudget that are one message each, and how many bytes they may have together.
//!
//! Such an answer is in memory as a total from its first entry until its client has taken it. So it
//! has a share of a budget of the server, which goes back when both are over: the putting together
//! and the sending.

use crate::refusal::Refusal;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio_stream::Stream;

/// Bytes from which on an answer counts.
const MIN_COUNTED: usize = 1 << 20;

/// Bytes that answers may have, and those that are free.
#[derive(Debug)]
pub struct AnswerBudget {
    total: usize,
    free: AtomicUsize,
}

impl AnswerBudget {
    /// Room for so many bytes.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(AnswerBudget {
            total,
            free: AtomicUsize::new(total),
        })
    }

    /// The share of an answer without bytes so far.
    pub fn permit(self: &Arc<Self>) -> Arc<AnswerPermit> {
        Arc::new(AnswerPermit {
            budget: Arc::clone(self),
            bytes: AtomicUsize::new(0),
        })
    }
}

/// What one answer has; given back with the last handle.
#[derive(Debug)]
pub struct AnswerPermit {
    budget: Arc<AnswerBudget>,
    bytes: AtomicUsize,
}

impl AnswerPermit {
    /// Takes what an answer of so many bytes needs beside what it has.
    ///
    /// # Errors
    /// Others have the rest.
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
            Refusal::full(format!(
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

/// A stream of answers, which keeps their share until they are sent or nobody waits for them.
#[derive(Debug)]
pub struct AnswerStream<S> {
    inner: S,
    _permit: Arc<AnswerPermit>,
}

impl<S> AnswerStream<S> {
    /// A stream with a share.
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
    fn what_an_answer_has_others_have_not_until_it_is_gone() {
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
