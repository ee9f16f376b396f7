//! Lowers control flow: masks of the edges between blocks, and moves to block parameters.
//!
//! There are no jumps. A terminator computes the mask of each of its edges.

use super::{LaneValue, Lower};
use crate::lanes::flow::suspension_point_of;
use crate::lanes::op::{MaskAlu, MaskReg, Op};
use cranelift_codegen::ir::{BlockCall, Inst, InstructionData, Value};

impl Lower<'_> {
    /// Lowers a jump, a conditional branch or a return.
    pub(super) fn lower_terminator(&mut self, inst: Inst) {
        match self.func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => {
                let block_mask = self.block_mask();
                self.lower_edge(destination, block_mask);
            }
            InstructionData::Brif {
                arg,
                blocks: [then, otherwise],
                ..
            } => {
                let condition = self.value_of(arg);
                match self.as_mask(condition) {
                    Ok(mask) => {
                        let (taken, not_taken) = self.split_block_mask(mask);
                        self.lower_edge(then, taken);
                        self.lower_edge(otherwise, not_taken);
                    }
                    Err(constant) => {
                        let block_mask = self.block_mask();
                        let empty = self.mask_alu(MaskAlu::AndNot, block_mask, block_mask);
                        let (taken, not_taken) = if constant { (then, otherwise) } else { (otherwise, then) };
                        self.lower_edge(taken, block_mask);
                        self.lower_edge(not_taken, empty);
                    }
                }
            }
            _ => {
                // A return: the only other terminator that is supported.
                if let Some(point) = suspension_point_of(self.func, self.flow.order[self.current_block]) {
                    self.push_op(Op::Suspend { point });
                }
            }
        }
    }

    /// Lowers an edge that packets of a mask take: adds them to the target's mask, and sets its
    /// parameters.
    fn lower_edge(&mut self, call: BlockCall, mask: MaskReg) {
        let pool = &self.func.dfg.value_lists;
        let target = call.block(pool);
        let to = self.flow.position[&target];
        if self.needs_merge_mask(to) {
            let merge_mask = self.mask_of_block(to);
            self.push_op(Op::AddToMask {
                mask: merge_mask,
                from: mask,
            });
        } else if self.flow.control_equivalent[to].is_none() {
            self.block_masks.insert(to, mask);
        }
        if self.bailouts.contains(&target) {
            return;
        }
        let arguments: Vec<Value> = call.args(pool).filter_map(|a| a.as_value()).collect();
        for (&parameter, argument) in self.func.dfg.block_params(target).iter().zip(arguments) {
            let value = self.value_of(argument);
            if self.flow.predecessors[to].len() == 1 {
                self.lane_values.insert(parameter, value);
                continue;
            }
            let from = self.as_source(value);
            match self.parameter_vectors.get(&parameter) {
                Some(&dst) => self.push_op(Op::MaskedMove { dst, mask, from }),
                None => {
                    let dst = self.code.new_vector();
                    let bits = self.func.dfg.value_type(parameter).bits();
                    self.limit_upper_bound(dst, u64::MAX >> (64 - bits.min(64)));
                    self.push_op(Op::Move { dst, from });
                    self.parameter_vectors.insert(parameter, dst);
                    self.lane_values.insert(parameter, LaneValue::Vector(dst));
                }
            }
        }
    }
}
