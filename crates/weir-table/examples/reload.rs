//! How long a table of routes takes to be loaded, and to be loaded anew while its old routes are still there: `cargo run --release -p weir-table --example reload [ROUTES]`,
//! 900,000 routes by default, of the lengths that routes of the Internet have.

use std::time::Instant;
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::fast::{Epochs, FastTable};
use weir_table::{ActionSpec, Entry, EntryAction, KeySpec, NewEntry, Table, TableSpec};

/// Lengths of prefixes: most are 24, few are short.
const LENGTHS: [u32; 16] = [24, 24, 24, 24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 16];

fn main() {
    let routes = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(900_000);
    let action = ActionSpec::new("route").parameter("next_hop", 32).parameter("port", 9);
    let mut spec = TableSpec::new("routes")
        .key(KeySpec::new("address", 32, MatchKind::Lpm))
        .action(action);
    spec.size = routes;
    let mut table = Table::new(spec.clone());
    let (mut state, mut entries) = (1_u64, 0);
    while entries < routes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let prefix_length = LENGTHS[(state >> 60) as usize];
        let value = Bits::new(32, u128::from(state >> 24 & 0xffff_ffff)).and(&Bits::prefix_mask(32, prefix_length));
        let arguments = vec![Bits::new(32, 0), Bits::new(9, u128::from(state % 64))];
        let route = EntryAction::Call(ActionCall { action: 0, arguments });
        let entry = NewEntry::new(vec![KeyMatch::Lpm { value, prefix_length }], route);
        entries += u64::from(table.insert(entry).is_ok());
    }
    let all: Vec<Entry> = table.entries().cloned().collect();
    let fast = FastTable::with_counts(&spec, Epochs::new().into());
    for turn in ["first", "again", "again", "again"] {
        let start = Instant::now();
        fast.bulk_load(&mut all.iter());
        let took = start.elapsed();
        let rate = routes as f64 / took.as_secs_f64() / 1e6;
        eprintln!(
            "{turn}: {:.0} ms, {rate:.2} million per second",
            took.as_secs_f64() * 1e3
        );
    }
}
