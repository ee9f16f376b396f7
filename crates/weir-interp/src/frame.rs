//! The state of one packet: its variables, its bytes and what has been built of it.

use weir_ir::{Bits, Program, Type, VarId};

/// One value per variable of a program. A `bits<W>` variable always holds `W` bits; a `varbit`
/// holds its current length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    vars: Vec<Bits>,
}

impl Frame {
    /// All variables zero, varbits empty.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let zero = |ty| match ty {
            Type::Bits(width) => Bits::zero(width),
            Type::Varbit(_) => Bits::zero(0),
        };
        Frame {
            vars: program.vars.iter().map(|(_, v)| zero(v.ty)).collect(),
        }
    }

    /// The value of a variable of the frame's program.
    #[must_use]
    pub fn get(&self, var: VarId) -> &Bits {
        &self.vars[var.index()]
    }

    /// The value as a number, `u64::MAX` where it is larger.
    #[must_use]
    pub fn get_u64(&self, var: VarId) -> u64 {
        self.get(var).to_u64_saturating()
    }

    /// Whether any bit is set.
    #[must_use]
    pub fn is_set(&self, var: VarId) -> bool {
        !self.get(var).is_zero()
    }

    /// Sets a variable. The value must have the variable's width.
    pub fn set(&mut self, var: VarId, value: Bits) {
        self.vars[var.index()] = value;
    }

    /// Sets a `bits` variable to a number modulo its width.
    pub fn set_u64(&mut self, var: VarId, value: u64) {
        let width = self.get(var).width();
        self.set(var, Bits::new(width, value.into()));
    }

    /// Sets a `bits` variable to a value of any width, truncated or extended with zeros.
    pub fn set_resized(&mut self, var: VarId, value: &Bits) {
        let width = self.get(var).width();
        self.set(
            var,
            if value.width() == width {
                value.clone()
            } else {
                value.zero_extend(width)
            },
        );
    }
}

/// Bits put one after the other, most significant first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BitBuffer {
    bytes: Vec<u8>,
    /// Length in bits; unused bits of the last byte are 0.
    bits: usize,
}

impl BitBuffer {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Length in bits.
    #[must_use]
    pub fn len_bits(&self) -> usize {
        self.bits
    }

    /// Appends all bits of a value.
    pub fn push(&mut self, value: &Bits) {
        let width = value.width();
        let padding = (8 - width % 8) % 8;
        if padding == 0 {
            self.append(&value.to_bytes(), width as usize);
        } else {
            let aligned = value.zero_extend(width + padding).shl(padding.into());
            self.append(&aligned.to_bytes(), width as usize);
        }
    }

    /// Appends the bits of `bytes` from bit `from` on, counted from the first byte's highest.
    pub fn push_rest(&mut self, bytes: &[u8], from: usize) {
        let Some(rest) = bytes.get(from / 8..) else {
            return;
        };
        let skip = from % 8;
        if skip == 0 {
            self.append(rest, rest.len() * 8);
            return;
        }
        let shifted: Vec<u8> = (0..rest.len())
            .map(|i| (rest[i] << skip) | (rest.get(i + 1).copied().unwrap_or(0) >> (8 - skip)))
            .collect();
        self.append(&shifted, (rest.len() * 8).saturating_sub(skip));
    }

    /// Appends the first `bits` bits of `bytes`; the bits after them must be 0.
    fn append(&mut self, bytes: &[u8], bits: usize) {
        let used = self.bits % 8;
        if used == 0 {
            self.bytes.extend_from_slice(bytes);
        } else {
            for &byte in bytes {
                if let Some(last) = self.bytes.last_mut() {
                    *last |= byte >> used;
                }
                self.bytes.push(byte << (8 - used));
            }
        }
        self.bits += bits;
        self.bytes.truncate(self.bits.div_ceil(8));
    }

    /// The bytes; the last one is filled up with zero bits.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes; the last one is filled up with zero bits.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads `width` bits at bit `from` of `bytes`; `None` where there are not so many.
#[must_use]
pub fn read_bits(bytes: &[u8], from: usize, width: u32) -> Option<Bits> {
    let end = from.checked_add(width as usize)?;
    if width == 0 {
        return (from <= bytes.len() * 8).then(|| Bits::zero(0));
    }
    let slice = bytes.get(from / 8..end.div_ceil(8))?;
    let trailing = (8 - end % 8) % 8;
    let whole = Bits::from_bytes(u32::try_from(slice.len() * 8).ok()?, slice);
    Some(whole.shr(trailing as u64).zero_extend(width))
}

/// One packet on its way through the blocks of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketState {
    /// Its variables.
    pub frame: Frame,
    /// Its bytes as the parser sees them.
    pub bytes: Vec<u8>,
    /// How many bits of `bytes` the parser has taken.
    pub cursor: usize,
    /// What the deparser has emitted.
    pub output: BitBuffer,
    /// The bytes before the first extern that changed the payload; `None`: they are `bytes`.
    pub received: Option<Vec<u8>>,
}

impl PacketState {
    /// A packet of which nothing has been parsed, all variables zero.
    #[must_use]
    pub fn new(program: &Program, bytes: Vec<u8>) -> Self {
        PacketState {
            frame: Frame::new(program),
            bytes,
            cursor: 0,
            output: BitBuffer::new(),
            received: None,
        }
    }

    /// The packet as it was received, whatever externs have done to its payload since.
    #[must_use]
    pub fn as_received(&self) -> &[u8] {
        self.received.as_ref().unwrap_or(&self.bytes)
    }

    /// Bits the parser has not taken.
    #[must_use]
    pub fn remaining_bits(&self) -> usize {
        (self.bytes.len() * 8).saturating_sub(self.cursor)
    }

    /// The bytes the parser has not taken, shifted to a byte boundary.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut buffer = BitBuffer::new();
        buffer.push_rest(&self.bytes, self.cursor);
        buffer.into_bytes()
    }

    /// What was emitted and the payload after it: the packet that leaves. Takes the emitted part.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut output = std::mem::take(&mut self.output);
        output.push_rest(&self.bytes, self.cursor);
        output.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_come_out_as_they_went_in(widths in proptest::collection::vec(0u32..140, 1..8), seed in any::<u128>()) {
            let value = |(i, &w): (usize, &u32)| Bits::new(w, seed.rotate_left(i as u32 * 17));
            let values: Vec<_> = widths.iter().enumerate().map(value).collect();
            let mut buffer = BitBuffer::new();
            values.iter().for_each(|v| buffer.push(v));
            let bytes = buffer.clone().into_bytes();
            prop_assert_eq!(bytes.len(), buffer.len_bits().div_ceil(8));
            let mut at = 0;
            for value in &values {
                prop_assert_eq!(read_bits(&bytes, at, value.width()), Some(value.clone()));
                at += value.width() as usize;
            }
            let mut rest = BitBuffer::new();
            rest.push_rest(&bytes, widths[0] as usize);
            let second = values.get(1).cloned().unwrap_or(Bits::zero(0));
            prop_assert_eq!(read_bits(rest.as_bytes(), 0, second.width()), Some(second));
        }
    }

    #[test]
    fn reading_past_the_end_gives_nothing() {
        assert_eq!(read_bits(&[0xff], 1, 8), None);
        assert_eq!(read_bits(&[0xff], 9, 0), None);
        assert_eq!(read_bits(&[0xff], usize::MAX, 8), None);
        assert_eq!(read_bits(&[0xa5], 4, 4), Some(Bits::new(4, 5)));
    }
}
