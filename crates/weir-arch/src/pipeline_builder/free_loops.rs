//! Finds loops of a parser that take nothing from the packet.

use weir_ir::{BlockId, Body};

/// Basic blocks of a parser in loops that take nothing from the packet, and blocks between two such
/// loops.
pub(crate) fn free_loops(parser: &Body) -> Vec<BlockId> {
    let count = parser.blocks.len();
    let (mut after, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    let is_free = |id: BlockId| !parser.blocks[id].can_fail();
    for (id, block) in parser.blocks.iter().filter(|(id, _)| is_free(*id)) {
        for target in block.terminator.targets().into_iter().filter(|t| is_free(*t)) {
            after[id.index()].push(target);
            before[target.index()].push(id);
        }
    }
    // Blocks that lead to no loop are removed from the ends on, then those that no loop leads to.
    let mut kept: Vec<bool> = parser.blocks.ids().map(is_free).collect();
    for (to, from) in [(&after, &before), (&before, &after)] {
        let mut open: Vec<usize> = to
            .iter()
            .map(|to| to.iter().filter(|t| kept[t.index()]).count())
            .collect();
        let mut work: Vec<BlockId> = parser.blocks.ids().filter(|id| open[id.index()] == 0).collect();
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut kept[id.index()], false) {
                for &next in &from[id.index()] {
                    open[next.index()] -= 1;
                    work.extend((open[next.index()] == 0).then_some(next));
                }
            }
        }
    }
    parser.blocks.ids().filter(|id| kept[id.index()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_ir::{BasicBlock, Bits, Inst, InstKind, Loc, Operand, Terminator};

    /// The free loops of a parser. Each block has its successors and whether it takes bits.
    fn found(blocks: &[(&[usize], bool)]) -> Vec<usize> {
        let mut body = Body::default();
        for (successors, takes) in blocks {
            let target = |n: usize| BlockId::new(successors[n]);
            let terminator = match successors.len() {
                0 => Terminator::Accept,
                1 => Terminator::Goto(target(0)),
                _ => Terminator::Branch {
                    condition: Operand::Const(Bits::new(1, 1)),
                    then: target(0),
                    otherwise: target(1),
                },
            };
            let bits = Operand::Const(Bits::new(32, 8));
            let advance = Inst {
                kind: InstKind::Advance { bits },
                loc: Loc::default(),
            };
            body.blocks.push(BasicBlock {
                state: None,
                insts: takes.then_some(advance).into_iter().collect(),
                terminator,
                loc: Loc::default(),
            });
        }
        free_loops(&body).into_iter().map(BlockId::index).collect()
    }

    #[test]
    fn a_parser_without_loops_has_none() {
        assert_eq!(found(&[(&[1, 2], false), (&[2], true), (&[], false)]), [0; 0]);
    }

    #[test]
    fn a_block_may_be_a_loop_of_its_own() {
        assert_eq!(found(&[(&[1], true), (&[1, 2], false), (&[], false)]), [1]);
        assert_eq!(found(&[(&[0, 0], false)]), [0]);
    }

    #[test]
    fn what_takes_from_the_packet_breaks_its_loop_and_no_other() {
        // 1 and 2 are a loop, and so are 1 and 3, which takes.
        let both = [
            (&[1][..], false),
            (&[2, 3], false),
            (&[1, 4], false),
            (&[1], true),
            (&[], false),
        ];
        assert_eq!(found(&both), [1, 2]);
        let taking = [(&[1][..], false), (&[2], true), (&[1, 3], false), (&[], false)];
        assert_eq!(found(&taking), [0; 0]);
    }

    #[test]
    fn blocks_between_two_loops_count_and_those_beside_them_do_not() {
        let blocks = [
            (&[1, 5][..], false),
            (&[1, 2], false),
            (&[3], false),
            (&[3, 4], false),
            (&[], false),
            (&[4], false),
        ];
        assert_eq!(found(&blocks), [1, 2, 3]);
    }
}
