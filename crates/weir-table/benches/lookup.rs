//! Lookups in vectors of 64, each beside a hash map that is looked up once per packet.
#![allow(missing_docs)]

mod workload;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rustc_hash::FxHashMap;
use workload::Workload;

fn bench(c: &mut Criterion, mut w: Workload) {
    let mut map: FxHashMap<u64, [u64; 2]> = w.flows.iter().map(|f| (*f, [1, 2])).collect();
    let mut random = workload::Random(9);
    while map.len() < w.entries {
        map.insert(random.next(), [3, 4]);
    }
    let mut group = c.benchmark_group(w.name);
    group.throughput(Throughput::Elements(w.flows.len() as u64));
    group.bench_function("fast", |b| b.iter(|| w.run()));
    let flows = w.flows.clone();
    group.bench_function("FxHashMap", |b| {
        b.iter(|| flows.iter().map(|f| map.get(f).map_or(0, |v| v[0] + v[1])).sum::<u64>());
    });
    group.finish();
}

fn lookups(c: &mut Criterion) {
    bench(c, workload::exact("exact 1k", 1000, 4096, &[9], 100));
    bench(c, workload::exact("exact 1M", 1_000_000, 65_536, &[9], 100));
    bench(c, workload::packed("packed 1k", 1000, 4096, false, 100));
    bench(c, workload::packed("packed 1M", 1_000_000, 65_536, false, 100));
    bench(c, workload::lpm("lpm 1k", 1000, 4096));
    bench(c, workload::lpm("lpm 900k", 900_000, 65_536));
    bench(c, workload::ternary("ternary 1k", 1000, 20, 4096));
}

criterion_group!(benches, lookups);
criterion_main!(benches);
