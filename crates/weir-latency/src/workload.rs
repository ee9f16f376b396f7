//! From a program's features to the numbers that a model looks at, for one path.

use crate::features::{
    Control, Features, Operations, ParserPath, Placement, Search, Sequence, StatefulKind, TableFeatures,
};
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
    /// The values of all features but that of the packet size, for a path of the ingress parser and
    /// the sequence on which most tables with keys are looked up.
    #[must_use]
    pub fn values(&self, path: &ParserPath, port_gbps: u32) -> Values {
        let ingress = self.ingress.controls[path.control].longest(&self.ingress.tables);
        let egress = self.egress_control(path);
        let egress = egress.map(|(features, _, control)| control.longest(&features.tables));
        self.values_of(path, port_gbps, &ingress, egress.as_ref())
    }

    /// The other direction on the way of a path's packets: its features, path and control.
    pub(crate) fn egress_control(&self, path: &ParserPath) -> Option<(&Features, &ParserPath, &Control)> {
        let egress = self.egress?;
        let paths = &egress.parser.paths;
        let same = paths.iter().find(|p| p.name == path.name);
        let alike = same.or_else(|| paths.iter().find(|p| p.headers() == path.headers()));
        let there = alike.or_else(|| paths.first())?;
        Some((egress, there, &egress.controls[there.control]))
    }

    /// The same for these sequences of lookups and statements.
    pub(crate) fn values_of(
        &self,
        path: &ParserPath,
        port_gbps: u32,
        ingress: &Sequence,
        egress: Option<&Sequence>,
    ) -> Values {
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
        let mut kib = add_sequence(&mut values, &self.ingress.tables, ingress);
        let mut rewritten: BTreeSet<&str> = ingress.rewritten.iter().map(String::as_str).collect();
        let mut metadata: u32 = path.states.iter().map(|s| s.metadata_bytes).sum();
        if let Some((features, there, _)) = self.egress_control(path) {
            if let Some(egress) = egress {
                kib += add_sequence(&mut values, &features.tables, egress);
                rewritten.extend(egress.rewritten.iter().map(String::as_str));
            }
            metadata += there.states.iter().map(|s| s.metadata_bytes).sum::<u32>();
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

/// Adds a sequence of lookups and statements; gives the KiB of its tables.
fn add_sequence(values: &mut Values, all: &[TableFeatures], sequence: &Sequence) -> f64 {
    let mut kib = 0.0;
    for table in sequence.tables.iter().map(|at| &all[*at]) {
        add_table(values, table);
        kib += footprint_bytes(table) / 1024.0;
    }
    add_operations(values, &sequence.operations);
    kib
}

/// Bytes of the keys and data of all entries of a table.
fn footprint_bytes(table: &TableFeatures) -> f64 {
    let data = table.actions.iter().map(|a| a.data_bits).max().unwrap_or(0);
    table.expected_entries() as f64 * f64::from(table.key_bits().div_ceil(8) + data.div_ceil(8))
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
        (operations.counter_calls + operations.meter_calls + operations.filter_calls).into(),
    );
    add(values, Feature::Hashes, operations.hashes.into());
}
