//! Objects that the control plane fills: tables with their keys, actions and entries, and value
//! sets.

use super::*;
use crate::bits::Bits;
use serde::{Deserialize, Serialize};

/// How a key is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask.
    Ternary,
    /// Between two values.
    Range,
    /// Equal or anything.
    Optional,
    /// Not matched: feeds the hash of an action selector.
    Selector,
}

impl MatchKind {
    /// Every kind.
    pub const ALL: [MatchKind; 6] = [
        MatchKind::Exact,
        MatchKind::Lpm,
        MatchKind::Ternary,
        MatchKind::Range,
        MatchKind::Optional,
        MatchKind::Selector,
    ];

    /// Its name in P4.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Lpm => "lpm",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
            MatchKind::Selector => "selector",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// An action as the control plane knows it. Its code is inlined after each lookup.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Control-plane name, e.g. `MyIngress.drop`.
    pub name: String,
    /// Control-plane parameters.
    pub parameters: Vec<ActionParameter>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}

/// A control-plane parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionParameter {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
    /// How it is shown.
    pub display: Display,
    /// How the control plane names its type.
    pub control: ControlType,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
}

impl ActionParameter {
    /// Whether a control plane would describe the two alike.
    #[must_use]
    pub fn is_same_to_control_planes(&self, other: &Self) -> bool {
        (&self.name, self.width, &self.control) == (&other.name, other.width, &other.control)
    }
}

/// The P4Runtime type of a key, parameter or field, beyond its width.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlType {
    /// Name of the `type` (not `typedef`) or serializable enum.
    pub type_name: Option<String>,
    /// `@p4runtime_translation`.
    pub translation: Option<Translation>,
}

/// `@p4runtime_translation(uri, bit<W>)`, or `string` for the width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// The URI.
    pub uri: String,
    /// Width on the control plane; `None`: a string.
    pub sdn_width: Option<u32>,
    /// Strings that stand for certain values, as `@p4runtime_translation_mappings` says.
    pub mappings: Vec<(String, Bits)>,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Control-plane name, e.g. `MyIngress.ipv4_lpm`.
    pub name: String,
    /// Keys in order.
    pub keys: Vec<Key>,
    /// Actions in source order; a default action that the source does not list (NoAction) is last.
    pub actions: Vec<TableAction>,
    /// The action of a miss.
    pub default_action: ActionCall,
    /// The control plane may not change the default action.
    pub const_default: bool,
    /// `size`, where the source gives one.
    pub size: Option<u64>,
    /// `const entries` or `entries`.
    pub entries: Vec<Entry>,
    /// The entries are `const`: the control plane may not change the table.
    pub const_entries: bool,
    /// Action profile or selector that holds the actions of the entries.
    pub implementation: Option<ExternId>,
    /// Direct counters, meters and registers.
    pub direct: Vec<ExternId>,
    /// Entries can time out.
    pub idle_timeout: bool,
    /// Other properties, for the architecture.
    pub properties: Vec<(String, ConstValue)>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}

/// The entries of a table whose source gives no `size`, or 0.
pub const DEFAULT_TABLE_SIZE: u64 = 1024;

impl Table {
    /// How many entries the control plane may add at least.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.size.filter(|&size| size > 0).unwrap_or(DEFAULT_TABLE_SIZE)
    }

    /// A table without keys and actions.
    #[must_use]
    pub fn new(name: String) -> Self {
        Table {
            name,
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: ActionCall {
                action: 0,
                arguments: Vec::new(),
            },
            const_default: false,
            size: None,
            entries: Vec::new(),
            const_entries: false,
            implementation: None,
            direct: Vec::new(),
            idle_timeout: false,
            properties: Vec::new(),
            annotations: Vec::new(),
            loc: Loc::default(),
        }
    }
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Control-plane name, e.g. `hdr.ipv4.dst_addr`.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// How it is matched.
    pub match_kind: MatchKind,
    /// Its name for control planes, if the architecture has one of its own.
    pub own_kind: Option<String>,
    /// How it is shown.
    pub display: Display,
    /// How the control plane names its type.
    pub control: ControlType,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its source.
    pub loc: Loc,
}

/// An action of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// Variables a lookup writes the entry's data to, one per [`Action::parameters`].
    pub parameters: Vec<VarId>,
    /// Only as default action (`@defaultonly`).
    pub default_only: bool,
    /// Only in entries (`@tableonly`).
    pub table_only: bool,
    /// Those of [`Table::direct`] that it executes: a counter of an entry with this action counts,
    /// a meter runs.
    pub executes: Vec<ExternId>,
    /// Annotations of the reference.
    pub annotations: Vec<Annotation>,
}

/// An action of a table with its data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionCall {
    /// Index into [`Table::actions`].
    pub action: usize,
    /// One value per parameter.
    pub arguments: Vec<Bits>,
}

/// An entry the source gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// One per key that is matched (selector keys have none).
    pub matches: Vec<KeyMatch>,
    /// Its action.
    pub action: ActionCall,
    /// The larger wins. 0 where the table has no ternary, range or optional key.
    pub priority: u32,
    /// `const`
    pub is_const: bool,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its source.
    pub loc: Loc,
}

/// The match of one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeyMatch {
    /// Equal.
    Exact(Bits),
    /// The first bits equal; bits after the prefix are 0 here.
    Lpm {
        /// Value.
        value: Bits,
        /// Number of bits compared.
        prefix_length: u32,
    },
    /// Equal where the mask has ones; the value is 0 elsewhere.
    Ternary {
        /// Value.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// Between, both included.
    Range {
        /// Lowest.
        low: Bits,
        /// Highest.
        high: Bits,
    },
    /// Equal, or anything where `None`.
    Optional(Option<Bits>),
}

/// A parser value set.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSet {
    /// Control-plane name.
    pub name: String,
    /// Fields with their match kinds.
    pub fields: Vec<Key>,
    /// Capacity.
    pub size: u64,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}
