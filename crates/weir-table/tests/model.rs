//! Every lookup structure against the definition: compare all entries, take the best.

use proptest::prelude::*;
use weir_ir::{Bits, KeyMatch, MatchKind};
use weir_table::{ActionSpec, EntryAction, EntryRef, KeySpec, NewEntry, Table, TableError, TableSpec};

const WIDTH: u32 = 6;

fn bits(value: u128) -> Bits {
    Bits::new(WIDTH, value)
}

/// A canonical match of this kind from three random numbers.
fn key_match(kind: MatchKind, a: u8, b: u8) -> KeyMatch {
    let (value, other) = (bits(a.into()), bits(b.into()));
    match kind {
        MatchKind::Exact | MatchKind::Selector => KeyMatch::Exact(value),
        MatchKind::Lpm => {
            let prefix_length = u32::from(b) % (WIDTH + 1);
            KeyMatch::Lpm {
                value: value.and(&Bits::prefix_mask(WIDTH, prefix_length)),
                prefix_length,
            }
        }
        MatchKind::Ternary => KeyMatch::Ternary {
            value: value.and(&other),
            mask: other,
        },
        MatchKind::Range if value.cmp_unsigned(&other).is_le() => KeyMatch::Range {
            low: value,
            high: other,
        },
        MatchKind::Range => KeyMatch::Range {
            low: other,
            high: value,
        },
        MatchKind::Optional => KeyMatch::Optional(b.is_multiple_of(2).then_some(value)),
    }
}

fn covers(m: &KeyMatch, key: &Bits) -> bool {
    match m {
        KeyMatch::Exact(value) => value == key,
        KeyMatch::Lpm { value, prefix_length } => key.and(&Bits::prefix_mask(WIDTH, *prefix_length)) == *value,
        KeyMatch::Ternary { value, mask } => key.and(mask) == *value,
        KeyMatch::Range { low, high } => low.cmp_unsigned(key).is_le() && key.cmp_unsigned(high).is_le(),
        KeyMatch::Optional(value) => value.as_ref().is_none_or(|v| v == key),
    }
}

fn prefix(entry: &NewEntry) -> u32 {
    entry
        .matches
        .iter()
        .map(|m| {
            if let KeyMatch::Lpm { prefix_length, .. } = m {
                *prefix_length
            } else {
                0
            }
        })
        .sum()
}

/// Position of the winner among entries in the order of insertion.
fn model_lookup(entries: &[Option<NewEntry>], keys: &[Bits]) -> Option<usize> {
    let mut best: Option<(u32, u32, usize)> = None;
    for (i, entry) in entries.iter().enumerate() {
        let Some(entry) = entry else { continue };
        let candidate = (entry.priority, prefix(entry), i);
        if entry.matches.iter().zip(keys).all(|(m, k)| covers(m, k))
            && best.is_none_or(|b| (candidate.0, candidate.1) > (b.0, b.1))
        {
            best = Some(candidate);
        }
    }
    best.map(|b| b.2)
}

fn kinds() -> impl Strategy<Value = Vec<MatchKind>> {
    use MatchKind::{Exact, Lpm, Optional, Range, Ternary};
    prop_oneof![
        Just(vec![Exact]),
        Just(vec![Exact, Exact]),
        Just(vec![Lpm]),
        Just(vec![Exact, Lpm]),
        Just(vec![Lpm, Lpm]),
        proptest::collection::vec(
            prop_oneof![Just(Exact), Just(Lpm), Just(Ternary), Just(Range), Just(Optional)],
            1..4
        ),
    ]
}

fn spec(kinds: &[MatchKind]) -> TableSpec {
    kinds
        .iter()
        .fold(TableSpec::new("t"), |spec, kind| {
            spec.key(KeySpec::new("k", WIDTH, *kind))
        })
        .action(ActionSpec::new("a").parameter("p", 32))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn lookups_find_what_a_scan_of_all_entries_finds(
        kinds in kinds(),
        inserts in proptest::collection::vec((proptest::collection::vec(any::<(u8, u8)>(), 3), 0u32..4), 0..40),
        deletes in proptest::collection::vec(any::<proptest::sample::Index>(), 0..10),
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 3), 20),
    ) {
        let spec = spec(&kinds);
        let prioritised = spec.has_priority();
        let mut table = Table::new(spec);
        let mut model: Vec<Option<NewEntry>> = Vec::new();
        for (i, (randoms, priority)) in inserts.into_iter().enumerate() {
            let matches = kinds.iter().zip(randoms).map(|(k, (a, b))| key_match(*k, a, b)).collect();
            let entry = NewEntry::new(matches, EntryAction::call(0, vec![Bits::new(32, i as u128)]))
                .with_priority(if prioritised { priority } else { 0 });
            let twin = model.iter().flatten().any(|e| e.matches == entry.matches && e.priority == entry.priority);
            match table.insert(entry.clone()) {
                Ok(_) => {
                    prop_assert!(!twin);
                    model.push(Some(entry));
                }
                Err(error) => {
                    let duplicate = matches!(error, TableError::AlreadyExists { .. });
                    prop_assert!(twin && duplicate);
                }
            }
        }
        if !model.is_empty() {
            for index in deletes {
                let at = index.index(model.len());
                if let Some(entry) = model[at].take() {
                    table.delete(&EntryRef::Key { matches: entry.matches, priority: entry.priority })?;
                }
            }
        }
        prop_assert_eq!(table.len(), model.iter().flatten().count());
        for packet in packets {
            let keys: Vec<_> = packet.iter().take(kinds.len()).map(|&b| bits(b.into())).collect();
            let expected = model_lookup(&model, &keys).and_then(|i| model[i].clone());
            prop_assert_eq!(table.lookup(&keys).map(|e| &e.action), expected.as_ref().map(|e| &e.action));
        }
    }
}
