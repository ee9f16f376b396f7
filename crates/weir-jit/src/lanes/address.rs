//! Finds out what the addresses in a segment point to.
//!
//! Cranelift IR has plain addresses. This analysis follows them back to the function's parameters
//! and to known loads, so that rows, tallies, packets and tables can be distinguished. An address
//! that it cannot classify makes its block unsupported.

use super::op::Rows;
use crate::codegen::env;
use crate::layout::{PITCH, ROW_PACKET, ROW_SCRATCH};
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode, Type, Value, ValueDef, types};
use std::collections::HashMap;
use std::mem::offset_of;
use weir_table::fast::ResultArray;

/// Parameters of the function for one packet ([`crate::codegen::Shape::Packet`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    Environment = 0,
    Column = 1,
    TallyColumn = 2,
    Tallies = 3,
    Slot = 4,
    Bit = 5,
}

impl Parameter {
    fn of(index: usize) -> Option<Self> {
        Some(match index {
            0 => Parameter::Environment,
            1 => Parameter::Column,
            2 => Parameter::TallyColumn,
            3 => Parameter::Tallies,
            4 => Parameter::Slot,
            5 => Parameter::Bit,
            _ => return None,
        })
    }
}

/// Memory that is accessed through addresses which differ by packet, or which code loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Region {
    /// The packet.
    Packet,
    /// The scratch area, where the deparser rebuilds headers.
    Scratch,
    /// The packet, or zeros in place of an invalid header. Read-only.
    PacketOrZeros,
    /// Words that are never written.
    ReadOnly,
    /// The descriptors of inline-lookup arrays, the same for all packets.
    ArrayDescriptors,
    /// An array of addresses of records.
    RecordPointers,
    /// A record of a table. It is never written, and whole pairs of words may be read.
    Record,
}

/// The memory operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryOperand {
    Row(Rows, i32),
    Environment(i32),
    /// The word of a tally, at a byte offset.
    Tally(i32),
    /// A byte offset from an address that differs by packet.
    PerPacket(Region, Value, i32),
}

/// The greatest constant offset that is followed.
const FAR: i64 = 1 << 16;

/// Classifies addresses.
pub(super) struct AddressAnalysis<'a> {
    func: &'a Function,
    regions: HashMap<Value, Option<Region>>,
    /// By block: the arguments of each incoming edge.
    edges: HashMap<Block, Vec<Vec<Value>>>,
}

