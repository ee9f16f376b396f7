//! Orders the blocks of a segment for execution under masks, and finds which blocks are
//! control-equivalent: executed for the same packets.
//!
//! Each block comes after its predecessors, and is directly followed by the blocks it dominates, so
//! that an empty block is skipped together with them. Loops are not supported.
//!
//! Two estimates are distinguished. A *hot* block lies on a path that most packets take; any other
//! is *rare*. A block is *often empty* if a group of eight packets may well have none that reaches
//! it. Of two hot successors of a branch, both are often empty.
//!
//! A *cold* block is one that Cranelift marks so, or to which only cold blocks lead. Hot paths
//! avoid it.

use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode};
use std::collections::{BTreeSet, HashMap};

/// Blocks in the order of execution. Other methods and fields denote blocks by position in it.
#[derive(Debug)]
pub(super) struct Flow {
    pub order: Vec<Block>,
    /// By block: its index in `order`.
    pub position: HashMap<Block, usize>,
    /// By block: its predecessors, once per edge.
    pub predecessors: Vec<Vec<usize>>,
    /// By block: its immediate dominator; the first block's is itself.
    pub immediate_dominator: Vec<usize>,
    /// By block: an earlier block that is executed for exactly the same packets.
    pub control_equivalent: Vec<Option<usize>>,
    /// By block: the position after the last block that it dominates.
    pub subtree_end: Vec<usize>,
    /// By block: see [`Flow::is_hot`].
    hot: Vec<bool>,
    /// By block: its successors, once per edge.
    successors: Vec<Vec<usize>>,
}

impl Flow {
    /// Orders the blocks reachable from the entry, up to `bailouts`. `hot_points` are the points at
    /// which most packets suspend. `None`: there is a loop.
    pub fn new(func: &Function, bailouts: &BTreeSet<Block>, hot_points: &BTreeSet<usize>) -> Option<Self> {
        let topological_order = topological_order(func, func.layout.entry_block()?, bailouts)?;
        let edges = Edges::new(func, &topological_order, bailouts);
        let hot = edges.hot_blocks(func, &topological_order, hot_points);
        let inst_count = |b: &Block| match bailouts.contains(b) {
            true => 1,
            false => func.layout.block_insts(*b).count(),
        };
        let inst_counts: Vec<usize> = topological_order.iter().map(inst_count).collect();
        let order = dominance_order(&edges, &immediate_dominators(&edges.predecessors), &inst_counts, &hot);
        let order: Vec<Block> = order.into_iter().map(|i| topological_order[i]).collect();
        let edges = Edges::new(func, &order, bailouts);
        let idom = immediate_dominators(&edges.predecessors);
        let control_equivalent = control_equivalent(&edges.successors, &idom);
        let subtree_end = subtree_ends(&idom);
        debug_assert!(
            idom.iter().enumerate().all(|(i, parent)| i < subtree_end[*parent]),
            "dominated blocks follow their dominator"
        );
        Some(Flow {
            position: order.iter().enumerate().map(|(i, b)| (*b, i)).collect(),
            hot: edges.hot_blocks(func, &order, hot_points),
            order,
            predecessors: edges.predecessors,
            successors: edges.successors,
            immediate_dominator: idom,
            control_equivalent,
            subtree_end,
        })
    }

    /// Whether a group may well have no packets for a block. An estimate:
    ///
    /// - A block after a branch is often empty if it is not hot, or if another successor of the
    ///   branch is hot, too.
    /// - A merge block is often empty if no earlier block is control-equivalent to it.
    pub fn is_often_empty(&self, block: usize) -> bool {
        match self.predecessors[block].as_slice() {
            &[from] => {
                let mut others = self.successors[from].iter().filter(|b| **b != block);
                !self.hot[block] || others.any(|b| self.hot[*b])
            }
            _ => self.control_equivalent[block].is_none(),
        }
    }

    /// Whether a path without cold blocks leads from a block to a hot point.
    pub fn is_hot(&self, block: usize) -> bool {
        self.hot[block]
    }

