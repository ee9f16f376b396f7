//! From a program's features to the numbers that a model looks at, for one path.

use crate::features::{Control, Features, Operations, ParserPath, Placement, Search, StatefulKind, TableFeatures};
use crate::model::{Feature, Values};
use std::collections::BTreeSet;
use weir_ir::MatchKind;

/// A program as a model sees it: one direction, or both where a packet's whole way is predicted.
#[derive(Debug, Clone)]
pub struct Workload<'a> {
    /// The direction whose parser paths are predicted.
    pub ingress: &'a Features,
    /// The other one, where the target counts it.
    pub egress: Option<&'a Features>,
    /// The ingress laid out in the stages of a chip.
    pub placement: Placement,
}

/// Bits from which on the paper's control model counts a single key as wide.
const WIDE_KEY_BITS: u32 = 16;

impl Workload<'_> {
    /// The values of all features for a path of the ingress parser, but that of the packet size.
    #[must_use]
    pub fn values(&self, path: &ParserPath, port_gbps: u32) -> Values {
        let mut values = Values::new(port_gbps);
        values.set(Feature::States, path.extracting_states.into());
        values.set(Feature::HeaderBytes, path.header_bytes.into());
        let elements = path
            .states
            .iter()
            .flat_map(|s| &s.headers)
            .filter(|name| name.ends_with(']'));
        values.set(Feature::StackExtracts, elements.count() as f64);
        values.set(Feature::Selects, path.selects.into());
        values.set(Feature::Lookaheads, path.lookaheads.into());
        values.set(Feature::EmittedBytes, self.ingress.emitted_bytes.into());
        values.set(Feature::ChecksumBytes, self.ingress.checksum_bytes.into());
        let control = &self.ingress.controls[path.control];
        let mut kib = add_control(&mut values, self.ingress, control);
        let mut rewritten: BTreeSet<&str> = control.rewritten.iter().map(String::as_str).collect();
        let mut metadata: u32 = path.states.iter().map(|s| s.metadata_bytes).sum();
        if let Some(egress) = self.egress {
            let same = egress.parser.paths.iter().find(|p| p.name == path.name);
            if let Some(there) = same.or_else(|| egress.parser.paths.first()) {
                let control = &egress.controls[there.control];
                kib += add_control(&mut values, egress, control);
                rewritten.extend(control.rewritten.iter().map(String::as_str));
                metadata += there.states.iter().map(|s| s.metadata_bytes).sum::<u32>();
            }
        }
        let headers = || path.states.iter().flat_map(|s| &s.headers);
        let checksummed = self
            .ingress
            .checksummed
            .iter()
            .filter(|name| headers().any(|h| h == *name));
        rewritten.extend(checksummed.map(String::as_str));
        values.set(Feature::RewrittenHeaders, rewritten.len() as f64);
        values.set(Feature::MetadataBytes, metadata.into());
        values.set(Feature::TableLogKib, (1.0 + kib).log2());
        values.set(Feature::TcamCycles, self.placement.tcam_cycles.into());
        values.set(Feature::StateCycles, self.placement.state_cycles.into());
        values
    }
}

/// Adds the costliest sequence of lookups; gives the KiB of its tables.
fn add_control(values: &mut Values, features: &Features, control: &Control) -> f64 {
    let (_, tables) = control.costliest(&|_| 1.0);
    let mut kib = 0.0;
    for table in tables.iter().map(|at| &features.tables[*at]) {
        add_table(values, table);
        kib += footprint_bytes(table) / 1024.0;
    }
    add_operations(values, &control.operations);
    kib
}

/// Bytes of the keys and data of all entries of a table.
fn footprint_bytes(table: &TableFeatures) -> f64 {
    let data = table.actions.iter().map(|a| a.data_bits).max().unwrap_or(0);
    (table.expected_entries() * u64::from(table.key_bits().div_ceil(8) + data.div_ceil(8))) as f64
}

fn add(values: &mut Values, feature: Feature, value: f64) {
    values.set(feature, values.get(feature) + value);
}

fn add_table(values: &mut Values, table: &TableFeatures) {
    if table.keys.is_empty() {
        return;
    }
    let is_wide = table.keys.len() == 1 && table.key_bits() >= WIDE_KEY_BITS;
    let paper = match (table.needs_tcam(), is_wide) {
        (false, false) => Feature::ExactTablesNarrow,
        (false, true) => Feature::ExactTablesWide,
        (true, false) => Feature::TcamTablesNarrow,
        (true, true) => Feature::TcamTablesWide,
    };
    add(values, paper, 1.0);
    add(values, Feature::Tables, 1.0);
    let entries = (1.0 + table.expected_entries() as f64).log2();
    let bytes = f64::from(table.key_bits()) / 8.0;
    match table.search() {
        Search::Exact => {
            add(values, Feature::ExactTables, 1.0);
            add(values, Feature::ExactKeyBytes, bytes);
            add(values, Feature::ExactLogEntries, entries);
        }
        Search::Lpm => {
            add(values, Feature::LpmTables, 1.0);
            add(values, Feature::LpmLogEntries, entries);
        }
        Search::Masks => {
            add(values, Feature::TupleTables, 1.0);
            add(values, Feature::TupleKeyBytes, bytes);
            let has_prefix = table.has_kind(MatchKind::Lpm);
            let masks = if has_prefix {
                Feature::PrefixMasks
            } else {
                Feature::TernaryMasks
            };
            let count = table.expected_masks() as f64;
            add(values, masks, count);
            add(values, Feature::MaskLogEntries, count * entries);
        }
    }
    let direct = table.direct.iter().filter(|d| **d != StatefulKind::Register).count();
    add(values, Feature::DirectCounters, direct as f64);
}

fn add_operations(values: &mut Values, operations: &Operations) {
    add(values, Feature::HeaderWrites, operations.header_writes.into());
    add(
        values,
        Feature::Arithmetic,
        (operations.arithmetic + operations.divisions).into(),
    );
    add(values, Feature::RegisterAccesses, operations.register_accesses.into());
    add(
        values,
        Feature::CounterCalls,
        (operations.counter_calls + operations.meter_calls).into(),
    );
    add(values, Feature::Hashes, operations.hashes.into());
}
