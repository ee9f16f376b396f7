//! What there is code for. Packets that get to anything else are given up, and run one by one from the segment's beginning: so nothing
//! may have been done to them that would make that another beginning.

use super::flow::successors;
use super::lower::leading_to;
use super::op::Rows;
use super::place::{Parameter, Place, Places, Region};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Type, Value, types};
use std::collections::BTreeSet;

/// Blocks whose packets are given up. `None`: all are.
pub(super) fn ends(func: &Function, places: &mut Places<'_>) -> Option<BTreeSet<Block>> {
    let mut ends = BTreeSet::new();
    for block in func.layout.blocks() {
        if !func
            .layout
            .block_insts(block)
            .all(|inst| is_supported(func, places, inst))
        {
            ends.insert(block);
        }
    }
    // Who has done what cannot be done again must not be given up.
    loop {
        let before = ends.len();
        let leading = leading_to(func, &ends);
        for block in leading
            .iter()
            .filter(|b| !ends.contains(b))
            .copied()
            .collect::<Vec<_>>()
        {
            if leaves_traces(func, places, block) {
                ends.insert(block);
            }
        }
        if ends.len() == before {
            break;
        }
    }
    let entry = func.layout.entry_block()?;
    (!ends.contains(&entry) && reaches_an_end(func, entry, &ends)).then_some(ends)
}

/// Whether some packets leave without being given up.
fn reaches_an_end(func: &Function, entry: Block, ends: &BTreeSet<Block>) -> bool {
    let mut seen = BTreeSet::from([entry]);
    let mut work = vec![entry];
    while let Some(block) = work.pop() {
        let next = successors(func, block, ends);
        if next.is_empty() && !ends.contains(&block) {
            return true;
        }
        work.extend(next.into_iter().filter(|b| seen.insert(*b)));
    }
    false
}

/// Whether a block does something to a packet that could be seen if it were run from the beginning. To count it a second time is to set
/// the same bit; what is put together elsewhere is put there again.
fn leaves_traces(func: &Function, places: &mut Places<'_>, block: Block) -> bool {
    let stores: Vec<(Inst, Place)> = func
        .layout
        .block_insts(block)
        .filter_map(|inst| Some((inst, written(func, places, inst)?)))
        .collect();
    stores.into_iter().any(|(inst, place)| match place {
        Place::Tally(_) | Place::Row(Rows::Tallies, _) | Place::Own(Region::Scratch, ..) => false,
        Place::Row(Rows::Context, offset) => may_be_read_before(func, places, (block, inst), offset),
        Place::Own(..) | Place::Environment(_) => true,
    })
}

fn written(func: &Function, places: &mut Places<'_>, inst: Inst) -> Option<Place> {
    match func.dfg.insts[inst] {
        InstructionData::Store { args, offset, .. } => places.place(args[1], offset.into()),
        _ => None,
    }
}

/// Whether a row is read on some way to where it is written.
fn may_be_read_before(func: &Function, places: &mut Places<'_>, (block, at): (Block, Inst), offset: i32) -> bool {
    let mut reads = |inst: Inst| match func.dfg.insts[inst] {
        InstructionData::Load {
            arg, offset: of_load, ..
        } => places.place(arg, of_load.into()) == Some(Place::Row(Rows::Context, offset)),
        _ => false,
    };
    if func.layout.block_insts(block).take_while(|i| *i != at).any(&mut reads) {
        return true;
    }
    let before = leading_to(func, &BTreeSet::from([block]));
    before.into_iter().any(|b| func.layout.block_insts(b).any(&mut reads))
}

/// Whether there is code for an instruction.
fn is_supported(func: &Function, places: &mut Places<'_>, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let results = func.dfg.inst_results(inst);
    let are_numbers = results.iter().all(|v| is_number(func.dfg.value_type(*v)));
    let is_note = is_note(func, places, inst);
    // A slot's number and its bit are not there as such.
    let is_special = |v: &Value| matches!(places.parameter(*v), Some(Parameter::Slot | Parameter::Bit));
    if !is_note && func.dfg.inst_values(inst).any(|v| is_special(&v)) {
        return false;
    }
    are_numbers
        && match *data {
            InstructionData::Load {
                opcode, arg, offset, ..
            } => {
                let Some(bytes) = Places::access(opcode, func.dfg.value_type(results[0])) else {
                    return false;
                };
                match places.place(arg, offset.into()) {
                    Some(Place::Own(Region::Packet | Region::Scratch | Region::PacketOrZeros, ..)) => true,
                    Some(Place::Row(..) | Place::Environment(_) | Place::Own(..)) => bytes == 8,
                    Some(Place::Tally(_)) | None => false,
                }
            }
            InstructionData::Store {
                opcode, args, offset, ..
            } => {
                let Some(bytes) = Places::access(opcode, func.dfg.value_type(args[0])) else {
                    return false;
                };
                match places.place(args[1], offset.into()) {
                    Some(Place::Row(..)) => bytes == 8,
                    Some(Place::Tally(_)) => is_note,
                    Some(Place::Own(Region::Packet | Region::Scratch, ..)) => true,
                    _ => false,
                }
            }
            InstructionData::UnaryImm { opcode, .. } => opcode == Opcode::Iconst,
            InstructionData::Unary { opcode, arg } => match opcode {
                Opcode::Bnot | Opcode::Ineg | Opcode::Bswap | Opcode::Uextend | Opcode::Ireduce | Opcode::Popcnt => {
                    true
                }
                Opcode::Sextend => true,
                Opcode::Clz | Opcode::Ctz => func.dfg.value_type(arg) == types::I64,
                _ => false,
            },
            InstructionData::Binary { opcode, args } => match opcode {
                Opcode::Iadd
                | Opcode::Isub
                | Opcode::Imul
                | Opcode::Band
                | Opcode::Bor
                | Opcode::Bxor
                | Opcode::Ishl
                | Opcode::Ushr
                | Opcode::Sshr
                | Opcode::Umax
                | Opcode::Umin => true,
                Opcode::Rotl | Opcode::Rotr => {
                    // Rotating is done with words and their halves.
                    let ty = func.dfg.value_type(args[0]);
                    places.constant(args[1]).is_some() || opcode == Opcode::Rotl && ty.bits() >= 32
                }
                _ => false,
            },
            InstructionData::IntCompare { .. } => true,
            InstructionData::Ternary { opcode, .. } => opcode == Opcode::Select,
            InstructionData::Jump { .. } | InstructionData::Brif { .. } => true,
            InstructionData::MultiAry { opcode, .. } => {
                let point = func.dfg.inst_args(inst).first();
                opcode == Opcode::Return && point.is_some_and(|v| places.constant(*v).is_some())
            }
            _ => false,
        }
}

fn is_number(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 64
}

/// Whether an instruction adds the packet to a tally.
fn is_note(func: &Function, places: &mut Places<'_>, inst: Inst) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Store { args, offset, .. } => {
            places.parameter(args[0]) == Some(Parameter::Bit)
                && matches!(places.place(args[1], offset.into()), Some(Place::Tally(_)))
        }
        _ => false,
    }
}
