//! Control flow: masks of the edges between blocks, and block parameters.

use super::{LaneValue, Lower};
use crate::lanes::flow::point_of;
use crate::lanes::op::{M, MaskAlu, Op};
use cranelift_codegen::ir::{BlockCall, Inst, InstructionData, Value};

impl Lower<'_> {
    pub(super) fn terminator(&mut self, inst: Inst) {
        match self.func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => {
                let here = self.block_mask();
                self.edge(destination, here);
            }
            InstructionData::Brif {
                arg,
                blocks: [then, otherwise],
                ..
            } => {
                let known = self.value_of(arg);
                match self.as_mask(known) {
                    Ok(mask) => {
                        let (yes, no) = self.split_block_mask(mask);
                        self.edge(then, yes);
                        self.edge(otherwise, no);
                    }
                    Err(always) => {
                        // No packet takes the other edge.
                        let here = self.block_mask();
                        let empty = self.mask_alu(MaskAlu::AndNot, here, here);
                        let (taken, other) = if always { (then, otherwise) } else { (otherwise, then) };
                        self.edge(taken, here);
                        self.edge(other, empty);
                    }
                }
            }
            _ => {
                // A return: the only other terminator that is supported.
                if let Some(point) = point_of(self.func, self.flow.order[self.current]) {
                    self.op(Op::Leave { point });
                }
            }
        }
    }

    /// Packets of a mask take an edge.
    fn edge(&mut self, call: BlockCall, mask: M) {
        let pool = &self.func.dfg.value_lists;
        let target = call.block(pool);
        let to = self.flow.position[&target];
        if self.is_merge(to) {
            let joined = self.mask_of(to);
            self.op(Op::Join {
                mask: joined,
                from: mask,
            });
        } else if self.flow.same_packets[to].is_none() {
            self.masks.insert(to, mask);
        }
        if self.bailouts.contains(&target) {
            return;
        }
        let arguments: Vec<Value> = call.args(pool).filter_map(|a| a.as_value()).collect();
        for (&parameter, argument) in self.func.dfg.block_params(target).iter().zip(arguments) {
            let known = self.value_of(argument);
            if self.flow.predecessors[to].len() == 1 {
                self.known.insert(parameter, known);
                continue;
            }
            let from = self.as_source(known);
            match self.parameters.get(&parameter) {
                Some(&dst) => self.op(Op::CopyIf { dst, mask, from }),
                None => {
                    let dst = self.code.vector();
                    let bits = self.func.dfg.value_type(parameter).bits();
                    self.bounded(dst, u64::MAX >> (64 - bits.min(64)));
                    self.op(Op::Copy { dst, from });
                    self.parameters.insert(parameter, dst);
                    self.known.insert(parameter, LaneValue::Vector(dst));
                }
            }
        }
    }
}
