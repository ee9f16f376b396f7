//! Packets as sequences of bits.

use super::machine::{Machine, reject};
use super::place::Place;
use super::stop::{Eval, unknown};
use super::value::{Value, ones, signed};
use num_bigint::BigUint;
use weir_compiler::tools::{Ty, TyKind};
use weir_syntax::ast::{Name, StructKind};

/// A packet and how much of it is parsed.
#[derive(Debug, Clone, Default)]
pub(super) struct Packet {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// The next bit.
    pub at: usize,
}

impl Packet {
    /// A packet of which nothing is parsed.
    pub fn new(bytes: Vec<u8>) -> Self {
        Packet { bytes, at: 0 }
    }

    fn left(&self) -> usize {
        8 * self.bytes.len() - self.at
    }

    /// `width` bits from an offset on, or nothing if the packet is shorter.
    fn look(&self, offset: usize, width: usize) -> Option<BigUint> {
        if offset + width > self.left() {
            return None;
        }
        let (first, end) = (self.at + offset, self.at + offset + width);
        let bytes = BigUint::from_bytes_be(&self.bytes[first / 8..end.div_ceil(8)]);
        let behind = end.div_ceil(8) * 8 - end;
        Some((bytes >> behind) & ones(width as u32))
    }
}

/// What a deparser has written.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    bits: Vec<bool>,
}

impl Written {
    fn push(&mut self, width: u32, bits: &BigUint) {
        self.bits.extend((0..u64::from(width)).rev().map(|i| bits.bit(i)));
    }

    /// Its bytes with the rest of a packet after them.
    pub fn finish(mut self, packet: &Packet) -> Vec<u8> {
        for at in packet.at..8 * packet.bytes.len() {
            self.bits.push(packet.bytes[at / 8] >> (7 - at % 8) & 1 == 1);
        }
        bytes(&self.bits)
    }
}

/// Bits as bytes; zeros fill up the last one.
pub(super) fn bytes(bits: &[bool]) -> Vec<u8> {
    let byte = |eight: &[bool]| (0..8).fold(0, |b, i| b << 1 | u8::from(eight.get(i) == Some(&true)));
    bits.chunks(8).map(byte).collect()
}

/// The bits of a value one after another; invalid headers have none.
pub(super) fn flatten(value: &Value, to: &mut Vec<bool>) -> Eval<()> {
    match value {
        Value::Struct(fields) | Value::Union(fields) | Value::Header { valid: true, fields } => {
            fields.iter().try_for_each(|(_, f)| flatten(f, to))
        }
        Value::Header { valid: false, .. } => Ok(()),
        Value::Stack { elements: parts, .. } | Value::Tuple(parts) => parts.iter().try_for_each(|p| flatten(p, to)),
        Value::Fields(fields) => fields.iter().try_for_each(|(_, f)| flatten(f, to)),
        other => match other.bits() {
            Some((width, bits)) => {
                to.extend((0..u64::from(width)).rev().map(|i| bits.bit(i)));
                Ok(())
            }
            None => unknown("the bits of a value that has none"),
        },
    }
}

/// Bits of the valid headers of a value.
pub(super) fn header_bits(value: &Value) -> i64 {
    match value {
        Value::Header { valid, fields } => {
            let bits = fields.iter().filter_map(|(_, f)| f.bits()).map(|(w, _)| i64::from(w));
            if *valid { bits.sum() } else { 0 }
        }
        Value::Struct(fields) | Value::Union(fields) => fields.iter().map(|(_, f)| header_bits(f)).sum(),
        Value::Stack { elements, .. } => elements.iter().map(header_bits).sum(),
        _ => 0,
    }
}

