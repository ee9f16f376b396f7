//! Counters, meters, registers and filters, both in arrays and belonging to entries: reads, changes
//! and resets their cells.
//!
//! A counter's value is the sum over all replicas. A write sets it on the first replica and zeroes
//! the others.

use super::schema::{Field, Resources, Role};
use super::value::{self, Type, Value};
use crate::refusal::Refusal;
use weir_ir::{Bits, ExternId};
use weir_proto::bfrt_proto as pb;
use weir_switch::{Cell, Count, LpfConfig, LpfKind, MeterConfig, Rate, Switch, Transaction, WredConfig, Write};

/// Bytes of 1000 bits: meters of bytes have rates in kbit/s and bursts in kbit.
const KILOBIT: u64 = 125;

/// New values of a cell; `None` leaves a value unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Patch {
    pub bytes: Option<u64>,
    pub packets: Option<u64>,
    /// Committed rate, peak rate, committed burst, peak burst, in the units of the fields.
    pub meter: [Option<u64>; 4],
    /// Index of the register, index of the scalar in its cells, and the value.
    pub registers: Vec<(usize, usize, Bits)>,
    /// Type, gain, decay, scale.
    pub lpf: [Option<Value>; 4],
    /// Time constant, thresholds, probability.
    pub wred: [Option<Value>; 4],
    pub ttl_ns: Option<u64>,
    /// Whether the entry is marked as hit now.
    pub is_active: Option<bool>,
}

/// Converts the value of a field to a scalar of the switch.
fn scalar(ty: &Type, value: Value) -> Bits {
    match (ty, value) {
        (_, Value::Wide(bits)) => bits,
        (_, Value::Bool(flag)) => Bits::bool(flag),
        (Type::Bits(width), Value::Number(n)) => Bits::new(*width, n.into()),
        _ => Bits::zero(1),
    }
}

impl Patch {
    /// Adds the value of a field. Returns whether the field is one of these.
    ///
    /// # Errors
    /// It is not of its type, or cannot be written.
    pub fn add(&mut self, field: &Field, given: &pb::DataField) -> Result<bool, Refusal> {
        let within = |e: Refusal| e.within(&format!("field `{}`", field.name));
        if matches!(
            field.role,
            Role::Plain | Role::Member | Role::Group | Role::MemberStatus | Role::MaxGroupSize
        ) {
            return Ok(false);
        }
        if field.read_only {
            return Err(within(Refusal::malformed("it cannot be written")));
        }
        let value = value::decode(&field.ty, field.repeated, given).map_err(within)?;
        let number = value.as_number();
        match field.role {
            Role::CounterBytes => self.bytes = number,
            Role::CounterPackets => self.packets = number,
            Role::Meter(which) => self.meter[which] = number,
            Role::Register(which, at) => self.registers.push((which, at, scalar(&field.ty, value))),
            Role::Lpf(which) => self.lpf[which] = Some(value),
            Role::Wred(which) => self.wred[which] = Some(value),
            Role::Ttl => self.ttl_ns = number.map(|ms| ms.saturating_mul(1_000_000)),
            Role::HitState => self.is_active = Some(value.as_text() == Some("ENTRY_ACTIVE")),
            _ => {}
        }
        Ok(true)
    }

