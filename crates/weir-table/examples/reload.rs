//! Measures how long a table of routes takes to load, and to reload while its old routes still
//! exist: `cargo run --release -p weir-table --example reload [ROUTES]`.
//!
//! The default is 900,000 routes with about the prefix lengths of Internet routes, but none longer
//! than 24 bits. The memory of the old routes is free again at the reload after the next. From
//! 16,384 routes on records lie between slots (`weir_table::fast`).
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::process::ExitCode;
use std::time::Instant;
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::fast::{Epochs, FastTable};
use weir_table::{ActionSpec, Entry, EntryAction, KeySpec, NewEntry, Table, TableError, TableSpec};

/// Distribution of prefix lengths: most are 24, few are short.
const LENGTHS: [u32; 16] = [24, 24, 24, 24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 16];
/// The limit: there are some 33 million prefixes of these lengths, and near that most generated
/// ones are duplicates.
const MAX_ROUTES: u64 = 10_000_000;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).map_or(Ok(900_000), |n| n.parse());
    let routes = match argument {
        Ok(routes) if (1..=MAX_ROUTES).contains(&routes) => routes,
        _ => {
            eprintln!("usage: reload [ROUTES], 1 to {MAX_ROUTES} of them");
            return ExitCode::FAILURE;
        }
    };
    let action = ActionSpec::new("route").parameter("next_hop", 32).parameter("port", 9);
    let mut spec = TableSpec::new("routes")
        .key(KeySpec::new("address", 32, MatchKind::Lpm))
        .action(action);
    spec.size = routes;
    let mut table = Table::new(spec.clone());
    let mut state = 1_u64;
    while (table.len() as u64) < routes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let prefix_length = LENGTHS[(state >> 60) as usize];
        let value = Bits::new(32, u128::from(state >> 24 & 0xffff_ffff)).and(&Bits::prefix_mask(32, prefix_length));
        let arguments = vec![Bits::new(32, 0), Bits::new(9, u128::from(state % 64))];
        let route = EntryAction::Call(ActionCall { action: 0, arguments });
        match table.insert(NewEntry::new(vec![KeyMatch::Lpm { value, prefix_length }], route)) {
            Ok(_) | Err(TableError::AlreadyExists { .. }) => {}
            Err(error) => {
                eprintln!("a route is refused: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let all: Vec<Entry> = table.entries().cloned().collect();
    let fast = FastTable::with_counts(&spec, Epochs::new().into());
    for round in ["first", "beside the first", "in memory that is free again", "the same"] {
        let start = Instant::now();
        fast.bulk_load(&mut all.iter());
        let took = start.elapsed().as_secs_f64();
        let rate = routes as f64 / took / 1e6;
        eprintln!("{round}: {:.0} ms, {rate:.2} million routes per second", took * 1e3);
    }
    ExitCode::SUCCESS
}
