//! Counters, meters and registers.

use super::tables::handle_of;
use super::values;
use super::{Argument, Call, Spec};
use anyhow::{Context, Result, bail};
use weir_arch::Resource;
use weir_ir::{Bits, ExternId, TableId};
use weir_switch::{Cell, Count, MeterConfig, Rate, ResourceKind, Switch, Write};

/// Cells of a register that one call writes out, as packets wait for it.
const AT_A_TIME: u64 = 4096;

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "counter_read",
        usage: "COUNTER INDEX",
        about: "show a cell; of a direct counter that of the entry with this handle",
        count: (2, 2),
        arguments: &[Argument::Counter],
        run: counter_read,
    },
    Spec {
        name: "counter_write",
        usage: "COUNTER INDEX PACKETS BYTES",
        about: "set a cell",
        count: (4, 4),
        arguments: &[Argument::Counter],
        run: counter_write,
    },
    Spec {
        name: "counter_reset",
        usage: "COUNTER",
        about: "set all cells to zero",
        count: (1, 1),
        arguments: &[Argument::Counter],
        run: counter_reset,
    },
    Spec {
        name: "meter_set_rates",
        usage: "METER INDEX RATE:BURST RATE:BURST",
        about: "set the committed and the peak rate of a cell, in bytes or packets per microsecond",
        count: (4, 4),
        arguments: &[Argument::Meter],
        run: meter_set,
    },
    Spec {
        name: "meter_array_set_rates",
        usage: "METER RATE:BURST RATE:BURST",
        about: "set the rates of all cells",
        count: (3, 3),
        arguments: &[Argument::Meter],
        run: meter_set_all,
    },
    Spec {
        name: "meter_get_rates",
        usage: "METER INDEX",
        about: "show the rates of a cell",
        count: (2, 2),
        arguments: &[Argument::Meter],
        run: meter_get,
    },
    Spec {
        name: "register_read",
        usage: "REGISTER [INDEX]",
        about: "show a cell, or all",
        count: (1, 2),
        arguments: &[Argument::Register],
        run: register_read,
    },
    Spec {
        name: "register_write",
        usage: "REGISTER INDEX VALUE…",
        about: "set a cell",
        count: (3, super::MANY),
        arguments: &[Argument::Register],
        run: register_write,
    },
    Spec {
        name: "register_reset",
        usage: "REGISTER",
        about: "set all cells to zero",
        count: (1, 1),
        arguments: &[Argument::Register],
        run: register_reset,
    },
];

/// Whether an instance is a counter.
pub(super) fn is_counter(switch: &Switch, id: ExternId) -> bool {
    matches!(
        switch.state().resource(id),
        Resource::Counter(..) | Resource::DirectCounter(..)
    )
}

/// Whether an instance is a meter.
pub(super) fn is_meter(switch: &Switch, id: ExternId) -> bool {
    matches!(
        switch.state().resource(id),
        Resource::Meter(..) | Resource::DirectMeter(..)
    )
}

/// The table whose entries have cells of a direct counter or meter.
fn table_of(switch: &Switch, id: ExternId) -> Option<TableId> {
    let is_direct = matches!(
        switch.state().resource(id),
        Resource::DirectCounter(..) | Resource::DirectMeter(..)
    );
    let mut tables = switch.program().tables.ids();
    tables.find(|table| is_direct && switch.table_state(*table).is_ok_and(|t| t.direct.contains(&id)))
}

/// The cell that the second argument means, and what bmv2 says of direct ones.
fn cell(call: &Call<'_>, id: ExternId) -> Result<(u64, String)> {
    let Some(table) = table_of(call.switch, id) else {
        return Ok((call.number(1, "index")?, String::new()));
    };
    let state = call.switch.table_state(table)?;
    let shown = call.argument(1, "the handle")?;
    let handle = handle_of(call, table, shown)?;
    let what = format!("this is the direct counter for table {}\n", state.table.spec().name);
    Ok((handle.get().into(), what))
}

fn counter_read(call: &mut Call<'_>) -> Result<String> {
    let name = call.argument(0, "the counter")?;
    let id = call.switch.resource(ResourceKind::Counter, name)?;
    let (index, direct) = cell(call, id)?;
    let count = call.switch.counter(id, index)?;
    Ok(format!(
        "{direct}{name}[{}]= ({} bytes, {} packets)\n",
        call.arguments[1], count.bytes, count.packets
    ))
}

fn counter_write(call: &mut Call<'_>) -> Result<String> {
    let name = call.argument(0, "the counter")?;
    let id = call.switch.resource(ResourceKind::Counter, name)?;
    let (index, direct) = cell(call, id)?;
    let count = Count {
        packets: call.number(2, "number of packets")?,
        bytes: call.number(3, "number of bytes")?,
    };
    call.switch.write(Write::Counter(id, Cell::Index(index), count))?;
    Ok(format!("{direct}{name}[{}] has been updated\n", call.arguments[1]))
}

fn counter_reset(call: &mut Call<'_>) -> Result<String> {
    let id = call
        .switch
        .resource(ResourceKind::Counter, call.argument(0, "the counter")?)?;
    call.switch.write(Write::Counter(id, Cell::All, Count::default()))?;
    Ok(String::new())
}

