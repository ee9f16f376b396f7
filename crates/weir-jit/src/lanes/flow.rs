//! Orders the blocks of a segment for execution under masks, and finds which blocks run for the
//! same packets.
//!
//! Each block comes after its predecessors, and is directly followed by the blocks it dominates, so
//! that an empty block is skipped together with them. Loops are not supported.

use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode};
use std::collections::{BTreeSet, HashMap};

/// Blocks in the order of execution. The other fields are by position in it.
#[derive(Debug)]
pub(super) struct Flow {
    pub order: Vec<Block>,
    pub position: HashMap<Block, usize>,
    /// Predecessors, once per edge.
    pub predecessors: Vec<Vec<usize>>,
    /// The immediate dominator; the first block's is itself.
    pub dominator: Vec<usize>,
    /// An earlier block that runs for exactly the same packets.
    pub same_packets: Vec<Option<usize>>,
    /// The position behind the blocks that a block dominates.
    pub dominated_end: Vec<usize>,
    /// Whether a path leads from a block to a hot point.
    is_hot: Vec<bool>,
    successors: Vec<Vec<usize>>,
}

impl Flow {
    /// Orders the blocks reachable from the entry, up to `bailouts`. `hot_points` are the points at
    /// which most packets suspend. `None`: there is a loop.
    pub fn new(func: &Function, bailouts: &BTreeSet<Block>, hot_points: &BTreeSet<usize>) -> Option<Self> {
        let topological_order = topological(func, func.layout.entry_block()?, bailouts)?;
        let edges = Edges::new(func, &topological_order, bailouts);
        let is_hot = edges.is_hot(func, &topological_order, hot_points);
        let size = |b: &Block| match bailouts.contains(b) {
            true => 1,
            false => func.layout.block_insts(*b).count(),
        };
        let sizes: Vec<usize> = topological_order.iter().map(size).collect();
        let order = dominance_order(&edges, &dominators(&edges.predecessors), &sizes, &is_hot);
        let order: Vec<Block> = order.into_iter().map(|i| topological_order[i]).collect();
        let edges = Edges::new(func, &order, bailouts);
        let dominator = dominators(&edges.predecessors);
        let same_packets = same_packets(&edges.successors, &dominator);
        let dominated_end = dominated_ends(&dominator);
        debug_assert!(
            dominator.iter().enumerate().all(|(i, above)| i < dominated_end[*above]),
            "dominated blocks follow their dominator"
        );
        Some(Flow {
            position: order.iter().enumerate().map(|(i, b)| (*b, i)).collect(),
            is_hot: edges.is_hot(func, &order, hot_points),
            order,
            predecessors: edges.predecessors,
            successors: edges.successors,
            dominator,
            same_packets,
            dominated_end,
        })
    }

    /// Whether a block is often empty: it leads to no hot point, or a sibling leads to one, too.
    pub fn is_rare(&self, block: usize) -> bool {
        match self.predecessors[block].as_slice() {
            &[from] => {
                let mut others = self.successors[from].iter().filter(|b| **b != block);
                !self.is_hot[block] || others.any(|b| self.is_hot[*b])
            }
            _ => self.same_packets[block].is_none(),
        }
    }

    /// Whether a path leads from a block to a hot point.
    pub fn is_hot(&self, block: usize) -> bool {
        self.is_hot[block]
    }

    /// Whether all paths to `b` go through `a`.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        (a..self.dominated_end[a]).contains(&b)
    }
}

/// Control-flow edges between positions.
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
    fn is_hot(&self, func: &Function, order: &[Block], hot_points: &BTreeSet<usize>) -> Vec<bool> {
        let mut is_hot: Vec<bool> = order
            .iter()
            .map(|b| point_of(func, *b).is_some_and(|point| hot_points.contains(&point)))
            .collect();
        // A block with cold predecessors only is cold.
        let mut is_cold = vec![false; order.len()];
        for i in 0..order.len() {
            let after_cold = !self.predecessors[i].is_empty() && self.predecessors[i].iter().all(|b| is_cold[*b]);
            is_cold[i] = after_cold || func.layout.is_cold(order[i]);
        }
        for i in (0..order.len()).rev() {
            is_hot[i] |= self.successors[i].iter().any(|b| is_hot[*b]);
            is_hot[i] &= !is_cold[i];
        }
        if !is_hot[0] {
            is_hot.fill(true);
        }
        is_hot
    }

    /// By block: the instructions on the longest path from it to the end.
    fn weights(&self, sizes: &[usize]) -> Vec<usize> {
        let mut weights = sizes.to_vec();
        for i in (0..sizes.len()).rev() {
            weights[i] += self.successors[i].iter().map(|b| weights[*b]).max().unwrap_or(0);
        }
        weights
    }
}

