//! The points of the experiment's grid.

use super::grid::{Generated, TableGrid, Work, control, mixed, parser, rewriting, stack, tna};
use weir_ir::MatchKind;

/// Entries of tables where something else varies.
const SOME_ENTRIES: usize = 64;

/// Masks of tables where something else varies.
const SOME_MASKS: u32 = 8;

/// All programs of the experiment; of a quick one some.
pub fn all(is_quick: bool) -> Vec<Generated> {
    let mut all = Vec::new();
    let sizes: &[u32] = if is_quick {
        &[200, 1400]
    } else {
        &[100, 200, 400, 600, 800, 1000, 1200, 1400]
    };
    let states: &[usize] = if is_quick {
        &[0, 1, 3, 6, 10]
    } else {
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    };
    for bytes in [2, 5, 10, 20] {
        for &states in states.iter().filter(|n| **n > 0 || bytes == 2) {
            // The size of a packet hardly matters to an engine that copies no payload: it is
            // crossed with few of the states.
            let crossed = states % 5 == 0 || is_quick;
            for &size in sizes.iter().filter(|size| crossed || **size == 200 || **size == 1000) {
                all.push(parser(states, bytes, size));
            }
        }
    }
    for &states in states.iter().filter(|n| **n > 0) {
        all.push(rewriting(states, 5, 200));
        all.push(rewriting(states, 20, 200));
    }
    for &elements in states.iter().filter(|n| (1..=8).contains(*n)) {
        for bytes in [4, 10] {
            all.push(stack(elements, bytes, 200));
            all.push(tna(stack(elements, bytes, 600)));
        }
    }
    tables(&mut all, is_quick);
    works(&mut all, is_quick);
    for_tna(&mut all, is_quick);
    mixtures(&mut all, is_quick);
    all
}

/// Programs with tables of several kinds, as real ones have.
fn mixtures(all: &mut Vec<Generated>, is_quick: bool) {
    let grid = |kind, tables, width, keys, entries| TableGrid {
        tables,
        width,
        keys,
        kind,
        entries,
        masks: SOME_MASKS,
    };
    use MatchKind::{Exact, Lpm, Ternary};
    let combinations = [
        [grid(Exact, 1, 48, 1, 1000), grid(Lpm, 1, 32, 1, 1000)],
        [grid(Exact, 2, 48, 2, 5000), grid(Lpm, 1, 32, 1, 100)],
        [grid(Exact, 3, 32, 1, 1000), grid(Lpm, 1, 128, 1, 5000)],
        [grid(Exact, 2, 24, 1, 2000), grid(Ternary, 1, 32, 2, 100)],
        [grid(Exact, 1, 16, 4, 5000), grid(Lpm, 1, 64, 2, 1000)],
        [grid(Exact, 4, 16, 1, 64), grid(Ternary, 1, 128, 1, 1000)],
        [grid(Lpm, 1, 32, 1, 1000), grid(Ternary, 1, 64, 1, 100)],
        [grid(Exact, 1, 128, 2, 10_000), grid(Exact, 1, 48, 1, 64)],
        [grid(Exact, 1, 32, 1, 1000), grid(Lpm, 1, 128, 1, 30_000)],
    ];
    let none = Work::default();
    let works = [
        none,
        Work {
            writes: 2,
            additions: 1,
            checksum_fields: 4,
            ..none
        },
        Work {
            writes: 1,
            counters: 1,
            direct_counters: true,
            ..none
        },
        Work { registers: 1, ..none },
    ];
    for tables in &combinations {
        for work in works {
            for size in if is_quick { vec![300] } else { vec![200, 800] } {
                all.push(mixed(tables, work, size));
                if work.checksum_fields == 0 && work.counters == 0 && work.registers == 0 {
                    all.push(tna(mixed(tables, work, size)));
                }
            }
        }
    }
}

