//! Notifications of a target.
//!
//! An event is first put into a queue here and taken out by Python's thread, so that a call that is
//! cancelled while it waits loses none.

use super::values;
use crate::bridge::{Runtime, Task};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weir_client::{DigestList, IdleEntry, PacketIn, PortChange};

/// An event of any kind.
pub enum Event {
    Packet(PacketIn),
    Digest(DigestList),
    Idle(IdleEntry),
    Port(PortChange),
}

impl From<PacketIn> for Event {
    fn from(event: PacketIn) -> Self {
        Event::Packet(event)
    }
}

impl From<DigestList> for Event {
    fn from(event: DigestList) -> Self {
        Event::Digest(event)
    }
}

impl From<IdleEntry> for Event {
    fn from(event: IdleEntry) -> Self {
        Event::Idle(event)
    }
}

impl From<PortChange> for Event {
    fn from(event: PortChange) -> Self {
        Event::Port(event)
    }
}

/// A subscription of weir-client.
pub(super) enum Source {
    Packet(weir_client::Subscription<PacketIn>),
    Digest(weir_client::Subscription<DigestList>),
    Idle(weir_client::Subscription<IdleEntry>),
    Port(weir_client::Subscription<PortChange>),
}

macro_rules! sources {
    ($($kind:ident: $event:ty),*) => {
        $(impl From<weir_client::Subscription<$event>> for Source {
            fn from(source: weir_client::Subscription<$event>) -> Self {
                Source::$kind(source)
            }
        })*

        impl Source {
            async fn next(&mut self) -> Option<Event> {
                match self {
                    $(Source::$kind(source) => source.next().await.map(Event::from),)*
                }
            }

            fn try_next(&mut self) -> Option<Event> {
                match self {
                    $(Source::$kind(source) => source.try_next().map(Event::from),)*
                }
            }

            fn lost(&self) -> u64 {
                match self {
                    $(Source::$kind(source) => source.lost(),)*
                }
            }
        }
    };
}
sources!(Packet: PacketIn, Digest: DigestList, Idle: IdleEntry, Port: PortChange);

/// What a waiting call and Python's threads share.
struct Shared {
    source: tokio::sync::Mutex<Source>,
    queue: Mutex<VecDeque<Event>>,
    /// Lost events, as known before the last wait.
    lost: AtomicU64,
}

impl Shared {
    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Event>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events of one kind, in order.
#[pyclass(frozen, module = "weir._weir")]
pub struct Subscription {
    shared: Arc<Shared>,
    runtime: Arc<Runtime>,
}

impl Subscription {
    pub(super) fn new<T>(source: weir_client::Subscription<T>, runtime: Arc<Runtime>) -> Self
    where
        Source: From<weir_client::Subscription<T>>,
    {
        let shared = Arc::new(Shared {
            source: tokio::sync::Mutex::new(source.into()),
            queue: Mutex::default(),
            lost: AtomicU64::new(0),
        });
        Subscription { shared, runtime }
    }
}

#[pymethods]
impl Subscription {
    /// Waits for an event; the callback gets whether there is one. It is [taken](Self::take) after
    /// that.
    fn wait(&self, callback: Py<PyAny>) -> PyResult<Task> {
        let shared = Arc::clone(&self.shared);
        let wait = async move {
            let mut source = shared.source.lock().await;
            if !shared.queue().is_empty() {
                return Ok(true);
            }
            shared.lost.store(source.lost(), Ordering::Relaxed);
            let event = source.next().await;
            let is_one = event.is_some();
            shared.queue().extend(event);
            Ok(is_one)
        };
        self.runtime.start(callback, wait, |py, is_one| {
            Ok(is_one.into_pyobject(py)?.to_owned().into_any())
        })
    }

    /// Takes the next event, if there is one.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut event = self.shared.queue().pop_front();
        if event.is_none()
            && let Ok(mut source) = self.shared.source.try_lock()
        {
            event = source.try_next();
        }
        event.map(|event| value(py, &event)).transpose()
    }

    /// Events that were lost because the queue was full.
    fn lost(&self) -> u64 {
        let known = |_| self.shared.lost.load(Ordering::Relaxed);
        // Locked by a call that waits: its queue is empty, so that nothing is lost.
        self.shared.source.try_lock().map_or_else(known, |source| source.lost())
    }
}

/// An event as a tuple.
fn value<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyAny>> {
    Ok(match event {
        Event::Packet(packet) => {
            let fields = packet.metadata.iter();
            let fields: PyResult<Vec<_>> = fields
                .map(|(name, v)| Ok((name.as_str(), values::value(py, v)?)))
                .collect();
            (PyBytes::new(py, &packet.payload), fields?)
                .into_pyobject(py)?
                .into_any()
        }
        Event::Digest(list) => {
            let data: PyResult<Vec<_>> = list.data.iter().map(|v| values::value(py, v)).collect();
            (list.name.as_str(), data?, list.timestamp_ns)
                .into_pyobject(py)?
                .into_any()
        }
        Event::Idle(idle) => (values::entry(py, &idle.entry)?, idle.is_active)
            .into_pyobject(py)?
            .into_any(),
        Event::Port(change) => (change.port, change.is_up).into_pyobject(py)?.into_any(),
    })
}
