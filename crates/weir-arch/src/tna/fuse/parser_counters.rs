//! `ParserCounter` as variables: each entry of a counter's stack is an 8-bit variable.
//!
//! The stack depths are known at compile time, since `intrinsic` specialises each parser state by
//! them.

use super::super::externs::{self, ExternOp};
use super::{Builder, CallOutcome};
use crate::pipeline_builder::constant;
use std::collections::BTreeMap;
use weir_ir::{BinaryOp, Call, ExternId, Loc, Operand, Rvalue, VarId};

/// The depths of the counters' stacks, by counter. Counters that are not in the map have depth 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StackDepths(BTreeMap<usize, usize>);

/// The most entries of a counter's stack. No nesting of loops needs more.
const MAX_STACK_DEPTH: usize = 8;

/// The variables of a stack entry. If `updates_with_top` is 1, as `push` with TNA's
/// `update_with_top` sets it, additions to the top entry apply to this one too.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackEntry {
    value: VarId,
    updates_with_top: VarId,
}

impl StackDepths {
    /// The depth of a counter's stack.
    fn of(&self, counter: ExternId) -> usize {
        self.0.get(&counter.index()).copied().unwrap_or(0)
    }

    /// Sets the depth of a counter's stack.
    fn set(&mut self, counter: ExternId, depth: usize) {
        if depth == 0 {
            self.0.remove(&counter.index());
        } else {
            self.0.insert(counter.index(), depth);
        }
    }
}

impl Builder<'_> {
    /// The variables of the stack entry at `depth`, made on first use.
    fn stack_entry(&mut self, counter: ExternId, depth: usize) -> StackEntry {
        if let Some(entry) = self.counter_stacks.get(&(counter, depth)) {
            return *entry;
        }
        let entry = StackEntry {
            value: self.variable("$counter", 8),
            updates_with_top: self.variable("$updates_with_top", 1),
        };
        self.counter_stacks.insert((counter, depth), entry);
        entry
    }

    /// Appends a call of a counter.
    pub(super) fn counter(&mut self, call: &Call, depths: &mut StackDepths, loc: Loc) -> CallOutcome {
        let program = std::sync::Arc::clone(self.arch.program());
        let Ok(Some(op)) = externs::own(&program, call, loc) else {
            return CallOutcome::OtherCall;
        };
        CallOutcome::of(match op {
            ExternOp::CounterSet(id, push) => {
                let depth_before = match push {
                    Some(_) => depths.of(id),
                    None => depths.of(id).saturating_sub(1),
                };
                self.counter_set(id, depth_before, push.flatten(), call, depths)
            }
            ExternOp::CounterPop(id) => {
                let depth = depths.of(id);
                depths.set(id, depth.saturating_sub(1));
                Some(())
            }
            ExternOp::CounterIsZero(id) => self.counter_compare(id, BinaryOp::Eq, call, depths),
            ExternOp::CounterIsNegative(id) => self.counter_compare(id, BinaryOp::LtSigned, call, depths),
            ExternOp::CounterAdd(id, is_addition) => self.counter_add(id, is_addition, call, depths),
            _ => return CallOutcome::OtherCall,
        })
    }

    /// Pushes a value on a stack that has `depth_before` entries. `update_with_top`: the number of
    /// that argument, if the call has it.
    fn counter_set(
        &mut self,
        id: ExternId,
        depth_before: usize,
        update_with_top: Option<usize>,
        call: &Call,
        depths: &mut StackDepths,
    ) -> Option<()> {
        if depth_before >= MAX_STACK_DEPTH {
            return None;
        }
        let value = match call.arguments.len() {
            5.. => self.field_value(call)?,
            _ => call.input(0)?.clone(),
        };
        let updates_with_top = match update_with_top {
            Some(argument) => call.input(argument)?.clone(),
            None => constant(1, 0),
        };
        let entry = self.stack_entry(id, depth_before);
        let value = self.extended(value, 8);
        self.assign(entry.value, Rvalue::Use(value));
        self.assign(entry.updates_with_top, Rvalue::Use(updates_with_top));
        depths.set(id, depth_before + 1);
        Some(())
    }

    /// A header field's value as `set` computes it: capped at a maximum, rotated, masked, plus a
    /// constant.
    fn field_value(&mut self, call: &Call) -> Option<Operand> {
        let (value, max) = (call.input(0)?.clone(), call.input(1)?.clone());
        let (value, max) = (self.extended(value, 8), self.extended(max, 8));
        let [rotate, mask, add] = [2, 3, 4].map(|argument| call.constant_input(argument));
        let (rotate, mask) = ((rotate? % 8) as u32, u32::from(mask? as u8));
        let mask_bits = u16::MAX.checked_shr(15u32.saturating_sub(mask)).unwrap_or(u16::MAX) as u8;
        let is_less = self.compute(1, Rvalue::Binary(BinaryOp::Lt, value.clone(), max.clone()));
        let capped = Rvalue::Mux {
            condition: Operand::Var(is_less),
            then: value,
            otherwise: max,
        };
        let mut rotated = self.compute(8, capped);
        if rotate > 0 {
            let [low, high] = [(BinaryOp::Shr, rotate), (BinaryOp::Shl, 8 - rotate)]
                .map(|(op, by)| Rvalue::Binary(op, Operand::Var(rotated), constant(8, by.into())));
            let (low, high) = (self.compute(8, low), self.compute(8, high));
            rotated = self.compute(8, Rvalue::Binary(BinaryOp::Or, Operand::Var(low), Operand::Var(high)));
        }
        let masked = Rvalue::Binary(BinaryOp::And, Operand::Var(rotated), constant(8, mask_bits.into()));
        let masked = self.compute(8, masked);
        let sum = Rvalue::Binary(BinaryOp::Add, Operand::Var(masked), constant(8, add?));
        Some(Operand::Var(self.compute(8, sum)))
    }

    /// Compares the top entry to 0. An empty stack counts as 0.
    fn counter_compare(&mut self, id: ExternId, op: BinaryOp, call: &Call, depths: &StackDepths) -> Option<()> {
        let result = *call.results.first()?;
        let value = match depths.of(id).checked_sub(1) {
            Some(last) => Operand::Var(self.stack_entry(id, last).value),
            None => constant(8, 0),
        };
        self.assign(result, Rvalue::Binary(op, value, constant(8, 0)));
        Some(())
    }

    /// Adds to, or subtracts from, the top entry and those that are updated with it. An empty stack
    /// first gets an entry of 0.
    fn counter_add(&mut self, id: ExternId, is_addition: bool, call: &Call, depths: &mut StackDepths) -> Option<()> {
        let by = call.input(0)?.clone();
        if depths.of(id) == 0 {
            let entry = self.stack_entry(id, 0);
            self.set(Some(entry.value), 0);
            self.set(Some(entry.updates_with_top), 0);
            depths.set(id, 1);
        }
        let last = depths.of(id) - 1;
        for depth in 0..=last {
            let entry = self.stack_entry(id, depth);
            let mut value = self.add_or_subtract(entry.value, by.clone(), is_addition);
            if depth < last {
                let updated = Rvalue::Mux {
                    condition: Operand::Var(entry.updates_with_top),
                    then: value,
                    otherwise: Operand::Var(entry.value),
                };
                value = Operand::Var(self.compute(8, updated));
            }
            self.assign(entry.value, Rvalue::Use(value));
        }
        Some(())
    }
}
