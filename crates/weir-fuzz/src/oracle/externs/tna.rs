//! Externs of the Tofino Native Architecture.

use super::super::hash;
use super::super::machine::Machine;
use super::super::stop::{Eval, unknown};
use super::super::value::{Object, Value};
use super::Call;

impl Machine<'_> {
    /// A method of an instance of one of TNA's types.
    pub(super) fn tna_method(&mut self, ty: &str, id: usize, call: &Call<'_>) -> Eval<Value> {
        match (ty, call.name) {
            // Counts do not change packets.
            ("Counter" | "DirectCounter", "count") => Ok(Value::Void),
            ("Register", "read") => match self.cell(id, call.number(0)?)? {
                Some(value) => Ok(value),
                None => self.zero(call.result),
            },
            ("Register", "write") => {
                let (index, value) = (call.number(0)?, call.value(1)?);
                if self.cell(id, index)?.is_some() {
                    self.externs[id].cells.insert(index, value);
                }
                Ok(Value::Void)
            }
            ("RegisterAction", "execute") => self.execute(id, call),
            ("Hash", "get") if call.arguments.len() == 1 => {
                let data = call.data_in_front(0)?;
                let value = match self.externs[id].argument("algo") {
                    Some(Value::Member(name)) if &**name == "CRC16" => hash::crc16(&data),
                    Some(Value::Member(name)) if &**name == "CRC32" => hash::crc32(&data),
                    _ => return unknown("another algorithm of a hash"),
                };
                match self.zero(call.result)? {
                    Value::Bit { width, .. } => Ok(Value::bit(width, value)),
                    _ => unknown("a hash that is no number"),
                }
            }
            (ty, name) => unknown(format!("{ty}.{name}")),
        }
    }

    /// What a register action does to a cell: its body gets the cell, and gives its new value and
    /// the result. The body belongs to the control that declares it, and sees what that has now.
    fn execute(&mut self, id: usize, call: &Call<'_>) -> Eval<Value> {
        let found = &self.externs[id];
        let register = found.arguments.first().map(|(_, v)| v.clone());
        let (body, block) = (found.bodies.get("apply").copied(), found.block);
        let (Some(Value::Object(Object::Extern(register))), Some(body)) = (register, body) else {
            return unknown("a register action without a register or body");
        };
        let index = call
            .arguments
            .first()
            .and_then(|a| a.value.as_ref())
            .and_then(Value::small)
            .unwrap_or(0);
        let Some(cell) = self.cell(register, index)? else {
            return unknown("a cell that a register does not have");
        };
        let this = self.this.replace(id);
        let values = vec![cell, Value::Void];
        let count = body.prototype.parameters.len();
        let done = self.within(block, |m| m.call_body(body, values.into_iter().take(count).collect()));
        self.this = this;
        let (_, mut after) = done?;
        let result = if after.len() > 1 { after.pop() } else { None };
        if let Some(cell) = after.pop() {
            self.externs[register].cells.insert(index, cell);
        }
        match result {
            Some(result) => Ok(result),
            None => self.zero(call.result),
        }
    }
}