    /// Sets these values. If `is_new`, missing values are the initial ones.
    ///
    /// # Errors
    /// The index is out of range, or values are missing or contradict each other.
    pub fn apply(
        &self,
        t: &mut Transaction<'_>,
        replica: usize,
        resources: &Resources,
        cell: Cell,
        is_new: bool,
    ) -> Result<(), Refusal> {
        if let Some(id) = resources.counter
            && (self.bytes.is_some() || self.packets.is_some())
        {
            let before = match cell {
                Cell::Index(index) => t.switch().counter(id, index)?,
                Cell::All => Count::default(),
            };
            // The value is the sum over all replicas.
            let share = |given: Option<u64>, before: u64| match given {
                Some(value) if replica == 0 => value,
                Some(_) => 0,
                None => before,
            };
            let count = Count {
                bytes: share(self.bytes, before.bytes),
                packets: share(self.packets, before.packets),
            };
            t.write(Write::Counter(id, cell, count))?;
        }
        if let Some((id, is_bytes)) = resources.meter
            && self.meter.iter().any(Option::is_some)
        {
            let before = match cell {
                Cell::Index(index) if !is_new => t.switch().meter(id, index)?,
                _ => None,
            };
            let mut spec = meter_spec(before, is_bytes);
            for (value, given) in spec.iter_mut().zip(self.meter) {
                *value = given.unwrap_or(*value);
            }
            t.write(Write::Meter(id, cell, meter_config(spec, is_bytes)))?;
        }
        for (which, id) in resources.registers.iter().enumerate() {
            let mut given = self.registers.iter().filter(|r| r.0 == which).peekable();
            if given.peek().is_some() {
                let index = if let Cell::Index(index) = cell { index } else { 0 };
                let mut values = t.switch().register(*id, index)?;
                for (_, at, value) in given {
                    if let Some(slot) = values.get_mut(*at) {
                        *slot = value.zero_extend(slot.width());
                    }
                }
                t.write(Write::Register(*id, cell, values))?;
            }
        }
        if let Some(id) = resources.lpf
            && self.lpf.iter().any(Option::is_some)
        {
            t.write(Write::Lpf(id, cell, Some(self.lpf_config(lpf(t.switch(), id, cell))?)))?;
        }
        if let Some(id) = resources.wred
            && self.wred.iter().any(Option::is_some)
        {
            t.write(Write::Wred(
                id,
                cell,
                Some(self.wred_config(wred(t.switch(), id, cell))?),
            ))?;
        }
        Ok(())
    }

    fn lpf_config(&self, before: Option<LpfConfig>) -> Result<LpfConfig, Refusal> {
        let missing = |what| Refusal::malformed(format!("the filter's {what} is missing"));
        let [kind, gain, decay, scale] = &self.lpf;
        let kind = match kind.as_ref().and_then(Value::as_text) {
            Some("RATE") => LpfKind::Rate,
            Some(_) => LpfKind::Sample,
            None => before.map(|b| b.kind).ok_or_else(|| missing("type"))?,
        };
        let time = |given: &Option<Value>, before: Option<u64>, what| match given {
            Some(value) => nanoseconds(value),
            None => before.ok_or_else(|| missing(what)),
        };
        let scale = scale
            .as_ref()
            .and_then(Value::as_number)
            .or(before.map(|b| b.scale_down.into()));
        Ok(LpfConfig {
            kind,
            gain_ns: time(gain, before.map(|b| b.gain_ns), "gain")?,
            decay_ns: time(decay, before.map(|b| b.decay_ns), "decay")?,
            scale_down: u32::try_from(scale.ok_or_else(|| missing("scale"))?).unwrap_or(u32::MAX),
        })
    }

    fn wred_config(&self, before: Option<WredConfig>) -> Result<WredConfig, Refusal> {
        let missing = |what| Refusal::malformed(format!("the {what} is missing"));
        let [constant, low, high, probability] = &self.wred;
        let number = |given: &Option<Value>, before: Option<u64>, what| {
            let given = given.as_ref().and_then(Value::as_number);
            given.or(before).ok_or_else(|| missing(what))
        };
        let time_constant_ns = match constant {
            Some(value) => nanoseconds(value)?,
            None => before
                .map(|b| b.time_constant_ns)
                .ok_or_else(|| missing("time constant"))?,
        };
        let max_probability = match probability {
            Some(Value::Float(p)) if (0.0..=1.0).contains(p) => (p * 10_000.0).round() as u32,
            Some(_) => return Err(Refusal::malformed("the probability is 0 to 1")),
            None => before
                .map(|b| b.max_probability)
                .ok_or_else(|| missing("probability"))?,
        };
        let (min, max) = (
            number(low, before.map(|b| b.min), "lower threshold")?,
            number(high, before.map(|b| b.max), "upper threshold")?,
        );
        if min > max {
            return Err(Refusal::malformed("the lower threshold exceeds the upper one"));
        }
        Ok(WredConfig {
            time_constant_ns,
            min,
            max,
            max_probability,
        })
    }
}

