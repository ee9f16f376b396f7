//! Compiles segments for eight packets at a time, in the lanes of AVX-512 registers.
//!
//! The input is a segment's code for one packet ([`crate::codegen::Shape::Packet`]), optimised by
//! Cranelift. Each value becomes a vector with a word per packet, and each condition a mask. There
//! are no jumps between blocks: they follow each other, each under the mask of the packets that
//! reach it ([`flow`], [`lower`], [`op`]). Loads that only rare blocks use are sunk ([`sink`]).
//!
//! Headers are read sixteen bytes at a time and transposed in registers, so that a word of eight
//! packets costs six instructions ([`memory`], [`bytes`]). Rows of the context are read on demand.
//! Registers are allocated by linear scan ([`allocate`]), and [`emit`] writes the machine code with
//! the assembler [`x64`].
//!
//! Not everything is supported. Packets that reach anything else, such as a call, bail out: the
//! segment's loop runs them one by one, from the segment's start ([`supported`]). A segment with a
//! loop is not compiled here, and on processors without AVX-512 nothing is compiled here.
//! [`LaneUse`](crate::LaneUse) says when the code runs.

mod address;
mod allocate;
mod bytes;
mod emit;
mod flow;
mod lower;
mod memory;
mod op;
mod sink;
mod supported;
mod x64;

use cranelift_codegen::ir::Function;
use op::{Code, Op};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use weir_ir::TableId;

/// Whether the processor has the instructions that this code uses.
pub(crate) fn is_available() -> bool {
    // The functions use the calling convention of Unix.
    #[cfg(all(target_arch = "x86_64", unix))]
    {
        use std::arch::is_x86_feature_detected as has;
        has!("bmi2")
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512dq")
            && has!("avx512vl")
            && has!("avx512cd")
            && has!("avx512vbmi2")
            && has!("avx512vpopcntdq")
    }
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    false
}

/// Packets that run at a time.
pub(crate) const LANES: usize = emit::LANES;

/// A prefetch of the table slots that a lookup will read, done when its keys are stored in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotPrefetch {
    /// The table's index in [`SlotPrefetches::tables`].
    pub table: usize,
    /// A key, shifted right by these bits, is a slot's number ([`weir_table::fast::slot_shift`]).
    pub key_shift: u8,
}

/// The tables whose slots code prefetches when it stores keys.
#[derive(Debug, Default)]
pub(crate) struct SlotPrefetches {
    pub tables: Vec<TableId>,
    /// By the first row of the keys.
    pub by_row: BTreeMap<usize, SlotPrefetch>,
}

impl SlotPrefetches {
    /// `lookups`: tables with the first row of their keys, and the key shift, if slots can be
    /// prefetched ([`weir_table::fast::slot_shift`]).
    pub fn new(lookups: impl Iterator<Item = (TableId, usize, Option<u32>)>) -> Self {
        let mut prefetches = SlotPrefetches::default();
        let mut by_row = BTreeMap::new();
        for (table, row, key_shift) in lookups {
            let prefetch = key_shift.map(|key_shift| SlotPrefetch {
                table: prefetches.table_index(table),
                key_shift: key_shift as u8,
            });
            // If tables share a row, it is not known whose keys are in it.
            by_row
                .entry(row)
                .and_modify(|existing| *existing = prefetch.filter(|prefetch| *existing == Some(*prefetch)))
                .or_insert(prefetch);
        }
        prefetches.by_row = by_row
            .into_iter()
            .filter_map(|(row, prefetch)| Some((row, prefetch?)))
            .collect();
        prefetches
    }

    /// The index of a table in [`Self::tables`], added if it is new.
    fn table_index(&mut self, table: TableId) -> usize {
        let existing = self.tables.iter().position(|t| *t == table);
        existing.unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        })
    }
}

/// The code of a segment for eight packets at a time.
pub(crate) struct LaneCode {
    /// Machine code, to be placed at a multiple of 64: a function `(env, mask, context) -> mask`,
    /// which returns the packets that bailed out.
    pub bytes: Vec<u8>,
    /// The size of the memory that [`crate::codegen::env::SENTINEL`] must point to.
    pub sentinel_bytes: usize,
    code: Code,
}

impl LaneCode {
    /// Compiles a function for one packet to code for eight. Most packets suspend at one of
    /// `hot_points`. `prefetches`: slots to prefetch when rows are stored, by row. `None`: there is
    /// nothing to gain, as there is a loop or all packets bail out.
    pub fn new(
        func: &Function,
        hot_points: &BTreeSet<usize>,
        prefetches: &BTreeMap<usize, SlotPrefetch>,
    ) -> Option<Self> {
        let mut code = lower::lower(func, hot_points, prefetches)?;
        eliminate_dead_ops(&mut code);
        Some(LaneCode {
            bytes: emit::emit(&code),
            sentinel_bytes: code.accessed_bytes,
            code,
        })
    }

