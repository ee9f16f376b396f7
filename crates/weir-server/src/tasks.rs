//! Requests that are done to their end, whether or not the client waits for it.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::task::Poll;
use tokio::task::JoinError;
use tonic::Status;

/// Does a request. It goes on where the client does not wait: a batch is done whole or not at all.
///
/// What need not wait for anything is done at once, on this task: another one per request is a good
/// part of what a small request costs.
///
/// # Errors
/// The request's own. One that panicked is a mistake in weir, and an error to the client.
pub(crate) async fn to_its_end<T: Send + 'static>(
    request: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let mut request = Box::pin(request);
    let tried = poll_fn(|context| {
        let poll = AssertUnwindSafe(|| request.as_mut().poll(context));
        Poll::Ready(std::panic::catch_unwind(poll))
    });
    let failed = || Status::internal("the request has met a mistake in weir: please report it");
    match tried.await {
        Ok(Poll::Ready(done)) => done,
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
    async fn requests_go_on_where_nobody_waits() {
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let request = to_its_end(async move {
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
        let at_once = to_its_end::<()>(async { panic!("a mistake that a test makes") });
        assert_eq!(at_once.await.map_err(|s| s.code()), Err(Code::Internal));
        let later = to_its_end::<()>(async {
            tokio::task::yield_now().await;
            panic!("a mistake that a test makes")
        });
        assert_eq!(later.await.map_err(|s| s.code()), Err(Code::Internal));
        assert_eq!(to_its_end(async { Ok(7) }).await.map_err(|s| s.code()), Ok(7));
    }
}
