//! `tf1.dev.device_configuration`: the constant properties of the device. It is read-only.

use super::{Row, Source};
use crate::bfrt::change::Change;
use crate::bfrt::schema::Table;
use crate::bfrt::target::PIPE_COUNT;
use crate::bfrt::value::Value;
use crate::refusal::Refusal;

/// The most ports per pipe, as reported to clients. Fewer than there are port numbers.
const MAX_PORTS_PER_PIPE: u64 = 72;
/// Stages of a chip of this kind; weir has none.
const STAGES: u64 = 12;

/// Reads the only entry.
pub(crate) fn read(table: &Table, source: &Source<'_>) -> Row {
    let ports: Vec<u32> = source.ports.numbers();
    let mut row = Row::default();
    let cpu: Vec<u32> = source.cpu_port.into_iter().collect();
    row.set(table, "sku", Value::Text("UNKNOWN".to_owned()));
    row.set(table, "num_pipes", Value::Number(PIPE_COUNT.into()));
    row.set(table, "num_stages", Value::Number(STAGES));
    row.set(
        table,
        "num_max_ports",
        Value::Number(u64::from(PIPE_COUNT) * MAX_PORTS_PER_PIPE),
    );
    row.set(table, "num_front_ports", Value::Number(ports.len() as u64));
    row.set(
        table,
        "pcie_cpu_port",
        Value::Number(source.cpu_port.unwrap_or(0).into()),
    );
    row.set(table, "eth_cpu_port_list", Value::Numbers(cpu));
    row.set(table, "internal_port_list", Value::Numbers(Vec::new()));
    row.set(table, "external_port_list", Value::Numbers(ports));
    row.set(table, "recirc_port_list", Value::Numbers(Vec::new()));
    row.set(table, "intr_based_link_monitoring", Value::Bool(false));
    for field in &table.data {
        if row.data.iter().all(|(id, _)| *id != field.id) {
            row.data.extend(field.default.clone().map(|d| (field.id, d)));
        }
    }
    row
}

/// Refuses a write: weir has nothing that could be configured here.
pub(crate) fn refuse_write() -> Result<Change, Refusal> {
    Err(Refusal::unsupported(
        "the device is what it is; its configuration is only read",
    ))
}
