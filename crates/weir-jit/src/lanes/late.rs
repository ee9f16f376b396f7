//! Which loads from the packet wait until somebody needs them.
//!
//! A segment loads what several of its ways read where they part. Where only rare blocks do so, hardly any vector of packets needs it:
//! then it is loaded there. In between the packet must not have been written.

use super::flow::Flow;
use super::place::{Place, Places, Region};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value};
use std::collections::{BTreeSet, HashMap};

/// A load that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LateLoad {
    pub base: Value,
    pub offset: i32,
    /// Bytes.
    pub count: u32,
}

/// Where a value is used: the block's position, and the instruction's in it.
type Use = (usize, usize);

/// The loads that wait, by their results.
pub(super) fn find(
    func: &Function,
    places: &mut Places<'_>,
    flow: &Flow,
    ends: &BTreeSet<Block>,
) -> HashMap<Value, LateLoad> {
    let uses = uses(func, flow, ends);
    let written = Written::find(func, places, flow, ends);
    let mut late = HashMap::new();
    for (at, inst) in instructions(func, flow, ends) {
        if flow.leads_on(at.0)
            && let Some((result, load)) = load(func, places, inst)
            && let Some(uses) = uses.get(&result)
            && uses.iter().all(|of| !flow.leads_on(of.0) && !written.before(*of))
        {
            late.insert(result, load);
        }
    }
    late
}

/// All instructions of blocks that there is code for, with where they are.
fn instructions<'a>(
    func: &'a Function,
    flow: &'a Flow,
    ends: &'a BTreeSet<Block>,
) -> impl Iterator<Item = (Use, Inst)> + 'a {
    let blocks = flow.order.iter().enumerate().filter(|(_, block)| !ends.contains(block));
    blocks.flat_map(|(i, block)| {
        let numbered = func.layout.block_insts(*block).enumerate();
        numbered.map(move |(number, inst)| ((i, number), inst))
    })
}

fn uses(func: &Function, flow: &Flow, ends: &BTreeSet<Block>) -> HashMap<Value, Vec<Use>> {
    let mut uses: HashMap<Value, Vec<Use>> = HashMap::new();
    for (at, inst) in instructions(func, flow, ends) {
        for value in func.dfg.inst_values(inst) {
            uses.entry(value).or_default().push(at);
        }
    }
    uses
}

/// A load from the packet, and its result.
fn load(func: &Function, places: &mut Places<'_>, inst: Inst) -> Option<(Value, LateLoad)> {
    let InstructionData::Load {
        opcode, arg, offset, ..
    } = func.dfg.insts[inst]
    else {
        return None;
    };
    let &result = func.dfg.inst_results(inst).first()?;
    let count = Places::access(opcode, func.dfg.value_type(result))?;
    match places.place(arg, offset.into())? {
        Place::Own(Region::Packet, base, offset) => Some((result, LateLoad { base, offset, count })),
        _ => None,
    }
}

/// Where packets are written.
struct Written {
    /// Per block: whether on some way to it.
    on_the_way: Vec<bool>,
    /// Per block: the first instruction that does so.
    first: Vec<Option<usize>>,
}

impl Written {
    fn find(func: &Function, places: &mut Places<'_>, flow: &Flow, ends: &BTreeSet<Block>) -> Self {
        let mut first = vec![None; flow.order.len()];
        for ((block, number), inst) in instructions(func, flow, ends) {
            if let InstructionData::Store { args, offset, .. } = func.dfg.insts[inst]
                && let Some(Place::Own(Region::Packet, ..)) = places.place(args[1], offset.into())
            {
                first[block].get_or_insert(number);
            }
        }
        let mut on_the_way = vec![false; flow.order.len()];
        for block in 0..flow.order.len() {
            on_the_way[block] = flow.before[block].iter().any(|b| on_the_way[*b] || first[*b].is_some());
        }
        Written { on_the_way, first }
    }

    /// Whether packets may have been written by then. The value of the first store itself is fetched before anything is.
    fn before(&self, (block, number): Use) -> bool {
        self.on_the_way[block] || self.first[block].is_some_and(|first| first < number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::supported;
    use super::*;

    /// Of a function that loads `v10` to `v12` from the packet and `v13` from a row, then goes on with these blocks: which of the loads wait. Point 2 is where most
    /// packets go.
    fn late(blocks: &str) -> Vec<u32> {
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
        let mut places = Places::new(func);
        let ends = supported::ends(func, &mut places).expect("all of it is supported");
        let flow = Flow::new(func, &ends, &BTreeSet::from([2])).expect("no loop");
        let late = find(func, &mut places, &flow, &ends);
        let mut late: Vec<u32> = late.keys().map(|v| v.as_u32()).collect();
        late.sort_unstable();
        late
    }

    #[test]
    fn what_only_rare_blocks_read_waits() {
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
        assert_eq!(late(blocks), [10]);
    }

    #[test]
    fn what_is_read_after_the_packet_was_written_does_not() {
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
        assert_eq!(late(blocks), [0; 0]);
        // As what is written itself it may.
        let only = blocks.replace("store notrap v10, v1+1408", "store notrap v12, v1+1408");
        assert_eq!(late(&only), [10]);
    }
}
