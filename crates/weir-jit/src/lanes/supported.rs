//! Decides which blocks are compiled for eight packets, and where packets bail out.
//!
//! A packet that bails out is run again from the segment's start. So no block on its path may have
//! had side effects that a second run would observe or repeat.
//!
//! Relies on [`AddressAnalysis`] for what instructions access. It does not weigh costs: every block
//! that can be lowered is.

use super::address::{AddressAnalysis, MemoryOperand, Parameter, Region};
use super::flow::block_successors;
use super::lower::blocks_reaching;
use super::op::RowArea;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Type, Value, types};
use std::collections::BTreeSet;

/// The blocks at which packets bail out. `None`: all packets would.
pub(super) fn bailout_blocks(func: &Function, addresses: &mut AddressAnalysis<'_>) -> Option<BTreeSet<Block>> {
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
    // Also blocks that must not run twice, if a path leads from there to one of these.
    loop {
        let before = bailouts.len();
        let reaching = blocks_reaching(func, &bailouts);
        for block in reaching
            .iter()
            .filter(|b| !bailouts.contains(b))
            .copied()
            .collect::<Vec<_>>()
        {
            if must_not_rerun(func, addresses, block) {
                bailouts.insert(block);
            }
        }
        if bailouts.len() == before {
            break;
        }
    }
    let entry = func.layout.entry_block()?;
    (!bailouts.contains(&entry) && can_suspend(func, entry, &bailouts)).then_some(bailouts)
}

/// Whether some path leads to a suspension point without a block at which packets bail out.
fn can_suspend(func: &Function, entry: Block, bailouts: &BTreeSet<Block>) -> bool {
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

/// Whether a second run of a block would observe or repeat side effects of the first. Tallying
/// again sets the same bit, and headers are rebuilt again in the scratch area.
fn must_not_rerun(func: &Function, addresses: &mut AddressAnalysis<'_>, block: Block) -> bool {
    let stores: Vec<(Inst, MemoryOperand)> = func
        .layout
        .block_insts(block)
        .filter_map(|inst| Some((inst, stored_operand(func, addresses, inst)?)))
        .collect();
    stores.into_iter().any(|(inst, operand)| match operand {
        MemoryOperand::TallyMask(_)
        | MemoryOperand::Row(RowArea::TallyIndexes, _)
        | MemoryOperand::PerPacket(Region::Scratch, ..) => false,
        MemoryOperand::Row(RowArea::Context, offset) => may_be_read_before(func, addresses, (block, inst), offset),
        MemoryOperand::PerPacket(..) | MemoryOperand::Environment(_) => true,
    })
}

/// The memory that an instruction stores to.
fn stored_operand(func: &Function, addresses: &mut AddressAnalysis<'_>, inst: Inst) -> Option<MemoryOperand> {
    match func.dfg.insts[inst] {
        InstructionData::Store { args, offset, .. } => addresses.memory_operand(args[1], offset.into()),
        _ => None,
    }
}

/// Whether a row is read on some path to where it is written.
fn may_be_read_before(
    func: &Function,
    addresses: &mut AddressAnalysis<'_>,
    (block, store): (Block, Inst),
    offset: i32,
) -> bool {
    let mut reads = |inst: Inst| match func.dfg.insts[inst] {
        InstructionData::Load {
            arg,
            offset: load_offset,
            ..
        } => addresses.memory_operand(arg, load_offset.into()) == Some(MemoryOperand::Row(RowArea::Context, offset)),
        _ => false,
    };
    if func
        .layout
        .block_insts(block)
        .take_while(|i| *i != store)
        .any(&mut reads)
    {
        return true;
    }
    let earlier_blocks = blocks_reaching(func, &BTreeSet::from([block]));
    earlier_blocks
        .into_iter()
        .any(|b| func.layout.block_insts(b).any(&mut reads))
}

/// Whether an instruction can be lowered.
fn is_supported(func: &Function, addresses: &mut AddressAnalysis<'_>, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let results = func.dfg.inst_results(inst);
    let fit_in_lanes = results.iter().all(|v| fits_in_lane(func.dfg.value_type(*v)));
    let is_tally = is_tally(func, addresses, inst);
    // No vector register holds the slot numbers, or the slots' bits, as values. Tallies alone use
    // the bit: they add the mask of the block's packets in its place.
    let is_unavailable = |v: &Value| matches!(addresses.parameter(*v), Some(Parameter::Slot | Parameter::Bit));
    if !is_tally && func.dfg.inst_values(inst).any(|v| is_unavailable(&v)) {
        return false;
    }
    fit_in_lanes
        && match *data {
            InstructionData::Load {
                opcode, arg, offset, ..
            } => {
                let Some(bytes) = AddressAnalysis::access_width(opcode, func.dfg.value_type(results[0])) else {
                    return false;
                };
                match addresses.memory_operand(arg, offset.into()) {
                    Some(MemoryOperand::PerPacket(Region::Packet | Region::Scratch | Region::PacketOrZeros, ..)) => {
                        true
                    }
                    Some(MemoryOperand::Row(..) | MemoryOperand::Environment(_) | MemoryOperand::PerPacket(..)) => {
                        bytes == 8
                    }
                    Some(MemoryOperand::TallyMask(_)) | None => false,
                }
            }
            InstructionData::Store {
                opcode, args, offset, ..
            } => {
                let Some(bytes) = AddressAnalysis::access_width(opcode, func.dfg.value_type(args[0])) else {
                    return false;
                };
                match addresses.memory_operand(args[1], offset.into()) {
                    Some(MemoryOperand::Row(..)) => bytes == 8,
                    Some(MemoryOperand::TallyMask(_)) => is_tally,
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
                    // There are vector rotations of 64 and 32 bits only.
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

/// Whether values of a type fit in a lane.
fn fits_in_lane(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 64
}

/// Whether an instruction adds the packet to a tally.
fn is_tally(func: &Function, addresses: &mut AddressAnalysis<'_>, inst: Inst) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Store { args, offset, .. } => {
            addresses.parameter(args[0]) == Some(Parameter::Bit)
                && matches!(
                    addresses.memory_operand(args[1], offset.into()),
                    Some(MemoryOperand::TallyMask(_))
                )
        }
        _ => false,
    }
}
