//! `pktgen.app_cfg`: changes and reads applications of packet generators.

use super::{check_whole, flag, generators, pipes, row_with_key, wide};
use crate::bfrt::fixed::{Op, Row, Source};
use crate::bfrt::schema::Table;
use crate::bfrt::value::{Type, Value};
use crate::refusal::Refusal;
use std::ops::Range;
use weir_ir::Bits;
use weir_switch::{Application, Counts, GeneratorWrite, Pattern, Transaction, Trigger, Write};

const BATCHES: &str = "batch_counter";
const PACKETS: &str = "pkt_counter";
const TRIGGERS: &str = "trigger_counter";

const ONE_SHOT: &str = "trigger_timer_one_shot";
const PERIODIC: &str = "trigger_timer_periodic";
const PORT_DOWN: &str = "trigger_port_down";
const RECIRCULATED: &str = "trigger_recirc_pattern";
const DEPARSER: &str = "trigger_dprsr";

const TIME: &str = "timer_nanosec";
const PORT_MASK: &str = "port_mask_sel";
const VALUE: &str = "pattern_value";
const VALUE_MASK: &str = "pattern_mask";

/// Whether a field is a count of an application.
pub(crate) fn is_count(name: &str) -> bool {
    [BATCHES, PACKETS, TRIGGERS].contains(&name)
}

/// Changes applications. Any change except of counts restarts the timer.
pub(crate) fn applications(
    op: Op,
    row: &Row,
    table: &Table,
    replica: usize,
    t: &mut Transaction<'_>,
) -> Result<bool, Refusal> {
    check_whole(op)?;
    let state = generators(t.switch())?;
    let pipes = pipes(row.pipe, state)?;
    let apps = match op {
        Op::Clear => 0..state.model().applications,
        _ => row.key_number(0)..row.key_number(0).saturating_add(1),
    };
    let first = pipes.start;
    for pipe in pipes {
        let is_first = replica == 0 && pipe == first;
        for app in apps.clone() {
            let (what, counts) = generators(t.switch())?.application(pipe, app)?;
            let before = (what.clone(), counts);
            let from = match op {
                Op::Modify | Op::Upsert => before.clone(),
                _ => (Application::default(), Counts::default()),
            };
            let (what, counts) = match op {
                Op::Delete | Op::Clear => from,
                _ => (changed(row, table, from.0)?, counted(row, table, from.1, is_first)),
            };
            if what != before.0 {
                let what = Box::new(what);
                t.write(Write::Generator(GeneratorWrite::Application { pipe, app, what }))?;
            }
            if counts != before.1 {
                t.write(Write::Generator(GeneratorWrite::Counts { pipe, app, counts }))?;
            }
        }
    }
    if op == Op::Insert && row.action == 0 {
        return Err(Refusal::malformed(
            "an application has an action, which says what triggers it",
        ));
    }
    Ok(true)
}

