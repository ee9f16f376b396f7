//! Packets that get somewhere: a walk through the parser that chooses at every `select` and makes
//! the packet fit.

use super::pool::{Pool, random};
use crate::rng::Rng;
use std::collections::HashMap;
use weir_ir::{Bits, BlockId, Body, InstKind, Operand, Pattern, Program, Rvalue, SelectCase, Terminator, Type, VarId};

/// Blocks of a walk.
const STEPS: usize = 200;
/// Most bits that a walk asks of a packet.
const LONGEST: usize = 1200 * 8;

/// A packet in the making: bits that are settled, and those that are not.
#[derive(Default)]
pub(super) struct Sketch {
    bits: Vec<Option<bool>>,
}

impl Sketch {
    pub fn put(&mut self, at: usize, value: &Bits) {
        let width = value.width() as usize;
        if at + width > LONGEST {
            return;
        }
        if self.bits.len() < at + width {
            self.bits.resize(at + width, None);
        }
        for i in 0..width {
            self.bits[at + i] = Some(value.bit((width - 1 - i) as u32));
        }
    }

    /// What lies there; what is not settled becomes `otherwise`.
    fn take(&mut self, at: usize, otherwise: &Bits) -> Bits {
        let width = otherwise.width() as usize;
        if at + width > LONGEST {
            return otherwise.clone();
        }
        let mut bits = Vec::with_capacity(width);
        for i in 0..width {
            let settled = self.bits.get(at + i).copied().flatten();
            bits.push(settled.unwrap_or_else(|| otherwise.bit((width - 1 - i) as u32)));
        }
        let value = from_bits(&bits);
        self.put(at, &value);
        value
    }

    /// A bit, if it is settled.
    pub fn bit(&self, at: usize) -> Option<bool> {
        self.bits.get(at).copied().flatten()
    }

    fn bytes(&self, rng: &mut Rng) -> Vec<u8> {
        self.bits
            .chunks(8)
            .map(|chunk| {
                (0..8).fold(0, |byte, i| {
                    byte << 1 | u8::from(chunk.get(i).copied().flatten().unwrap_or_else(|| rng.chance(50)))
                })
            })
            .collect()
    }
}

fn from_bits(bits: &[bool]) -> Bits {
    let width = bits.len();
    let lead = (8 - width % 8) % 8;
    let padded: Vec<bool> = std::iter::repeat_n(false, lead).chain(bits.iter().copied()).collect();
    let bytes: Vec<u8> = padded
        .chunks(8)
        .map(|c| c.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
        .collect();
    Bits::from_bytes(width as u32, &bytes)
}

/// A walk through a parser.
pub(super) struct Walk<'a> {
    pub program: &'a Program,
    pool: &'a Pool,
    pub sketch: Sketch,
    cursor: usize,
    values: HashMap<VarId, Bits>,
    /// Where in the packet a variable comes from: bit and width.
    pub places: HashMap<VarId, (usize, u32)>,
}