    /// A listing of the operations.
    pub fn listing(&self) -> String {
        let mut out = String::new();
        for op in &self.code.ops {
            let _ = writeln!(out, "  {op}");
        }
        out
    }
}

/// Removes operations whose results are not read: one backward pass, as the code has no back edges.
fn eliminate_dead_ops(code: &mut Code) {
    let mut live_vectors = vec![false; code.vector_count as usize];
    let mut live_masks = vec![false; code.mask_count as usize];
    let mut keep = vec![true; code.ops.len()];
    for (keep, op) in keep.iter_mut().zip(&code.ops).rev() {
        if op.is_pure() {
            let mut is_live = op.written_mask().is_some_and(|m| live_masks[m.0 as usize]);
            op.for_each_written(|v| is_live |= live_vectors[v.0 as usize]);
            if !is_live {
                *keep = false;
                continue;
            }
        }
        op.for_each_read(|v| {
            // A vector that is only overwritten is not read.
            let is_overwritten = matches!(op, Op::MaskedMove { dst, .. } if *dst == v);
            live_vectors[v.0 as usize] |= !is_overwritten;
        });
        op.for_each_mask_read(|m| live_masks[m.0 as usize] = true);
    }
    let mut keep = keep.into_iter();
    code.ops.retain(|_| keep.next() == Some(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_shared_by_tables_get_no_prefetch() {
        let [a, b, c] = [0, 1, 2].map(TableId::new);
        let prefetches = SlotPrefetches::new(
            [
                (a, 5, Some(8)),
                (b, 6, None),
                (c, 7, Some(0)),
                (a, 9, Some(8)),
                (c, 9, Some(0)),
                (b, 7, None),
                (a, 5, Some(8)),
            ]
            .into_iter(),
        );
        assert_eq!(prefetches.tables, [a, c]);
        assert_eq!(
            prefetches.by_row,
            BTreeMap::from([(5, SlotPrefetch { table: 0, key_shift: 8 })])
        );
    }

    /// A listing of the code for a function of one packet.
    fn listing_of(text: &str) -> String {
        let functions = cranelift_reader::parse_functions(text).expect("it is well-formed");
        let code = LaneCode::new(&functions[0], &BTreeSet::from([2]), &BTreeMap::new()).expect("there is code for it");
        code.listing()
    }

    #[test]
    fn redundant_masks_are_removed() {
        // On 32-bit values: the sum may overflow, and the difference may be negative.
        let text = "function %f(i64, i64, i64, i64, i64, i64) -> i64 {
            block0(v0: i64, v1: i64, v2: i64, v3: i64, v4: i64, v5: i64):
                v6 = load.i64 notrap v1+704
                v7 = ireduce.i32 v6
                v8 = iadd v7, v7
                v9 = isub v8, v7
                v10 = uextend.i64 v9
                store notrap v10, v1+1408
                v11 = iconst.i64 2
                return v11
            }";
        let code = listing_of(text);
        assert_eq!(code.matches("And").count(), 1, "{code}");
        // The right shift needs its operand masked. Its result needs no mask of its own.
        let shifted = text.replace(
            "v9 = isub v8, v7",
            "v12 = iconst.i32 5\n                v9 = ushr v8, v12",
        );
        let code = listing_of(&shifted);
        assert_eq!(code.matches("And").count(), 1, "{code}");
        let at = |what: &str| code.find(what).unwrap_or_else(|| panic!("no {what}: {code}"));
        assert!(at("Add") < at("And") && at("And") < at("Right"), "{code}");
    }

    #[test]
    fn a_sunk_load_precedes_the_store_of_its_value() {
        // The rare block copies a byte from one address to another, then writes after its source.
        let text = "function %f(i64, i64, i64, i64, i64, i64) -> i64 {
            block0(v0: i64, v1: i64, v2: i64, v3: i64, v4: i64, v5: i64):
                v6 = load.i64 notrap v1
                v7 = load.i64 notrap v1+704
                v8 = iadd v6, v7
                v9 = uload8.i64 notrap v6+12
                v10 = load.i64 notrap v6+16
                brif v10, block1, block2
            block1:
                v20 = iconst.i64 2
                return v20
            block2:
                istore8 notrap v9, v8
                istore8 notrap v10, v6+13
                istore8 notrap v10, v6+15
                v21 = iconst.i64 3
                return v21
            }";
        let code = listing_of(text);
        let loaded = code.find("= [0..]").unwrap_or_else(|| panic!("{code}"));
        let stored = code.find("[0..1] =").unwrap_or_else(|| panic!("{code}"));
        assert!(loaded < stored, "{code}");
        // Loaded bytes are stale now, so only the two bytes are written.
        assert!(code.contains("[13..14] =") && code.contains("[15..16] ="), "{code}");
    }
}