fn for_tna(all: &mut Vec<Generated>, is_quick: bool) {
    let sizes: &[u32] = if is_quick { &[400] } else { &[200, 600, 1000, 1400] };
    for &size in sizes {
        for (states, bytes) in [(0, 2), (2, 5), (2, 20), (4, 10), (6, 5), (6, 20), (10, 5)] {
            all.push(tna(parser(states, bytes, size)));
        }
        for (states, bytes) in [(1, 5), (2, 20), (4, 5)] {
            all.push(tna(rewriting(states, bytes, size)));
        }
    }
    for kind in [MatchKind::Exact, MatchKind::Lpm, MatchKind::Ternary] {
        for (tables, width, keys, entries) in [
            (1, 32, 1, 64),
            (3, 32, 1, 64),
            (6, 32, 1, 64),
            (1, 32, 2, 1000),
            (2, 48, 1, 1000),
            (1, 128, 1, 1000),
            (1, 32, 1, 10_000),
        ] {
            let grid = TableGrid {
                tables,
                width,
                keys,
                kind,
                entries: if is_quick { entries.min(1000) } else { entries },
                masks: SOME_MASKS,
            };
            all.push(tna(control(grid, Work::default(), 300)));
            let work = Work {
                writes: 2,
                additions: 1,
                ..Work::default()
            };
            all.push(tna(control(grid, work, 600)));
        }
    }
}

fn tables(all: &mut Vec<Generated>, is_quick: bool) {
    let some = TableGrid {
        tables: 1,
        width: 32,
        keys: 1,
        kind: MatchKind::Exact,
        entries: SOME_ENTRIES,
        masks: SOME_MASKS,
    };
    let mut add = |grid: TableGrid| all.push(control(grid, Work::default(), 300));
    let counts: &[usize] = if is_quick {
        &[1, 3, 6]
    } else {
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    };
    for kind in [MatchKind::Exact, MatchKind::Lpm, MatchKind::Ternary] {
        let some = TableGrid { kind, ..some };
        for width in [8, 16, 32] {
            counts
                .iter()
                .for_each(|&tables| add(TableGrid { tables, width, ..some }));
        }
        for (tables, width, keys) in [
            (1, 48, 1),
            (2, 48, 1),
            (1, 64, 1),
            (2, 128, 1),
            (3, 128, 1),
            (1, 32, 2),
            (2, 32, 3),
            (2, 16, 4),
            (3, 48, 2),
        ] {
            add(TableGrid {
                tables,
                width,
                keys,
                ..some
            });
        }
        for &entries in entries_of(kind, is_quick) {
            for (tables, width, keys) in [(1, 32, 1), (2, 64, 1), (1, 32, 2), (1, 128, 1), (3, 32, 1)] {
                if !is_quick || tables == 1 {
                    add(TableGrid {
                        tables,
                        width,
                        keys,
                        entries,
                        ..some
                    });
                }
            }
        }
        let masks: &[u32] = if kind == MatchKind::Exact {
            &[]
        } else {
            &[1, 2, 4, 16, 32]
        };
        for &masks in masks {
            for (tables, width, keys) in [(1, 64, 1), (2, 128, 1), (1, 48, 2)] {
                add(TableGrid {
                    tables,
                    width,
                    keys,
                    masks,
                    entries: 1000,
                    ..some
                });
            }
        }
    }
}

/// Numbers of entries that are tried.
fn entries_of(kind: MatchKind, is_quick: bool) -> &'static [usize] {
    match kind {
        _ if is_quick => &[1, 10, 1000],
        MatchKind::Ternary => &[1, 10, 1000, 10_000],
        MatchKind::Exact | MatchKind::Lpm | MatchKind::Range | MatchKind::Optional | MatchKind::Selector => {
            &[1, 10, 1000, 10_000, 100_000]
        }
    }
}

fn works(all: &mut Vec<Generated>, is_quick: bool) {
    let none = Work::default();
    let amounts: &[usize] = if is_quick { &[1, 4] } else { &[1, 2, 4, 8] };
    let grid = |tables| TableGrid {
        tables,
        width: 32,
        keys: 1,
        kind: MatchKind::Exact,
        entries: SOME_ENTRIES,
        masks: SOME_MASKS,
    };
    for &n in amounts {
        let kinds = [
            Work { writes: n, ..none },
            Work { additions: n, ..none },
            Work { registers: n, ..none },
            Work { counters: n, ..none },
            Work { hashes: n, ..none },
            Work {
                checksum_fields: n,
                ..none
            },
            Work {
                counters: n,
                direct_counters: true,
                ..none
            },
            Work {
                writes: n,
                additions: n,
                counters: n,
                checksum_fields: n,
                ..none
            },
        ];
        for work in kinds {
            for tables in [1, 3] {
                if tables == 1 || !is_quick {
                    all.push(control(grid(tables), work, 300));
                }
            }
        }
    }
}
