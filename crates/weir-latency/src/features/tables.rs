//! Tables and their actions.

use super::effects::Effects;
use super::operations::Operations;
use super::{Place, dependency};
use serde::{Deserialize, Serialize};
use weir_ir::{Block, MatchKind, Program, TableId};

/// State that a table or an action keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatefulKind {
    /// A register, or an action on one.
    Register,
    /// A meter that colours packets.
    Meter,
    /// A low-pass filter, or weighted random early detection.
    LowPassFilter,
    /// A counter.
    Counter,
}

impl StatefulKind {
    /// What an extern type of this name is, whatever the architecture.
    #[must_use]
    pub fn of(type_name: &str) -> Option<Self> {
        match type_name {
            "register"
            | "Register"
            | "DirectRegister"
            | "RegisterAction"
            | "RegisterAction2"
            | "RegisterAction3"
            | "RegisterAction4"
            | "DirectRegisterAction"
            | "DirectRegisterAction2"
            | "DirectRegisterAction3"
            | "DirectRegisterAction4"
            | "LearnAction"
            | "MinMaxAction" => Some(StatefulKind::Register),
            "meter" | "direct_meter" | "Meter" | "DirectMeter" => Some(StatefulKind::Meter),
            "Lpf" | "DirectLpf" | "Wred" | "DirectWred" => Some(StatefulKind::LowPassFilter),
            "counter" | "direct_counter" | "Counter" | "DirectCounter" => Some(StatefulKind::Counter),
            _ => None,
        }
    }
}

/// Entries of a table whose size is not declared, or declared as 0: what P4Info says of it, too.
pub const DEFAULT_SIZE: u64 = 1024;

/// Masks that the entries of a table are assumed to have where they are unknown.
const SOME_MASKS: u64 = 8;

/// How weir searches a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// By a hash of all keys.
    Exact,
    /// By the bits of one prefix.
    Lpm,
    /// By a hash for each mask.
    Masks,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableFeatures {
    /// Its name on the control plane.
    pub name: String,
    /// Its declaration.
    pub place: Place,
    /// Its keys, those of selectors left out.
    pub keys: Vec<KeyFeatures>,
    /// Entries that it is declared to hold; `None` where the source does not say.
    pub size: Option<u64>,
    /// Entries in it: those of the source, or of the control plane's state; `None`: unknown.
    pub entries: Option<u64>,
    /// Different masks and prefix lengths of these entries; `None`: unknown.
    pub masks: Option<u64>,
    /// Its actions.
    pub actions: Vec<ActionFeatures>,
    /// A selector chooses among members.
    pub has_selector: bool,
    /// State attached to it.
    pub direct: Vec<StatefulKind>,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFeatures {
    /// Its name on the control plane.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
    /// How it is matched, as in P4: `exact`, `lpm`, …
    pub kind: String,
}

/// An action of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionFeatures {
    /// Its name on the control plane.
    pub name: String,
    /// Bits of its data.
    pub data_bits: u32,
    /// What its code does.
    pub operations: Operations,
}

impl TableFeatures {
    /// Entries to count with: those known to be in it, else those it is declared for, else
    /// [`DEFAULT_SIZE`].
    #[must_use]
    pub fn expected_entries(&self) -> u64 {
        let declared = self.size.filter(|size| *size > 0);
        self.entries.unwrap_or_else(|| declared.unwrap_or(DEFAULT_SIZE))
    }

    /// Masks to count with where entries are matched by masks: those that are known, else some.
    #[must_use]
    pub fn expected_masks(&self) -> u64 {
        self.masks
            .unwrap_or_else(|| self.expected_entries().clamp(1, SOME_MASKS))
    }

    /// How weir searches it.
    #[must_use]
    pub fn search(&self) -> Search {
        match &self.keys[..] {
            keys if keys.iter().all(|k| k.kind == MatchKind::Exact.name()) => Search::Exact,
            [only] if only.kind == MatchKind::Lpm.name() && only.width <= 32 => Search::Lpm,
            _ => Search::Masks,
        }
    }

    /// Bits of all keys.
    #[must_use]
    pub fn key_bits(&self) -> u32 {
        self.keys.iter().map(|k| k.width).sum()
    }

    /// Whether any key is matched in this way.
    #[must_use]
    pub fn has_kind(&self, kind: MatchKind) -> bool {
        self.keys.iter().any(|k| k.kind == kind.name())
    }

    /// Whether a Tofino matches it in a TCAM: any key that is not exact.
    #[must_use]
    pub fn needs_tcam(&self) -> bool {
        self.keys.iter().any(|k| k.kind != MatchKind::Exact.name())
    }

    /// Keys of different kinds.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.keys.windows(2).any(|pair| pair[0].kind != pair[1].kind)
    }

    /// Whether it, or an action of it, keeps state of this kind.
    #[must_use]
    pub fn keeps(&self, kind: StatefulKind) -> bool {
        let by_action = self.actions.iter().any(|a| match kind {
            StatefulKind::Register => a.operations.register_accesses > 0,
            StatefulKind::Meter => a.operations.meter_calls > 0,
            StatefulKind::Counter => a.operations.counter_calls > 0,
            StatefulKind::LowPassFilter => a.operations.filter_calls > 0,
        });
        by_action || self.direct.contains(&kind)
    }
}

/// Tables that a control may look up, in order; and for each table of the program its place among
/// them.
pub(super) fn of(program: &Program, control: &Block, effects: &Effects) -> (Vec<TableFeatures>, Vec<Option<usize>>) {
    let mut indices = vec![None; program.tables.len()];
    let mut tables: Vec<TableFeatures> = Vec::new();
    for site in dependency::sites(control) {
        if indices[site.table.index()].is_none() {
            indices[site.table.index()] = Some(tables.len());
            tables.push(table(program, control, effects, site.table));
        }
    }
    (tables, indices)
}

fn table(program: &Program, control: &Block, effects: &Effects, id: TableId) -> TableFeatures {
    let table = &program.tables[id];
    let keys = table.keys.iter().filter(|k| k.match_kind != MatchKind::Selector);
    let key = |key: &weir_ir::Key| KeyFeatures {
        name: key.name.clone(),
        width: key.width,
        kind: key.match_kind.name().to_owned(),
    };
    let code = dependency::action_operations(program, control, effects, id);
    let action = |(i, action): (usize, &weir_ir::TableAction)| {
        let declared = &program.actions[action.action];
        ActionFeatures {
            name: declared.name.clone(),
            data_bits: declared.parameters.iter().map(|p| p.width).sum(),
            operations: code.get(i).copied().unwrap_or_default(),
        }
    };
    let type_of = |x: weir_ir::ExternId| program.externs[x].type_name.as_str();
    TableFeatures {
        name: table.name.clone(),
        place: Place::of(program, table.loc),
        keys: keys.map(key).collect(),
        size: table.size,
        entries: (!table.entries.is_empty()).then_some(table.entries.len() as u64),
        masks: None,
        actions: table.actions.iter().enumerate().map(action).collect(),
        has_selector: table
            .implementation
            .is_some_and(|x| type_of(x).to_ascii_lowercase().contains("selector")),
        direct: table
            .direct
            .iter()
            .filter_map(|x| StatefulKind::of(type_of(*x)))
            .collect(),
    }
}
