//! Classifies the addresses in a segment by the memory that they point to.
//!
//! Cranelift IR has plain addresses. This analysis follows them back to the function's parameters
//! and to known loads, so that rows, tallies, packets and tables can be distinguished. An address
//! that it cannot classify makes its block unsupported.
//!
//! Relies on the rows and environment offsets of [`crate::codegen`]. It does not follow addresses
//! around loops.

use super::op::RowArea;
use crate::codegen::env;
use crate::layout::{ROW_PACKET, ROW_SCRATCH, ROW_STRIDE};
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode, Type, Value, ValueDef, types};
use std::collections::HashMap;
use std::mem::offset_of;
use weir_table::fast::ResultArray;

/// Parameters of the function for one packet ([`crate::codegen::Shape::Packet`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    /// The address of the environment.
    Environment = 0,
    /// The address of the packet's column of the context.
    Column = 1,
    /// The address of the packet's column of the tally area's index rows.
    TallyColumn = 2,
    /// The address of the tally masks.
    TallyMasks = 3,
    /// The packet's slot.
    Slot = 4,
    /// A mask with the packet's slot only.
    Bit = 5,
}

impl Parameter {
    /// The function's parameter with this index.
    fn from_index(index: usize) -> Option<Self> {
        Some(match index {
            0 => Parameter::Environment,
            1 => Parameter::Column,
            2 => Parameter::TallyColumn,
            3 => Parameter::TallyMasks,
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
    /// The bit sets of value sets' members, which are never written.
    ValueSetBits,
    /// The descriptors of inline-lookup arrays, the same for all packets.
    ArrayDescriptors,
    /// An array with the address of a record per key, or 0.
    RecordPointers,
    /// A record of a table. It is never written, and whole pairs of words may be read.
    Record,
}

/// The memory operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryOperand {
    /// A row at a byte offset.
    Row(RowArea, i32),
    /// A byte offset in the environment.
    Environment(i32),
    /// The mask of a tally, at a byte offset in the tally area.
    TallyMask(i32),
    /// A byte offset from an address that is loaded or computed, and may differ by packet.
    PerPacket(Region, Value, i32),
}

/// Constant offsets below this are split off.
const MAX_OFFSET: i64 = 1 << 16;

/// The regions of a function's addresses, found on demand.
pub(super) struct AddressAnalysis<'a> {
    func: &'a Function,
    /// By address: its region, if it has one.
    regions: HashMap<Value, Option<Region>>,
    /// By block: the arguments of each incoming edge.
    edge_arguments: HashMap<Block, Vec<Vec<Value>>>,
}

impl<'a> AddressAnalysis<'a> {
    pub fn new(func: &'a Function) -> Self {
        let mut edge_arguments: HashMap<Block, Vec<Vec<Value>>> = HashMap::new();
        for block in func.layout.blocks() {
            let Some(last) = func.layout.last_inst(block) else {
                continue;
            };
            let data = &func.dfg.insts[last];
            let pool = &func.dfg.value_lists;
            for call in data.branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables) {
                let arguments = call.args(pool).filter_map(|a| a.as_value()).collect();
                edge_arguments.entry(call.block(pool)).or_default().push(arguments);
            }
        }
        AddressAnalysis {
            func,
            regions: HashMap::new(),
            edge_arguments,
        }
    }

    /// The function's parameter, if the value is one.
    pub fn parameter(&self, value: Value) -> Option<Parameter> {
        match self.func.dfg.value_def(value) {
            ValueDef::Param(block, index) if Some(block) == self.func.layout.entry_block() => {
                Parameter::from_index(index)
            }
            _ => None,
        }
    }

    /// The constant, if the value is one.
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

    /// Splits an address into a base and a constant offset.
    fn split_constant_offset(&self, address: Value) -> (Value, i64) {
        let (mut base, mut offset) = (address, 0);
        while let Some(inst) = self.func.dfg.value_def(base).inst()
            && let InstructionData::Binary {
                opcode: Opcode::Iadd,
                args,
            } = self.func.dfg.insts[inst]
            && let Some(addend) = self.constant(args[1])
            && (0..MAX_OFFSET).contains(&(offset + addend))
            && addend >= 0
        {
            (base, offset) = (args[0], offset + addend);
        }
        (base, offset)
    }

