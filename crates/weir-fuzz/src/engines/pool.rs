//! Values that have a chance to matter: those the program compares with, and a few that everything
//! shares.

use crate::rng::Rng;
use std::collections::BTreeMap;
use weir_ir::{Bits, InstKind, KeyMatch, Operand, Pattern, Program, Terminator};

/// Values of a width that come up again and again.
const FAVOURITES: usize = 5;
/// Values of a program that are kept per width.
const KEPT: usize = 64;

/// Values by width. Entries and packets draw from the same pool, so that they meet.
pub(crate) struct Pool {
    by_width: BTreeMap<u32, Vec<Bits>>,
    seed: u64,
}

/// A random value, all bits of it.
pub(crate) fn random(rng: &mut Rng, width: u32) -> Bits {
    let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| rng.number() as u8).collect();
    Bits::from_bytes(width, &bytes)
}

impl Pool {
    /// The constants of a program.
    pub fn new(program: &Program, seed: u64) -> Self {
        let mut pool = Pool {
            by_width: BTreeMap::new(),
            seed,
        };
        for block in &program.blocks {
            for (_, block) in block.body.blocks.iter() {
                for inst in &block.insts {
                    if let InstKind::Assign { value, .. } = &inst.kind {
                        value.operands().for_each(|o| pool.operand(o));
                    }
                }
                pool.terminator(&block.terminator);
            }
        }
        for (_, table) in program.tables.iter() {
            for matched in table.entries.iter().flat_map(|e| &e.matches) {
                pool.key(matched);
            }
        }
        pool
    }

    fn terminator(&mut self, terminator: &Terminator) {
        match terminator {
            Terminator::Switch { cases, .. } => cases.iter().for_each(|(v, _)| self.add(v)),
            Terminator::Select { cases, .. } => {
                for pattern in cases.iter().flat_map(|c| &c.patterns) {
                    match pattern {
                        Pattern::Any | Pattern::ValueSet(_) => {}
                        Pattern::Exact(o) | Pattern::Mask(o, _) => self.operand(o),
                        Pattern::Range(a, b, _) => {
                            self.operand(a);
                            self.operand(b);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, matched: &KeyMatch) {
        match matched {
            KeyMatch::Exact(v) | KeyMatch::Optional(Some(v)) => self.add(v),
            KeyMatch::Lpm { value, .. } | KeyMatch::Ternary { value, .. } => self.add(value),
            KeyMatch::Range { low, high } => {
                self.add(low);
                self.add(high);
            }
            KeyMatch::Optional(None) => {}
        }
    }

    fn operand(&mut self, operand: &Operand) {
        if let Operand::Const(value) = operand {
            self.add(value);
        }
    }

    /// Adds a value.
    pub fn add(&mut self, value: &Bits) {
        let values = self.by_width.entry(value.width()).or_default();
        if values.len() < KEPT && !values.contains(value) {
            values.push(value.clone());
        }
    }

    /// The favourite with this number, the same at every call.
    fn favourite(&self, width: u32, number: usize) -> Bits {
        match number {
            0 => Bits::zero(width),
            1 => Bits::new(width, 1),
            2 => Bits::ones(width),
            n => random(&mut Rng::new(self.seed ^ u64::from(width) << 8 ^ n as u64), width),
        }
    }

    /// A value of a width.
    pub fn value(&self, rng: &mut Rng, width: u32) -> Bits {
        match rng.below(10) {
            0..3 => match self.by_width.get(&width).and_then(|v| rng.pick(v)) {
                Some(value) => value.clone(),
                None => self.favourite(width, rng.below(FAVOURITES)),
            },
            3..8 => self.favourite(width, rng.below(FAVOURITES)),
            8 => Bits::new(width, rng.below(16) as u128),
            _ => random(rng, width),
        }
    }
}
