//! Counting hits in the records that were hit.
#![allow(unsafe_code)]

use crate::fast::batch::{SLOTS, each};
use crate::fast::head;
use crate::fast::mem::{Directory, GivenOut};
use std::sync::atomic::Ordering;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::eight::{Chunks, EIGHT, Lanes, has_eight, of_group};

/// Hits of a vector: a row of heads with numbers of records, and one of bytes; of the slots in `slots`.
#[derive(Clone, Copy)]
pub(super) struct Hits<'a> {
    pub(super) heads: &'a [u64; SLOTS],
    pub(super) bytes: &'a [u64; SLOTS],
    pub(super) slots: u64,
}

impl Directory {
    /// Counts hits in two words of records from `at` on: packets, bytes. Other numbers than these are left out.
    ///
    /// # Safety
    /// The numbers are those of an arena's records, and records have these words.
    #[inline]
    pub(super) unsafe fn count(&self, given_out: &GivenOut, at: usize, hits: Hits<'_>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if has_eight() {
            // SAFETY: the processor has these features; the rest is the caller's promise.
            return unsafe { self.count_eight(given_out, at, hits) };
        }
        each(hits.slots, |slot, _| {
            let number = head::handle(hits.heads[slot % SLOTS]);
            if given_out.contains(number) {
                // SAFETY: it is a record's; the rest is the caller's promise.
                unsafe { add(self.record(number).as_ptr().addr(), at, hits.bytes[slot % SLOTS]) };
            }
        });
    }

    /// The same, for eight slots at a time.
    ///
    /// # Safety
    /// As there.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    unsafe fn count_eight(&self, given_out: &GivenOut, at: usize, hits: Hits<'_>) {
        use std::arch::x86_64::*;
        let chunks = Chunks::new(self);
        let (first, end) = (
            _mm512_set1_epi64(given_out.ordinary.start.into()),
            _mm512_set1_epi64(given_out.ordinary.end.into()),
        );
        // Bits of numbers in pages: those from that of the first on say that it is one of them, and another that it is a record.
        let (in_pages, chunk, record) = match given_out.in_pages {
            Some(pages) => (u8::MAX, pages.first, pages.unit / 2),
            None => (0, 0, 0),
        };
        let chunk_bits = _mm512_set1_epi64((!chunk.wrapping_sub(1)).into());
        let (chunk, record) = (_mm512_set1_epi64(chunk.into()), _mm512_set1_epi64(record.into()));
        let mut records = Lanes::new();
        let mut counted = 0;
        for (group, heads) in hits.heads.as_chunks::<EIGHT>().0.iter().enumerate() {
            // SAFETY: there are eight words.
            let heads = unsafe { _mm512_loadu_epi64(heads.as_ptr().cast()) };
            let numbers = _mm512_and_si512(heads, _mm512_set1_epi64(u32::MAX.into()));
            let known = _mm512_cmpge_epu64_mask(numbers, first) & _mm512_cmplt_epu64_mask(numbers, end);
            let is_of_pages = _mm512_cmpeq_epi64_mask(_mm512_and_si512(numbers, chunk_bits), chunk);
            let is_record = _mm512_test_epi64_mask(numbers, record);
            let is_of_pages = in_pages & is_of_pages;
            // Ordinary numbers may go on behind those of pages.
            let known = known & !is_of_pages | is_of_pages & is_record;
            counted |= u64::from(known & of_group(hits.slots, group)) << (EIGHT * group);
            records.set(group, chunks.records(numbers));
        }
        if counted == u64::MAX {
            // Counting one is so short that the loop around it would be a third of it.
            for (group, bytes) in hits.bytes.as_chunks::<EIGHT>().0.iter().enumerate() {
                for (record, bytes) in records.group(group).iter().zip(bytes) {
                    // SAFETY: these are records; the rest is the caller's promise.
                    unsafe { add(*record as usize, at, *bytes) };
                }
            }
            return;
        }
        each(counted, |slot, _| {
            // SAFETY: these are records, of slots that were counted above; the rest is the caller's
            // promise.
            unsafe { add(records.0[slot % SLOTS] as usize, at, hits.bytes[slot % SLOTS]) };
        });
    }
}

/// Counts a packet of so many bytes. It reads and writes in two steps: nobody else counts meanwhile, as the writer is locked.
///
/// # Safety
/// There is a record with two words from `at` on. (Addresses of records are exposed by whoever makes them.)
#[inline(always)]
unsafe fn add(record: usize, at: usize, bytes: u64) {
    let words = std::ptr::with_exposed_provenance::<std::sync::atomic::AtomicU64>(record);
    // SAFETY: the caller's promise.
    let [packets, of_bytes] = unsafe { [&*words.add(at), &*words.add(at + 1)] };
    packets.store(packets.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    of_bytes.store(of_bytes.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}
