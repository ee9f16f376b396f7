//! Models of the slots' seqlocks; see [`crate::fast::loom_tests`].

use super::{Inline, InlineView, Portable, TwoSlots};
use crate::fast::head::HIT;
use crate::fast::loom_tests::model;
use crate::fast::rule::Rule;
use crate::fast::vector_lookup::{Dimensions, VectorLookup};
use loom::thread;
use std::sync::atomic::AtomicU64;

/// With three a model takes many minutes: a lookup or write has tens of loads and stores.
const PREEMPTIONS: usize = 2;
const DEFAULT: [u64; 2] = [0, 77];

/// Inserts an entry whose head and data contain key and version.
fn insert(inline: &mut Inline<TwoSlots>, key: u64, version: u64) {
    let rule = Rule {
        handle: key as u32,
        value: vec![key],
        ..Rule::default()
    };
    let [head, data] = result(key, version);
    inline.insert_rule(&rule, &[head | HIT, data], 0);
}

fn result(key: u64, version: u64) -> [u64; 2] {
    [version << 32 | key, version << 32 | key]
}

/// The result of a lookup without the hit flag, or the default.
fn look_up(view: &InlineView<TwoSlots>, key: u64) -> [u64; 2] {
    let dimensions = Dimensions {
        key_words: 1,
        result_words: 2,
        record_words: 2,
        stamp_word: None,
    };
    let (default, mut results) = (DEFAULT.map(AtomicU64::new), [0; 2]);
    let mut vector = VectorLookup::new(dimensions, 1, std::slice::from_ref(&key), &mut results, 1, &default, 0);
    let hits = view.lookup::<Portable>(&mut vector);
    assert_eq!(hits != 0, results[0] & HIT != 0);
    [results[0] & !HIT, results[1]]
}

#[test]
fn loom_a_result_that_is_written_meanwhile_is_of_one_version() {
    model(PREEMPTIONS, || {
        let mut inline = Inline::<TwoSlots>::new(false, 0);
        insert(&mut inline, 5, 1);
        let view = inline.view();
        let reading = thread::spawn(move || look_up(&view, 5));
        insert(&mut inline, 5, 2);
        let found = reading.join().expect("finds it");
        assert!(
            [1, 2].iter().any(|v| found == result(5, *v)),
            "torn or lost: {found:x?}"
        );
    });
}

#[test]
fn loom_a_key_that_goes_is_there_as_a_whole_or_missing() {
    model(PREEMPTIONS, || {
        let mut inline = Inline::<TwoSlots>::new(false, 0);
        insert(&mut inline, 5, 1);
        let view = inline.view();
        let reading = thread::spawn(move || look_up(&view, 5));
        let rule = Rule {
            handle: 5,
            value: vec![5],
            ..Rule::default()
        };
        inline.remove_rule(&rule);
        let found = reading.join().expect("finds it or not");
        assert!([DEFAULT, result(5, 1)].contains(&found), "torn: {found:x?}");
    });
}

/// Keys of which the first two fill one bucket and the next two another, so that the first must
/// move to its second bucket when the last is inserted.
fn keys_that_move(inline: &Inline<TwoSlots>) -> [u64; 5] {
    let with = |homes: fn([usize; 2]) -> bool, but: &[u64]| {
        let fits = |key: &u64| homes(inline.homes(*key)) && !but.contains(key);
        (1..).find(fits).expect("there are enough keys")
    };
    let leaves = with(|h| h == [0, 2], &[]);
    let stays = with(|h| h[0] == 0, &[leaves]);
    let beside = with(|h| h[0] == 1, &[]);
    let also = with(|h| h[0] == 1, &[beside]);
    let comes = with(|h| h == [0, 1], &[leaves, stays]);
    [leaves, stays, beside, also, comes]
}

#[test]
fn loom_a_key_that_moves_to_its_other_bucket_is_not_missed() {
    model(PREEMPTIONS, || {
        let mut inline = Inline::<TwoSlots>::new(false, 0);
        let keys = keys_that_move(&inline);
        for key in &keys[..4] {
            insert(&mut inline, *key, 1);
        }
        let (view, moved) = (inline.view(), keys[0]);
        let before = inline.array.moves.load(std::sync::atomic::Ordering::Relaxed);
        let array = std::sync::Arc::clone(&inline.array);
        let reading = thread::spawn(move || look_up(&view, moved));
        insert(&mut inline, keys[4], 1);
        assert_eq!(reading.join().expect("finds it"), result(moved, 1));
        assert_ne!(
            array.moves.load(std::sync::atomic::Ordering::Relaxed),
            before,
            "it moved"
        );
    });
}
