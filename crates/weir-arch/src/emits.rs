//! Which headers the ingress deparser emits, in which order.

use std::collections::HashSet;
use weir_ir::passes::{reachable, read_by_inst, read_by_terminator, written};
use weir_ir::{BlockId, Body, HeaderId, InstKind, Program, VarId};

/// A header that the deparser emits where it is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Emit {
    pub header: HeaderId,
    /// Where in the deparser.
    pub block: BlockId,
    /// On every path through the deparser.
    pub always: bool,
}

/// The headers in the order of their emits, the same on every path; `None` where the order is not
/// known at compile time: a header is emitted twice or changed after that, or the deparser has a
/// loop.
pub(crate) fn emits(program: &Program, deparser: &Body) -> Option<Vec<Emit>> {
    let order = topological(deparser)?;
    let mut found: Vec<Emit> = Vec::new();
    for &id in &order {
        for (inst_index, inst) in deparser.blocks[id].insts.iter().enumerate() {
            let InstKind::Emit { header } = inst.kind else { continue };
            let twice = found.iter().any(|e| e.header == header);
            if twice || changes_after(program, deparser, header, id, inst_index) {
                return None;
            }
            found.push(Emit {
                header,
                block: id,
                always: !can_avoid(deparser, id),
            });
        }
    }
    Some(found)
}

/// The reachable basic blocks in topological order; `None` where there is a loop.
fn topological(body: &Body) -> Option<Vec<BlockId>> {
    let mut order = Vec::new();
    let mut done = HashSet::new();
    let mut open = HashSet::from([BlockId::new(0)]);
    let mut stack = vec![(BlockId::new(0), 0)];
    while let Some((id, next)) = stack.pop() {
        match body.blocks.get(id)?.terminator.targets().get(next) {
            Some(&target) => {
                stack.push((id, next + 1));
                if open.contains(&target) {
                    return None;
                }
                if !done.contains(&target) {
                    open.insert(target);
                    stack.push((target, 0));
                }
            }
            None => {
                open.remove(&id);
                done.insert(id);
                order.push(id);
            }
        }
    }
    order.reverse();
    Some(order)
}

/// Whether anything of a header is written after an instruction.
fn changes_after(program: &Program, body: &Body, header: HeaderId, block: BlockId, inst: usize) -> bool {
    let instance = &program.headers[header];
    let changes = |kind: &InstKind| {
        let mut found = false;
        written(kind, &program.headers, &mut |v| {
            found |= v == instance.valid || instance.fields.contains(&v);
        });
        found
    };
    let rest = body.blocks[block].insts.iter().skip(inst + 1);
    if rest.into_iter().any(|i| changes(&i.kind)) {
        return true;
    }
    let mut seen = HashSet::new();
    let mut work = body.blocks[block].terminator.targets();
    while let Some(id) = work.pop() {
        if seen.insert(id) {
            if body.blocks[id].insts.iter().any(|i| changes(&i.kind)) {
                return true;
            }
            work.extend(body.blocks[id].terminator.targets());
        }
    }
    false
}

/// Whether some path through the body does not pass a basic block.
fn can_avoid(body: &Body, block: BlockId) -> bool {
    let mut seen = HashSet::from([block]);
    let mut work = vec![BlockId::new(0)];
    while let Some(id) = work.pop() {
        if seen.insert(id) {
            let targets = body.blocks[id].terminator.targets();
            if targets.is_empty() {
                return true;
            }
            work.extend(targets);
        }
    }
    false
}

/// Whether any reachable instruction does something.
pub(crate) fn any(body: &Body, test: impl Fn(&InstKind) -> bool) -> bool {
    let mut blocks = reachable(body).into_iter();
    blocks.any(|id| body.blocks[id].insts.iter().any(|i| test(&i.kind)))
}

/// Whether a deparser that has run in part may run once more from its beginning with what it has
/// made of shared variables: it writes none that it has read before.
pub(crate) fn may_rerun(program: &Program, body: &Body) -> bool {
    let Some(order) = topological(body) else { return false };
    let shared: HashSet<VarId> = program
        .shared
        .iter()
        .flat_map(|g| g.leaves.iter().map(|l| l.var))
        .collect();
    order.iter().all(|&id| {
        let block = &body.blocks[id];
        let mut read = HashSet::new();
        let mut note = |v| {
            if shared.contains(&v) {
                read.insert(v);
            }
        };
        let mut writes_later = false;
        for inst in &block.insts {
            read_by_inst(&inst.kind, &program.headers, &mut note);
        }
        read_by_terminator(&block.terminator, &mut note);
        // In the same basic block the order counts, in later ones all.
        let mut before = HashSet::new();
        for inst in &block.insts {
            read_by_inst(&inst.kind, &program.headers, &mut |v| {
                before.insert(v);
            });
            written(&inst.kind, &program.headers, &mut |v| {
                writes_later |= shared.contains(&v) && before.contains(&v);
            });
        }
        let mut seen = HashSet::new();
        let mut work = block.terminator.targets();
        while let Some(next) = work.pop() {
            if seen.insert(next) {
                for inst in &body.blocks[next].insts {
                    written(&inst.kind, &program.headers, &mut |v| writes_later |= read.contains(&v));
                }
                work.extend(body.blocks[next].terminator.targets());
            }
        }
        !writes_later
    })
}
