//! Merges consecutive sums of a basic block into one, after paths were folded.
//!
//! A sum over headers is emitted header by header, because each may be invalid. Where several
//! headers are certainly valid, one call over all their fields is cheaper: the engine folds the
//! carries and swaps the bytes once.

use super::{CHECKSUM, SUM, SUM_WIDTH};
use weir_ir::{ArgumentValue, BlockId, Body, Call, Header, InLeaf, Inst, InstKind, Operand, Program, Type, VarId};

/// Merges the sums of a body.
pub(super) fn join_sums(program: &Program, body: &mut Body) {
    let ids: Vec<BlockId> = body.blocks.ids().collect();
    for id in ids {
        let mut index = 0;
        while index < body.blocks[id].insts.len() {
            without_empty_sum(program, &mut body.blocks[id].insts[index]);
            match next_sum(program, body, id, index) {
                Some((next, data)) => {
                    let block = &mut body.blocks[id];
                    if let Some(argument) = as_sum_mut(&mut block.insts[next]) {
                        argument.value = ArgumentValue::In(data);
                    }
                    block.insts.remove(index);
                }
                None => index += 1,
            }
        }
    }
}

/// The call, if it is a `Sum` or a `Checksum`.
fn as_sum(inst: &Inst) -> Option<&Call> {
    match &inst.kind {
        InstKind::Call(call) if call.instance.is_none() && [SUM, CHECKSUM].contains(&call.function.as_str()) => {
            Some(call)
        }
        _ => None,
    }
}

fn as_sum_mut(inst: &mut Inst) -> Option<&mut weir_ir::Argument> {
    as_sum(inst)?;
    match &mut inst.kind {
        InstKind::Call(call) => call.arguments.first_mut(),
        _ => None,
    }
}

/// The width of a summand in bits; `None` if it is variable.
fn width(program: &Program, leaf: &InLeaf) -> Option<u32> {
    match leaf {
        InLeaf::Value(Operand::Const(c)) => Some(c.width()),
        InLeaf::Value(Operand::Var(v)) => match program.vars[*v].ty {
            Type::Bits(width) => Some(width),
            Type::Varbit(_) => None,
        },
        InLeaf::Header(_) => None,
    }
}

/// Removes an initial sum of 0 from a call's summands. Other zeros stay: incremental updates
/// compare the summands position by position with those of an earlier sum.
fn without_empty_sum(program: &Program, inst: &mut Inst) {
    let Some(argument) = as_sum_mut(inst) else { return };
    let ArgumentValue::In(leaves) = &mut argument.value else {
        return;
    };
    let is_zero = |leaf: &InLeaf| matches!(leaf, InLeaf::Value(Operand::Const(c)) if c.is_zero());
    if let Some(first) = leaves.first()
        && is_zero(first)
        && width(program, first) == Some(SUM_WIDTH)
    {
        leaves.remove(0);
    }
}

/// The later instruction of the basic block that adds to the sum computed at `index`, if nothing
/// else reads that sum; and the summands of both.
fn next_sum(program: &Program, body: &Body, id: BlockId, index: usize) -> Option<(usize, Vec<InLeaf>)> {
    let insts = &body.blocks[id].insts;
    let call = as_sum(&insts[index]).filter(|call| call.function == SUM)?;
    let [result] = call.results[..] else { return None };
    let own = call.inputs(0);
    let bits: u32 = own.iter().map(|leaf| width(program, leaf)).sum::<Option<u32>>()?;
    if !bits.is_multiple_of(16) {
        return None;
    }
    let operands: Vec<VarId> = own.iter().filter_map(variable).collect();
    for (next, inst) in insts.iter().enumerate().skip(index + 1) {
        let reads = read_by(&program.headers, inst, result);
        if let Some(then) = as_sum(inst).filter(|_| reads == 1) {
            let position = position_of_word(program, then, result)?;
            if then.results != [result] && is_read(program, body, id, next + 1, result) {
                return None;
            }
            let mut data = then.inputs(0).to_vec();
            data.splice(position..=position, own.iter().cloned());
            return Some((next, data));
        }
        let mut writes = false;
        weir_ir::passes::written(&inst.kind, &program.headers, &mut |v| {
            writes |= v == result || operands.contains(&v);
        });
        let is_call = matches!(&inst.kind, InstKind::Call(_)) && as_sum(inst).is_none();
        if reads > 0 || writes || is_call {
            return None;
        }
    }
    None
}

fn variable(leaf: &InLeaf) -> Option<VarId> {
    match leaf {
        InLeaf::Value(Operand::Var(v)) => Some(*v),
        _ => None,
    }
}

/// The position of a variable among a call's summands, if it begins at a 16-bit word and is whole
/// words wide.
fn position_of_word(program: &Program, call: &Call, var: VarId) -> Option<usize> {
    let mut bit_offset = 0u32;
    for (position, leaf) in call.inputs(0).iter().enumerate() {
        if variable(leaf) == Some(var) {
            return (bit_offset.is_multiple_of(16) && width(program, leaf)?.is_multiple_of(16)).then_some(position);
        }
        bit_offset += width(program, leaf)?;
    }
    None
}

/// How often an instruction reads a variable.
fn read_by(headers: &weir_ir::Arena<Header>, inst: &Inst, var: VarId) -> usize {
    let mut times = 0;
    weir_ir::passes::read_by_inst(&inst.kind, headers, &mut |v| times += usize::from(v == var));
    times
}

/// Whether a variable is live at an instruction of a basic block.
fn is_read(program: &Program, body: &Body, id: BlockId, from: usize, var: VarId) -> bool {
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![(id, from)];
    while let Some((id, from)) = work.pop() {
        let block = &body.blocks[id];
        let mut written = false;
        for inst in block.insts.iter().skip(from) {
            if read_by(&program.headers, inst, var) > 0 {
                return true;
            }
            weir_ir::passes::written(&inst.kind, &program.headers, &mut |v| written |= v == var);
            if written {
                break;
            }
        }
        if written {
            continue;
        }
        let mut read = false;
        weir_ir::passes::read_by_terminator(&block.terminator, &mut |v| read |= v == var);
        if read {
            return true;
        }
        for next in body.successors(id) {
            if !std::mem::replace(&mut seen[next.index()], true) {
                work.push((next, 0));
            }
        }
    }
    false
}
