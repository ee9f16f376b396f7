//! The numbers that models are functions of.

use serde::{Deserialize, Serialize};

/// The part of a prediction that a term belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What every packet of this size costs.
    Baseline,
    /// Parser and deparser.
    Parser,
    /// Control block.
    Control,
    /// Cycles of TCAMs and state, and corrections.
    Extras,
}

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $part:ident;)*) => {
        /// A number that a model may look at. Its name is that of a column in training data.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Feature {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Feature {
            /// Every feature.
            pub const ALL: &[Feature] = &[$(Feature::$variant),*];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name),* }
            }

            /// The part of a prediction that it belongs to.
            #[must_use]
            pub fn part(self) -> Part {
                match self { $(Feature::$variant => Part::$part),* }
            }
        }
    };
}

features! {
    /// 1.
    Constant = "constant", Baseline;
    /// Speed of the port in Gbit/s.
    PortGbps = "port_gbps", Baseline;
    /// Bytes of the packet without its checksum sequence (FCS).
    PacketSize = "packet_size", Baseline;
    /// Parser states that extract, after the one that extracts Ethernet.
    States = "states", Parser;
    /// Bytes that they extract.
    HeaderBytes = "header_bytes", Parser;
    /// Extracts into elements of header stacks.
    StackExtracts = "stack_extracts", Parser;
    /// Parser states that select.
    Selects = "selects", Parser;
    /// Reads ahead of the parser's cursor.
    Lookaheads = "lookaheads", Parser;
    /// Bytes of headers that the deparser may emit.
    EmittedBytes = "emitted_bytes", Parser;
    /// Bytes over which checksums are verified or computed.
    ChecksumBytes = "checksum_bytes", Parser;
    /// Exact tables that the paper's control model counts as of 8 bits: narrow ones, and those
    /// with several keys.
    ExactTablesNarrow = "exact_tables_8", Control;
    /// Exact tables with one key of 16 bits or more.
    ExactTablesWide = "exact_tables_16", Control;
    /// TCAM tables (LPM, ternary, range) with a narrow key or several.
    TcamTablesNarrow = "tcam_tables_8", Control;
    /// TCAM tables with one key of 16 bits or more.
    TcamTablesWide = "tcam_tables_16", Control;
    /// Tables that are looked up.
    Tables = "tables", Control;
    /// Of these those with only exact keys.
    ExactTables = "exact_tables", Control;
    /// Those with one key, which is LPM and of at most 32 bits.
    LpmTables = "lpm_tables", Control;
    /// All others: those that weir searches mask by mask.
    TupleTables = "tuple_tables", Control;
    /// Bytes of the keys of exact tables.
    ExactKeyBytes = "exact_key_bytes", Control;
    /// Bytes of the keys of tables that are searched by masks.
    TupleKeyBytes = "tuple_key_bytes", Control;
    /// Prefix lengths that the entries of those with LPM keys have, added up over the tables.
    PrefixMasks = "prefix_masks", Control;
    /// Masks of the entries of all others, where priorities decide.
    TernaryMasks = "ternary_masks", Control;
    /// Sum over exact tables of the binary logarithm of 1 + entries.
    ExactLogEntries = "exact_log_entries", Control;
    /// The same of LPM tables.
    LpmLogEntries = "lpm_log_entries", Control;
    /// The same of tables that are searched by masks, each times its masks: a probe per mask.
    MaskLogEntries = "mask_log_entries", Control;
    /// Binary logarithm of 1 + the KiB that keys and data of all entries take.
    TableLogKib = "table_log_kib", Control;
    /// Fields of headers that the largest actions and the statements write.
    HeaderWrites = "header_writes", Control;
    /// Headers of the packet of which any field is written, checksums included.
    RewrittenHeaders = "rewritten_headers", Parser;
    /// Bytes of intrinsic metadata that parsers extract.
    MetadataBytes = "metadata_bytes", Parser;
    /// Additions, shifts, logic.
    Arithmetic = "arithmetic", Control;
    /// Accesses to registers.
    RegisterAccesses = "register_accesses", Control;
    /// Counters and meters that are called.
    CounterCalls = "counter_calls", Control;
    /// Counters and meters that tables have for their entries.
    DirectCounters = "direct_counters", Control;
    /// Hashes and random numbers.
    Hashes = "hashes", Control;
    /// Cycles that TCAMs add to a Tofino's pipeline.
    TcamCycles = "tcam_cycles", Extras;
    /// Cycles that selectors, registers and filters add to it.
    StateCycles = "state_cycles", Extras;
}

impl Feature {
    /// The feature of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Feature> {
        Feature::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// Whether its value depends on the entries of tables.
    #[must_use]
    pub fn counts_entries(self) -> bool {
        matches!(
            self,
            Feature::PrefixMasks
                | Feature::TernaryMasks
                | Feature::ExactLogEntries
                | Feature::LpmLogEntries
                | Feature::MaskLogEntries
                | Feature::TableLogKib
        )
    }

    fn index(self) -> usize {
        Feature::ALL.iter().position(|f| *f == self).unwrap_or_default()
    }
}

/// The value of every feature, for one path and packet size.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// Speed of the port in Gbit/s.
    pub port_gbps: u32,
    numbers: Vec<f64>,
}

impl Values {
    /// All zero but the port's speed and the constant.
    #[must_use]
    pub fn new(port_gbps: u32) -> Self {
        let mut values = Values {
            port_gbps,
            numbers: vec![0.0; Feature::ALL.len()],
        };
        values.set(Feature::Constant, 1.0);
        values.set(Feature::PortGbps, port_gbps.into());
        values
    }

    /// The value of a feature.
    #[must_use]
    pub fn get(&self, feature: Feature) -> f64 {
        self.numbers[feature.index()]
    }

    /// Sets the value of a feature.
    pub fn set(&mut self, feature: Feature, value: f64) {
        self.numbers[feature.index()] = value;
    }

    /// The same with the features of some parts zero.
    #[must_use]
    pub fn without(&self, parts: &[Part]) -> Values {
        let mut values = self.clone();
        for feature in Feature::ALL.iter().filter(|f| parts.contains(&f.part())) {
            values.set(*feature, 0.0);
        }
        values
    }
}