    /// Whether all paths to `b` go through `a`.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        (a..self.subtree_end[a]).contains(&b)
    }
}

/// Control-flow edges between blocks, which are denoted by their positions in some order.
struct Edges {
    predecessors: Vec<Vec<usize>>,
    successors: Vec<Vec<usize>>,
}

impl Edges {
    fn new(func: &Function, order: &[Block], bailouts: &BTreeSet<Block>) -> Self {
        let position: HashMap<Block, usize> = order.iter().enumerate().map(|(i, b)| (*b, i)).collect();
        let (mut predecessors, mut successors) = (vec![Vec::new(); order.len()], vec![Vec::new(); order.len()]);
        for (i, &block) in order.iter().enumerate() {
            for next in block_successors(func, block, bailouts) {
                successors[i].push(position[&next]);
                predecessors[position[&next]].push(i);
            }
        }
        Edges {
            predecessors,
            successors,
        }
    }

    /// By block: whether a path without cold blocks leads to a hot point. If the entry block has
    /// no such path, all blocks count as hot.
    fn hot_blocks(&self, func: &Function, order: &[Block], hot_points: &BTreeSet<usize>) -> Vec<bool> {
        let mut hot: Vec<bool> = order
            .iter()
            .map(|b| suspension_point_of(func, *b).is_some_and(|point| hot_points.contains(&point)))
            .collect();
        // A block with cold predecessors only is cold.
        let mut cold = vec![false; order.len()];
        for i in 0..order.len() {
            let after_cold = !self.predecessors[i].is_empty() && self.predecessors[i].iter().all(|b| cold[*b]);
            cold[i] = after_cold || func.layout.is_cold(order[i]);
        }
        for i in (0..order.len()).rev() {
            hot[i] |= self.successors[i].iter().any(|b| hot[*b]);
            hot[i] &= !cold[i];
        }
        if !hot[0] {
            hot.fill(true);
        }
        hot
    }

    /// By block: the instructions on the longest path from it to the segment's end.
    fn longest_paths(&self, inst_counts: &[usize]) -> Vec<usize> {
        let mut lengths = inst_counts.to_vec();
        for i in (0..lengths.len()).rev() {
            lengths[i] += self.successors[i].iter().map(|b| lengths[*b]).max().unwrap_or(0);
        }
        lengths
    }
}

/// The point at which packets suspend at the end of a block. Returning the constant `n` suspends at
/// point `n` ([`crate::codegen::Shape::Packet`]).
pub(super) fn suspension_point_of(func: &Function, block: Block) -> Option<usize> {
    let last = func.layout.last_inst(block)?;
    if func.dfg.insts[last].opcode() != Opcode::Return {
        return None;
    }
    let point = func.dfg.value_def(*func.dfg.inst_args(last).first()?).inst()?;
    match func.dfg.insts[point] {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } => usize::try_from(imm.bits()).ok(),
        _ => None,
    }
}

/// Successors of a block, once per edge. Those in `bailouts` have none.
pub(super) fn block_successors(func: &Function, block: Block, bailouts: &BTreeSet<Block>) -> Vec<Block> {
    if bailouts.contains(&block) {
        return Vec::new();
    }
    let Some(last) = func.layout.last_inst(block) else {
        return Vec::new();
    };
    let pool = &func.dfg.value_lists;
    let calls = func.dfg.insts[last].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
    calls.iter().map(|call| call.block(pool)).collect()
}

/// Blocks in topological order. `None`: there is a loop.
fn topological_order(func: &Function, entry: Block, bailouts: &BTreeSet<Block>) -> Option<Vec<Block>> {
    #[derive(PartialEq)]
    enum VisitState {
        Open,
        Done,
    }
    let mut visits = HashMap::new();
    let mut order = Vec::new();
    let mut work = vec![entry];
    while let Some(&block) = work.last() {
        match visits.get(&block) {
            None => {
                visits.insert(block, VisitState::Open);
                for next in block_successors(func, block, bailouts) {
                    match visits.get(&next) {
                        None => work.push(next),
                        Some(VisitState::Open) => return None,
                        Some(VisitState::Done) => {}
                    }
                }
            }
            Some(visit) => {
                if *visit == VisitState::Open {
                    visits.insert(block, VisitState::Done);
                    order.push(block);
                }
                work.pop();
            }
        }
    }
    order.reverse();
    Some(order)
}

