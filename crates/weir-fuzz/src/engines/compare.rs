//! What two switches have kept.

use std::collections::BTreeMap;
use std::fmt::Debug;
use weir_arch::{Cells, Resource};
use weir_switch::{DropReason, Switch};

/// Cells that are looked at from each end of an array.
const CELLS: u64 = 512;

fn cells<T: Clone + Default + PartialEq + Debug>(name: &str, a: &Cells<T>, b: &Cells<T>) -> Option<String> {
    let size = a.size();
    let ends = (0..size.min(CELLS)).chain(size.saturating_sub(CELLS).max(CELLS)..size);
    for index in ends {
        let (x, y) = (a.get(index), b.get(index));
        if x != y {
            return Some(format!("{name}[{index}]: {x:?} and {y:?}"));
        }
    }
    None
}

fn resources(a: &Switch, b: &Switch) -> Option<String> {
    for (id, instance) in a.program().externs.iter() {
        let name = &instance.name;
        let found = match (a.state().resource(id), b.state().resource(id)) {
            (Resource::Counter(_, x), Resource::Counter(_, y)) => cells(name, x, y),
            (Resource::DirectCounter(..), Resource::DirectCounter(..)) => (0..CELLS).find_map(|handle| {
                let (x, y) = (a.counter(id, handle).ok(), b.counter(id, handle).ok());
                (x != y).then(|| format!("{name}[{handle}]: {x:?} and {y:?}"))
            }),
            (Resource::Meter(_, x), Resource::Meter(_, y))
            | (Resource::DirectMeter(_, x), Resource::DirectMeter(_, y)) => cells(name, x, y),
            (Resource::Register(x), Resource::Register(y)) => (0..x.cells.size().min(CELLS)).find_map(|index| {
                let (x, y) = (x.read(index), y.read(index));
                (x != y).then(|| format!("{name}[{index}]: {x:?} and {y:?}"))
            }),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn drops(switch: &Switch) -> BTreeMap<DropReason, u64> {
    let mut all = BTreeMap::new();
    for drop in switch.drops() {
        *all.entry(drop.reason).or_default() += drop.packets;
    }
    all
}

fn same<T: PartialEq + Debug>(what: &str, a: T, b: T) -> Option<String> {
    (a != b).then(|| format!("{what}: {a:?} and {b:?}"))
}

fn tables(a: &Switch, b: &Switch) -> Option<String> {
    a.program().tables.iter().find_map(|(id, table)| {
        let (x, y) = (a.state().table(id)?, b.state().table(id)?);
        same(
            &format!("hits, misses and entries of {}", table.name),
            (x.hits, x.misses, x.table.len()),
            (y.hits, y.misses, y.table.len()),
        )
    })
}

/// The first difference in what is counted of all packets; cheap.
pub(crate) fn counts(a: &Switch, b: &Switch) -> Option<String> {
    same("drops", drops(a), drops(b)).or_else(|| tables(a, b))
}

/// The first difference in what was counted, kept or told.
pub(crate) fn difference(a: &Switch, b: &Switch) -> Option<String> {
    let digests = |s: &Switch| s.state().digests.iter().cloned().collect::<Vec<_>>();
    let log = |s: &Switch| s.state().log.iter().map(|m| m.text.clone()).collect::<Vec<_>>();
    kept(a, b)
        .or_else(|| same("digests", digests(a), digests(b)))
        .or_else(|| same("log", log(a), log(b)))
}

/// The same, where packets overtake each other.
pub(crate) fn difference_without_order(a: &Switch, b: &Switch) -> Option<String> {
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    let digests = |s: &Switch| sorted(s.state().digests.iter().map(|d| format!("{d:?}")).collect());
    let log = |s: &Switch| sorted(s.state().log.iter().map(|m| m.text.clone()).collect());
    kept(a, b)
        .or_else(|| same("digests", digests(a), digests(b)))
        .or_else(|| same("log", log(a), log(b)))
}

/// The first difference in counts, ports, resources and the clock.
fn kept(a: &Switch, b: &Switch) -> Option<String> {
    let errors = |s: &Switch| s.state().parser_errors.clone();
    counts(a, b)
        .or_else(|| {
            same(
                "ports",
                a.active_ports().collect::<Vec<_>>(),
                b.active_ports().collect(),
            )
        })
        .or_else(|| same("parser errors", errors(a), errors(b)))
        .or_else(|| resources(a, b))
        .or_else(|| same("clock", a.now_ns(), b.now_ns()))
}
