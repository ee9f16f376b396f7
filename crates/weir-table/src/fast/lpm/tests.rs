//! Where slots are, for those who ask for them.

use super::*;
use crate::fast::structure::Shape;
use crate::fast::{FastTable, slot_shift};
use crate::{ActionSpec, EntryAction, KeySpec, NewEntry, Table, TableSpec};
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};

/// A table with so many prefixes of all bits.
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

/// Who asks for slots by [`slot_shift`] and [`SlotPlaces`] asks for those that a lookup reads.
#[test]
#[cfg_attr(
    miri,
    ignore = "six tables of 64 and 128 MB, which it would take many minutes to make"
)]
fn places_of_slots_are_where_lookups_look() {
    let count = 1100;
    for (width, size) in [(24, MANY), (27, MANY), (32, MANY), (32, 1100), (25, 1100)] {
        let table = routes(width, size, count);
        assert_eq!(table.present(&table.epochs().enter()).slots(), None, "they are near");
        let shift = slot_shift(&routes_spec(width)).expect("keys have 24 bits and more");
        let keys: [u64; SLOTS] =
            std::array::from_fn(|i| (i as u64).wrapping_mul(0x2545_f491_4f6c_dd1d) >> (64 - width));
        let guard = table.epochs().enter();
        let Shape::Dir(dir) = table.present(&guard).shape() else {
            panic!("there are many")
        };
        dir.is_far.store(true, Ordering::Relaxed);
        let places = table.present(&guard).slots().expect("they are far");
        let mut fetches = Fetches::default();
        table.present(&guard).prepare(u64::MAX, &keys, SLOTS, &mut fetches);
        let asked = keys.map(|key| {
            let slot = (key >> shift) as usize;
            assert!(slot < SlotPlaces::COUNT);
            places.start + 4 * (slot + (slot & places.gaps))
        });
        assert_eq!(fetches.addresses(), asked);
        assert_eq!(
            places.gaps != 0,
            size == MANY,
            "between slots are records of large tables"
        );
    }
    assert_eq!(slot_shift(&routes_spec(23)), None);
    let guard_of_few = routes(32, MANY, 3);
    assert_eq!(guard_of_few.present(&guard_of_few.epochs().enter()).slots(), None);
}

fn routes_spec(width: u32) -> TableSpec {
    TableSpec::new("routes").key(KeySpec::new("address", width, MatchKind::Lpm))
}