/// `RATE:BURST`
fn rate(text: &str) -> Result<(f64, u64)> {
    let parsed = text
        .split_once(':')
        .and_then(|(rate, burst)| Some((rate.parse::<f64>().ok()?, burst.parse().ok()?)));
    let rate = parsed.filter(|(rate, _)| rate.is_finite() && *rate >= 0.0);
    rate.with_context(|| format!("`{text}` is no rate; write RATE:BURST, for example 0.5:1000"))
}

/// The rates from an argument on.
fn rates(call: &Call<'_>, first: usize) -> Result<MeterConfig> {
    let (committed, peak) = (
        rate(call.argument(first, "the committed rate")?)?,
        rate(call.argument(first + 1, "the peak rate")?)?,
    );
    if peak.0 < committed.0 {
        bail!("the second rate, the peak rate, is smaller than the first, the committed rate");
    }
    Ok(MeterConfig {
        cir: Rate::from_tokens_per_us(committed.0),
        cbs: committed.1,
        pir: Rate::from_tokens_per_us(peak.0),
        pbs: peak.1,
    })
}

fn meter(call: &Call<'_>) -> Result<ExternId> {
    Ok(call
        .switch
        .resource(ResourceKind::Meter, call.argument(0, "the meter")?)?)
}

fn meter_set(call: &mut Call<'_>) -> Result<String> {
    let id = meter(call)?;
    let (index, _) = cell(call, id)?;
    let config = rates(call, 2)?;
    call.switch.write(Write::Meter(id, Cell::Index(index), Some(config)))?;
    Ok(String::new())
}

fn meter_set_all(call: &mut Call<'_>) -> Result<String> {
    let (id, config) = (meter(call)?, rates(call, 1)?);
    call.switch.write(Write::Meter(id, Cell::All, Some(config)))?;
    Ok(String::new())
}

fn meter_get(call: &mut Call<'_>) -> Result<String> {
    let id = meter(call)?;
    let (index, _) = cell(call, id)?;
    let Some(config) = call.switch.meter(id, index)? else {
        return Ok("no rates are set: every packet is green\n".to_owned());
    };
    // With a decimal point, as scripts expect it.
    let line = |number: u8, rate: Rate, burst: u64| {
        format!(
            "{number}: info rate = {:?}, burst size = {burst}\n",
            rate.tokens_per_us()
        )
    };
    Ok(line(0, config.cir, config.cbs) + &line(1, config.pir, config.pbs))
}

fn register(call: &Call<'_>) -> Result<ExternId> {
    let name = call.argument(0, "the register")?;
    Ok(call.switch.resource(ResourceKind::Register, name)?)
}

/// A cell in decimal; one of a struct as a list.
fn cell_text(cell: &[Bits]) -> String {
    let numbers: Vec<String> = cell.iter().map(|v| v.to_biguint().to_string()).collect();
    match numbers.as_slice() {
        [one] => one.clone(),
        many => format!("<{}>", many.join(", ")),
    }
}

fn register_read(call: &mut Call<'_>) -> Result<String> {
    let id = register(call)?;
    if call.arguments.len() == 2 {
        let index: u64 = call.number(1, "index")?;
        let value = cell_text(&call.switch.register(id, index)?);
        return Ok(format!("{}[{index}]= {value}\n", call.arguments[0]));
    }
    let size = match call.switch.state().resource(id) {
        Resource::Register(register) => register.cells.size(),
        _ => 0,
    };
    let end = size.min(call.from.saturating_add(AT_A_TIME));
    let cells = (call.from..end).map(|index| Ok(cell_text(&call.switch.register(id, index)?)));
    let cells: Vec<String> = cells.collect::<Result<_>>()?;
    let begin = match call.from {
        0 => format!("{}= ", call.arguments[0]),
        _ => ", ".to_owned(),
    };
    call.next = (end < size).then_some(end);
    let line_end = if call.next.is_none() { "\n" } else { "" };
    Ok(format!("{begin}{}{line_end}", cells.join(", ")))
}

fn register_write(call: &mut Call<'_>) -> Result<String> {
    let id = register(call)?;
    let index: u64 = call.number(1, "index")?;
    let widths: Vec<u32> = call.switch.register(id, index)?.iter().map(Bits::width).collect();
    let texts = &call.arguments[2..];
    if texts.len() != widths.len() {
        bail!(
            "a cell of {} has {} values, not {}",
            call.arguments[0],
            widths.len(),
            texts.len()
        );
    }
    let values = texts
        .iter()
        .zip(widths)
        .map(|(text, width)| values::bits(text, width, "the value"));
    let values = values.collect::<Result<_>>()?;
    call.switch.write(Write::Register(id, Cell::Index(index), values))?;
    Ok(String::new())
}

fn register_reset(call: &mut Call<'_>) -> Result<String> {
    let id = register(call)?;
    let initial = call.switch.register_initial(id)?;
    let zeros = initial.iter().map(|v| Bits::zero(v.width())).collect();
    call.switch.write(Write::Register(id, Cell::All, zeros))?;
    Ok(String::new())
}
