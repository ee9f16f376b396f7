//! Emits memory accesses through each packet's own address.

use super::{ADDRESSES, Emitter, LANES, PartialGroup, SPARE, SPARE_MASKS};
use crate::codegen::env;
use crate::lanes::SlotPrefetch;
use crate::lanes::allocate::Home;
use crate::lanes::op::{AddressSource, M, Rows, Source, V};
use crate::lanes::x64::{
    Condition, Gpr, Masked, Mem, Operand, RAX, RDI, RSP, VMOVDQU64, VMOVDQU64_STORE, VMOVHPS_STORE, VMOVQ_STORE,
    VPADDQ, VPANDQ, VPEXTRB, VPEXTRD, VPEXTRW, VPSLLQ, VPSRLQ, VPTESTMQ, VPUNPCKHQDQ, VPUNPCKLQDQ, Zmm,
};
use std::mem::offset_of;
use weir_table::fast::SlotAddressing;

impl Emitter {
    /// Sets the current addresses. For a full group they need not wait for the mask.
    pub(super) fn addresses(&mut self, from: V, mask: M, source: AddressSource) {
        let register = self.mask(mask, SPARE_MASKS[0]);
        self.if_full_group(register, PartialGroup::Addresses { from, mask }, |emit| match source {
            AddressSource::Current => {}
            AddressSource::Row(offset) => {
                for (register, at) in ADDRESSES.iter().zip((0..).step_by(8)) {
                    emit.asm.load(*register, Self::row(Rows::Context, offset + at));
                }
            }
            AddressSource::Vector => {
                let from = emit.register(from, SPARE[0]);
                emit.take_addresses(from);
            }
        });
    }

    pub(super) fn addresses_partial(&mut self, from: V, mask: M) {
        let from = self.last(Source::V(from));
        self.asm.two(VMOVDQU64, SPARE[0], from);
        let mask = self.mask(mask, SPARE_MASKS[0]);
        self.asm.mask_not(SPARE_MASKS[1], mask);
        self.asm
            .broadcast(SPARE[0], Mem::At(RDI, env::SENTINEL), Masked::Keep(SPARE_MASKS[1]));
        self.take_addresses(SPARE[0]);
    }

    /// Sets the current addresses to the words at other addresses, or to a default where those are
    /// 0. The words are loaded into address registers directly, not gathered first.
    pub(super) fn find_records(&mut self, dst: V, address: V, offset: i32, default: i32) {
        let all = Operand::Memory(Mem::At(RSP, self.frame.words));
        let each = ADDRESSES.iter().zip((self.frame.words..).step_by(8));
        let partial = PartialGroup::FindRecord {
            address,
            offset,
            default,
        };
        self.if_full_group(self.block_mask(), partial, |emit| {
            let from = emit.register(address, SPARE[0]);
            emit.asm.two(VMOVDQU64_STORE, from, all);
            emit.asm.load(RAX, Mem::At(RDI, env::ARRAYS));
            emit.asm.load(RAX, Mem::At(RAX, default));
            for (register, at) in each.clone() {
                emit.asm.load(*register, Mem::At(RSP, at));
                emit.asm.load(*register, Mem::At(*register, offset));
                emit.asm.test(*register);
                emit.asm.move_if_zero(*register, RAX);
            }
        });
        if self.home(dst) != Home::Unused {
            each.for_each(|(register, at)| self.asm.store(*register, Mem::At(RSP, at)));
            let target = self.target(dst);
            self.asm.two(VMOVDQU64, target, all);
            self.write_back(dst, target);
        }
    }

    /// The same for a partial group, where the other lanes must not be loaded.
    pub(super) fn find_partial(&mut self, address: V, offset: i32, default: i32) {
        let [result, found, ..] = SPARE;
        let [_, mask] = SPARE_MASKS;
        let address = self.register(address, result);
        self.asm.mask_move(mask, self.block_mask());
        self.asm.gather(found, address, offset, mask);
        self.asm.compare_lanes(VPTESTMQ, mask, found, found.into(), None);
        self.asm.load(RAX, Mem::At(RDI, env::ARRAYS));
        self.asm.broadcast(result, Mem::At(RAX, default), Masked::No);
        self.asm.two_masked(VMOVDQU64, result, found.into(), Masked::Keep(mask));
        self.asm.mask_not(mask, self.block_mask());
        self.asm
            .broadcast(result, Mem::At(RDI, env::SENTINEL), Masked::Keep(mask));
        self.take_addresses(result);
    }

