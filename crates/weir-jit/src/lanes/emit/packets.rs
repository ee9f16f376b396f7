//! Emits memory accesses through address registers, and the code that sets these.
//!
//! It does not check bounds: lanes without a packet access the sentinel.

use super::{ADDRESS_REGISTERS, ENVIRONMENT, Emitter, LANES, PartialGroup, SCRATCH_MASKS, SCRATCH_VECTORS};
use crate::codegen::env;
use crate::lanes::SlotPrefetch;
use crate::lanes::allocate::Home;
use crate::lanes::op::{AddressSource, MaskReg, RowArea, Source, VectorReg};
use crate::lanes::x64::{
    Condition, Gpr, Masking, Mem, Operand, RAX, RSP, VMOVDQU64, VMOVDQU64_STORE, VMOVHPS_STORE, VMOVQ_STORE, VPADDQ,
    VPANDQ, VPEXTRB, VPEXTRD, VPEXTRW, VPSLLQ, VPSRLQ, VPTESTMQ, VPUNPCKHQDQ, VPUNPCKLQDQ, Zmm,
};
use std::mem::offset_of;
use weir_table::fast::SlotAddressing;

impl Emitter {
    /// Sets the address registers to a vector. For a full group they do not depend on the mask.
    pub(super) fn set_address_registers(&mut self, from: VectorReg, mask: MaskReg, source: AddressSource) {
        let register = self.mask(mask, SCRATCH_MASKS[0]);
        self.if_full_group(
            register,
            PartialGroup::SetAddressRegisters { from, mask },
            |emit| match source {
                AddressSource::AddressRegisters => {}
                AddressSource::Row(offset) => {
                    for (register, column_offset) in ADDRESS_REGISTERS.iter().zip((0..).step_by(8)) {
                        emit.asm
                            .load(*register, Self::row(RowArea::Context, offset + column_offset));
                    }
                }
                AddressSource::Vector => {
                    let from = emit.register(from, SCRATCH_VECTORS[0]);
                    emit.move_to_address_registers(from);
                }
            },
        );
    }

    /// The same for a partial group, where lanes outside of the mask get the sentinel.
    pub(super) fn set_address_registers_partial(&mut self, from: VectorReg, mask: MaskReg) {
        let from = self.operand(Source::Vector(from));
        self.asm.unary(VMOVDQU64, SCRATCH_VECTORS[0], from);
        let mask = self.mask(mask, SCRATCH_MASKS[0]);
        self.asm.mask_not(SCRATCH_MASKS[1], mask);
        self.asm.broadcast(
            SCRATCH_VECTORS[0],
            Mem::At(ENVIRONMENT, env::SENTINEL),
            Masking::Merge(SCRATCH_MASKS[1]),
        );
        self.move_to_address_registers(SCRATCH_VECTORS[0]);
    }

    /// Sets the address registers to the words at other addresses, or to a default where those are
    /// 0. The words are loaded into address registers directly, not gathered first.
    pub(super) fn load_record_addresses(
        &mut self,
        dst: VectorReg,
        address: VectorReg,
        offset: i32,
        default_offset: i32,
    ) {
        let buffer = Operand::Memory(Mem::At(RSP, self.frame.word_buffer));
        let registers_with_offsets = ADDRESS_REGISTERS.iter().zip((self.frame.word_buffer..).step_by(8));
        let partial = PartialGroup::LoadRecordAddresses {
            address,
            offset,
            default_offset,
        };
        self.if_full_group(self.block_mask(), partial, |emit| {
            let from = emit.register(address, SCRATCH_VECTORS[0]);
            emit.asm.unary(VMOVDQU64_STORE, from, buffer);
            emit.asm.load(RAX, Mem::At(ENVIRONMENT, env::ARRAYS));
            emit.asm.load(RAX, Mem::At(RAX, default_offset));
            for (register, word_offset) in registers_with_offsets.clone() {
                emit.asm.load(*register, Mem::At(RSP, word_offset));
                emit.asm.load(*register, Mem::At(*register, offset));
                emit.asm.test(*register);
                emit.asm.move_if_zero(*register, RAX);
            }
        });
        if self.home(dst) != Home::Unused {
            registers_with_offsets
                .for_each(|(register, word_offset)| self.asm.store(*register, Mem::At(RSP, word_offset)));
            let target = self.result_register(dst);
            self.asm.unary(VMOVDQU64, target, buffer);
            self.store_if_spilled(dst, target);
        }
    }

