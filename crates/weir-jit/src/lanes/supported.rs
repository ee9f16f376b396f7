//! Decides which blocks are compiled for eight packets, and where packets bail out.
//!
//! A packet that bails out is run again from the segment's start. So no block before it may have
//! had side effects that a second run would observe or repeat.

use super::address::{AddressAnalysis, MemoryOperand, Parameter, Region};
use super::flow::block_successors;
use super::lower::blocks_leading_to;
use super::op::Rows;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Type, Value, types};
use std::collections::BTreeSet;

/// The blocks at which packets bail out. `None`: all packets would.
pub(super) fn bailouts(func: &Function, addresses: &mut AddressAnalysis<'_>) -> Option<BTreeSet<Block>> {
    let mut bailouts = BTreeSet::new();
    for block in func.layout.blocks() {
        if !func
            .layout
            .block_insts(block)
            .all(|inst| is_supported(func, addresses, inst))
        {
            bailouts.insert(block);
        }
    }
    // Also blocks with side effects that lead to one of these.
    loop {
        let before = bailouts.len();
        let leading = blocks_leading_to(func, &bailouts);
        for block in leading
            .iter()
            .filter(|b| !bailouts.contains(b))
            .copied()
            .collect::<Vec<_>>()
        {
            if has_side_effects(func, addresses, block) {
                bailouts.insert(block);
            }
        }
        if bailouts.len() == before {
            break;
        }
    }
    let entry = func.layout.entry_block()?;
    (!bailouts.contains(&entry) && can_leave(func, entry, &bailouts)).then_some(bailouts)
}

/// Whether some packets leave without bailing out.
fn can_leave(func: &Function, entry: Block, bailouts: &BTreeSet<Block>) -> bool {
    let mut seen = BTreeSet::from([entry]);
    let mut work = vec![entry];
    while let Some(block) = work.pop() {
        let next = block_successors(func, block, bailouts);
        if next.is_empty() && !bailouts.contains(&block) {
            return true;
        }
        work.extend(next.into_iter().filter(|b| seen.insert(*b)));
    }
    false
}

/// Whether a block has side effects that a second run would observe. Tallying again sets the same
/// bit, and headers are rebuilt again in the scratch area.
fn has_side_effects(func: &Function, addresses: &mut AddressAnalysis<'_>, block: Block) -> bool {
    let stores: Vec<(Inst, MemoryOperand)> = func
        .layout
        .block_insts(block)
        .filter_map(|inst| Some((inst, written(func, addresses, inst)?)))
        .collect();
    stores.into_iter().any(|(inst, operand)| match operand {
        MemoryOperand::Tally(_)
        | MemoryOperand::Row(Rows::Tallies, _)
        | MemoryOperand::PerPacket(Region::Scratch, ..) => false,
        MemoryOperand::Row(Rows::Context, offset) => may_be_read_before(func, addresses, (block, inst), offset),
        MemoryOperand::PerPacket(..) | MemoryOperand::Environment(_) => true,
    })
}

fn written(func: &Function, addresses: &mut AddressAnalysis<'_>, inst: Inst) -> Option<MemoryOperand> {
    match func.dfg.insts[inst] {
        InstructionData::Store { args, offset, .. } => addresses.operand(args[1], offset.into()),
        _ => None,
    }
}

/// Whether a row is read on some path to where it is written.
fn may_be_read_before(
    func: &Function,
    addresses: &mut AddressAnalysis<'_>,
    (block, at): (Block, Inst),
    offset: i32,
) -> bool {
    let mut reads = |inst: Inst| match func.dfg.insts[inst] {
        InstructionData::Load {
            arg, offset: of_load, ..
        } => addresses.operand(arg, of_load.into()) == Some(MemoryOperand::Row(Rows::Context, offset)),
        _ => false,
    };
    if func.layout.block_insts(block).take_while(|i| *i != at).any(&mut reads) {
        return true;
    }
    let before = blocks_leading_to(func, &BTreeSet::from([block]));
    before.into_iter().any(|b| func.layout.block_insts(b).any(&mut reads))
}

/// Whether an instruction can be lowered.
fn is_supported(func: &Function, addresses: &mut AddressAnalysis<'_>, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let results = func.dfg.inst_results(inst);
    let are_numbers = results.iter().all(|v| is_number(func.dfg.value_type(*v)));
    let is_tally = is_tally(func, addresses, inst);
    // The slot's number and its bit exist only per group.
    let is_special = |v: &Value| matches!(addresses.parameter(*v), Some(Parameter::Slot | Parameter::Bit));
    if !is_tally && func.dfg.inst_values(inst).any(|v| is_special(&v)) {
        return false;
    }
    are_numbers
        && match *data {
            InstructionData::Load {
                opcode, arg, offset, ..
            } => {
                let Some(bytes) = AddressAnalysis::access(opcode, func.dfg.value_type(results[0])) else {
                    return false;
                };
                match addresses.operand(arg, offset.into()) {
                    Some(MemoryOperand::PerPacket(Region::Packet | Region::Scratch | Region::PacketOrZeros, ..)) => {
                        true
                    }
                    Some(MemoryOperand::Row(..) | MemoryOperand::Environment(_) | MemoryOperand::PerPacket(..)) => {
                        bytes == 8
                    }
                    Some(MemoryOperand::Tally(_)) | None => false,
                }
            }
            InstructionData::Store {
                opcode, args, offset, ..
            } => {
                let Some(bytes) = AddressAnalysis::access(opcode, func.dfg.value_type(args[0])) else {
                    return false;
                };
                match addresses.operand(args[1], offset.into()) {
                    Some(MemoryOperand::Row(..)) => bytes == 8,
                    Some(MemoryOperand::Tally(_)) => is_tally,
                    Some(MemoryOperand::PerPacket(Region::Packet | Region::Scratch, ..)) => true,
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
                    // There are rotations of words and of their halves only.
                    let ty = func.dfg.value_type(args[0]);
                    addresses.constant(args[1]).is_some() || opcode == Opcode::Rotl && ty.bits() >= 32
                }
                _ => false,
            },
            InstructionData::IntCompare { .. } => true,
            InstructionData::Ternary { opcode, .. } => opcode == Opcode::Select,
            InstructionData::Jump { .. } | InstructionData::Brif { .. } => true,
            InstructionData::MultiAry { opcode, .. } => {
                let point = func.dfg.inst_args(inst).first();
                opcode == Opcode::Return && point.is_some_and(|v| addresses.constant(*v).is_some())
            }
            _ => false,
        }
}

fn is_number(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 64
}

/// Whether an instruction adds the packet to a tally.
fn is_tally(func: &Function, addresses: &mut AddressAnalysis<'_>, inst: Inst) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Store { args, offset, .. } => {
            addresses.parameter(args[0]) == Some(Parameter::Bit)
                && matches!(addresses.operand(args[1], offset.into()), Some(MemoryOperand::Tally(_)))
        }
        _ => false,
    }
}