    /// Prefetches slots, if the group is full and the table has slots at present
    /// ([`SlotAddressing`]).
    pub(super) fn prefetch_slots(&mut self, keys: V, prefetch: SlotPrefetch) {
        let [slot, gap, ..] = SPARE;
        let places = (prefetch.number * size_of::<SlotAddressing>()) as i32;
        let [start, gaps] =
            [offset_of!(SlotAddressing, base), offset_of!(SlotAddressing, skip_mask)].map(|at| places + at as i32);
        let done = self.asm.label();
        self.asm.mask_to(RAX, self.block_mask());
        self.asm.compare_byte_with(RAX, 0xff);
        self.asm.jump_if(Condition::NotEqual, done);
        self.asm.load(RAX, Mem::At(RDI, env::SLOT_ADDRESSING));
        self.asm.load(RAX, Mem::At(RAX, start));
        self.asm.test(RAX);
        self.asm.jump_if(Condition::Equal, done);
        self.asm.load(RAX, Mem::At(RDI, env::SLOT_ADDRESSING));
        let keys = self.register(keys, slot);
        self.asm.shift(VPSRLQ, slot, keys, prefetch.shift);
        // A key row may still hold older data. Any value is reduced to the number of an existing
        // slot.
        let number = self.word(SlotAddressing::COUNT as u64 - 1);
        self.asm.three(VPANDQ, slot, slot, Operand::Broadcast(number));
        self.asm
            .three(VPANDQ, gap, slot, Operand::Broadcast(Mem::At(RAX, gaps)));
        self.asm.three(VPADDQ, slot, slot, gap.into());
        self.asm.shift(VPSLLQ, slot, slot, 2);
        self.asm
            .three(VPADDQ, slot, slot, Operand::Broadcast(Mem::At(RAX, start)));
        self.asm
            .two(VMOVDQU64_STORE, slot, Operand::Memory(Mem::At(RSP, self.frame.words)));
        for at in (self.frame.words..).step_by(8).take(LANES) {
            self.asm.load(RAX, Mem::At(RSP, at));
            self.asm.prefetch(Mem::At(RAX, 0));
        }
        self.asm.place(done);
    }

    /// Moves the words of a vector to the address registers.
    fn take_addresses(&mut self, from: Zmm) {
        self.for_each_quarter(from, |emit, part, pair| {
            emit.asm.word_to(pair[0], part);
            emit.asm.upper_word_to(pair[1], part);
        });
    }

    /// Calls `each` for each pair of words of a vector, in the lowest quarter of a register, and
    /// the address registers of the two packets.
    fn for_each_quarter(&mut self, from: Zmm, mut each: impl FnMut(&mut Self, Zmm, &[Gpr])) {
        for (quarter, pair) in (0..).zip(ADDRESSES.chunks(2)) {
            let part = if quarter == 0 {
                from
            } else {
                self.asm.quarter_to(SPARE[1], from, quarter);
                SPARE[1]
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
    pub(super) fn load_pair(&mut self, low: V, high: V, offset: i32) {
        let [even, odd, upper_even, upper_odd] = SPARE;
        for (register, packet) in [(even, 0), (upper_even, 4), (odd, 1), (upper_odd, 5)] {
            self.asm.load_half(register, of_two(packet, offset));
        }
        self.asm.set_upper_half(even, upper_even);
        self.asm.set_upper_half(odd, upper_odd);
        for (v, instruction) in [(low, VPUNPCKLQDQ), (high, VPUNPCKHQDQ)] {
            if self.home(v) != Home::Unused {
                let target = self.target(v);
                self.asm.three(instruction, target, even, odd.into());
                self.write_back(v, target);
            }
        }
    }

    /// The reverse of `load_pair`.
    pub(super) fn store_pair(&mut self, low: V, high: V, offset: i32) {
        let (low, high) = (self.register(low, SPARE[2]), self.last(Source::V(high)));
        let [even, odd, upper_even, upper_odd] = SPARE;
        // `low` may be in the register of an upper half, so both are unpacked first.
        self.asm.three(VPUNPCKLQDQ, even, low, high);
        self.asm.three(VPUNPCKHQDQ, odd, low, high);
        self.asm.upper_half(upper_even, even);
        self.asm.upper_half(upper_odd, odd);
        for (register, packet) in [(even, 0), (odd, 1), (upper_even, 4), (upper_odd, 5)] {
            self.asm.store_half(register, of_two(packet, offset));
        }
    }

    pub(super) fn store_part(&mut self, from: V, bytes: u8, offset: i32) {
        let from = self.register(from, SPARE[0]);
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

/// Memory at an offset from the addresses of a packet and of the next but one.
fn of_two(packet: usize, offset: i32) -> [Mem; 2] {
    [packet, packet + 2].map(|packet| Mem::At(ADDRESSES[packet], offset))
}
