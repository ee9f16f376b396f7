//! Futures of tokio for Python: each calls back when it is complete.
//!
//! Python makes a future of its own for each call (`weir._pending`), for threads that wait and for
//! asyncio alike. Here it is known by its callback only.

use crate::errors;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::future::Future;
use std::sync::Arc;
use tokio::task::AbortHandle;
use weir_client::Error;

/// The threads of one client. They end with it, wherever it is dropped.
pub struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts the threads.
    pub fn new() -> PyResult<Arc<Self>> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        // One may wait for Python's lock while the other serves the connection.
        let runtime = builder
            .worker_threads(2)
            .thread_name("weir-client")
            .enable_all()
            .build();
        Ok(Arc::new(Runtime(Some(runtime?))))
    }

    fn handle(&self) -> PyResult<&tokio::runtime::Handle> {
        let runtime = self.0.as_ref().map(tokio::runtime::Runtime::handle);
        runtime.ok_or_else(|| PyRuntimeError::new_err("the client is closed"))
    }

    /// Starts a future. `callback` is called with its value and `None`, or `None` and its exception;
    /// not at all if it is cancelled.
    pub fn start<T, F, C>(self: &Arc<Self>, callback: Py<PyAny>, future: F, convert: C) -> PyResult<Task>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
        C: for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    {
        let handle = self.handle()?;
        let work = handle.spawn(future);
        let abort = work.abort_handle();
        handle.spawn(async move {
            let done = match work.await {
                Ok(done) => Ok(done),
                Err(error) if error.is_cancelled() => return,
                Err(error) => Err(errors::text_of(&*error.into_panic()).to_owned()),
            };
            // `None`: the interpreter ends, and no one waits.
            let _ = Python::try_attach(|py| call_back(py, &callback, done, convert));
        });
        Ok(Task { abort })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // A callback may drop the client on one of these threads.
            runtime.shutdown_background();
        }
    }
}

fn call_back<T, C>(py: Python<'_>, callback: &Py<PyAny>, done: Result<Result<T, Error>, String>, convert: C)
where
    C: for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>>,
{
    let result = match done {
        Ok(Ok(value)) => convert(py, value),
        Ok(Err(error)) => Err(errors::client(py, &error)),
        Err(panic) => Err(PyRuntimeError::new_err(format!("an internal error of weir: {panic}"))),
    };
    let called = match result {
        Ok(value) => callback.call1(py, (value, py.None())),
        Err(error) => callback.call1(py, (py.None(), error.into_value(py))),
    };
    if let Err(error) = called {
        error.write_unraisable(py, Some(callback.bind(py)));
    }
}

/// A call that is under way.
#[pyclass(frozen, module = "weir._weir")]
pub struct Task {
    abort: AbortHandle,
}

#[pymethods]
impl Task {
    /// Ends it without a result.
    fn cancel(&self) {
        self.abort.abort();
    }
}
