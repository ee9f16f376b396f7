//! Headers that do not begin and end at whole bytes have no compiled form. Before a parser extracts
//! one, the packet is punted, and the driver processes it from its start. Packets may also be
//! punted from a parser's loop. No call with effects may precede either place, as the driver would
//! repeat it.

use weir_ir::passes::written;
use weir_ir::{BlockId, Body, HeaderId, InstKind, Loc, Mark, Operand, Program, Rvalue, Terminator, VarId};

/// Makes packets leave by `exit` before an unaligned header is extracted. Then removes emits of
/// unaligned headers that are never valid. Returns the first such place in the source. Does nothing
/// if a call with effects precedes one of the places: the punt would repeat the effects.
pub(super) fn leave_before(program: &Program, body: &mut Body, exit: u32) -> Option<Loc> {
    let mut found: Option<Loc> = None;
    let mut cuts = Vec::new();
    for (id, block) in body.blocks.iter() {
        let unaligned = block.insts.iter().position(|inst| is_unaligned(program, &inst.kind));
        cuts.extend(unaligned.map(|index| (id, index)));
    }
    let calls = blocks_after_calls(body);
    let has_called = |id: BlockId, index: usize| {
        let before = body.blocks[id].insts.iter().take(index);
        calls[id.index()] || before.into_iter().any(|inst| has_effect(&inst.kind))
    };
    if cuts.iter().any(|(id, index)| has_called(*id, *index)) {
        return None;
    }
    for (id, index) in cuts {
        let block = &mut body.blocks[id];
        let loc = block.insts[index].loc;
        if found.is_none_or(|first| (loc.file, loc.line) < (first.file, first.line)) {
            found = Some(loc);
        }
        block.insts.truncate(index);
        block.terminator = Terminator::Exit(exit);
    }
    if found.is_some() {
        remove_emits(program, body);
    }
    found
}

/// Whether an instruction extracts or skips bits that do not end at a whole byte.
fn is_unaligned(program: &Program, kind: &InstKind) -> bool {
    match kind {
        InstKind::Extract { header, .. } => !is_byte_aligned(program, *header),
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

/// Whether a header is whole bytes long, and its varbit field, if any, is its last field and begins
/// at a whole byte.
fn is_byte_aligned(program: &Program, header: HeaderId) -> bool {
    let ty = &program.header_types[program.headers[header].ty];
    let varbit_is_last = ty.varbit_field().is_none_or(|field| field + 1 == ty.fields.len());
    ty.fixed_width().is_multiple_of(8) && varbit_is_last
}

fn has_effect(kind: &InstKind) -> bool {
    matches!(kind, InstKind::Call(call) if !call.is_pure)
}

/// Per basic block, whether a call with effects may precede it.
fn blocks_after_calls(body: &Body) -> Vec<bool> {
    let mut after_call = vec![false; body.blocks.len()];
    let calling = body
        .blocks
        .iter()
        .filter(|(_, b)| b.insts.iter().any(|i| has_effect(&i.kind)));
    let mut work: Vec<_> = calling.flat_map(|(id, _)| body.successors(id)).collect();
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut after_call[id.index()], true) {
            work.extend(body.successors(id));
        }
    }
    after_call
}

/// The place of a parser's loop that a call with effects may precede. Packets leave such a loop by
/// [`weir_ir::pipeline::Pipeline::punt_from_start`], and the driver would repeat the effects.
pub(super) fn loop_after_call(body: &Body) -> Option<Loc> {
    let after_call = blocks_after_calls(body);
    let is_mark = |kind: &InstKind| matches!(kind, InstKind::Mark(Mark::ParserBlocks(_)));
    body.blocks.iter().find_map(|(id, block)| {
        let mark = block.insts.iter().position(|inst| is_mark(&inst.kind))?;
        let called = after_call[id.index()] || block.insts[..mark].iter().any(|inst| has_effect(&inst.kind));
        called.then(|| block.insts[mark].loc)
    })
}

/// Removes emits of unaligned headers that are never valid.
fn remove_emits(program: &Program, body: &mut Body) {
    let unaligned: Vec<HeaderId> = program
        .headers
        .ids()
        .filter(|h| !is_byte_aligned(program, *h))
        .collect();
    let may_be_valid = |header: HeaderId| {
        let valid = program.headers[header].valid;
        let mut insts = body.blocks.iter().flat_map(|(_, b)| &b.insts);
        insts.any(|inst| may_set(program, &inst.kind, valid))
    };
    let never: Vec<HeaderId> = unaligned.into_iter().filter(|h| !may_be_valid(*h)).collect();
    for (_, block) in body.blocks.iter_mut() {
        let emits_none = |kind: &InstKind| matches!(kind, InstKind::Emit { header } if never.contains(header));
        block.insts.retain(|inst| !emits_none(&inst.kind));
    }
}

/// Whether an instruction may set a validity.
fn may_set(program: &Program, kind: &InstKind, valid: VarId) -> bool {
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