    /// The memory at an offset from an address. `None`: it is unknown.
    pub fn memory_operand(&mut self, address: Value, offset: i32) -> Option<MemoryOperand> {
        let (base, base_offset) = self.split_constant_offset(address);
        let offset = i32::try_from(base_offset + i64::from(offset))
            .ok()
            .filter(|o| *o >= 0)?;
        match self.parameter(base) {
            Some(Parameter::Environment) => Some(MemoryOperand::Environment(offset)),
            Some(Parameter::Column) => Some(MemoryOperand::Row(RowArea::Context, offset)),
            Some(Parameter::TallyColumn) => Some(MemoryOperand::Row(RowArea::TallyIndexes, offset)),
            Some(Parameter::TallyMasks) => Some(MemoryOperand::TallyMask(offset)),
            Some(Parameter::Slot | Parameter::Bit) => None,
            None => Some(MemoryOperand::PerPacket(self.region(base)?, base, offset)),
        }
    }

    /// The region that an address points into. `None`: it is unknown.
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

    /// [`Self::region`] of an address that is not in `regions` yet.
    fn find_region(&mut self, address: Value) -> Option<Region> {
        let func = self.func;
        match func.dfg.value_def(address) {
            ValueDef::Result(inst, _) => match func.dfg.insts[inst] {
                InstructionData::Load {
                    opcode: Opcode::Load,
                    arg,
                    offset,
                    ..
                } => self.region_of_loaded(arg, offset.into()),
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
                } => common_region(self.region(a)?, self.region(b)?),
                _ => None,
            },
            ValueDef::Param(block, index) => {
                let arguments: Vec<Value> = self
                    .edge_arguments
                    .get(&block)?
                    .iter()
                    .map(|args| args.get(index).copied())
                    .collect::<Option<_>>()?;
                let mut regions = arguments.into_iter().map(|a| self.region(a));
                let first = regions.next()??;
                regions.try_fold(first, |common, region| common_region(common, region?))
            }
            ValueDef::Union(..) => None,
        }
    }

    /// The region of an address that is loaded from memory.
    fn region_of_loaded(&mut self, address: Value, offset: i32) -> Option<Region> {
        let row_offset = |row: usize| (row * ROW_STRIDE * 8) as i32;
        match self.memory_operand(address, offset)? {
            MemoryOperand::Row(RowArea::Context, offset_in_region) if offset_in_region == row_offset(ROW_PACKET) => {
                Some(Region::Packet)
            }
            MemoryOperand::Row(RowArea::Context, offset_in_region) if offset_in_region == row_offset(ROW_SCRATCH) => {
                Some(Region::Scratch)
            }
            MemoryOperand::Environment(env::ZEROS) => Some(Region::PacketOrZeros),
            MemoryOperand::Environment(env::MEMBERS) => Some(Region::ValueSetBits),
            MemoryOperand::Environment(env::ARRAYS) => Some(Region::ArrayDescriptors),
            MemoryOperand::PerPacket(Region::ArrayDescriptors, _, offset_in_region)
                if offset_in_region as usize % size_of::<ResultArray>() == offset_of!(ResultArray, results) =>
            {
                Some(Region::RecordPointers)
            }
            // The other word of a descriptor is the default record's address.
            MemoryOperand::PerPacket(Region::ArrayDescriptors | Region::RecordPointers, ..) => Some(Region::Record),
            _ => None,
        }
    }

    /// Bytes that a load or store instruction accesses.
    pub fn access_width(opcode: Opcode, ty: Type) -> Option<u32> {
        Some(match opcode {
            Opcode::Load | Opcode::Store if ty.is_int() && ty != types::I128 => ty.bytes(),
            Opcode::Uload8 | Opcode::Istore8 => 1,
            Opcode::Uload16 | Opcode::Istore16 => 2,
            Opcode::Uload32 | Opcode::Istore32 => 4,
            _ => return None,
        })
    }
}

/// The region of an address that points into either region.
fn common_region(a: Region, b: Region) -> Option<Region> {
    match (a, b) {
        _ if a == b => Some(a),
        (Region::Packet, Region::PacketOrZeros) | (Region::PacketOrZeros, Region::Packet) => {
            Some(Region::PacketOrZeros)
        }
        _ => None,
    }
}
