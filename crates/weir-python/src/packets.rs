//! Packets from Python through a switch, many at a time.

use crate::convert::kind;
use crate::errors::invalid;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use weir_switch::{Frame, Output, Switch, TAILROOM, VECTOR, Verdict};

/// Most bytes of the packets of one call.
const MAX_BYTES: usize = 1 << 32;

/// Packets on their way in, in one piece of memory, with room around each.
#[derive(Default)]
pub struct Incoming {
    memory: Vec<u8>,
    packets: Vec<(u32, usize)>,
    headroom: usize,
}

/// Packets that left: which of the incoming ones caused it, the port, and the end of its bytes.
#[derive(Default)]
pub struct Outgoing {
    memory: Vec<u8>,
    packets: Vec<(usize, u32, usize)>,
    /// Number of incoming packets.
    count: usize,
}

/// The bytes of a packet: those of a `bytes` object, or what `bytes()` makes of another one.
pub fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    // `bytes(7)` is seven zeros, which is no packet; a text is refused by `bytes` itself.
    if data.is_instance_of::<pyo3::types::PyInt>() {
        return Err(invalid(format!("expected the bytes of a packet, found {}", kind(data))));
    }
    let made = data.py().get_type::<PyBytes>().call1((data,))?;
    Ok(made.cast_into::<PyBytes>()?)
}

/// A port's number, if the switch can have it.
pub fn port_of(port: &Bound<'_, PyAny>, port_bits: u32) -> PyResult<u32> {
    let number: Option<u32> = port.extract().ok();
    let is_port = |n: &u32| n.checked_shr(port_bits).unwrap_or(0) == 0;
    number.filter(is_port).ok_or_else(|| {
        let last = u32::MAX.checked_shr(32 - port_bits.min(32)).unwrap_or(0);
        invalid(format!("expected a port from 0 to {last}, found {}", shown(port)))
    })
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| kind(value), |text| text.to_string())
}

impl Incoming {
    /// Copies the packets of an iterable of `(port, bytes)`.
    pub fn read(packets: &Bound<'_, PyAny>, headroom: usize, port_bits: u32) -> PyResult<Self> {
        let mut incoming = Incoming {
            headroom,
            ..Incoming::default()
        };
        for item in packets.try_iter()? {
            let item = item?;
            let pair = item.cast::<PyTuple>().cloned().or_else(|_| {
                let list: Vec<Bound<'_, PyAny>> = item.extract().map_err(|_| not_a_pair(&item))?;
                PyTuple::new(item.py(), list)
            })?;
            if pair.len() != 2 {
                return Err(not_a_pair(&item));
            }
            let port = port_of(&pair.get_item(0)?, port_bits)?;
            let bytes = bytes_of(&pair.get_item(1)?)?;
            incoming.push(port, bytes.as_bytes())?;
        }
        Ok(incoming)
    }

    fn push(&mut self, port: u32, bytes: &[u8]) -> PyResult<()> {
        let end = self.memory.len() + self.headroom + bytes.len() + TAILROOM;
        if end > MAX_BYTES || bytes.len() > u32::MAX as usize {
            return Err(invalid(format!(
                "the packets of one call have at most {MAX_BYTES} bytes"
            )));
        }
        self.memory.resize(self.memory.len() + self.headroom, 0);
        self.memory.extend_from_slice(bytes);
        self.memory.resize(end, 0);
        self.packets.push((port, bytes.len()));
        Ok(())
    }

