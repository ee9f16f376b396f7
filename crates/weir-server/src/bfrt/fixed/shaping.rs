//! `tf1.tm.port.sched_cfg` and `tf1.tm.port.sched_shaping`: the rate of a port.
//!
//! The second has the rate, the first says whether it applies. `max_rate` is in kilobits per second
//! with the unit `BPS`, in packets per second with `PPS`, as on a Tofino. weir paces packets one by
//! one: rates are exact, so that every `provisioning` means the same, and there are no bursts.

use super::{Fixed, NumberQuery, Op, Row, Rows};
use crate::bfrt::schema::Table;
use crate::bfrt::value::Value;
use crate::refusal::Refusal;
use weir_switch::{PortRate, QueueConfig, Transaction, Write};

const ENABLE: &str = "max_rate_enable";
const SPEED: &str = "scheduling_speed";
const UNIT: &str = "unit";
const PROVISIONING: &str = "provisioning";
const RATE: &str = "max_rate";
const BURST: &str = "max_burst_size";

/// Changes an entry. Whether it was there before: it always is.
pub(crate) fn apply(fixed: Fixed, op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    if op == Op::Clear {
        let all: Vec<u32> = t.switch().queue_configs().map(|(port, _)| port).collect();
        for port in all {
            t.write(Write::Queue(port, None))?;
        }
        return Ok(true);
    }
    if !matches!(op, Op::Modify | Op::Upsert) {
        return Err(Refusal::unsupported("every port has an entry; use MODIFY"));
    }
    let port = row.key_number(0);
    if !t.switch().has_port(port) {
        return Err(Refusal::malformed(format!("{port} is no number of a port")));
    }
    let was = t.switch().queue_config(port);
    let config = match fixed {
        Fixed::PortScheduling => scheduled(was, row, table)?,
        _ => shaped(was, row, table)?,
    };
    t.write(Write::Queue(port, Some(config)))?;
    Ok(true)
}

fn scheduled(was: QueueConfig, row: &Row, table: &Table) -> Result<QueueConfig, Refusal> {
    if row.get(table, SPEED).is_some() {
        return Err(Refusal::unsupported(format!(
            "`{SPEED}`: a port of weir is as fast as its device; limit it by `{RATE}` of sched_shaping"
        )));
    }
    Ok(QueueConfig {
        is_shaped: row.flag(table, ENABLE).unwrap_or(was.is_shaped),
        ..was
    })
}

fn shaped(was: QueueConfig, row: &Row, table: &Table) -> Result<QueueConfig, Refusal> {
    if let Some(burst) = row.number(table, BURST).filter(|burst| *burst > 0) {
        return Err(Refusal::unsupported(format!(
            "`{BURST}` {burst}: weir paces packets one by one, without bursts; leave it out or write 0"
        )));
    }
    let was_packets = was.rate.packets_per_second.is_some();
    let is_packets = match row.get(table, UNIT).and_then(Value::as_text) {
        Some(unit) => unit == "PPS",
        None => was_packets,
    };
    let was_rate = match was_packets {
        true => was.rate.packets_per_second,
        false => was.rate.bits_per_second.map(|bits| bits / 1000),
    };
    let rate = row.number(table, RATE).or(was_rate).filter(|rate| *rate > 0);
    let rate = match is_packets {
        true => PortRate {
            packets_per_second: rate,
            bits_per_second: None,
        },
        false => PortRate {
            bits_per_second: rate.map(|kilobits| kilobits * 1000),
            packets_per_second: None,
        },
    };
    Ok(QueueConfig { rate, ..was })
}

/// Reads the entries of all ports that are known, or of one.
pub(crate) fn read<'a>(fixed: Fixed, query: NumberQuery<'a>) -> Result<Rows<'a>, Refusal> {
    let NumberQuery {
        table, switch, only, ..
    } = query;
    let numbers = query.numbers();
    let ports: Vec<u32> = match only {
        Some(port) if switch.has_port(port) => vec![port],
        Some(_) => Vec::new(),
        None => switch.queue_ports().filter(|port| numbers.contains(port)).collect(),
    };
    let fill = move |port: u32, row: &mut Row| {
        let config = switch.queue_config(port);
        if fixed == Fixed::PortScheduling {
            row.set(table, ENABLE, Value::Bool(config.is_shaped));
            return;
        }
        let (unit, rate) = match (config.rate.packets_per_second, config.rate.bits_per_second) {
            (Some(packets), _) => ("PPS", packets),
            // Rounded up: 0 would mean that there is no limit.
            (None, bits) => ("BPS", bits.unwrap_or(0).div_ceil(1000)),
        };
        row.set(table, UNIT, Value::Text(unit.to_owned()));
        row.set(table, PROVISIONING, Value::Text("UPPER".to_owned()));
        row.set(table, RATE, Value::Number(rate));
        row.set(table, BURST, Value::Number(0));
    };
    query.rows(ports.into_iter(), fill)
}
