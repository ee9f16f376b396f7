//! TSC cycles per lookup, medians, each beside a hash map that is looked up once per packet in the
//! same run.
//!
//! `chrt -f 50 taskset -c 1 cargo bench -p weir-table --bench cycles`
#![allow(missing_docs, unsafe_code, clippy::print_stdout)]

mod workload;

use rustc_hash::FxHashMap;
use std::hint::black_box;
use workload::Workload;

#[cfg(target_arch = "x86_64")]
fn now() -> u64 {
    // SAFETY: reads a counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn now() -> u64 {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

const ROUNDS: usize = 25;

type Make = Box<dyn Fn(&'static str) -> Workload>;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report(mut w: Workload, map_entries: usize) {
    // The map contains the same share of the flows as the table.
    let mut map: FxHashMap<u64, [u64; 2]> = w.flows.iter().map(|f| (*f, [1, 2])).collect();
    let mut random = workload::Random(9);
    while map.len() < map_entries {
        map.insert(random.next(), [3, 4]);
    }
    let packets = (w.vectors.len() * workload::SLOTS) as f64;
    let repeats = (65_536.0 / packets).ceil().max(1.0) as usize;
    let (mut fast, mut base, mut hits) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let start = now();
        for _ in 0..repeats {
            hits = black_box(w.run());
        }
        fast.push((now() - start) as f64 / packets / repeats as f64);
        let start = now();
        let mut sum = 0;
        for _ in 0..repeats {
            for f in &w.flows {
                sum += map.get(f).map_or(0, |v| v[0] + v[1]);
            }
        }
        black_box(sum);
        base.push((now() - start) as f64 / packets / repeats as f64);
    }
    println!(
        "{:34} {:8} entries  {:7.1} cyc  (FxHashMap {:6.1})  hits {:5.1} %  load {:7.2} M/s  {:6.1} B/entry",
        w.name,
        w.entries,
        median(fast),
        median(base),
        f64::from(hits) * 100.0 / packets,
        w.entries as f64 / w.load.as_secs_f64() / 1e6,
        w.fast.memory_bytes() as f64 / w.entries as f64,
    );
}

fn main() {
    let only = std::env::args()
        .nth(1)
        .filter(|a| !a.starts_with('-'))
        .unwrap_or_default();
    let (small, large) = (4096, 65_536);
    let cases: Vec<(&'static str, Make)> = vec![
        (
            "exact48 1k",
            Box::new(move |n| workload::exact(n, 1000, small, &[9], 100)),
        ),
        (
            "exact48 1k, 64k flows",
            Box::new(move |n| workload::exact(n, 1000, large, &[9], 100)),
        ),
        (
            "exact48 1k, half misses, 64k",
            Box::new(move |n| workload::exact(n, 1000, large, &[9], 50)),
        ),
        (
            "exact48 16k",
            Box::new(move |n| workload::exact(n, 16_000, large, &[9], 100)),
        ),
        (
            "exact48 1M, 64k flows",
            Box::new(move |n| workload::exact(n, 1_000_000, large, &[9], 100)),
        ),
        (
            "exact48 1M, half misses, 64k",
            Box::new(move |n| workload::exact(n, 1_000_000, large, &[9], 50)),
        ),
        (
            "packed48 1k",
            Box::new(move |n| workload::packed(n, 1000, small, false, 100)),
        ),
        (
            "packed48 1k, idle",
            Box::new(move |n| workload::packed(n, 1000, small, true, 100)),
        ),
        (
            "packed48 1k, 64k flows",
            Box::new(move |n| workload::packed(n, 1000, large, false, 100)),
        ),
        (
            "packed48 1k, half misses, 64k",
            Box::new(move |n| workload::packed(n, 1000, large, false, 50)),
        ),
        (
            "packed48 16k",
            Box::new(move |n| workload::packed(n, 16_000, large, false, 100)),
        ),
        (
            "packed48 1M, 64k flows",
            Box::new(move |n| workload::packed(n, 1_000_000, large, false, 100)),
        ),
        (
            "packed48 1M, 64k flows, idle",
            Box::new(move |n| workload::packed(n, 1_000_000, large, true, 100)),
        ),
        (
            "packed48 1M, half misses, 64k",
            Box::new(move |n| workload::packed(n, 1_000_000, large, false, 50)),
        ),
        (
            "exact48 wide result 1k",
            Box::new(move |n| workload::exact(n, 1000, small, &[9, 48, 48], 100)),
        ),
        (
            "exact48 wide result 1M, 64k",
            Box::new(move |n| workload::exact(n, 1_000_000, large, &[9, 48, 48], 100)),
        ),
        ("exact128 1k", Box::new(move |n| workload::exact128(n, 1000, small))),
        (
            "exact128 1M, 64k flows",
            Box::new(move |n| workload::exact128(n, 1_000_000, large)),
        ),
        ("lpm32 50", Box::new(move |n| workload::lpm(n, 50, small))),
        ("lpm32 1k", Box::new(move |n| workload::lpm(n, 1000, small))),
        (
            "lpm32 900k, 64k flows",
            Box::new(move |n| workload::lpm(n, 900_000, large)),
        ),
        (
            "lpm128 1k, 8 lengths",
            Box::new(move |n| workload::lpm6(n, 1000, small)),
        ),
        (
            "lpm128 200k, 8 lengths, 64k flows",
            Box::new(move |n| workload::lpm6(n, 200_000, large)),
        ),
        (
            "ternary 16 rules",
            Box::new(move |n| workload::ternary(n, 16, 16, small)),
        ),
        (
            "ternary 1k, 20 masks",
            Box::new(move |n| workload::ternary(n, 1000, 20, small)),
        ),
        (
            "ternary 1k, 20 masks, 64k flows",
            Box::new(move |n| workload::ternary(n, 1000, 20, large)),
        ),
        (
            "ternary 10k, 20 masks, 64k flows",
            Box::new(move |n| workload::ternary(n, 10_000, 20, large)),
        ),
    ];
    for (name, make) in cases {
        if name.contains(&only) {
            let w = make(name);
            let entries = w.entries;
            report(w, entries);
        }
    }
}