    /// The same for a partial group, where lanes outside of the block's mask must not be loaded.
    pub(super) fn load_record_addresses_partial(&mut self, address: VectorReg, offset: i32, default_offset: i32) {
        let [result, found, ..] = SCRATCH_VECTORS;
        let [_, mask] = SCRATCH_MASKS;
        let address = self.register(address, result);
        self.asm.mask_move(mask, self.block_mask());
        self.asm.gather(found, address, offset, mask);
        self.asm.compare_lanes(VPTESTMQ, mask, found, found.into(), None);
        self.asm.load(RAX, Mem::At(ENVIRONMENT, env::ARRAYS));
        self.asm.broadcast(result, Mem::At(RAX, default_offset), Masking::None);
        self.asm
            .unary_masked(VMOVDQU64, result, found.into(), Masking::Merge(mask));
        self.asm.mask_not(mask, self.block_mask());
        self.asm
            .broadcast(result, Mem::At(ENVIRONMENT, env::SENTINEL), Masking::Merge(mask));
        self.move_to_address_registers(result);
    }

    /// Prefetches slots, if the block has all eight packets and the table has slots at present
    /// ([`SlotAddressing`]).
    pub(super) fn prefetch_slots(&mut self, keys: VectorReg, prefetch: SlotPrefetch) {
        let [slot, skipped, ..] = SCRATCH_VECTORS;
        let addressing = (prefetch.table * size_of::<SlotAddressing>()) as i32;
        let [base, skip_mask] = [offset_of!(SlotAddressing, base), offset_of!(SlotAddressing, skip_mask)]
            .map(|field_offset| addressing + field_offset as i32);
        let done = self.asm.label();
        self.asm.mask_to_gpr(RAX, self.block_mask());
        self.asm.compare_byte_immediate(RAX, 0xff);
        self.asm.jump_if(Condition::NotEqual, done);
        self.asm.load(RAX, Mem::At(ENVIRONMENT, env::SLOT_ADDRESSING));
        self.asm.load(RAX, Mem::At(RAX, base));
        self.asm.test(RAX);
        self.asm.jump_if(Condition::Equal, done);
        self.asm.load(RAX, Mem::At(ENVIRONMENT, env::SLOT_ADDRESSING));
        let keys = self.register(keys, slot);
        self.asm.shift(VPSRLQ, slot, keys, prefetch.key_shift);
        // A key row may still hold older data. Any value is reduced to the number of an existing
        // slot.
        let number_mask = self.pool_word(SlotAddressing::COUNT as u64 - 1);
        self.asm.binary(VPANDQ, slot, slot, Operand::Broadcast(number_mask));
        // Runs of slots alternate with records: the masked bits count the space of those skipped.
        self.asm
            .binary(VPANDQ, skipped, slot, Operand::Broadcast(Mem::At(RAX, skip_mask)));
        self.asm.binary(VPADDQ, slot, slot, skipped.into());
        self.asm.shift(VPSLLQ, slot, slot, 2);
        self.asm
            .binary(VPADDQ, slot, slot, Operand::Broadcast(Mem::At(RAX, base)));
        self.asm.unary(
            VMOVDQU64_STORE,
            slot,
            Operand::Memory(Mem::At(RSP, self.frame.word_buffer)),
        );
        for word_offset in (self.frame.word_buffer..).step_by(8).take(LANES) {
            self.asm.load(RAX, Mem::At(RSP, word_offset));
            self.asm.prefetch(Mem::At(RAX, 0));
        }
        self.asm.bind(done);
    }

    /// Moves the words of a vector to the address registers.
    fn move_to_address_registers(&mut self, from: Zmm) {
        self.for_each_quarter(from, |emit, part, pair| {
            emit.asm.extract_lowest_word(pair[0], part);
            emit.asm.extract_second_word(pair[1], part);
        });
    }

