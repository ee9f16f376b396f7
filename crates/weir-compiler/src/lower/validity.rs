//! Validity: headers that become valid or invalid, and stacks that shift.

use super::value::{Place, Val};
use super::{Lowerer, boolean, constant};
use weir_ir::{BinaryOp as Op, Operand, Terminator};

impl Lowerer<'_, '_> {
    pub(super) fn set_validity(&mut self, place: &Place, valid: bool) {
        match place {
            Place::Header { id, .. } => {
                if valid {
                    self.invalidate_others(*id, &boolean(true));
                    self.clear_if_invalid(place, &boolean(true));
                }
                let target = self.program.headers[*id].valid;
                self.set(target, boolean(valid));
            }
            Place::Dynamic { elements, index } => {
                for (i, element) in elements.iter().enumerate() {
                    let chosen = self.index_is(index, i);
                    if let Place::Header { id, .. } = element {
                        let target = self.program.headers[*id].valid;
                        let new = self.mux(chosen.clone(), boolean(valid), Operand::Var(target));
                        if valid {
                            self.invalidate_others(*id, &chosen);
                            self.clear_if_invalid(element, &chosen);
                        }
                        self.set(target, new);
                    }
                }
            }
            _ => {}
        }
    }

    /// A header that becomes valid has fields without a value (P4_16, section "Operations on
    /// headers"): weir's are
    /// zero, as simple_switch's are. Those of a header that is valid stay.
    fn clear_if_invalid(&mut self, header: &Place, chosen: &Operand) {
        let Val::Header { valid, fields, .. } = self.read(header) else {
            return;
        };
        let invalid = self.not(valid);
        let clear = self.binary(Op::And, chosen.clone(), invalid, 1);
        let Place::Header { fields: places, .. } = header else {
            return;
        };
        let mut leaves = Vec::new();
        fields.iter().for_each(|(_, value)| value.leaves(&mut leaves));
        if !leaves.iter().any(|l| self.is_varbit(l)) {
            for ((_, place), (_, value)) in places.iter().zip(fields.iter()) {
                let zero = self.zeroed(value);
                let new = self.choose(&clear, &zero, value);
                self.write(place, &new);
            }
            return;
        }
        // Of an empty varbit there is a constant, but no choice between it and a variable.
        let (empty, done) = (self.new_block(), self.new_block());
        let branch = Terminator::Branch {
            condition: clear,
            then: empty,
            otherwise: done,
        };
        self.branch_unseen(branch, empty);
        for ((_, place), (_, value)) in places.iter().zip(fields.iter()) {
            let zero = self.zeroed(value);
            self.write(place, &zero);
        }
        self.goto(done);
    }

    pub(super) fn shift_stack(&mut self, place: &Place, count: usize, push: bool) {
        if let Place::Dynamic { elements, index } = place {
            // A stack chosen by a run-time index: each one shifts under its own condition.
            for (i, stack) in elements.iter().enumerate() {
                let old = self.read(stack);
                let old = self.snapshot(&old);
                let chosen = self.index_is(index, i);
                self.shift_stack(stack, count, push);
                let new = self.read(stack);
                let kept = self.choose(&chosen, &new, &old);
                self.write_safely(stack, &kept);
            }
            return;
        }
        let Place::Stack { elements, next } = place else { return };
        let size = elements.len();
        let count = count.min(size);
        let order: Vec<usize> = if push {
            (0..size).rev().collect()
        } else {
            (0..size).collect()
        };
        for i in order {
            let source = if push {
                i.checked_sub(count)
            } else {
                Some(i + count).filter(|&s| s < size)
            };
            let value = match source {
                Some(source) => self.read(&elements[source]),
                None => {
                    let old = self.read(&elements[i]);
                    match old {
                        Val::Header { .. } | Val::Union(_) => Val::InvalidHeader,
                        other => other,
                    }
                }
            };
            self.write(&elements[i], &value);
        }
        if let Some(next) = next {
            let (old, n) = (Operand::Var(*next), constant(32, count as u128));
            let new = if push {
                let limit = constant(32, size as u128);
                let sum = self.binary(Op::Add, old, n, 32);
                let over = self.binary(Op::Lt, limit.clone(), sum.clone(), 1);
                self.mux(over, limit, sum)
            } else {
                let under = self.binary(Op::Lt, old.clone(), n.clone(), 1);
                let difference = self.binary(Op::Sub, old, n, 32);
                self.mux(under, constant(32, 0), difference)
            };
            self.set(*next, new);
        }
    }
}