/// A topological order in which the blocks that a block dominates follow it directly; by positions
/// in the given order. Among the blocks that may come next, the one with the smallest hot subtree
/// is chosen, so that the masks of waiting blocks are live for a short time. Blocks that are not
/// hot come last, the longest path first.
fn dominance_order(edges: &Edges, idom: &[usize], inst_counts: &[usize], hot: &[bool]) -> Vec<usize> {
    let count = idom.len();
    let longest_path = edges.longest_paths(inst_counts);
    let mut children = vec![Vec::new(); count];
    for node in 1..count {
        children[idom[node]].push(node);
    }
    // By node: the number of edges to it from subtrees of its siblings in the dominator tree, and
    // the siblings to which edges lead from its own subtree.
    let mut incoming_edges = vec![0usize; count];
    let mut later_siblings = vec![Vec::new(); count];
    for node in 1..count {
        for &from in &edges.predecessors[node] {
            let mut ancestor = from;
            while ancestor != idom[node] && idom[ancestor] != idom[node] {
                ancestor = idom[ancestor];
            }
            if ancestor != idom[node] {
                later_siblings[ancestor].push(node);
                incoming_edges[node] += 1;
            }
        }
    }
    let mut subtree_sizes = inst_counts.to_vec();
    for node in (1..count).rev() {
        subtree_sizes[idom[node]] += subtree_sizes[node];
    }
    let mut order = Vec::new();
    let mut work = vec![0];
    while let Some(node) = work.pop() {
        order.push(node);
        let sort_key = |child: usize| match hot[child] {
            true => (0, subtree_sizes[child], child),
            false => (1, usize::MAX - longest_path[child], child),
        };
        // A topological order of the children: those without incoming edges are ready.
        let is_ready = |child: &usize| incoming_edges[*child] == 0;
        let mut ready: Vec<usize> = children[node].iter().copied().filter(is_ready).collect();
        let mut ordered = Vec::new();
        while let Some(i) = (0..ready.len()).min_by_key(|i| sort_key(ready[*i])) {
            let child = ready.swap_remove(i);
            ordered.push(child);
            for &sibling in &later_siblings[child] {
                incoming_edges[sibling] -= 1;
                if incoming_edges[sibling] == 0 {
                    ready.push(sibling);
                }
            }
        }
        // The first one is pushed last, and popped first.
        work.extend(ordered.into_iter().rev());
    }
    order
}

/// The immediate dominators of nodes in topological order; node 0 leads to all.
///
/// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm". Without loops one round is
/// enough.
fn immediate_dominators(predecessors: &[Vec<usize>]) -> Vec<usize> {
    let mut idom = vec![0; predecessors.len()];
    for node in 1..predecessors.len() {
        let mut common: Option<usize> = None;
        for &predecessor in &predecessors[node] {
            common = Some(match common {
                None => predecessor,
                Some(mut b) => {
                    let mut a = predecessor;
                    while a != b {
                        if a > b {
                            a = idom[a];
                        } else {
                            b = idom[b];
                        }
                    }
                    a
                }
            });
        }
        idom[node] = common.unwrap_or(0);
    }
    idom
}

/// By block: the position after the last block that it dominates. These follow it directly.
fn subtree_ends(idom: &[usize]) -> Vec<usize> {
    let mut ends: Vec<usize> = (1..=idom.len()).collect();
    for i in (1..idom.len()).rev() {
        ends[idom[i]] = ends[idom[i]].max(ends[i]);
    }
    ends
}

/// Whether all paths to `b` go through `a`, by immediate dominators.
fn dominates(idom: &[usize], a: usize, b: usize) -> bool {
    let mut ancestor = b;
    while ancestor > a {
        ancestor = idom[ancestor];
    }
    ancestor == a
}