impl Walk<'_> {
    pub fn operand(&self, operand: &Operand) -> Bits {
        match operand {
            Operand::Const(value) => value.clone(),
            Operand::Var(var) => self.values.get(var).cloned().unwrap_or_else(|| {
                let ty = self.program.vars[*var].ty;
                Bits::zero(if let Type::Bits(w) = ty { w } else { 0 })
            }),
        }
    }

    fn narrow(&self, operand: &Operand) -> usize {
        self.operand(operand)
            .to_u64()
            .map_or(LONGEST, |v| v.min(LONGEST as u64) as usize)
    }

    fn set(&mut self, var: VarId, value: Bits, place: Option<(usize, u32)>) {
        self.values.insert(var, value);
        match place {
            Some(place) => self.places.insert(var, place),
            None => self.places.remove(&var),
        };
    }

    fn instruction(&mut self, rng: &mut Rng, kind: &InstKind) {
        match kind {
            InstKind::Extract { header, varbit_bits } => {
                let header = &self.program.headers[*header];
                for &field in &header.fields {
                    match self.program.vars[field].ty {
                        Type::Bits(width) => {
                            let wanted = self.pool.value(rng, width);
                            let value = self.sketch.take(self.cursor, &wanted);
                            self.set(field, value, Some((self.cursor, width)));
                            self.cursor += width as usize;
                        }
                        Type::Varbit(most) => {
                            let bits = varbit_bits.as_ref().map_or(0, |o| self.narrow(o)).min(most as usize);
                            let value = self.sketch.take(self.cursor, &random(rng, bits as u32));
                            self.set(field, value, Some((self.cursor, bits as u32)));
                            self.cursor += bits;
                        }
                    }
                }
                self.set(header.valid, Bits::bool(true), None);
            }
            InstKind::Lookahead { dst, offset } => {
                let at = self.cursor + *offset as usize;
                let width = self.program.vars[*dst].ty.width();
                let value = self.sketch.take(at, &self.pool.value(rng, width));
                self.set(*dst, value, Some((at, width)));
            }
            InstKind::Advance { bits } => self.cursor += self.narrow(bits),
            InstKind::Assign { dst, value } => self.assign(*dst, value),
            InstKind::Call(call) => self.checksum(rng, call),
            _ => {}
        }
    }

    fn assign(&mut self, dst: VarId, value: &Rvalue) {
        let Type::Bits(width) = self.program.vars[dst].ty else {
            if let Rvalue::Use(Operand::Var(v)) = value
                && let Some(value) = self.values.get(v).cloned()
            {
                self.set(dst, value, self.places.get(v).copied());
            }
            return;
        };
        let place = match value {
            Rvalue::Use(Operand::Var(v)) | Rvalue::ZeroExtend(Operand::Var(v)) => self.places.get(v).copied(),
            Rvalue::Slice {
                value: Operand::Var(v),
                hi,
                lo,
            } => self.places.get(v).and_then(|(at, width)| {
                let skipped = width.checked_sub(hi + 1)?;
                Some((at + skipped as usize, hi - lo + 1))
            }),
            _ => None,
        };
        let result = weir_ir::eval::rvalue(value, width, |o| self.operand(o));
        self.set(dst, result, place);
    }

    /// Makes the keys of a select fit a case.
    fn aim(&mut self, rng: &mut Rng, keys: &[Operand], case: &SelectCase) {
        for (key, pattern) in keys.iter().zip(&case.patterns) {
            let Operand::Var(var) = key else { continue };
            let Some(&(at, width)) = self.places.get(var) else {
                continue;
            };
            let all = self.program.vars[*var].ty.width();
            let wanted = match pattern {
                Pattern::Any => continue,
                Pattern::Exact(value) => self.operand(value),
                Pattern::Mask(value, mask) => {
                    let (value, mask) = (self.operand(value), self.operand(mask));
                    value.and(&mask).or(&random(rng, all).and(&mask.not()))
                }
                Pattern::Range(low, high, _) => match rng.chance(50) {
                    true => self.operand(low),
                    false => self.operand(high),
                },
                Pattern::ValueSet(_) => self.pool.value(rng, all),
            };
            if wanted.width() < width {
                continue;
            }
            let wanted = Bits::from_biguint(width, &wanted.to_biguint());
            self.sketch.put(at, &wanted);
            self.values.insert(*var, Bits::from_biguint(all, &wanted.to_biguint()));
        }
    }

    fn next(&mut self, rng: &mut Rng, terminator: &Terminator) -> Option<BlockId> {
        Some(match terminator {
            Terminator::Goto(next) => *next,
            Terminator::Branch {
                condition,
                then,
                otherwise,
            } => match self.operand(condition).is_zero() {
                true => *otherwise,
                false => *then,
            },
            Terminator::Switch { value, cases, default } => {
                let value = self.operand(value);
                cases.iter().find(|(v, _)| *v == value).map_or(*default, |c| c.1)
            }
            Terminator::Select { keys, cases, default } => match rng.pick(cases) {
                Some(case) if !rng.chance(10) => {
                    self.aim(rng, keys, case);
                    case.target
                }
                _ => *default,
            },
            _ => return None,
        })
    }

    fn walk(&mut self, rng: &mut Rng, body: &Body) {
        let mut at = BlockId::new(0);
        for _ in 0..STEPS {
            let Some(block) = body.blocks.get(at) else { return };
            for inst in &block.insts {
                self.instruction(rng, &inst.kind);
            }
            match self.next(rng, &block.terminator) {
                Some(next) if self.cursor < LONGEST => at = next,
                _ => return,
            }
        }
    }
}

/// A packet that the program's parser can do something with.
pub(crate) fn parsed(rng: &mut Rng, program: &Program, pool: &Pool) -> Vec<u8> {
    let mut walk = Walk {
        program,
        pool,
        sketch: Sketch::default(),
        cursor: 0,
        values: HashMap::new(),
        places: HashMap::new(),
    };
    if let Some(parser) = program.blocks.iter().find(|b| b.role == "parser") {
        walk.walk(rng, &parser.body);
    }
    if let Some(verify) = program.blocks.iter().find(|b| b.role == "verify_checksum") {
        walk.walk(rng, &verify.body);
    }
    let mut bytes = walk.sketch.bytes(rng);
    let payload = match rng.below(20) {
        0..5 => 0,
        5..17 => rng.below(40),
        17..19 => rng.below(200),
        _ => rng.below(1500),
    };
    bytes.extend((0..payload).map(|_| rng.number() as u8));
    bytes
}

/// Spoils a packet a little.
pub(crate) fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    match rng.below(8) {
        0 | 1 => bytes.truncate(rng.below(bytes.len() + 1)),
        2 | 3 => {
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
        4 => {
            let at = rng.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.number() as u8;
            }
        }
        5 => {
            let at = rng.below(bytes.len() + 1);
            let piece: Vec<u8> = (0..rng.below(12)).map(|_| rng.number() as u8).collect();
            bytes.splice(at..at, piece);
        }
        6 => {
            let at = rng.below(bytes.len() + 1);
            let end = (at + rng.below(12)).min(bytes.len());
            bytes.drain(at..end);
        }
        _ => {
            let length = rng.below(20);
            *bytes = (0..length).map(|_| rng.number() as u8).collect();
        }
    }
}
