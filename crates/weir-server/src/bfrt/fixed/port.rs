//! `$PORT` and the other tables about ports: changes and reads settings, names and counters.
//!
//! `$DEV_PORT` is the port number in the program. Front-panel names are 1/0, 2/0 and so on, in the
//! order in which the switch was configured with the ports.
//!
//! Settings are stored by the server. A change of them yields a change of the switch only for ports
//! that go up or down, or change their loopback mode.

use super::{Fixed, Op, Row, Source, require_if_keyed};
use crate::bfrt::change::{Change, Step};
use crate::bfrt::schema::{Kind, Schema, Table};
use crate::bfrt::value::{Type, Value};
use crate::ports::{PortConfig, Ports, Settings};
use crate::refusal::Refusal;

const ENABLE: &str = "$PORT_ENABLE";
const LOOPBACK: &str = "$LOOPBACK_MODE";
/// Fields that hardware requires of a new port.
const NEEDED: [&str; 2] = ["$SPEED", "$FEC"];

/// Whether a step changes settings of ports, which the server stores.
pub(crate) fn is_about_ports(schema: &Schema, step: &Step) -> bool {
    let table = step.table.map(|at| &schema.tables[at]);
    step.change.is_ok() && matches!(table.map(|t| &t.kind), Some(Kind::Fixed(fixed)) if fixed.is_port())
}

/// Executes the changes of `$PORT` on `settings`, in order. The remaining changes for the switch
/// replace them in `steps`.
pub(crate) fn configure(schema: &Schema, ports: &Ports, settings: &mut Settings, steps: &mut [Step]) {
    for step in steps {
        if !is_about_ports(schema, step) {
            continue;
        }
        let Some(at) = step.table else { continue };
        if let Ok(Change::Fixed(op, row)) = &step.change {
            step.change = change(&schema.tables[at], ports, settings, *op, row).map(Change::Ports);
        }
    }
}

fn change(
    table: &Table,
    ports: &Ports,
    settings: &mut Settings,
    op: Op,
    row: &Row,
) -> Result<Vec<crate::ports::Setting>, Refusal> {
    if op == Op::Clear {
        let all: Vec<u32> = settings.added.keys().copied().collect();
        all.iter().for_each(|port| settings.set(*port, None));
        return Ok(all.into_iter().map(|port| ports.setting(settings, port)).collect());
    }
    let port = row.key_number(0);
    if !ports.exists(port) {
        let known: Vec<String> = ports.numbers().iter().map(u32::to_string).collect();
        return Err(Refusal::malformed(format!(
            "there is no port {port}; there are {}",
            known.join(", ")
        )));
    }
    let existing = settings.added.get(&port).cloned();
    let modifies = op.check(existing.is_some())?;
    match op {
        Op::Delete => {
            settings.set(port, None);
            return Ok(vec![ports.setting(settings, port)]);
        }
        Op::Add | Op::Remove => return Err(Refusal::unsupported("ports have no lists; use MODIFY")),
        _ => {}
    }
    if !modifies {
        let missing = NEEDED.iter().find(|name| row.get(table, name).is_none());
        if let Some(name) = missing {
            return Err(Refusal::malformed(format!("field `{name}` is missing")));
        }
    }
    let mut config: PortConfig = existing.unwrap_or_default();
    if let Some(enabled) = row.flag(table, ENABLE) {
        config.enabled = enabled;
    }
    match row.get(table, LOOPBACK).and_then(Value::as_text) {
        Some("BF_LPBK_NONE") => config.loopback = false,
        Some(mode) if mode.ends_with("_FAR") => {
            return Err(Refusal::unsupported(format!(
                "`{LOOPBACK}` {mode}: weir's ports can take in what they send, not send what they take in"
            )));
        }
        Some(_) => config.loopback = true,
        None => {}
    }
    config.fields.extend(row.data.iter().cloned());
    settings.set(port, Some(config));
    Ok(vec![ports.setting(settings, port)])
}

/// Reads the ports that were added.
pub(crate) fn read(table: &Table, key: Option<&Row>, source: &Source<'_>) -> Result<Vec<Row>, Refusal> {
    let settings = source.ports.settings();
    let selected = key.map(|k| k.key_number(0));
    let added = settings
        .added
        .iter()
        .filter(|(port, _)| selected.is_none_or(|w| w == **port));
    let rows = added.map(|(port, config)| port_row(table, *port, config, source.ports));
    require_if_keyed(rows.collect(), key)
}

