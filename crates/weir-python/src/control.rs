//! Counters, meters, registers, replication, digests and ports of a switch.

use crate::convert::{bits, number};
use crate::errors;
use crate::switch::Switch;
use pyo3::prelude::*;
use weir_ir::{Bits, ExternId};
use weir_switch::{Cell, CloneSession, Count, Digest, MeterConfig, Rate, Replica, ResourceKind, Write};

/// Committed rate and burst, peak rate and burst. Rates are in tokens per second.
pub type Rates = (u64, u64, u64, u64);

/// A digest: name, fields, time in ns.
pub type DigestValue<'py> = (String, Vec<(String, Bound<'py, PyAny>)>, u64);

/// A port, packets and bytes that it received, packets and bytes that it sent, whether it is up.
pub type PortCounts = (u32, (u64, u64), (u64, u64), bool);

/// Something that was refused, for the exception.
enum Refused {
    Name(weir_switch::NameError),
    Control(weir_switch::ControlError),
}

impl From<weir_switch::NameError> for Refused {
    fn from(error: weir_switch::NameError) -> Self {
        Refused::Name(error)
    }
}

impl From<weir_switch::ControlError> for Refused {
    fn from(error: weir_switch::ControlError) -> Self {
        Refused::Control(error)
    }
}

/// Does something with the instance of a name.
fn with_resource<T: Send>(
    of: &Switch,
    py: Python<'_>,
    (kind, name): (ResourceKind, &str),
    work: impl FnOnce(&mut weir_switch::Switch, ExternId) -> Result<T, weir_switch::ControlError> + Send,
) -> PyResult<T> {
    let done = of.with(py, |switch| -> Result<T, Refused> {
        let id = switch.resource(kind, name)?;
        Ok(work(switch, id)?)
    })?;
    done.map_err(|error| match error {
        Refused::Name(error) => errors::name(py, &error),
        Refused::Control(error) => errors::control(py, &error),
    })
}

fn cell(index: Option<u64>) -> Cell {
    index.map_or(Cell::All, Cell::Index)
}

pub fn counter(of: &Switch, py: Python<'_>, name: &str, index: u64) -> PyResult<(u64, u64)> {
    let kind = (ResourceKind::Counter, name);
    let count = with_resource(of, py, kind, |switch, id| switch.counter(id, index))?;
    Ok((count.packets, count.bytes))
}

pub fn set_counter(
    of: &Switch,
    py: Python<'_>,
    name: &str,
    index: Option<u64>,
    (packets, bytes): (u64, u64),
) -> PyResult<()> {
    with_resource(of, py, (ResourceKind::Counter, name), |switch, id| {
        switch.write(Write::Counter(id, cell(index), Count { packets, bytes }))
    })
    .map(|_| ())
}

pub fn meter(of: &Switch, py: Python<'_>, name: &str, index: u64) -> PyResult<Option<Rates>> {
    let config = with_resource(of, py, (ResourceKind::Meter, name), |switch, id| {
        switch.meter(id, index)
    })?;
    let rate = |rate: Rate| rate.tokens_per_second();
    Ok(config.map(|c| (rate(c.cir), c.cbs, rate(c.pir), c.pbs)))
}

pub fn set_meter(of: &Switch, py: Python<'_>, name: &str, index: Option<u64>, rates: Option<Rates>) -> PyResult<()> {
    let config = rates.map(|(cir, cbs, pir, pbs)| MeterConfig {
        cir: Rate::from_tokens_per_second(cir),
        cbs,
        pir: Rate::from_tokens_per_second(pir),
        pbs,
    });
    with_resource(of, py, (ResourceKind::Meter, name), |switch, id| {
        switch.write(Write::Meter(id, cell(index), config))
    })
    .map(|_| ())
}

pub fn register(of: &Switch, py: Python<'_>, name: &str, index: u64) -> PyResult<Vec<Bits>> {
    with_resource(of, py, (ResourceKind::Register, name), |switch, id| {
        switch.register(id, index)
    })
}

pub fn set_register(
    of: &Switch,
    py: Python<'_>,
    name: &str,
    index: Option<u64>,
    values: &[Bound<'_, PyAny>],
) -> PyResult<()> {
    let kind = (ResourceKind::Register, name);
    let shape = with_resource(of, py, kind, |switch, id| switch.register_initial(id))?;
    if shape.len() != values.len() {
        let text = format!("{name}: expected {} values, found {}", shape.len(), values.len());
        return Err(errors::invalid(text));
    }
    let pairs = shape.iter().zip(values);
    let values: PyResult<Vec<Bits>> = pairs.map(|(shape, value)| bits(value, shape.width(), name)).collect();
    let values = values?;
    with_resource(of, py, kind, |switch, id| {
        switch.write(Write::Register(id, cell(index), values))
    })
    .map(|_| ())
}

fn copies(replicas: Vec<(u32, u32)>) -> Vec<Replica> {
    replicas
        .into_iter()
        .map(|(port, rid)| Replica::new(port, rid))
        .collect()
}

pub fn group(group: u32, replicas: Option<Vec<(u32, u32)>>) -> Write {
    Write::Group(group, replicas.map(|all| copies(all).into()))
}

pub fn session(session: u32, replicas: Option<Vec<(u32, u32)>>, group: Option<u32>, truncate: u32) -> Write {
    let config = replicas.map(|all| CloneSession {
        replicas: copies(all),
        group,
        truncate_bytes: truncate,
        class_of_service: 0,
    });
    Write::Session(session, config)
}

pub fn digest(py: Python<'_>, digest: Digest) -> PyResult<DigestValue<'_>> {
    let fields = digest.fields.into_iter();
    let fields: PyResult<Vec<_>> = fields.map(|(name, value)| Ok((name, number(py, &value)?))).collect();
    Ok((digest.name, fields?, digest.time_ns))
}

/// Ports that received or sent anything.
pub fn ports(switch: &weir_switch::Switch) -> Vec<PortCounts> {
    let all = switch.active_ports();
    all.map(|(port, stats)| {
        let pair = |count: Count| (count.packets, count.bytes);
        (port, pair(stats.rx), pair(stats.tx), !switch.is_down(port))
    })
    .collect()
}

/// Ports that were set up or down.
pub fn known_ports(switch: &weir_switch::Switch) -> Vec<(u32, bool)> {
    let last = u32::MAX.checked_shr(32 - switch.port_bits().clamp(1, 16)).unwrap_or(0);
    let down = (0..=last).filter(|port| switch.is_down(*port));
    down.map(|port| (port, false)).collect()
}

pub fn drops(switch: &weir_switch::Switch) -> Vec<(String, Option<String>, u64)> {
    let program = switch.program();
    let place = |loc: weir_ir::Loc| {
        let file = program.files.get(loc.file as usize)?;
        Some(format!("{file}:{}:{}", loc.line, loc.column))
    };
    let all = switch.drops();
    all.map(|d| (d.reason.name().to_owned(), d.loc.and_then(place), d.packets))
        .collect()
}
