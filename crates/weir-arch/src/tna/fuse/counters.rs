//! `ParserCounter`: numbers of eight bits in variables. How deep a counter's stack is, is known at
//! every place of a parser.

use super::super::externs::{self, Op};
use super::Builder;
use crate::pipeline_builder::constant;
use std::collections::BTreeMap;
use weir_ir::{BinaryOp, Body, Call, ExternId, InstKind, Loc, Operand, Rvalue, VarId};

/// How many numbers there are on the stacks of counters; those that are not named have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Depths(BTreeMap<usize, usize>);

/// Numbers on one stack at most, more than any loop within loops needs.
const DEEPEST: usize = 8;

/// A number on a stack, and whether it changes by what the last one changes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    value: VarId,
    follows: VarId,
}

impl Depths {
    fn of(&self, counter: ExternId) -> usize {
        self.0.get(&counter.index()).copied().unwrap_or(0)
    }

    fn set(&mut self, counter: ExternId, depth: usize) {
        if depth == 0 {
            self.0.remove(&counter.index());
        } else {
            self.0.insert(counter.index(), depth);
        }
    }
}

impl Builder<'_> {
    /// Whether a parser has counters.
    pub(super) fn counts(&self, parser: &Body) -> bool {
        let externs = &self.arch.program().externs;
        let is_counter = |call: &Call| call.instance.is_some_and(|id| externs[id].type_name == "ParserCounter");
        let mut insts = parser.blocks.iter().flat_map(|(_, b)| &b.insts);
        insts.any(|i| matches!(&i.kind, InstKind::Call(call) if is_counter(call)))
    }

    /// A number on the stack of a counter.
    fn level(&mut self, counter: ExternId, depth: usize) -> Level {
        if let Some(level) = self.levels.get(&(counter, depth)) {
            return *level;
        }
        let level = Level {
            value: self.variable("$counter", 8),
            follows: self.variable("$follows", 1),
        };
        self.levels.insert((counter, depth), level);
        level
    }

    /// What a call of a counter is; `None`: it is no such call. The answer says whether it can be
    /// done.
    pub(super) fn counter(&mut self, call: &Call, depths: &mut Depths, loc: Loc) -> Option<Option<()>> {
        let program = std::sync::Arc::clone(self.arch.program());
        let op = externs::own(&program, call, loc).ok()??;
        Some(match op {
            Op::CounterSet(id, push) => {
                let kept = match push {
                    Some(_) => depths.of(id),
                    None => depths.of(id).saturating_sub(1),
                };
                self.counter_set(id, kept, push.flatten(), call, depths)
            }
            Op::CounterPop(id) => {
                let depth = depths.of(id);
                depths.set(id, depth.saturating_sub(1));
                Some(())
            }
            Op::CounterIsZero(id) => self.counter_is(id, BinaryOp::Eq, call, depths),
            Op::CounterIsNegative(id) => self.counter_is(id, BinaryOp::LtSigned, call, depths),
            Op::CounterAdd(id, up) => self.counter_add(id, up, call, depths),
            _ => return None,
        })
    }

    fn counter_set(
        &mut self,
        id: ExternId,
        kept: usize,
        follows: Option<usize>,
        call: &Call,
        depths: &mut Depths,
    ) -> Option<()> {
        if kept >= DEEPEST {
            return None;
        }
        let value = match call.arguments.len() {
            5.. => self.computed(call)?,
            _ => call.input(0)?.clone(),
        };
        let follows = match follows {
            Some(at) => call.input(at)?.clone(),
            None => constant(1, 0),
        };
        let level = self.level(id, kept);
        let value = self.extended(value, 8);
        self.assign(level.value, Rvalue::Use(value));
        self.assign(level.follows, Rvalue::Use(follows));
        depths.set(id, kept + 1);
        Some(())
    }

    /// The number of a header's field, as `set` with a maximum, a rotation, a mask and a summand
    /// makes it.
    fn computed(&mut self, call: &Call) -> Option<Operand> {
        let (value, most) = (call.input(0)?.clone(), call.input(1)?.clone());
        let (value, most) = (self.extended(value, 8), self.extended(most, 8));
        let [rotate, mask, add] = [2, 3, 4].map(|at| call.constant_input(at));
        let (rotate, mask) = ((rotate? % 8) as u32, u32::from(mask? as u8));
        let kept = u16::MAX.checked_shr(15u32.saturating_sub(mask)).unwrap_or(u16::MAX) as u8;
        let is_less = self.compute(1, Rvalue::Binary(BinaryOp::Lt, value.clone(), most.clone()));
        let least = Rvalue::Mux {
            condition: Operand::Var(is_less),
            then: value,
            otherwise: most,
        };
        let mut turned = self.compute(8, least);
        if rotate > 0 {
            let [low, high] = [(BinaryOp::Shr, rotate), (BinaryOp::Shl, 8 - rotate)]
                .map(|(op, by)| Rvalue::Binary(op, Operand::Var(turned), constant(8, by.into())));
            let (low, high) = (self.compute(8, low), self.compute(8, high));
            turned = self.compute(8, Rvalue::Binary(BinaryOp::Or, Operand::Var(low), Operand::Var(high)));
        }
        let masked = Rvalue::Binary(BinaryOp::And, Operand::Var(turned), constant(8, kept.into()));
        let masked = self.compute(8, masked);
        let sum = Rvalue::Binary(BinaryOp::Add, Operand::Var(masked), constant(8, add?));
        Some(Operand::Var(self.compute(8, sum)))
    }

    /// How the last number compares to zero; that of an empty stack is zero.
    fn counter_is(&mut self, id: ExternId, op: BinaryOp, call: &Call, depths: &Depths) -> Option<()> {
        let result = *call.results.first()?;
        let value = match depths.of(id).checked_sub(1) {
            Some(last) => Operand::Var(self.level(id, last).value),
            None => constant(8, 0),
        };
        self.assign(result, Rvalue::Binary(op, value, constant(8, 0)));
        Some(())
    }

    fn counter_add(&mut self, id: ExternId, up: bool, call: &Call, depths: &mut Depths) -> Option<()> {
        let by = call.input(0)?.clone();
        if depths.of(id) == 0 {
            let level = self.level(id, 0);
            self.set(Some(level.value), 0);
            self.set(Some(level.follows), 0);
            depths.set(id, 1);
        }
        let last = depths.of(id) - 1;
        for depth in 0..=last {
            let level = self.level(id, depth);
            let mut value = self.moved(level.value, by.clone(), up);
            if depth < last {
                let follows = Rvalue::Mux {
                    condition: Operand::Var(level.follows),
                    then: value,
                    otherwise: Operand::Var(level.value),
                };
                value = Operand::Var(self.compute(8, follows));
            }
            self.assign(level.value, Rvalue::Use(value));
        }
        Some(())
    }
}