    /// Runs all of them through a switch.
    pub fn run(mut self, switch: &mut Switch, now_ns: u64) -> Outgoing {
        let mut out = Outgoing {
            count: self.packets.len(),
            ..Outgoing::default()
        };
        out.packets.reserve(self.packets.len());
        out.memory.reserve(self.memory.len());
        // What a port's rate holds back leaves with the clock, packet by packet.
        let is_held = switch.has_port_rate() || switch.queued() > 0;
        let is_compiled = switch.compiled().is_some() && switch.headroom() <= self.headroom;
        if is_held || !is_compiled {
            self.run_singly(switch, now_ns, &mut out);
            return out;
        }
        let headroom = self.headroom;
        let mut rest = &mut self.memory[..];
        for (vector, packets) in self.packets.chunks(VECTOR).enumerate() {
            let first = vector * VECTOR;
            let mut frames = Vec::with_capacity(packets.len());
            for (_, length) in packets {
                let room = (headroom + length + TAILROOM).min(rest.len());
                let (own, others) = std::mem::take(&mut rest).split_at_mut(room);
                rest = others;
                frames.extend(Frame::new(own, headroom, *length));
            }
            let ports: Vec<u32> = packets.iter().map(|(port, _)| *port).collect();
            out.vector(switch, first, &ports, &mut frames, now_ns);
        }
        out
    }

    fn run_singly(&self, switch: &mut Switch, now_ns: u64, out: &mut Outgoing) {
        let mut start = 0;
        for (number, (port, length)) in self.packets.iter().enumerate() {
            let from = start + self.headroom;
            let bytes = self.memory.get(from..from + length).unwrap_or_default();
            start = from + length + TAILROOM;
            let sent = switch.inject(*port, bytes, now_ns);
            sent.iter().for_each(|o| out.push(number, o.port, &o.bytes));
            switch.recycle(sent);
        }
    }
}

fn not_a_pair(item: &Bound<'_, PyAny>) -> PyErr {
    invalid(format!("expected pairs of a port and bytes, found {}", shown(item)))
}

impl Outgoing {
    fn push(&mut self, number: usize, port: u32, bytes: &[u8]) {
        self.memory.extend_from_slice(bytes);
        self.packets.push((number, port, self.memory.len()));
    }

    /// Runs up to [`VECTOR`] packets, the first of which is number `first`.
    fn vector(&mut self, switch: &mut Switch, first: usize, ports: &[u32], frames: &mut [Frame<'_>], now_ns: u64) {
        let verdicts: Vec<Verdict> = switch.forward(ports, frames, now_ns).to_vec();
        let mut copies: Vec<Output> = Vec::new();
        if !switch.pass_time(now_ns) {
            copies = switch.advance(now_ns);
        }
        let mut next = copies.iter();
        for (at, (verdict, frame)) in verdicts.iter().zip(frames.iter()).enumerate() {
            match verdict {
                Verdict::Transmit(port) => self.push(first + at, *port, frame.bytes()),
                Verdict::Copies(count) => {
                    let own = next.by_ref().take(*count as usize);
                    own.for_each(|o| self.push(first + at, o.port, &o.bytes));
                }
                Verdict::Gone => {}
            }
        }
        // Packets that no verdict counts, such as those of generators, came with the last packet.
        let last = first + verdicts.len().saturating_sub(1);
        next.for_each(|o| self.push(last, o.port, &o.bytes));
        switch.recycle(copies);
    }

    /// For each incoming packet the list of what left because of it.
    pub fn into_lists<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut lists = Vec::with_capacity(self.count);
        let mut packets = self.packets.iter().peekable();
        let mut start = 0;
        for number in 0..self.count {
            let own = PyList::empty(py);
            while let Some((_, port, end)) = packets.next_if(|(of, ..)| *of == number) {
                let bytes = PyBytes::new(py, self.memory.get(start..*end).unwrap_or_default());
                start = *end;
                own.append((*port, bytes))?;
            }
            lists.push(own);
        }
        PyList::new(py, lists)
    }
}

/// Packets as a list of `(port, bytes)`.
pub fn sent<'py>(py: Python<'py>, outputs: &[Output]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, outputs.iter().map(|o| (o.port, PyBytes::new(py, &o.bytes))))
}

/// Packets as a list of `(port, bytes, ns)`.
pub fn departures<'py>(py: Python<'py>, outputs: &[Output]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(
        py,
        outputs.iter().map(|o| (o.port, PyBytes::new(py, &o.bytes), o.time_ns)),
    )
}