/// By block: its immediate dominator, if the block in turn postdominates that.
fn control_equivalent(successors: &[Vec<usize>], idom: &[usize]) -> Vec<Option<usize>> {
    // The reversed graph. Its node 0 is added, and precedes all blocks without a successor.
    let count = successors.len();
    let reversed = |block: usize| count - block;
    let mut predecessors = vec![Vec::new(); count + 1];
    for (block, next) in successors.iter().enumerate() {
        predecessors[reversed(block)] = match next.as_slice() {
            [] => vec![0],
            some => some.iter().map(|n| reversed(*n)).collect(),
        };
    }
    let postdominators = immediate_dominators(&predecessors);
    (0..count)
        .map(|block| {
            let parent = idom[block];
            (block > 0 && dominates(&postdominators, reversed(block), reversed(parent))).then_some(parent)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(text: &str) -> Option<Flow> {
        let functions = cranelift_reader::parse_functions(text).expect("it is well-formed");
        Flow::new(&functions[0], &BTreeSet::new(), &BTreeSet::from([2]))
    }

    const DIAMOND: &str = "function %f(i64) -> i64 {
        block0(v0: i64):
            brif v0, block1, block2
        block1:
            v1 = iconst.i64 1
            return v1
        block2:
            brif v0, block3, block4
        block3:
            jump block5
        block4:
            jump block5
        block5:
            v2 = iconst.i64 2
            return v2
        }";

    #[test]
    fn rare_blocks_come_last() {
        let flow = flow(DIAMOND).expect("no loop");
        let numbers: Vec<u32> = flow.order.iter().map(|b| b.as_u32()).collect();
        assert_eq!(numbers.first(), Some(&0));
        assert_eq!(numbers.last(), Some(&1));
        assert_eq!(numbers[1], 2);
        assert_eq!(numbers[4], 5);
    }

    #[test]
    fn paths_that_join_run_for_the_same_packets() {
        let flow = flow(DIAMOND).expect("no loop");
        let at = |n: u32| flow.position[&Block::from_u32(n)];
        assert_eq!(flow.immediate_dominator[at(5)], at(2));
        assert_eq!(flow.control_equivalent[at(5)], Some(at(2)));
        assert_eq!(flow.control_equivalent[at(2)], None);
        assert_eq!(flow.control_equivalent[at(3)], None);
        assert!(flow.dominates(at(2), at(5)) && !flow.dominates(at(3), at(5)));
        // Block 1 is not in block 2's subtree of the dominator tree, but follows its end.
        assert_eq!(flow.subtree_end[at(2)], at(1));
        assert_eq!(flow.subtree_end[0], 6.min(flow.order.len()));
    }

    #[test]
    fn dominated_blocks_follow_their_dominator() {
        // Block 2 leads to 3 and 4, and 4 alone to 5. 3 and 6 merge in 7, which is larger than 5.
        let text = "function %f(i64) -> i64 {
            block0(v0: i64):
                brif v0, block2, block6
            block2:
                brif v0, block3, block4
            block3:
                jump block7
            block4:
                brif v0, block5, block7
            block5:
                return v0
            block6:
                jump block7
            block7:
                v1 = iconst.i64 2
                v2 = iconst.i64 2
                v3 = iconst.i64 2
                return v1
            }";
        let flow = flow(text).expect("no loop");
        let at = |n: u32| flow.position[&Block::from_u32(n)];
        for (i, from) in flow.predecessors.iter().enumerate() {
            assert!(from.iter().all(|f| *f < i));
        }
        for i in 0..flow.order.len() {
            for j in 0..flow.order.len() {
                assert_eq!(
                    flow.dominates(i, j),
                    dominates(&flow.immediate_dominator, i, j),
                    "{i} {j}"
                );
            }
        }
        assert!(at(5) < at(7));
    }

    #[test]
    fn loops_are_rejected() {
        let text = "function %f(i64) -> i64 {
            block0(v0: i64):
                jump block1
            block1:
                brif v0, block1, block2
            block2:
                return v0
            }";
        assert!(flow(text).is_none());
    }
}
