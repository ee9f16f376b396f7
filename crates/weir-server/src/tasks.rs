//! Requests that run to completion even if their client disconnects.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::task::Poll;
use tokio::task::JoinError;
use tonic::Status;

/// Runs a request to completion, even if the returned future is dropped after its first poll: a
/// batch must not be abandoned half done.
///
/// The first poll runs on the caller's task. A request that completes in it needs no task of its
/// own, whose creation is a good part of the cost of a small request.
///
/// # Errors
/// The request's own error, or `INTERNAL` if it panicked.
pub(crate) async fn run_detached<T: Send + 'static>(
    request: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let mut request = Box::pin(request);
    let tried = poll_fn(|context| {
        let poll = AssertUnwindSafe(|| request.as_mut().poll(context));
        Poll::Ready(std::panic::catch_unwind(poll))
    });
    let failed = || Status::internal("the request has met a mistake in weir: please report it");
    match tried.await {
        Ok(Poll::Ready(outcome)) => outcome,
        Ok(Poll::Pending) => {
            let joined: Result<_, JoinError> = tokio::spawn(request).await;
            joined.unwrap_or_else(|_| Err(failed()))
        }
        Err(_) => Err(failed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tonic::Code;

    #[tokio::test]
    async fn requests_complete_after_their_client_has_left() {
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let request = run_detached(async move {
            let _ = gone.await;
            done.store(true, Ordering::SeqCst);
            Ok(())
        });
        let waited = tokio::time::timeout(std::time::Duration::from_millis(1), request).await;
        assert!(waited.is_err());
        drop(go);
        while !is_done.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_error_of_the_request_only() {
        let at_once = run_detached::<()>(async { panic!("a mistake that a test makes") });
        assert_eq!(at_once.await.map_err(|s| s.code()), Err(Code::Internal));
        let later = run_detached::<()>(async {
            tokio::task::yield_now().await;
            panic!("a mistake that a test makes")
        });
        assert_eq!(later.await.map_err(|s| s.code()), Err(Code::Internal));
        assert_eq!(run_detached(async { Ok(7) }).await.map_err(|s| s.code()), Ok(7));
    }
}
