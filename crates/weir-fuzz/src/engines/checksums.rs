//! Checksums that are right: what a program verifies is what packets have, most of the time.

use super::packets::Walk;
use crate::rng::Rng;
use weir_arch::hash::{Algorithm, csum16};
use weir_ir::{Bits, Call, InLeaf, Operand, Program};

/// Whether it compares a field with the internet checksum of others.
fn is_verification(program: &Program, call: &Call) -> bool {
    if call.instance.is_some() || call.function != "verify_checksum" {
        return false;
    }
    let algorithms = program.enums.iter().find(|(_, e)| e.name == "HashAlgorithm");
    let name = algorithms.and_then(|(_, e)| e.members.get(call.constant_input(3)? as usize));
    name.is_some_and(|name| name == Algorithm::Csum16.name())
}

impl Walk<'_> {
    /// Where a verification is: gives the packet the checksum that it is about.
    pub fn checksum(&mut self, rng: &mut Rng, call: &Call) {
        if !is_verification(self.program, call) || call.input(0).is_some_and(|c| self.operand(c).is_zero()) {
            return;
        }
        let place = match call.input(2) {
            Some(Operand::Var(field)) => self.places.get(field).copied(),
            _ => None,
        };
        let Some((at, width)) = place else { return };
        if rng.chance(5) {
            // Sums that are 0 modulo 65535 come of such.
            self.flood(call, rng.chance(60));
        }
        let right = csum16(&self.data(call));
        let sum = match rng.below(40) {
            // Whatever it is.
            0 | 1 => return,
            2 | 3 => right ^ 1 << rng.below(16),
            4 => 0,
            5 => 0xffff,
            // Zero has two forms, of which one is right.
            6 => !right,
            _ => right,
        };
        self.sketch.put(at, &Bits::new(width, sum.into()));
    }

    /// Makes all that is covered zeros, or ones.
    fn flood(&mut self, call: &Call, with_zeros: bool) {
        for leaf in call.inputs(1) {
            if let InLeaf::Value(Operand::Var(v)) = leaf
                && let Some(&(at, width)) = self.places.get(v)
            {
                let value = if with_zeros {
                    Bits::zero(width)
                } else {
                    Bits::ones(width)
                };
                self.sketch.put(at, &value);
            }
        }
    }

    /// The bytes that are summed up.
    fn data(&self, call: &Call) -> Vec<u8> {
        let mut bits = Vec::new();
        for leaf in call.inputs(1) {
            match leaf {
                InLeaf::Value(operand) => self.push(&mut bits, operand),
                InLeaf::Header(header) => {
                    let header = &self.program.headers[*header];
                    if !self.operand(&Operand::Var(header.valid)).is_zero() {
                        let fields = header.fields.iter();
                        fields.for_each(|&f| self.push(&mut bits, &Operand::Var(f)));
                    }
                }
            }
        }
        bits.chunks(8)
            .map(|chunk| {
                (0..8).fold(0, |byte, i| {
                    byte << 1 | u8::from(chunk.get(i).copied().unwrap_or(false))
                })
            })
            .collect()
    }

    /// What the packet says now, which a `select` may have settled after it was read.
    fn push(&self, bits: &mut Vec<bool>, operand: &Operand) {
        let value = self.operand(operand);
        let width = value.width();
        let place = match operand {
            Operand::Var(v) => self.places.get(v).copied(),
            Operand::Const(_) => None,
        };
        for i in 0..width {
            let otherwise = value.bit(width - 1 - i);
            let settled = place.and_then(|(at, length)| {
                let inside = (i + length).checked_sub(width)?;
                self.sketch.bit(at + inside as usize)
            });
            bits.push(settled.unwrap_or(otherwise));
        }
    }
}