impl<'a> AddressAnalysis<'a> {
    pub fn new(func: &'a Function) -> Self {
        let mut edges: HashMap<Block, Vec<Vec<Value>>> = HashMap::new();
        for block in func.layout.blocks() {
            let Some(last) = func.layout.last_inst(block) else {
                continue;
            };
            let data = &func.dfg.insts[last];
            let pool = &func.dfg.value_lists;
            for call in data.branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables) {
                let arguments = call.args(pool).filter_map(|a| a.as_value()).collect();
                edges.entry(call.block(pool)).or_default().push(arguments);
            }
        }
        AddressAnalysis {
            func,
            regions: HashMap::new(),
            edges,
        }
    }

    /// The parameter that a value is.
    pub fn parameter(&self, value: Value) -> Option<Parameter> {
        match self.func.dfg.value_def(value) {
            ValueDef::Param(block, index) if Some(block) == self.func.layout.entry_block() => Parameter::of(index),
            _ => None,
        }
    }

    /// The value, if it is constant.
    pub fn constant(&self, value: Value) -> Option<i64> {
        let inst = self.func.dfg.value_def(value).inst()?;
        match self.func.dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits()),
            _ => None,
        }
    }

    /// An address without constant offsets, and their sum.
    fn base(&self, address: Value) -> (Value, i64) {
        let mut at = (address, 0);
        while let Some(inst) = self.func.dfg.value_def(at.0).inst()
            && let InstructionData::Binary {
                opcode: Opcode::Iadd,
                args,
            } = self.func.dfg.insts[inst]
            && let Some(more) = self.constant(args[1])
            && (0..FAR).contains(&(at.1 + more))
            && more >= 0
        {
            at = (args[0], at.1 + more);
        }
        at
    }

    /// The memory at an offset from an address. `None`: it is unknown.
    pub fn operand(&mut self, address: Value, offset: i32) -> Option<MemoryOperand> {
        let (base, more) = self.base(address);
        let offset = i32::try_from(more + i64::from(offset)).ok().filter(|o| *o >= 0)?;
        match self.parameter(base) {
            Some(Parameter::Environment) => Some(MemoryOperand::Environment(offset)),
            Some(Parameter::Column) => Some(MemoryOperand::Row(Rows::Context, offset)),
            Some(Parameter::TallyColumn) => Some(MemoryOperand::Row(Rows::Tallies, offset)),
            Some(Parameter::Tallies) => Some(MemoryOperand::Tally(offset)),
            Some(Parameter::Slot | Parameter::Bit) => None,
            None => Some(MemoryOperand::PerPacket(self.region(base)?, base, offset)),
        }
    }

    fn region(&mut self, address: Value) -> Option<Region> {
        if let Some(known) = self.regions.get(&address) {
            return *known;
        }
        // An address that depends on itself is in a loop, and unknown.
        self.regions.insert(address, None);
        let region = self.find_region(address);
        self.regions.insert(address, region);
        region
    }

    fn find_region(&mut self, address: Value) -> Option<Region> {
        let func = self.func;
        match func.dfg.value_def(address) {
            ValueDef::Result(inst, _) => match func.dfg.insts[inst] {
                InstructionData::Load {
                    opcode: Opcode::Load,
                    arg,
                    offset,
                    ..
                } => self.region_in_memory(arg, offset.into()),
                InstructionData::Binary {
                    opcode: Opcode::Iadd,
                    args: [a, b],
                } => match (self.region(a), self.region(b)) {
                    (Some(region), None) | (None, Some(region)) => Some(region),
                    _ => None,
                },
                InstructionData::Binary {
                    opcode: Opcode::Isub,
                    args: [a, b],
                } => self.region(a).filter(|_| self.region(b).is_none()),
                InstructionData::Ternary {
                    opcode: Opcode::Select,
                    args: [_, a, b],
                } => either(self.region(a)?, self.region(b)?),
                _ => None,
            },
            ValueDef::Param(block, index) => {
                let arguments: Vec<Value> = self
                    .edges
                    .get(&block)?
                    .iter()
                    .map(|args| args.get(index).copied())
                    .collect::<Option<_>>()?;
                let mut regions = arguments.into_iter().map(|a| self.region(a));
                let first = regions.next()??;
                regions.try_fold(first, |all, region| either(all, region?))
            }
            ValueDef::Union(..) => None,
        }
    }

    /// The region of an address that is loaded from memory.
    fn region_in_memory(&mut self, address: Value, offset: i32) -> Option<Region> {
        let row = |row: usize| (row * PITCH * 8) as i32;
        match self.operand(address, offset)? {
            MemoryOperand::Row(Rows::Context, at) if at == row(ROW_PACKET) => Some(Region::Packet),
            MemoryOperand::Row(Rows::Context, at) if at == row(ROW_SCRATCH) => Some(Region::Scratch),
            MemoryOperand::Environment(env::ZEROS) => Some(Region::PacketOrZeros),
            MemoryOperand::Environment(env::MEMBERS) => Some(Region::ReadOnly),
            MemoryOperand::Environment(env::ARRAYS) => Some(Region::ArrayDescriptors),
            MemoryOperand::PerPacket(Region::ArrayDescriptors, _, at)
                if at as usize % size_of::<ResultArray>() == offset_of!(ResultArray, results) =>
            {
                Some(Region::RecordPointers)
            }
            MemoryOperand::PerPacket(Region::ArrayDescriptors | Region::RecordPointers, ..) => Some(Region::Record),
            _ => None,
        }
    }

    /// Bytes that a load or store instruction accesses.
    pub fn access(opcode: Opcode, ty: Type) -> Option<u32> {
        Some(match opcode {
            Opcode::Load | Opcode::Store if ty.is_int() && ty != types::I128 => ty.bytes(),
            Opcode::Uload8 | Opcode::Istore8 => 1,
            Opcode::Uload16 | Opcode::Istore16 => 2,
            Opcode::Uload32 | Opcode::Istore32 => 4,
            _ => return None,
        })
    }
}

/// The region of an address that is one or the other.
fn either(a: Region, b: Region) -> Option<Region> {
    match (a, b) {
        _ if a == b => Some(a),
        (Region::Packet, Region::PacketOrZeros) | (Region::PacketOrZeros, Region::Packet) => {
            Some(Region::PacketOrZeros)
        }
        _ => None,
    }
}