fn nanoseconds(value: &Value) -> Result<u64, Refusal> {
    match value {
        Value::Float(ns) if ns.is_finite() && *ns >= 0.0 => Ok(ns.round() as u64),
        _ => Err(Refusal::malformed("a time constant is a number of ns from 0")),
    }
}

/// The field values of a meter; the largest number means unlimited.
pub(crate) fn meter_spec(config: Option<MeterConfig>, is_bytes: bool) -> [u64; 4] {
    let Some(config) = config else {
        return [u64::MAX; 4];
    };
    let unit = if is_bytes { KILOBIT } else { 1 };
    let rate = |rate: Rate| match rate == Rate::from_tokens_per_second(u64::MAX) {
        true => u64::MAX,
        false => rate.tokens_per_second() / unit,
    };
    let burst = |tokens: u64| if tokens == u64::MAX { u64::MAX } else { tokens / unit };
    [rate(config.cir), rate(config.pir), burst(config.cbs), burst(config.pbs)]
}

/// The configuration for field values of a meter; `None` if all are unlimited.
fn meter_config(spec: [u64; 4], is_bytes: bool) -> Option<MeterConfig> {
    let unit = if is_bytes { KILOBIT } else { 1 };
    let [cir, pir, cbs, pbs] = spec.map(|n| n.saturating_mul(unit));
    (spec != [u64::MAX; 4]).then(|| MeterConfig {
        cir: Rate::from_tokens_per_second(cir),
        pir: Rate::from_tokens_per_second(pir),
        cbs,
        pbs,
    })
}

fn lpf(switch: &Switch, id: ExternId, cell: Cell) -> Option<LpfConfig> {
    let Cell::Index(index) = cell else { return None };
    match switch.state().resource(id) {
        weir_arch::Resource::Lpf(cells) => cells.get(index)?.config(),
        _ => None,
    }
}

fn wred(switch: &Switch, id: ExternId, cell: Cell) -> Option<WredConfig> {
    let Cell::Index(index) = cell else { return None };
    match switch.state().resource(id) {
        weir_arch::Resource::Wred(cells) => cells.get(index)?.config(),
        _ => None,
    }
}

impl Resources {
    /// The number of cells of an array.
    pub fn size(&self, switch: &Switch) -> u64 {
        use weir_arch::Resource;
        let registers = self.registers.first().copied();
        let ids = [self.counter, self.meter.map(|m| m.0), registers, self.lpf, self.wred];
        let Some(id) = ids.into_iter().flatten().next() else {
            return 0;
        };
        match switch.state().resource(id) {
            Resource::Counter(_, cells) => cells.size(),
            Resource::Meter(_, cells) => cells.size(),
            Resource::Register(register) => register.cells.size(),
            Resource::Lpf(cells) => cells.size(),
            Resource::Wred(cells) => cells.size(),
            _ => 0,
        }
    }

    /// Resets cells to their initial values. `initial` gives those of registers if the program does
    /// not.
    pub fn clear(&self, t: &mut Transaction<'_>, cell: Cell, initial: Option<Vec<Bits>>) -> Result<(), Refusal> {
        if let Some(id) = self.counter {
            t.write(Write::Counter(id, cell, Count::default()))?;
        }
        if let Some((id, _)) = self.meter {
            t.write(Write::Meter(id, cell, None))?;
        }
        for id in &self.registers {
            let values = match &initial {
                Some(initial) => initial.clone(),
                None => t.switch().register_initial(*id)?,
            };
            t.write(Write::Register(*id, cell, values))?;
        }
        if let Some(id) = self.lpf {
            t.write(Write::Lpf(id, cell, None))?;
        }
        if let Some(id) = self.wred {
            t.write(Write::Wred(id, cell, None))?;
        }
        Ok(())
    }

    /// Whether there is more than a counter and a meter.
    pub fn has_registers_or_filters(&self) -> bool {
        !self.registers.is_empty() || self.lpf.is_some() || self.wred.is_some()
    }

    /// Whether replicas have different values, which are added up.
    pub fn differs_by_replica(&self) -> bool {
        self.counter.is_some()
    }