fn changed(row: &Row, table: &Table, before: Application) -> Result<Application, Refusal> {
    if row.flag(table, "offset_len_from_recir_pkt_enable") == Some(true) {
        return Err(Refusal::unsupported(
            "field `offset_len_from_recir_pkt_enable`: weir takes offset and length from the application or from a deparser, \
             never from a packet that recirculates",
        ));
    }
    let long = |name: &str, was: u32| {
        let given = row.number(table, name);
        given.map_or(was, |n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let short = |name: &str, was: u16| {
        let given = row.number(table, name);
        given.map_or(was, |n| u16::try_from(n).unwrap_or(u16::MAX))
    };
    let channel = row.number(table, "assigned_chnl_id").map(|n| n as u32);
    Ok(Application {
        enabled: flag(row, table, "app_enable", before.enabled),
        trigger: trigger(row, table, before.trigger)?,
        length: short("pkt_len", before.length),
        offset: short("pkt_buffer_offset", before.offset),
        source_port: long("pipe_local_source_port", before.source_port),
        increments_source_port: flag(row, table, "increment_source_port", before.increments_source_port),
        last_source_port: long("source_port_wrap_max", before.last_source_port),
        channel: channel.or(before.channel),
        more_batches: short("batch_count_cfg", before.more_batches),
        more_packets: short("packets_per_batch_cfg", before.more_packets),
        batch_gap_ns: long("ibg", before.batch_gap_ns),
        batch_jitter_ns: long("ibg_jitter", before.batch_jitter_ns),
        packet_gap_ns: long("ipg", before.packet_gap_ns),
        packet_jitter_ns: long("ipg_jitter", before.packet_jitter_ns),
    })
}

/// The new counts of an application. Counts are the sums over pipes and replicas, so the first has
/// the given value and the others have zero.
fn counted(row: &Row, table: &Table, before: Counts, is_first: bool) -> Counts {
    let count = |name: &str, was: u64| match row.number(table, name) {
        Some(number) if is_first => number,
        Some(_) => 0,
        None => was,
    };
    Counts {
        triggers: count(TRIGGERS, before.triggers),
        batches: count(BATCHES, before.batches),
        packets: count(PACKETS, before.packets),
    }
}

// --------------------------------------------------------------------------------------------
// triggers

/// The trigger of a row's action, with missing values taken from the previous one.
fn trigger(row: &Row, table: &Table, before: Trigger) -> Result<Trigger, Refusal> {
    if row.action == 0 {
        return Ok(before);
    }
    let action = table.action(row.action)?;
    let value = |name: &str| {
        let id = action.fields.iter().find(|f| f.name == name)?.id;
        row.data
            .iter()
            .find(|(field, _)| *field == id)
            .and_then(|(_, v)| wide(v))
    };
    let number = |name: &str| value(name).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let pattern = |was: Pattern| Pattern {
        value: value(VALUE).unwrap_or(was.value),
        mask: value(VALUE_MASK).unwrap_or(was.mask),
    };
    Ok(match (action.name.as_str(), before) {
        (ONE_SHOT, Trigger::OneShot { after_ns }) => Trigger::OneShot {
            after_ns: number(TIME).unwrap_or(after_ns),
        },
        (ONE_SHOT, _) => Trigger::OneShot {
            after_ns: number(TIME).unwrap_or(0),
        },
        (PERIODIC, Trigger::Periodic { every_ns }) => Trigger::Periodic {
            every_ns: number(TIME).unwrap_or(every_ns),
        },
        (PERIODIC, _) => Trigger::Periodic {
            every_ns: number(TIME).unwrap_or(0),
        },
        (PORT_DOWN, Trigger::PortDown { mask }) => Trigger::PortDown {
            mask: number(PORT_MASK).or(mask),
        },
        (PORT_DOWN, _) => Trigger::PortDown {
            mask: number(PORT_MASK),
        },
        (RECIRCULATED, Trigger::Recirculated(was)) => Trigger::Recirculated(pattern(was)),
        (RECIRCULATED, _) => Trigger::Recirculated(pattern(Pattern::default())),
        (DEPARSER, Trigger::Deparser(was)) => Trigger::Deparser(pattern(was)),
        (DEPARSER, _) => Trigger::Deparser(pattern(Pattern::default())),
        (other, _) => return Err(Refusal::unsupported(format!("weir has no trigger `{other}`"))),
    })
}

/// Sets the action of a row, and its fields, from a trigger.
fn set_trigger(row: &mut Row, table: &Table, trigger: Trigger) {
    let (name, values): (&str, [Option<(&str, u128)>; 2]) = match trigger {
        Trigger::OneShot { after_ns } => (ONE_SHOT, [Some((TIME, after_ns.into())), None]),
        Trigger::Periodic { every_ns } => (PERIODIC, [Some((TIME, every_ns.into())), None]),
        Trigger::PortDown { mask } => (PORT_DOWN, [mask.map(|m| (PORT_MASK, m.into())), None]),
        Trigger::Recirculated(p) => (RECIRCULATED, [Some((VALUE, p.value)), Some((VALUE_MASK, p.mask))]),
        Trigger::Deparser(p) => (DEPARSER, [Some((VALUE, p.value)), Some((VALUE_MASK, p.mask))]),
    };
    let Some(action) = table.actions.iter().find(|a| a.name == name) else {
        return;
    };
    row.action = action.id;
    for (name, value) in values.into_iter().flatten() {
        let Some(field) = action.fields.iter().find(|f| f.name == name) else {
            continue;
        };
        let value = match field.ty {
            Type::Bits(width) if width > 64 => Value::Wide(Bits::new(width, value)),
            _ => Value::Number(value as u64),
        };
        row.data.push((field.id, value));
    }
}

// ---------------------------------------------------------------------------------------------
// reading

/// Reads the application with a key, or all.
pub(crate) fn read_applications(table: &Table, key: Option<&Row>, source: &Source<'_>) -> Result<Vec<Row>, Refusal> {
    let state = generators(source.switch)?;
    let pipes = pipes(source.pipe, state)?;
    let selected = match key.map(|k| k.key_number(0)) {
        Some(app) => app..app.saturating_add(1),
        None => 0..state.model().applications,
    };
    selected
        .map(|app| application_row(table, app, pipes.clone(), source))
        .collect()
}

fn application_row(table: &Table, app: u32, pipes: Range<u32>, source: &Source<'_>) -> Result<Row, Refusal> {
    let state = generators(source.switch)?;
    let (what, _) = state.application(pipes.start, app)?;
    let mut counts = Counts::default();
    for pipe in pipes {
        let (_, more) = state.application(pipe, app)?;
        counts.triggers = counts.triggers.wrapping_add(more.triggers);
        counts.batches = counts.batches.wrapping_add(more.batches);
        counts.packets = counts.packets.wrapping_add(more.packets);
    }
    let mut row = row_with_key(table, [app]);
    set_trigger(&mut row, table, what.trigger);
    row.set(table, "app_enable", Value::Bool(what.enabled));
    row.set(table, "increment_source_port", Value::Bool(what.increments_source_port));
    row.set(table, "offset_len_from_recir_pkt_enable", Value::Bool(false));
    let numbers: [(&str, u64); 13] = [
        ("pkt_len", what.length.into()),
        ("pkt_buffer_offset", what.offset.into()),
        ("pipe_local_source_port", what.source_port.into()),
        ("batch_count_cfg", what.more_batches.into()),
        ("packets_per_batch_cfg", what.more_packets.into()),
        ("ibg", what.batch_gap_ns.into()),
        ("ibg_jitter", what.batch_jitter_ns.into()),
        ("ipg", what.packet_gap_ns.into()),
        ("ipg_jitter", what.packet_jitter_ns.into()),
        (BATCHES, counts.batches),
        (PACKETS, counts.packets),
        (TRIGGERS, counts.triggers),
        ("source_port_wrap_max", what.last_source_port.into()),
    ];
    for (name, number) in numbers {
        row.set(table, name, Value::Number(number));
    }
    // Without a channel any generating port may send, and no number stands for that.
    if let Some(channel) = what.channel {
        row.set(table, "assigned_chnl_id", Value::Number(channel.into()));
    }
    row.data.sort_by_key(|(id, _)| *id);
    Ok(row)
}
