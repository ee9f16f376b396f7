//! What several modules' tests need.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// What a future gives at once.
pub fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
