//! The addresses of slots, as compiled code computes them.

use super::*;
use crate::fast::structure::StructureView;
use crate::fast::{FastTable, slot_shift};
use crate::{ActionSpec, EntryAction, KeySpec, NewEntry, Table, TableSpec};
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};

/// A table with `count` prefixes of full length.
fn routes(width: u32, size: u64, count: u64) -> FastTable {
    let action = ActionSpec::new("forward").parameter("port", 9);
    let key = KeySpec::new("address", width, MatchKind::Lpm);
    let mut spec = TableSpec::new("routes").key(key).action(action);
    spec.size = size;
    let mut table = Table::new(spec.clone());
    for i in 0..count {
        let value = Bits::new(width, u128::from(i * 0x9e37_79b9) & ((1 << width) - 1));
        let matches = vec![KeyMatch::Lpm {
            value,
            prefix_length: width,
        }];
        let arguments = vec![Bits::new(9, 3)];
        let forward = EntryAction::Call(ActionCall { action: 0, arguments });
        table
            .insert(NewEntry::new(matches, forward))
            .expect("there is none like it");
    }
    let fast = FastTable::new(&spec);
    fast.bulk_load(&mut table.entries());
    fast
}

/// The addresses computed from [`slot_shift`] and [`SlotAddressing`] are those that a lookup reads.
#[test]
#[cfg_attr(
    miri,
    ignore = "six tables of 64 and 128 MB, which it would take many minutes to make"
)]
fn computed_slot_addresses_are_those_that_lookups_read() {
    let count = 1100;
    for (width, size) in [
        (24, PAGED_MIN),
        (27, PAGED_MIN),
        (32, PAGED_MIN),
        (32, 1100),
        (25, 1100),
    ] {
        let table = routes(width, size, count);
        assert_eq!(table.view(&table.epochs().enter()).slots(), None, "they are near");
        let shift = slot_shift(&routes_spec(width)).expect("keys have 24 bits and more");
        let keys: [u64; VECTOR_SLOTS] =
            std::array::from_fn(|i| (i as u64).wrapping_mul(0x2545_f491_4f6c_dd1d) >> (64 - width));
        let guard = table.epochs().enter();
        let StructureView::Dir24_8(dir24) = table.view(&guard).structure() else {
            panic!("there are many")
        };
        dir24.prefetches_early.store(true, Ordering::Relaxed);
        let addressing = table.view(&guard).slots().expect("they are far");
        let mut queue = PrefetchQueue::default();
        table.view(&guard).prefetch(u64::MAX, &keys, VECTOR_SLOTS, &mut queue);
        let expected = keys.map(|key| {
            let slot = (key >> shift) as usize;
            assert!(slot < SlotAddressing::COUNT);
            addressing.base + 4 * (slot + (slot & addressing.skip_mask))
        });
        assert_eq!(queue.addresses(), expected);
        assert_eq!(
            addressing.skip_mask != 0,
            size == PAGED_MIN,
            "between slots are records of large tables"
        );
    }
    assert_eq!(slot_shift(&routes_spec(23)), None);
    let few = routes(32, PAGED_MIN, 3);
    assert_eq!(few.view(&few.epochs().enter()).slots(), None);
}

fn routes_spec(width: u32) -> TableSpec {
    TableSpec::new("routes").key(KeySpec::new("address", width, MatchKind::Lpm))
}
