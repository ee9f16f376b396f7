//! Safe functions are sound for all arguments that safe code can pass.

use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_ir::MatchKind;
use weir_table::fast::{FastTable, PendingLookup, PrefetchQueue};
use weir_table::{ActionSpec, KeySpec, TableSpec};

/// A table whose keys and results have this number of words.
fn table(words: u32) -> FastTable {
    let spec = TableSpec::new("t").key(KeySpec::new("k", 64 * words, MatchKind::Exact));
    FastTable::new(&spec.action(ActionSpec::new("a").parameter("p", 64 * (words - 1))))
}

/// A row stride that puts rows outside of all memory is refused: their addresses would wrap around,
/// to memory in front of the array.
#[test]
fn a_row_stride_of_more_words_than_there_are_is_refused() {
    for (words, row_stride) in [(2, usize::MAX), (3, 1 << 63), (5, 1 << 62), (3, usize::MAX / 2 + 1)] {
        let fast = table(words);
        let guard = fast.epochs().enter();
        let view = fast.view(&guard);
        let (keys, mut results) = (vec![0; 64], vec![0; 64]);
        let looks_up = catch_unwind(AssertUnwindSafe(|| view.lookup(1, &keys, &mut results, row_stride, 0)));
        assert!(looks_up.is_err(), "{words} words, a row stride of {row_stride}");
        let prepares = catch_unwind(|| view.prefetch(1, &keys, row_stride, &mut PrefetchQueue::default()));
        assert!(prepares.is_err());
        let in_two_parts = catch_unwind(|| view.begin(1, &keys, row_stride, &mut PendingLookup::default()));
        assert!(in_two_parts.is_err());
    }
    // No packet has a key: nothing is looked up.
    assert_eq!(table(2).lookup(0, &[], &mut [], usize::MAX, 0), 0);
}
