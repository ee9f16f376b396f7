//! Headers that do not begin and end at whole bytes: code has none. Before a parser takes one, the
//! packet leaves, and is processed from its start elsewhere.

use weir_ir::passes::written;
use weir_ir::{BlockId, Body, HeaderId, InstKind, Loc, Operand, Program, Rvalue, Terminator, VarId};

/// Has packets leave by an exit before such a header is taken from them, and takes such headers out
/// of deparsers where they are
/// never valid then. Gives the first place; nothing is done where packets come to calls with
/// effects before.
pub(super) fn leave_before(program: &Program, body: &mut Body, exit: u32) -> Option<Loc> {
    let mut found: Option<Loc> = None;
    let mut cuts = Vec::new();
    for (id, block) in body.blocks.iter() {
        let odd = block.insts.iter().position(|inst| is_odd(program, &inst.kind));
        cuts.extend(odd.map(|at| (id, at)));
    }
    let calls = blocks_behind_calls(body);
    let has_called = |id: BlockId, at: usize| {
        let before = body.blocks[id].insts.iter().take(at);
        calls[id.index()] || before.into_iter().any(|inst| has_effect(&inst.kind))
    };
    if cuts.iter().any(|(id, at)| has_called(*id, *at)) {
        return None;
    }
    for (id, at) in cuts {
        let block = &mut body.blocks[id];
        let loc = block.insts[at].loc;
        if found.is_none_or(|first| (loc.file, loc.line) < (first.file, first.line)) {
            found = Some(loc);
        }
        block.insts.truncate(at);
        block.terminator = Terminator::Exit(exit);
    }
    if found.is_some() {
        take_out(program, body);
    }
    found
}

/// Whether a parser takes something that does not end at a whole byte.
fn is_odd(program: &Program, kind: &InstKind) -> bool {
    match kind {
        InstKind::Extract { header, .. } => !is_whole(program, *header),
        InstKind::Advance {
            bits: Operand::Const(bits),
        } => bits.to_u64().is_none_or(|bits| !bits.is_multiple_of(8)),
        InstKind::Advance { .. }
        | InstKind::Assign { .. }
        | InstKind::Lookahead { .. }
        | InstKind::PacketLength { .. }
        | InstKind::Emit { .. }
        | InstKind::Call(_)
        | InstKind::Mark(_) => false,
    }
}

/// Whether a header is of whole bytes, and so is what is before its varbit field, which is its
/// last.
fn is_whole(program: &Program, header: HeaderId) -> bool {
    let ty = &program.header_types[program.headers[header].ty];
    let varbit_is_last = ty.varbit_field().is_none_or(|field| field + 1 == ty.fields.len());
    ty.fixed_width().is_multiple_of(8) && varbit_is_last
}

fn has_effect(kind: &InstKind) -> bool {
    matches!(kind, InstKind::Call(call) if !call.is_pure)
}

/// Blocks that control gets to behind a call with effects, by number.
fn blocks_behind_calls(body: &Body) -> Vec<bool> {
    let mut behind = vec![false; body.blocks.len()];
    let calling = body
        .blocks
        .iter()
        .filter(|(_, b)| b.insts.iter().any(|i| has_effect(&i.kind)));
    let mut work: Vec<_> = calling.flat_map(|(id, _)| body.successors(id)).collect();
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut behind[id.index()], true) {
            work.extend(body.successors(id));
        }
    }
    behind
}

/// Takes out of the body where headers are emitted that are never valid.
fn take_out(program: &Program, body: &mut Body) {
    let odd: Vec<HeaderId> = program.headers.ids().filter(|h| !is_whole(program, *h)).collect();
    let may_be_valid = |header: HeaderId| {
        let valid = program.headers[header].valid;
        let mut insts = body.blocks.iter().flat_map(|(_, b)| &b.insts);
        insts.any(|inst| sets(program, &inst.kind, valid))
    };
    let never: Vec<HeaderId> = odd.into_iter().filter(|h| !may_be_valid(*h)).collect();
    for (_, block) in body.blocks.iter_mut() {
        let emits_none = |kind: &InstKind| matches!(kind, InstKind::Emit { header } if never.contains(header));
        block.insts.retain(|inst| !emits_none(&inst.kind));
    }
}

/// Whether an instruction may set a validity.
fn sets(program: &Program, kind: &InstKind, valid: VarId) -> bool {
    if let InstKind::Assign {
        value: Rvalue::Use(Operand::Const(bits)),
        ..
    } = kind
        && bits.is_zero()
    {
        return false;
    }
    let mut found = false;
    written(kind, &program.headers, &mut |v| found |= v == valid);
    found
}
