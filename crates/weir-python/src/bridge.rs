//! Futures of tokio for Python: each calls back when it is complete.
//!
//! Python makes a future of its own for each call (`weir._pending`), for threads that wait and for
//! asyncio alike. Here it is known by its callback only.

use crate::errors;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::task::AbortHandle;
use weir_client::Error;

/// Whether futures may call back. It is closed when the interpreter ends: a thread that needs
/// Python's lock after that ends the process.
#[pyclass(frozen, module = "weir._weir")]
pub struct Gate {
    is_open: Arc<RwLock<bool>>,
}

#[pymethods]
impl Gate {
    #[new]
    fn new() -> Self {
        Gate {
            is_open: Arc::new(RwLock::new(true)),
        }
    }

    /// Waits for calls that are under way; there are none after that.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.is_open.write().unwrap_or_else(PoisonError::into_inner) = false);
    }
}

/// The threads of one client. They end with it, wherever it is dropped.
pub struct Runtime {
    threads: Option<tokio::runtime::Runtime>,
    is_open: Arc<RwLock<bool>>,
}

impl Runtime {
    /// Starts the threads.
    pub fn new(gate: &Gate) -> PyResult<Arc<Self>> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        // One may wait for Python's lock while the other serves the connection.
        let runtime = builder
            .worker_threads(2)
            .thread_name("weir-client")
            .enable_all()
            .build();
        Ok(Arc::new(Runtime {
            threads: Some(runtime?),
            is_open: Arc::clone(&gate.is_open),
        }))
    }

    fn handle(&self) -> PyResult<&tokio::runtime::Handle> {
        let runtime = self.threads.as_ref().map(tokio::runtime::Runtime::handle);
        runtime.ok_or_else(|| PyRuntimeError::new_err("the client is closed"))
    }

    /// Starts a future. `callback` is called with its value and `None`, or with `None` and its
    /// exception; not at all if the future is cancelled.
    pub fn start<T, F, C>(self: &Arc<Self>, callback: Py<PyAny>, future: F, convert: C) -> PyResult<Task>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
        C: for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    {
        let handle = self.handle()?;
        let work = handle.spawn(future);
        let abort = work.abort_handle();
        let gate = Arc::clone(&self.is_open);
        handle.spawn(async move {
            let done = match work.await {
                Ok(done) => Ok(done),
                Err(error) if error.is_cancelled() => return,
                Err(error) => Err(errors::text_of(&*error.into_panic()).to_owned()),
            };
            let is_open = gate.read().unwrap_or_else(PoisonError::into_inner);
            if *is_open {
                // `None`: the interpreter ends, and no one waits.
                let _ = Python::try_attach(|py| call_back(py, &callback, done, convert));
            }
        });
        Ok(Task { abort })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.threads.take() {
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