    /// Calls `each` for each quarter of a vector (two words, moved to the lowest quarter of a
    /// register) with the address registers of its two packets.
    fn for_each_quarter(&mut self, from: Zmm, mut each: impl FnMut(&mut Self, Zmm, &[Gpr])) {
        for (quarter, pair) in (0..).zip(ADDRESS_REGISTERS.chunks(2)) {
            let part = if quarter == 0 {
                from
            } else {
                self.asm.extract_quarter(SCRATCH_VECTORS[1], from, quarter);
                SCRATCH_VECTORS[1]
            };
            each(self, part, pair);
        }
    }

    /// Loads sixteen bytes of each of eight packets, as two vectors with a word of each packet.
    /// Quarters of registers hold one packet each. Unpacking then gives words in the order of
    /// packets:
    ///
    /// ```text
    /// even  0 2    upper_even  4 6    joined:  0 2 4 6    unpacked, lower words:  0 1 2 3 4 5 6 7
    /// odd   1 3    upper_odd   5 7             1 3 5 7              upper words:  0 1 2 3 4 5 6 7
    /// ```
    ///
    /// In halves, as processors with 256-bit units take twice as long for each 512-bit instruction.
    pub(super) fn load_pair(&mut self, low: VectorReg, high: VectorReg, offset: i32) {
        let [even, odd, upper_even, upper_odd] = SCRATCH_VECTORS;
        for (register, packet) in [(even, 0), (upper_even, 4), (odd, 1), (upper_odd, 5)] {
            self.asm.load_half(register, memory_of_two(packet, offset));
        }
        self.asm.insert_upper_half(even, upper_even);
        self.asm.insert_upper_half(odd, upper_odd);
        for (v, instruction) in [(low, VPUNPCKLQDQ), (high, VPUNPCKHQDQ)] {
            if self.home(v) != Home::Unused {
                let target = self.result_register(v);
                self.asm.binary(instruction, target, even, odd.into());
                self.store_if_spilled(v, target);
            }
        }
    }

    /// The reverse of `load_pair`.
    pub(super) fn store_pair(&mut self, low: VectorReg, high: VectorReg, offset: i32) {
        let (low, high) = (
            self.register(low, SCRATCH_VECTORS[2]),
            self.operand(Source::Vector(high)),
        );
        let [even, odd, upper_even, upper_odd] = SCRATCH_VECTORS;
        // `low` may be in the register of an upper half, so both are unpacked first.
        self.asm.binary(VPUNPCKLQDQ, even, low, high);
        self.asm.binary(VPUNPCKHQDQ, odd, low, high);
        self.asm.extract_upper_half(upper_even, even);
        self.asm.extract_upper_half(upper_odd, odd);
        for (register, packet) in [(even, 0), (odd, 1), (upper_even, 4), (upper_odd, 5)] {
            self.asm.store_half(register, memory_of_two(packet, offset));
        }
    }

    /// Stores the lowest bytes of each word.
    pub(super) fn store_part(&mut self, from: VectorReg, bytes: u8, offset: i32) {
        let from = self.register(from, SCRATCH_VECTORS[0]);
        self.for_each_quarter(from, |emit, part, pair| {
            for (half, address) in (0u8..).zip(pair) {
                let to = Mem::At(*address, offset);
                let (instruction, number) = match (bytes, half) {
                    (8, 0) => (VMOVQ_STORE, None),
                    (8, _) => (VMOVHPS_STORE, None),
                    (4, half) => (VPEXTRD, Some(half * 2)),
                    (2, half) => (VPEXTRW, Some(half * 4)),
                    (_, half) => (VPEXTRB, Some(half * 8)),
                };
                emit.asm.store_part(instruction, part, to, bytes.into(), number);
            }
        });
    }
}

/// Memory at an offset from the address registers of a packet and of the next but one.
fn memory_of_two(packet: usize, offset: i32) -> [Mem; 2] {
    [packet, packet + 2].map(|packet| Mem::At(ADDRESS_REGISTERS[packet], offset))
}
