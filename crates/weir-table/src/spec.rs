//! The fixed properties of a table.

use crate::entry::EntryAction;
use weir_ir::{ActionCall, ActionId, Entry as ProgramEntry, ExternId, MatchKind, Program, TableId};

/// Entries of a table that gives no `size`, as in P4Info.
pub const DEFAULT_SIZE: u64 = weir_ir::DEFAULT_TABLE_SIZE;

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpec {
    /// Control-plane name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Its match kind.
    pub kind: MatchKind,
}

impl KeySpec {
    /// A key of `width` bits.
    #[must_use]
    pub fn new(name: impl Into<String>, width: u32, kind: MatchKind) -> Self {
        KeySpec {
            name: name.into(),
            width,
            kind,
        }
    }
}

/// An action of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionSpec {
    /// Control-plane name.
    pub name: String,
    /// Names and widths in bits of its parameters.
    pub parameters: Vec<(String, u32)>,
    /// Only as default action.
    pub default_only: bool,
    /// Only in entries.
    pub table_only: bool,
    /// The action in the program; `None` in tables made by hand.
    pub id: Option<ActionId>,
}

impl ActionSpec {
    /// An action without parameters that may be used everywhere.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        ActionSpec {
            name: name.into(),
            parameters: Vec::new(),
            default_only: false,
            table_only: false,
            id: None,
        }
    }

    /// The same with one more parameter of `width` bits.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, width: u32) -> Self {
        self.parameters.push((name.into(), width));
        self
    }
}

/// Where the actions of a table's entries are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Implementation {
    /// In the entries.
    #[default]
    Direct,
    /// In an action profile: entries name members.
    Profile(ExternId),
    /// In an action selector: entries name members or groups, or have a one-shot set of their own.
    Selector(ExternId),
}

/// All properties of a table that do not change at run time.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSpec {
    /// Control-plane name.
    pub name: String,
    /// Keys in order, selector keys included.
    pub keys: Vec<KeySpec>,
    /// Actions in order.
    pub actions: Vec<ActionSpec>,
    /// Where the entries' actions are stored.
    pub implementation: Implementation,
    /// The program's default action.
    pub default_action: ActionCall,
    /// The default action may not be changed.
    pub const_default: bool,
    /// Largest number of entries.
    pub size: u64,
    /// The program's entries.
    pub initial: Vec<ProgramEntry>,
    /// The entries may not be changed.
    pub const_entries: bool,
    /// Entries can time out.
    pub idle_timeout: bool,
}

impl TableSpec {
    /// A table without keys and actions, for 1,024 entries. Its default action is the first.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        TableSpec {
            name: name.into(),
            keys: Vec::new(),
            actions: Vec::new(),
            implementation: Implementation::Direct,
            default_action: ActionCall {
                action: 0,
                arguments: Vec::new(),
            },
            const_default: false,
            size: DEFAULT_SIZE,
            initial: Vec::new(),
            const_entries: false,
            idle_timeout: false,
        }
    }

    /// The same with one more key.
    #[must_use]
    pub fn key(mut self, key: KeySpec) -> Self {
        self.keys.push(key);
        self
    }

    /// The same with one more action.
    #[must_use]
    pub fn action(mut self, action: ActionSpec) -> Self {
        self.actions.push(action);
        self
    }

    /// The table `id` of a program. `selectors` says which extern types are selectors; other
    /// implementations are profiles.
    #[must_use]
    pub fn from_program(program: &Program, id: TableId, selectors: &[&str]) -> Self {
        let table = &program.tables[id];
        let keys = table
            .keys
            .iter()
            .map(|k| KeySpec::new(k.name.clone(), k.width, k.match_kind))
            .collect();
        let actions = table
            .actions
            .iter()
            .map(|a| {
                let action = &program.actions[a.action];
                ActionSpec {
                    name: action.name.clone(),
                    parameters: action.parameters.iter().map(|p| (p.name.clone(), p.width)).collect(),
                    default_only: a.default_only,
                    table_only: a.table_only,
                    id: Some(a.action),
                }
            })
            .collect();
        let implementation = match table.implementation {
            None => Implementation::Direct,
            Some(e) if selectors.contains(&program.externs[e].type_name.as_str()) => Implementation::Selector(e),
            Some(e) => Implementation::Profile(e),
        };
        let size = table.capacity();
        TableSpec {
            name: table.name.clone(),
            keys,
            actions,
            implementation,
            default_action: table.default_action.clone(),
            const_default: table.const_default,
            size: size.max(table.entries.len() as u64),
            initial: table.entries.clone(),
            const_entries: table.const_entries,
            idle_timeout: table.idle_timeout,
        }
    }

    /// The keys that entries match, in order: all but selector keys.
    pub fn match_keys(&self) -> impl Iterator<Item = &KeySpec> {
        self.keys.iter().filter(|k| k.kind != MatchKind::Selector)
    }

    /// Whether entries have priorities: there is a ternary, range or optional key, or more than one
    /// LPM key.
    #[must_use]
    pub fn has_priority(&self) -> bool {
        let lpm = self.keys.iter().filter(|k| k.kind == MatchKind::Lpm).count();
        lpm > 1
            || self
                .keys
                .iter()
                .any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
    }

    /// The action with this control-plane name, as an index into [`TableSpec::actions`].
    #[must_use]
    pub fn action_index(&self, name: &str) -> Option<usize> {
        self.actions.iter().position(|a| a.name == name)
    }

    /// Names of the actions, for messages.
    pub(crate) fn action_names(&self) -> String {
        let names: Vec<_> = self.actions.iter().map(|a| format!("`{}`", a.name)).collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }

    /// The kind of action that entries must have, for messages.
    pub(crate) fn action_form(&self) -> &'static str {
        match self.implementation {
            Implementation::Direct => "an action",
            Implementation::Profile(_) => "an action profile member",
            Implementation::Selector(_) => "a member, a group or an action set",
        }
    }

    /// Whether entries may have this kind of action.
    pub(crate) fn accepts(&self, action: &EntryAction) -> bool {
        match self.implementation {
            Implementation::Direct => matches!(action, EntryAction::Call(_)),
            Implementation::Profile(_) => matches!(action, EntryAction::Member(_)),
            Implementation::Selector(_) => !matches!(action, EntryAction::Call(_)),
        }
    }
}