    /// Reads the `selected` fields of a cell (all if `selected` is empty).
    ///
    /// # Errors
    /// The index is out of range.
    pub fn read(
        &self,
        switch: &Switch,
        index: u64,
        fields: &[Field],
        selected: &[u32],
    ) -> Result<Vec<pb::DataField>, Refusal> {
        let cell = Cell::Index(index);
        let is_selected = |f: &&Field| selected.is_empty() || selected.contains(&f.id);
        let any_role = |role: fn(Role) -> bool| fields.iter().filter(is_selected).any(|f| role(f.role));
        let count = match self.counter {
            Some(id) if any_role(|r| matches!(r, Role::CounterBytes | Role::CounterPackets)) => {
                switch.counter(id, index)?
            }
            _ => Count::default(),
        };
        let meter = match self.meter {
            Some((id, is_bytes)) if any_role(|r| matches!(r, Role::Meter(_))) => {
                meter_spec(switch.meter(id, index)?, is_bytes)
            }
            _ => [u64::MAX; 4],
        };
        let registers = self.registers.iter().map(|id| switch.register(*id, index));
        let registers: Vec<Vec<Bits>> = registers.collect::<Result<_, _>>()?;
        if let Some(id) = self.lpf.or(self.wred) {
            let size = self.size_of(switch, id);
            if index >= size {
                return Err(Refusal::out_of_range(format!(
                    "there are {size} cells, index {index} is beyond their end"
                )));
            }
        }
        let (lpf, wred) = (
            self.lpf.and_then(|id| lpf(switch, id, cell)),
            self.wred.and_then(|id| wred(switch, id, cell)),
        );
        let mut found = Vec::new();
        for field in fields.iter().filter(is_selected) {
            let value = match field.role {
                Role::CounterBytes => Value::Number(count.bytes),
                Role::CounterPackets => Value::Number(count.packets),
                Role::Meter(which) => Value::Number(meter[which]),
                Role::Register(which, at) => match registers.get(which).and_then(|r| r.get(at)) {
                    Some(bits) => scalar_value(&field.ty, bits),
                    None => continue,
                },
                Role::Lpf(which) => lpf_value(lpf, which),
                Role::Wred(which) => wred_value(wred, which),
                _ => continue,
            };
            found.push(value::encode(field.id, &field.ty, &value));
        }
        Ok(found)
    }

    fn size_of(&self, switch: &Switch, id: ExternId) -> u64 {
        match switch.state().resource(id) {
            weir_arch::Resource::Lpf(cells) => cells.size(),
            weir_arch::Resource::Wred(cells) => cells.size(),
            _ => 0,
        }
    }
}

/// Converts a scalar of the switch to the value of a field.
pub(crate) fn scalar_value(ty: &Type, bits: &Bits) -> Value {
    match ty {
        Type::Bool => Value::Bool(!bits.is_zero()),
        Type::Bits(width) if *width > 64 => Value::Wide(bits.clone()),
        _ => Value::Number(bits.to_u64_saturating()),
    }
}

fn lpf_value(config: Option<LpfConfig>, which: usize) -> Value {
    let kind = match config.map(|c| c.kind) {
        Some(LpfKind::Rate) => "RATE",
        _ => "SAMPLE",
    };
    let time = |ns: Option<u64>| Value::Float(ns.unwrap_or(0) as f32);
    match which {
        0 => Value::Text(kind.to_owned()),
        1 => time(config.map(|c| c.gain_ns)),
        2 => time(config.map(|c| c.decay_ns)),
        _ => Value::Number(config.map_or(0, |c| c.scale_down.into())),
    }
}

fn wred_value(config: Option<WredConfig>, which: usize) -> Value {
    match which {
        0 => Value::Float(config.map_or(0.0, |c| c.time_constant_ns as f32)),
        1 => Value::Number(config.map_or(0, |c| c.min)),
        2 => Value::Number(config.map_or(0, |c| c.max)),
        _ => Value::Float(config.map_or(0.0, |c| c.max_probability as f32 / 10_000.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_bursts_round_trip() {
        for spec in [[1, 2, 3, 4], [u64::MAX, 5, 0, u64::MAX], [1_000_000; 4]] {
            for is_bytes in [true, false] {
                assert_eq!(meter_spec(meter_config(spec, is_bytes), is_bytes), spec);
            }
        }
        assert_eq!(meter_config([u64::MAX; 4], true), None);
    }
}
