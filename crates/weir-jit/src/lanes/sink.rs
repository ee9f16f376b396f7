//! Decides which loads from the packet are sunk into the rare blocks that use them.
//!
//! A segment loads a field where the paths that read it diverge. If only rare blocks read it, the
//! load is done in those blocks, so that most vectors skip it. The packet must not be written
//! between the original load and the use.
//!
//! Relies on which blocks are hot ([`Flow::is_hot`]; all others are *rare*) and on addresses
//! ([`AddressAnalysis`]). It emits nothing: [`super::lower`] emits the loads.

use super::address::{AddressAnalysis, MemoryOperand, Region};
use super::flow::Flow;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value};
use std::collections::{BTreeSet, HashMap};

/// A load from the packet that is emitted where its value is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SunkLoad {
    /// The packet's address.
    pub base: Value,
    /// The byte offset from it.
    pub offset: i32,
    /// Width in bytes.
    pub count: u32,
}

/// The position of an instruction: the block's position in [`Flow::order`], and the index in it.
type Position = (usize, usize);

/// The sunk loads, by their results.
pub(super) fn find_sunk_loads(
    func: &Function,
    addresses: &mut AddressAnalysis<'_>,
    flow: &Flow,
    bailouts: &BTreeSet<Block>,
) -> HashMap<Value, SunkLoad> {
    let uses_by_value = uses_by_value(func, flow, bailouts);
    let packet_stores = PacketStores::new(func, addresses, flow, bailouts);
    let mut sunk = HashMap::new();
    for ((block, _), inst) in instructions(func, flow, bailouts) {
        if flow.is_hot(block)
            && let Some((result, load)) = packet_load(func, addresses, inst)
            && let Some(uses) = uses_by_value.get(&result)
            && uses
                .iter()
                .all(|position| !flow.is_hot(position.0) && !packet_stores.may_precede(*position))
        {
            sunk.insert(result, load);
        }
    }
    sunk
}

/// All instructions that are lowered, with their positions.
fn instructions<'a>(
    func: &'a Function,
    flow: &'a Flow,
    bailouts: &'a BTreeSet<Block>,
) -> impl Iterator<Item = (Position, Inst)> + 'a {
    let blocks = flow
        .order
        .iter()
        .enumerate()
        .filter(|(_, block)| !bailouts.contains(block));
    blocks.flat_map(|(i, block)| {
        let indexed = func.layout.block_insts(*block).enumerate();
        indexed.map(move |(index, inst)| ((i, index), inst))
    })
}

/// The positions of the instructions that use each value.
fn uses_by_value(func: &Function, flow: &Flow, bailouts: &BTreeSet<Block>) -> HashMap<Value, Vec<Position>> {
    let mut uses: HashMap<Value, Vec<Position>> = HashMap::new();
    for (position, inst) in instructions(func, flow, bailouts) {
        for value in func.dfg.inst_values(inst) {
            uses.entry(value).or_default().push(position);
        }
    }
    uses
}

/// The result and the load, if the instruction loads from the packet.
fn packet_load(func: &Function, addresses: &mut AddressAnalysis<'_>, inst: Inst) -> Option<(Value, SunkLoad)> {
    let InstructionData::Load {
        opcode, arg, offset, ..
    } = func.dfg.insts[inst]
    else {
        return None;
    };
    let &result = func.dfg.inst_results(inst).first()?;
    let count = AddressAnalysis::access_width(opcode, func.dfg.value_type(result))?;
    match addresses.memory_operand(arg, offset.into())? {
        MemoryOperand::PerPacket(Region::Packet, base, offset) => Some((result, SunkLoad { base, offset, count })),
        _ => None,
    }
}

/// The positions of stores to the packet.
struct PacketStores {
    /// By block: whether some path to it stores to the packet.
    on_some_path: Vec<bool>,
    /// By block: the index of its first store to the packet.
    first_in_block: Vec<Option<usize>>,
}

impl PacketStores {
    fn new(func: &Function, addresses: &mut AddressAnalysis<'_>, flow: &Flow, bailouts: &BTreeSet<Block>) -> Self {
        let mut first_in_block = vec![None; flow.order.len()];
        for ((block, index), inst) in instructions(func, flow, bailouts) {
            if let InstructionData::Store { args, offset, .. } = func.dfg.insts[inst]
                && let Some(MemoryOperand::PerPacket(Region::Packet, ..)) =
                    addresses.memory_operand(args[1], offset.into())
            {
                first_in_block[block].get_or_insert(index);
            }
        }
        let mut on_some_path = vec![false; flow.order.len()];
        for block in 0..flow.order.len() {
            on_some_path[block] = flow.predecessors[block]
                .iter()
                .any(|b| on_some_path[*b] || first_in_block[*b].is_some());
        }
        PacketStores {
            on_some_path,
            first_in_block,
        }
    }

    /// Whether the packet may have been stored to before an instruction. The instruction itself
    /// does not count: if it is a store, its value is loaded first.
    fn may_precede(&self, (block, index): Position) -> bool {
        self.on_some_path[block] || self.first_in_block[block].is_some_and(|first| first < index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::supported;
    use super::*;

    /// Appends blocks to a function that loads `v10` to `v12` from the packet and `v13` from a row.
    /// Returns the sunk loads. Point 2 is the hot one.
    fn sunk_in(blocks: &str) -> Vec<u32> {
        let text = format!(
            "function %f(i64, i64, i64, i64, i64, i64) -> i64 {{
            block0(v0: i64, v1: i64, v2: i64, v3: i64, v4: i64, v5: i64):
                v6 = load.i64 notrap v1
                v10 = load.i64 notrap v6
                v11 = load.i64 notrap v6+8
                v12 = load.i64 notrap v6+16
                v13 = load.i64 notrap v1+704
                brif v12, block1, block2
            {blocks} }}"
        );
        let functions = cranelift_reader::parse_functions(&text).expect("it is well-formed");
        let func = &functions[0];
        let mut addresses = AddressAnalysis::new(func);
        let bailouts = supported::bailout_blocks(func, &mut addresses).expect("all of it is supported");
        let flow = Flow::new(func, &bailouts, &BTreeSet::from([2])).expect("no loop");
        let sunk = find_sunk_loads(func, &mut addresses, &flow, &bailouts);
        let mut sunk: Vec<u32> = sunk.keys().map(|v| v.as_u32()).collect();
        sunk.sort_unstable();
        sunk
    }

    #[test]
    fn loads_used_only_in_rare_blocks_are_sunk() {
        let blocks = "block1:
                v20 = iadd v11, v13
                store notrap v20, v1+1408
                v21 = iconst.i64 2
                return v21
            block2:
                v22 = iadd v10, v11
                store notrap v22, v1+1408
                v23 = iconst.i64 3
                return v23";
        assert_eq!(sunk_in(blocks), [10]);
    }

    #[test]
    fn loads_used_after_a_packet_store_are_not_sunk() {
        let blocks = "block1:
                v21 = iconst.i64 2
                return v21
            block2:
                store notrap v10, v6+24
                brif v11, block3, block4
            block3:
                store notrap v10, v1+1408
                v23 = iconst.i64 3
                return v23
            block4:
                store notrap v11, v1+1408
                v24 = iconst.i64 3
                return v24";
        assert_eq!(sunk_in(blocks), [0; 0]);
        // The value that is stored may itself be sunk.
        let only = blocks.replace("store notrap v10, v1+1408", "store notrap v12, v1+1408");
        assert_eq!(sunk_in(&only), [10]);
    }
}
