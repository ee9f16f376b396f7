//! `tf1.pktgen.*`, `tf2.pktgen.*`: the packet generators.
//!
//! Their entries always exist, so an insertion sets them: an inserted entry starts from the reset
//! state, a modified one keeps values that are missing in the update. Deleting and clearing restore
//! the initial state. A target with a pipe addresses the generator of that pipe. Without one, a
//! write changes the generators of all pipes, and a read returns the configuration of the first one
//! with the counts of all.

mod application;

pub(crate) use application::{applications, is_count, read_applications};

use super::{Op, Row, Source};
use crate::bfrt::schema::Table;
use crate::bfrt::value::Value;
use crate::refusal::Refusal;
use std::ops::Range;
use weir_ir::Bits;
use weir_switch::{
    ControlError, GeneratorError, GeneratorPort, GeneratorWrite, Generators, Switch, Transaction, Write,
};

/// Ports of a pipe.
const PORTS: u32 = 128;
/// Bits of a mask of ports.
const MASK_BITS: u32 = 72;

const GENERATES: &str = "pktgen_enable";
const MATCHES: &str = "pattern_matching_enable";
const RECIRCULATES: &str = "recirculation_enable";

impl From<GeneratorError> for Refusal {
    fn from(error: GeneratorError) -> Self {
        ControlError::from(error).into()
    }
}

fn generators(switch: &Switch) -> Result<&Generators, Refusal> {
    Ok(switch.generators().ok_or(GeneratorError::None)?)
}

/// The addressed pipes.
fn pipes(pipe: Option<u32>, generators: &Generators) -> Result<Range<u32>, Refusal> {
    let all = generators.model().pipes;
    match pipe {
        None => Ok(0..all),
        Some(pipe) if pipe < all => Ok(pipe..pipe + 1),
        Some(pipe) => Err(Refusal::malformed(format!(
            "there is no pipe {pipe}; packet generators are in pipes 0 to {}",
            all - 1
        ))),
    }
}

/// Refuses operations on elements: entries have no lists.
fn check_whole(op: Op) -> Result<(), Refusal> {
    match op {
        Op::Add | Op::Remove => Err(Refusal::unsupported(
            "entries of this table are set, not changed by parts",
        )),
        _ => Ok(()),
    }
}

fn flag(row: &Row, table: &Table, name: &str, before: bool) -> bool {
    row.flag(table, name).unwrap_or(before)
}

fn row_with_key<const N: usize>(table: &Table, numbers: [u32; N]) -> Row {
    let values = numbers.map(|n| Value::Number(n.into()));
    Row {
        key: table.keys.iter().map(|k| k.id).zip(values).collect(),
        ..Row::default()
    }
}

/// The value of a number of any width.
fn wide(value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => Some((*number).into()),
        Value::Wide(bits) => bits.to_u128(),
        _ => None,
    }
}

// ----------------------------------------------------------------------------------------------
// ports

/// Changes the generator settings of ports.
pub(crate) fn ports(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    check_whole(op)?;
    if op == Op::Clear {
        let generators = generators(t.switch())?;
        for port in ports_of(pipes(row.pipe, generators)?, generators) {
            set_port(t, port, GeneratorPort::default())?;
        }
        return Ok(true);
    }
    let port = row.key_number(0);
    let before = match op {
        Op::Modify | Op::Upsert => generators(t.switch())?.port(port),
        _ => GeneratorPort::default(),
    };
    let what = GeneratorPort {
        generates: flag(row, table, GENERATES, before.generates),
        matches: flag(row, table, MATCHES, before.matches),
    };
    // Executed first, since it checks that the port exists.
    set_port(t, port, what)?;
    if row.flag(table, "clear_port_down_enable") == Some(true) {
        return Err(Refusal::unsupported(
            "field `clear_port_down_enable`: weir's generators hear of every port that goes down; there is nothing to clear",
        ));
    }
    let recirculates = t.switch().takes_in_again(port);
    match row.flag(table, RECIRCULATES) {
        Some(on) if on != recirculates => Err(Refusal::unsupported(format!(
            "field `{RECIRCULATES}`: port {port} {}",
            match recirculates {
                true => "always takes in again what it sends",
                false => "does so by `$LOOPBACK_MODE` of `$PORT`, if at all",
            }
        ))),
        _ => Ok(true),
    }
}

fn set_port(t: &mut Transaction<'_>, port: u32, what: GeneratorPort) -> Result<(), Refusal> {
    t.write(Write::Generator(GeneratorWrite::Port { port, what }))?;
    Ok(())
}

fn ports_of(pipes: Range<u32>, generators: &Generators) -> Vec<u32> {
    let local = generators.model().ports.clone();
    pipes
        .flat_map(|pipe| local.clone().map(move |port| pipe * PORTS + port))
        .collect()
}

