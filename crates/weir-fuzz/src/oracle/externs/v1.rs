//! Externs of v1model.

use super::super::hash;
use super::super::machine::Machine;
use super::super::packet::{bytes, flatten};
use super::super::stop::{Eval, Stop, unknown};
use super::super::value::Value;
use super::Call;
use weir_compiler::tools::TyKind;
use weir_syntax::ast::{Expr, ExprKind, StructKind};

/// The port that means that a packet is dropped.
pub(in crate::oracle) const DROP: u64 = 511;

/// Session numbers have 15 bits.
const SESSION: u64 = 0x7fff;

impl Machine<'_> {
    /// A method of an instance of one of v1model's types; `None`: it is of another one.
    pub(super) fn v1_method(&mut self, ty: &str, id: usize, call: &Call<'_>) -> Eval<Option<Value>> {
        match (ty, call.name) {
            // Counts do not change packets.
            ("counter" | "direct_counter", "count") => {}
            ("register", "read") => {
                // Beyond its end nothing is read, and the result stays what it was.
                if let Some(value) = self.cell(id, call.number(1)?)? {
                    self.give(call, 0, value)?;
                }
            }
            ("register", "write") => {
                let (index, value) = (call.number(0)?, call.value(1)?);
                if self.cell(id, index)?.is_some() {
                    self.externs[id].cells.insert(index, value);
                }
            }
            ("Checksum16", "get") => return Ok(Some(Value::bit(16, hash::csum16(&call.data(0)?)))),
            ("meter" | "direct_meter", _) => return unknown("a meter"),
            _ => return Ok(None),
        }
        Ok(Some(Value::Void))
    }

    /// A function of v1model.
    pub(super) fn v1_function(&mut self, call: &Call<'_>) -> Eval<Value> {
        match (call.name, call.arguments.len()) {
            ("mark_to_drop", 1) => {
                let mut metadata = call.value(0)?;
                for (name, width, value) in [("egress_spec", 9, DROP), ("mcast_grp", 16, 0)] {
                    if let Some(field) = metadata.field_mut(name) {
                        *field = Value::bit(width, value);
                    }
                }
                self.give(call, 0, metadata)?;
            }
            // They do not change packets.
            ("digest", _) | ("log_msg", _) => {}
            ("random", _) => self.random(call)?,
            ("hash", _) => {
                let (base, most) = (call.number(2)?, call.number(4)?.max(1));
                let hash = self.algorithm(&call.value(1)?, &call.data(3)?)? % most;
                let result = call.like(0, base.wrapping_add(hash))?;
                self.give(call, 0, result)?;
            }
            ("verify_checksum" | "verify_checksum_with_payload", _) => {
                if let Some(sum) = self.checksum(call)?
                    && call.like(2, sum)? != call.value(2)?
                {
                    self.marks.checksum_error = true;
                }
            }
            ("update_checksum" | "update_checksum_with_payload", _) => {
                if let Some(sum) = self.checksum(call)? {
                    let sum = call.like(2, sum)?;
                    self.give(call, 2, sum)?;
                }
            }
            ("clone", _) => self.marks.clone = Some(((call.number(1)? & SESSION) as u32, None)),
            ("clone_preserving_field_list", _) => {
                self.marks.clone = Some(((call.number(1)? & SESSION) as u32, Some(call.number(2)?)));
            }
            ("resubmit_preserving_field_list", _) => self.marks.resubmit = Some(call.number(0)?),
            ("recirculate_preserving_field_list", _) => self.marks.recirculate = Some(call.number(0)?),
            ("truncate", _) => self.marks.truncate = Some(call.number(0)?),
            ("assert" | "assume", _) => {
                if !call.value(0)?.is_true() {
                    return Err(Stop::Abort);
                }
            }
            (name, _) => return unknown(format!("the function {name}")),
        }
        Ok(Value::Void)
    }

    /// A number between two others is known if these are the same; if they are the wrong way round,
    /// the result stays.
    fn random(&mut self, call: &Call<'_>) -> Eval<()> {
        let (low, high) = (call.value(1)?, call.value(2)?);
        match low.number().cmp(&high.number()) {
            std::cmp::Ordering::Equal => self.give(call, 0, low),
            std::cmp::Ordering::Greater => Ok(()),
            std::cmp::Ordering::Less => unknown("a random number"),
        }
    }

    /// The hash of data by a member of `HashAlgorithm`.
    pub(in crate::oracle) fn algorithm(&self, algorithm: &Value, data: &[u8]) -> Eval<u64> {
        let Value::Member(name) = algorithm else {
            return unknown("an algorithm that is none");
        };
        Ok(match &**name {
            // Custom ones are the usual ones until their parameters are set.
            "crc32" | "crc32_custom" => hash::crc32(data),
            "crc16" | "crc16_custom" => hash::crc16(data),
            "identity" => hash::identity(data),
            "csum16" => hash::csum16(data),
            "xor16" => hash::xor16(data),
            other => return unknown(format!("the algorithm {other}")),
        })
    }

    /// The checksum of a call, unless its condition is false or the header that the field is in is
    /// invalid.
    fn checksum(&mut self, call: &Call<'_>) -> Eval<Option<u64>> {
        if !call.value(0)?.is_true() {
            return Ok(None);
        }
        if let Some(field) = call.written.get(2).copied().flatten()
            && let Some(header) = self.header_of(field)
            && !self.expr(header)?.is_valid()
        {
            if let ExprKind::Index(_, index) = &header.kind
                && self.constant(index).is_err()
            {
                return unknown("a checksum in an element of a stack that is known at run time only");
            }
            return Ok(None);
        }
        let mut bits = Vec::new();
        flatten(&call.value(1)?, &mut bits)?;
        if call.name.ends_with("_with_payload") {
            bits.resize(bits.len().div_ceil(8) * 8, false);
            let packet = &self.packet;
            let rest = packet.at..8 * packet.bytes.len();
            bits.extend(rest.map(|at| packet.bytes[at / 8] >> (7 - at % 8) & 1 == 1));
        }
        self.algorithm(&call.value(3)?, &bytes(&bits)).map(Some)
    }

    /// The header that a field is in, as it is written.
    fn header_of<'e>(&mut self, field: &'e Expr) -> Option<&'e Expr> {
        let (ExprKind::Member(base, _) | ExprKind::Slice(base, ..)) = &field.kind else {
            return None;
        };
        let ty = self.checked.ty(base);
        let ty = self.concrete(ty);
        match self.checked.types.get(ty) {
            TyKind::Struct(..) if self.checked.struct_kind(ty) == Some(StructKind::Header) => Some(base),
            _ => self.header_of(base),
        }
    }
}