impl Machine<'_> {
    /// The bits at a place of the packet as a value of a type; `offset` is moved past them.
    fn taken(&mut self, ty: Ty, offset: &mut usize, varbit: usize) -> Eval<Value> {
        let mut bits = |machine: &Self, width: usize| match machine.packet.look(*offset, width) {
            Some(found) => {
                *offset += width;
                Ok(found)
            }
            None => Err(reject("PacketTooShort")),
        };
        Ok(match self.kind(ty) {
            TyKind::Bit(width) => Value::bit(width, bits(self, width as usize)?),
            TyKind::Int(width) => Value::Int {
                width,
                value: signed(&bits(self, width as usize)?.into(), width),
            },
            TyKind::Bool => Value::Bool(bits(self, 1)? == BigUint::from(1u8)),
            TyKind::Varbit(_) => Value::Varbit {
                width: varbit as u32,
                value: bits(self, varbit)?,
            },
            TyKind::Tuple(parts) => {
                let parts = parts.iter().map(|&t| self.taken(t, offset, varbit));
                Value::Tuple(parts.collect::<Eval<_>>()?)
            }
            TyKind::Stack(element, size) => {
                let elements = (0..size).map(|_| self.taken(element, offset, varbit));
                Value::Stack {
                    elements: elements.collect::<Eval<_>>()?,
                    next: size as usize,
                }
            }
            TyKind::Struct(..) => {
                let ty = self.concrete(ty);
                let is_header = self.checked.struct_kind(ty) == Some(StructKind::Header);
                let fields = self.fields(ty);
                let fields = fields.into_iter().map(|(n, t)| Ok((n, self.taken(t, offset, varbit)?)));
                let fields = fields.collect::<Eval<Vec<(Name, Value)>>>()?;
                match is_header {
                    true => Value::Header { valid: true, fields },
                    false => Value::Struct(fields),
                }
            }
            other => return unknown(format!("bits of a packet as {other:?}")),
        })
    }

    /// `packet.lookahead<T>()`
    pub fn lookahead(&mut self, ty: Ty) -> Eval<Value> {
        self.taken(ty, &mut 0, 0)
    }

    /// `packet.advance(bits)`
    pub fn advance(&mut self, bits: &Value) -> Eval<()> {
        match bits.index() {
            Some(bits) if bits <= self.packet.left() => {
                self.packet.at += bits;
                Ok(())
            }
            Some(_) => Err(reject("PacketTooShort")),
            None => unknown("an advance by something else than a number"),
        }
    }

    /// `packet.extract(header)` and `packet.extract(header, bits)`: the order of the checks is that
    /// of the specification (12.8.2); weir, as targets may, wants whole bytes of headers with a
    /// varbit.
    pub fn extract(&mut self, target: &Place, ty: Ty, varbit: Option<&Value>) -> Eval<()> {
        let Some(bits) = varbit.map_or(Some(0), Value::index) else {
            return unknown("a varbit whose length is no number");
        };
        let (fixed, most) = self.sizes(ty);
        let total = fixed.saturating_add(bits);
        if varbit.is_some() && !total.is_multiple_of(8) {
            return Err(reject("ParserInvalidArgument"));
        }
        if total > self.packet.left() {
            return Err(reject("PacketTooShort"));
        }
        if bits > most {
            return Err(reject("HeaderTooShort"));
        }
        let mut offset = 0;
        let header = self.taken(ty, &mut offset, bits)?;
        self.store(target, header)?;
        self.packet.at += offset;
        Ok(())
    }

    /// Bits of a header type besides its varbit, and most of that.
    fn sizes(&mut self, ty: Ty) -> (usize, usize) {
        let (mut fixed, mut most) = (0, 0);
        for (_, field) in self.fields(ty) {
            match self.kind(field) {
                TyKind::Bit(width) | TyKind::Int(width) => fixed += width as usize,
                TyKind::Bool => fixed += 1,
                TyKind::Varbit(width) => most = width as usize,
                TyKind::Struct(..) => {
                    let (inner, varbit) = self.sizes(field);
                    fixed += inner;
                    most = most.max(varbit);
                }
                _ => {}
            }
        }
        (fixed, most)
    }

    /// `packet.emit(headers)`: those that are valid, in order.
    pub fn emit(&mut self, value: &Value) -> Eval<()> {
        match value {
            Value::Header { valid, fields } => {
                if *valid {
                    self.emit_fields(fields)?;
                }
                Ok(())
            }
            Value::Struct(parts) | Value::Union(parts) => parts.iter().try_for_each(|(_, p)| self.emit(p)),
            Value::Stack { elements: parts, .. } | Value::Tuple(parts) => parts.iter().try_for_each(|p| self.emit(p)),
            _ => unknown("an emit of something else than headers"),
        }
    }

    fn emit_fields(&mut self, fields: &[(Name, Value)]) -> Eval<()> {
        for (_, field) in fields {
            match (field, field.bits()) {
                (Value::Struct(inner), _) => self.emit_fields(inner)?,
                (_, Some((width, bits))) => self.written.push(width, &bits),
                (_, None) => return unknown("a field without bits"),
            }
        }
        Ok(())
    }
}
