//! Measures the cost of incrementing words at random, the lower bound for registers larger than the
//! caches.
//!
//! `chrt -f 50 taskset -c 1 cargo run --release -p weir-table --example random_cells`
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use weir_table::memory::{prefetch, zeroed_words};

/// Number of indices, like the packets of a large pool.
const INDICES: usize = 65536;
/// Indices per vector.
const VECTOR: usize = 64;

fn add(cells: &[AtomicU64], at: usize) {
    cells[at].store(cells[at].load(Relaxed) + 1, Relaxed);
}

/// Nanoseconds per access, the median of eleven runs; with or without prefetching the cells of a
/// vector first.
fn measure(cells: &[AtomicU64], indices: &[u32], ahead: bool) -> f64 {
    let mut took: Vec<f64> = (0..11)
        .map(|_| {
            let begin = Instant::now();
            for vector in indices.chunks(VECTOR) {
                if ahead {
                    vector.iter().for_each(|at| prefetch(&cells[*at as usize]));
                }
                vector.iter().for_each(|at| add(cells, *at as usize));
            }
            begin.elapsed().as_nanos() as f64 / indices.len() as f64
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

fn main() {
    for bits in [12, 20, 21, 24, 27] {
        let cells = zeroed_words(1 << bits);
        cells.iter().for_each(|cell| cell.store(1, Relaxed));
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 20) as u32 & ((1 << bits) - 1)
        };
        let indices: Vec<u32> = (0..INDICES).map(|_| next()).collect();
        let [plain, ahead] = [false, true].map(|ahead| measure(&cells, &indices, ahead));
        let size = (8u64 << bits) as f64 / f64::from(1 << 20);
        eprintln!("{size:8.2} MB: {plain:5.1} ns an access, {ahead:5.1} where a vector's are asked for first");
    }
}