/// Reads the generator settings of ports.
pub(crate) fn read_ports(table: &Table, key: Option<&Row>, source: &Source<'_>) -> Result<Vec<Row>, Refusal> {
    let generators = generators(source.switch)?;
    let all = ports_of(pipes(source.pipe, generators)?, generators);
    let selected = match key.map(|k| k.key_number(0)) {
        Some(port) => {
            generators.check_port(port)?;
            vec![port]
        }
        None => all,
    };
    let row = |port: u32| {
        let what = generators.port(port);
        let mut row = row_with_key(table, [port]);
        row.set(table, RECIRCULATES, Value::Bool(source.switch.takes_in_again(port)));
        row.set(table, GENERATES, Value::Bool(what.generates));
        row.set(table, MATCHES, Value::Bool(what.matches));
        row.set(table, "clear_port_down_enable", Value::Bool(false));
        row
    };
    Ok(selected.into_iter().map(row).collect())
}

// ---------------------------------------------------------------------------------------------
// buffer

/// Writes to buffers.
pub(crate) fn buffer(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    check_whole(op)?;
    let generators = generators(t.switch())?;
    let pipes = pipes(row.pipe, generators)?;
    let (offset, size) = match op {
        Op::Clear => (0, whole()),
        _ => (row.key_number(0), row.key_number(1)),
    };
    // Checked before that number of bytes is allocated.
    generators.buffer(pipes.start, offset, size)?;
    let bytes = match op {
        Op::Clear | Op::Delete => vec![0; size as usize],
        _ => given_bytes(row, table)?,
    };
    if bytes.len() != size as usize {
        return Err(Refusal::malformed(format!(
            "field `buffer` has {} bytes; key `pkt_buffer_size` says {size}",
            bytes.len()
        )));
    }
    for pipe in pipes {
        let bytes = bytes.clone();
        t.write(Write::Generator(GeneratorWrite::Buffer { pipe, offset, bytes }))?;
    }
    Ok(true)
}

fn whole() -> u32 {
    u32::try_from(weir_switch::BUFFER).unwrap_or(u32::MAX)
}

fn given_bytes(row: &Row, table: &Table) -> Result<Vec<u8>, Refusal> {
    match row.get(table, "buffer") {
        // Each fits into 8 bits: that was checked when the field was decoded.
        Some(Value::Numbers(list)) => Ok(list.iter().map(|n| *n as u8).collect()),
        _ => Err(Refusal::malformed("field `buffer` is missing")),
    }
}

/// Reads a part of a buffer, or all of it.
pub(crate) fn read_buffer(table: &Table, key: Option<&Row>, source: &Source<'_>) -> Result<Vec<Row>, Refusal> {
    let generators = generators(source.switch)?;
    let pipe = pipes(source.pipe, generators)?.start;
    let (offset, size) = key.map_or((0, whole()), |k| (k.key_number(0), k.key_number(1)));
    let mut row = row_with_key(table, [offset, size]);
    row.set(table, "buffer", Value::Octets(generators.buffer(pipe, offset, size)?));
    Ok(vec![row])
}

// ----------------------------------------------------------------------------------------------
// masks

/// Changes port masks.
pub(crate) fn masks(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    check_whole(op)?;
    let pipes = pipes(row.pipe, generators(t.switch())?)?;
    let masks = match op {
        Op::Clear => 0..mask_count(),
        _ => row.key_number(0)..row.key_number(0).saturating_add(1),
    };
    for pipe in pipes {
        for mask in masks.clone() {
            let given = row.get(table, "mask").and_then(wide);
            let ports = match (op, given) {
                (Op::Modify | Op::Upsert, None) => continue,
                (Op::Delete | Op::Clear, _) => 0,
                (_, given) => given.unwrap_or(0),
            };
            t.write(Write::Generator(GeneratorWrite::Mask { pipe, mask, ports }))?;
        }
    }
    Ok(true)
}

fn mask_count() -> u32 {
    u32::try_from(weir_switch::MASKS).unwrap_or(u32::MAX)
}

/// Reads port masks.
pub(crate) fn read_masks(table: &Table, key: Option<&Row>, source: &Source<'_>) -> Result<Vec<Row>, Refusal> {
    let generators = generators(source.switch)?;
    let pipe = pipes(source.pipe, generators)?.start;
    let selected = match key.map(|k| k.key_number(0)) {
        Some(mask) => mask..mask.saturating_add(1),
        None => 0..mask_count(),
    };
    let row = |mask: u32| {
        let ports = generators.mask(pipe, mask)?;
        let mut row = row_with_key(table, [mask]);
        row.set(table, "mask", Value::Wide(Bits::new(MASK_BITS, ports)));
        Ok(row)
    };
    selected.map(row).collect()
}