/// The point at which packets suspend at the end of a block.
pub(super) fn point_of(func: &Function, block: Block) -> Option<usize> {
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

/// Successors of a block, once per edge.
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
fn topological(func: &Function, entry: Block, bailouts: &BTreeSet<Block>) -> Option<Vec<Block>> {
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
/// in the given order. Among the candidates the smallest hot subtree comes next: special cases are
/// longer, and the masks of later blocks stay live. Blocks that lead to no hot point come last.
fn dominance_order(edges: &Edges, dominator: &[usize], sizes: &[usize], is_hot: &[bool]) -> Vec<usize> {
    let count = dominator.len();
    let weight = edges.weights(sizes);
    let mut children = vec![Vec::new(); count];
    for node in 1..count {
        children[dominator[node]].push(node);
    }
    // By node: the number of edges to it from subtrees of its siblings in the dominator tree, and
    // the siblings to which its own subtree leads.
    let mut waiting = vec![0usize; count];
    let mut leads_to = vec![Vec::new(); count];
    for node in 1..count {
        for &from in &edges.predecessors[node] {
            let mut at = from;
            while at != dominator[node] && dominator[at] != dominator[node] {
                at = dominator[at];
            }
            if at != dominator[node] {
                leads_to[at].push(node);
                waiting[node] += 1;
            }
        }
    }
    // Sizes of whole subtrees.
    let mut sizes = sizes.to_vec();
    for node in (1..count).rev() {
        sizes[dominator[node]] += sizes[node];
    }
    let mut order = Vec::new();
    let mut work = vec![0];
    while let Some(node) = work.pop() {
        order.push(node);
        let rank = |child: usize| match is_hot[child] {
            true => (0, sizes[child], child),
            false => (1, usize::MAX - weight[child], child),
        };
        // Topologically. The first one is pushed last.
        let mut ready: Vec<usize> = children[node].iter().copied().filter(|c| waiting[*c] == 0).collect();
        let mut next = Vec::new();
        while let Some(i) = (0..ready.len()).min_by_key(|i| rank(ready[*i])) {
            let child = ready.swap_remove(i);
            next.push(child);
            for &to in &leads_to[child] {
                waiting[to] -= 1;
                if waiting[to] == 0 {
                    ready.push(to);
                }
            }
        }
        work.extend(next.into_iter().rev());
    }
    order
}

/// The immediate dominators of nodes in topological order; node 0 leads to all.
///
/// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm". Without loops one round is
/// enough.
fn dominators(predecessors: &[Vec<usize>]) -> Vec<usize> {
    let mut dominator = vec![0; predecessors.len()];
    for node in 1..predecessors.len() {
        let mut nearest: Option<usize> = None;
        for &from in &predecessors[node] {
            nearest = Some(match nearest {
                None => from,
                Some(mut other) => {
                    let mut from = from;
                    while from != other {
                        if from > other {
                            from = dominator[from];
                        } else {
                            other = dominator[other];
                        }
                    }
                    from
                }
            });
        }
        dominator[node] = nearest.unwrap_or(0);
    }
    dominator
}

/// By block: the end of the blocks that it dominates, in an order in which they follow it.
fn dominated_ends(dominator: &[usize]) -> Vec<usize> {
    let mut end: Vec<usize> = (1..=dominator.len()).collect();
    for i in (1..dominator.len()).rev() {
        end[dominator[i]] = end[dominator[i]].max(end[i]);
    }
    end
}

fn dominates(dominator: &[usize], a: usize, b: usize) -> bool {
    let mut at = b;
    while at > a {
        at = dominator[at];
    }
    at == a
}

/// By block: its immediate dominator, if the block in turn postdominates that.
fn same_packets(successors: &[Vec<usize>], dominator: &[usize]) -> Vec<Option<usize>> {
    // Reversed, with a node before all exits.
    let count = successors.len();
    let back = |i: usize| count - i;
    let mut after = vec![Vec::new(); count + 1];
    for (i, next) in successors.iter().enumerate() {
        after[back(i)] = match next.as_slice() {
            [] => vec![0],
            some => some.iter().map(|n| back(*n)).collect(),
        };
    }
    let post = dominators(&after);
    (0..count)
        .map(|i| {
            let above = dominator[i];
            (i > 0 && dominates(&post, back(i), back(above))).then_some(above)
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
    fn blocks_that_exit_come_last() {
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
        assert_eq!(flow.dominator[at(5)], at(2));
        assert_eq!(flow.same_packets[at(5)], Some(at(2)));
        assert_eq!(flow.same_packets[at(2)], None);
        assert_eq!(flow.same_packets[at(3)], None);
        assert!(flow.dominates(at(2), at(5)) && !flow.dominates(at(3), at(5)));
        // Block 1 does not follow block 2's subtree.
        assert_eq!(flow.dominated_end[at(2)], at(1));
        assert_eq!(flow.dominated_end[0], 6.min(flow.order.len()));
    }

    #[test]
    fn dominated_blocks_follow_their_dominator() {
        // Block 2 leads to 3 and 4, and 4 alone to 5; 3 and 6 join in 7, which is heavier than 5.
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
                assert_eq!(flow.dominates(i, j), dominates(&flow.dominator, i, j), "{i} {j}");
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