fn port_row(table: &Table, port: u32, config: &PortConfig, ports: &Ports) -> Row {
    let mut row = Row {
        key: vec![(table.keys.first().map_or(1, |k| k.id), Value::Number(port.into()))],
        ..Row::default()
    };
    row.set(table, ENABLE, Value::Bool(config.enabled));
    row.set(table, "$PORT_UP", Value::Bool(ports.is_up(port)));
    row.set(table, "$IS_VALID", Value::Bool(true));
    row.set(table, "$IS_INTERNAL", Value::Bool(false));
    row.set(table, "$TIMESTAMP_1588_VALID", Value::Bool(false));
    row.set(table, "$CONN_ID", Value::Number(ports.connector(port).into()));
    row.set(table, "$CHNL_ID", Value::Number(0));
    row.set(table, "$PORT_NAME", Value::Text(format!("{}/0", ports.connector(port))));
    row.set(table, "$MEDIA_TYPE", Value::Text("BF_MEDIA_TYPE_UNKNOWN".to_owned()));
    for field in &table.data {
        if row.data.iter().any(|(id, _)| *id == field.id) {
            continue;
        }
        let fallback = || match &field.ty {
            // The first choice is the default.
            Type::Text(choices) => choices.first().cloned().map(Value::Text),
            Type::Bits(_) => Some(Value::Number(0)),
            _ => None,
        };
        let value = config
            .fields
            .get(&field.id)
            .cloned()
            .or_else(|| field.default.clone())
            .or_else(fallback);
        row.data.extend(value.map(|v| (field.id, v)));
    }
    row.data.sort_by_key(|(id, _)| *id);
    row
}

/// Reads port numbers by other names.
pub(crate) fn find(fixed: Fixed, table: &Table, key: Option<&Row>, source: &Source<'_>) -> Result<Vec<Row>, Refusal> {
    let ports = source.ports;
    let row = |port: u32| {
        let connector = ports.connector(port);
        let values = match fixed {
            Fixed::PortHandle => vec![Value::Number(connector.into()), Value::Number(0)],
            Fixed::PortIndex => vec![Value::Number(connector.into())],
            _ => vec![Value::Text(format!("{connector}/0"))],
        };
        let mut row = Row {
            key: table.keys.iter().map(|k| k.id).zip(values).collect(),
            ..Row::default()
        };
        row.set(table, "$DEV_PORT", Value::Number(port.into()));
        row
    };
    let all = ports.numbers().into_iter().map(row);
    let found = all.filter(|row| key.is_none_or(|k| k.key == row.key));
    require_if_keyed(found.collect(), key)
}

/// Reads packet and byte counters of ports.
pub(crate) fn stats(table: &Table, key: Option<&Row>, source: &Source<'_>) -> Result<Vec<Row>, Refusal> {
    let selected = key.map(|k| k.key_number(0));
    let added = source.ports.settings().added;
    let ports: Vec<u32> = match selected {
        Some(port) if source.ports.exists(port) => vec![port],
        Some(_) => Vec::new(),
        None if added.is_empty() => source.switch.active_ports().map(|(port, _)| port).collect(),
        None => added.into_keys().collect(),
    };
    let rows = ports.into_iter().map(|port| {
        let stats = source.switch.port_stats(port);
        let mut row = Row {
            key: vec![(table.keys.first().map_or(1, |k| k.id), Value::Number(port.into()))],
            ..Row::default()
        };
        for field in &table.data {
            let value = match field.name.as_str() {
                "$FramesReceivedOK" | "$FramesReceivedAll" => stats.rx.packets,
                "$OctetsReceivedinGoodFrames" | "$OctetsReceived" => stats.rx.bytes,
                "$FramesTransmittedOK" | "$FramesTransmittedAll" => stats.tx.packets,
                "$OctetsTransmittedwithouterror" | "$OctetsTransmittedTotal" => stats.tx.bytes,
                _ => 0,
            };
            row.data.push((field.id, Value::Number(value)));
        }
        row
    });
    require_if_keyed(rows.collect(), key)
}

/// Refuses a write to the counters of ports.
pub(crate) fn clear_counts(_op: Op) -> Result<bool, Refusal> {
    Err(Refusal::unsupported("weir's counts of packets at ports are only read"))
}
