//! Counts hits in the records that were hit: packets and bytes, two words per record.
//!
//! A head carries its record's number here, not the entry's handle (see `FastTable::with_counts`).
//! Numbers that are not of a record are skipped, since a head may be stale.
#![allow(unsafe_code)]

use crate::fast::head;
use crate::fast::mem::{AllocatedNumbers, Directory};
use crate::fast::vector_lookup::{VECTOR_SLOTS, each_bit};
use std::sync::atomic::Ordering;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::simd::{LANES, RecordBases, SlotWords, group_mask, has_avx512_vbmi};

/// Hits of a vector: the heads with record numbers, and the packets' lengths in bytes, of the slots
/// in `slots`.
#[derive(Clone, Copy)]
pub(super) struct Hits<'a> {
    /// Heads of results, by slot, with record numbers in place of handles.
    pub(super) heads: &'a [u64; VECTOR_SLOTS],
    /// Lengths of packets in bytes, by slot.
    pub(super) bytes: &'a [u64; VECTOR_SLOTS],
    /// The slots to count.
    pub(super) slots: u64,
}

impl Directory {
    /// Counts hits in two words of the hit records, from word `first_word` on: packets, bytes.
    /// Numbers that were not allocated are skipped.
    #[inline]
    pub(super) unsafe fn count(&self, allocated: &AllocatedNumbers, first_word: usize, hits: Hits<'_>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if has_avx512_vbmi() {
            // SAFETY: the processor has these features; the rest is the caller's promise.
            return unsafe { self.count_simd(allocated, first_word, hits) };
        }
        each_bit(hits.slots, |slot, _| {
            let number = head::handle(hits.heads[slot % VECTOR_SLOTS]);
            if allocated.contains(number) {
                // SAFETY: it is a record's; the rest is the caller's promise.
                unsafe {
                    add(
                        self.record(number).as_ptr().addr(),
                        first_word,
                        hits.bytes[slot % VECTOR_SLOTS],
                    )
                };
            }
        });
    }

    /// The same, for eight slots at a time.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    unsafe fn count_simd(&self, allocated: &AllocatedNumbers, first_word: usize, hits: Hits<'_>) {
        use std::arch::x86_64::*;
        let record_bases = RecordBases::new(self);
        let (first, end) = (
            _mm512_set1_epi64(allocated.ordinary.start.into()),
            _mm512_set1_epi64(allocated.ordinary.end.into()),
        );
        // The chunk of pages has the numbers from a power of two up to its double. So a number lies
        // there if its bits from that one upwards equal the first number. One lower bit tells the
        // two halves of a stripe apart: slots (0) and records (1).
        let (pages_mask, first_page_number, record_bit) = match allocated.in_pages {
            Some(pages) => (u8::MAX, pages.first, pages.stripe / 2),
            None => (0, 0, 0),
        };
        let chunk_bits = _mm512_set1_epi64((!first_page_number.wrapping_sub(1)).into());
        let (first_page_number, record_bit) = (
            _mm512_set1_epi64(first_page_number.into()),
            _mm512_set1_epi64(record_bit.into()),
        );
        let mut records = SlotWords::new();
        let mut counted = 0;
        for (group, heads) in hits.heads.as_chunks::<LANES>().0.iter().enumerate() {
            // SAFETY: there are eight words.
            let heads = unsafe { _mm512_loadu_epi64(heads.as_ptr().cast()) };
            let numbers = _mm512_and_si512(heads, _mm512_set1_epi64(u32::MAX.into()));
            let known = _mm512_cmpge_epu64_mask(numbers, first) & _mm512_cmplt_epu64_mask(numbers, end);
            let is_of_pages = _mm512_cmpeq_epi64_mask(_mm512_and_si512(numbers, chunk_bits), first_page_number);
            let is_record = _mm512_test_epi64_mask(numbers, record_bit);
            let is_of_pages = pages_mask & is_of_pages;
            // Ordinary numbers may continue after those of pages.
            let known = known & !is_of_pages | is_of_pages & is_record;
            counted |= u64::from(known & group_mask(hits.slots, group)) << (LANES * group);
            records.set(group, record_bases.records(numbers));
        }
        if counted == u64::MAX {
            // All slots are counted. The count is so short that going through a mask would add a
            // third to it.
            for (group, bytes) in hits.bytes.as_chunks::<LANES>().0.iter().enumerate() {
                for (record, bytes) in records.group(group).iter().zip(bytes) {
                    // SAFETY: these are records; the rest is the caller's promise.
                    unsafe { add(*record as usize, first_word, *bytes) };
                }
            }
            return;
        }
        each_bit(counted, |slot, _| {
            // SAFETY: these are records, of slots that were counted above; the rest is the caller's
            // promise.
            unsafe {
                add(
                    records.0[slot % VECTOR_SLOTS] as usize,
                    first_word,
                    hits.bytes[slot % VECTOR_SLOTS],
                )
            };
        });
    }
}

/// Counts a packet of `bytes` bytes, with plain loads and stores: the caller has locked the writer,
/// so there is no other thread that counts.
#[inline(always)]
unsafe fn add(record: usize, first_word: usize, bytes: u64) {
    let words = std::ptr::with_exposed_provenance::<std::sync::atomic::AtomicU64>(record);
    // SAFETY: the caller's promise.
    let [packets, bytes_word] = unsafe { [&*words.add(first_word), &*words.add(first_word + 1)] };
    packets.store(packets.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    bytes_word.store(
        bytes_word.load(Ordering::Relaxed).wrapping_add(bytes),
        Ordering::Relaxed,
    );
}
