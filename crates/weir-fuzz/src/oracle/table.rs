//! Tables: keys, a linear scan over the entries, and the action that one of them or the default
//! gives.

use super::instance::{name_annotation, path_of};
use super::machine::Machine;
use super::packet::{bytes, flatten};
use super::stop::{Eval, unknown};
use super::value::{Object, Value, ones};
use num_bigint::BigUint;
use weir_compiler::tools::{DefId, DefKind, Ty};
use weir_ir::MatchKind;
use weir_syntax::ast::{
    self, ActionReference, Annotation, Argument, Direction, Expr, ExprKind, TableEntry, TablePropertyValue,
};

/// A key.
#[derive(Debug, Clone)]
pub(super) struct Key<'a> {
    /// What is looked up.
    pub expr: &'a Expr,
    /// What the control plane calls it.
    pub name: String,
    /// How it matches.
    pub kind: MatchKind,
    /// Its type.
    pub ty: Ty,
    /// Its bits.
    pub width: u32,
}

/// An action that a table may run.
#[derive(Debug, Clone)]
pub(super) struct TableAction<'a> {
    /// The action.
    pub def: DefId,
    /// What the control plane calls it.
    pub name: String,
    /// Parameters that entries give: name and type.
    pub data: Vec<(String, Ty)>,
    /// What the list of actions gives for the other parameters.
    pub given: &'a [Argument],
}

/// An action of a table with its data.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    /// Position in the table's list.
    pub action: usize,
    /// Values of the parameters without direction.
    pub data: Vec<Value>,
}

/// What an entry does.
#[derive(Debug, Clone)]
pub(super) enum EntryAction {
    /// It runs an action.
    Run(Chosen),
    /// It runs what the member of the table's action profile says.
    Member(u32),
    /// It runs what one of the members of a group says.
    Group(u32),
}

/// What a key of an entry matches.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Match {
    /// This value.
    Exact(BigUint),
    /// Values with these leading bits: value, number of bits.
    Prefix(BigUint, u32),
    /// Values that are the same where the mask has ones.
    Masked(BigUint, BigUint),
    /// Values from, to, both included.
    Range(BigUint, BigUint),
    /// Anything.
    Any,
}

/// An entry.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// What a test calls it.
    pub id: Option<String>,
    /// One per key that is not a selector's.
    pub matches: Vec<Match>,
    /// The larger wins.
    pub priority: u32,
    /// What it does.
    pub action: EntryAction,
    /// It cannot be taken away.
    pub is_const: bool,
}

/// A table of an instance.
#[derive(Debug)]
pub(super) struct Table<'a> {
    /// Its declaration.
    pub def: DefId,
    /// The instance that it belongs to.
    pub block: usize,
    /// What the control plane calls it.
    pub name: String,
    /// Its keys.
    pub keys: Vec<Key<'a>>,
    /// Its actions.
    pub actions: Vec<TableAction<'a>>,
    /// What a miss does.
    pub default: Option<Chosen>,
    /// Its entries, the oldest first.
    pub entries: Vec<Entry>,
    /// Its action profile or selector.
    pub profile: Option<usize>,
}

impl Match {
    fn holds(&self, value: &BigUint, width: u32) -> bool {
        match self {
            Match::Exact(wanted) => value == wanted,
            Match::Prefix(wanted, length) => {
                let rest = width - length.min(&width);
                value >> rest == wanted >> rest
            }
            Match::Masked(wanted, mask) => value & mask == wanted & mask,
            Match::Range(low, high) => low <= value && value <= high,
            Match::Any => true,
        }
    }

    fn prefix(&self) -> u32 {
        match self {
            Match::Prefix(_, length) => *length,
            Match::Exact(_) | Match::Masked(..) | Match::Range(..) | Match::Any => 0,
        }
    }
}

/// Whether an entry has these values.
pub(super) fn fits(matches: &[Match], values: &[(u32, BigUint)]) -> bool {
    matches
        .iter()
        .zip(values)
        .all(|(m, (width, value))| m.holds(value, *width))
}

fn property<'p>(table: &'p ast::Table, name: &str) -> Option<&'p ast::TableProperty> {
    table.properties.iter().find(|p| &*p.name.name == name)
}

impl<'a> Machine<'a> {
    /// Makes the table that a declaration makes for an instance.
    pub fn new_table(&mut self, block: usize, ast: &'a ast::Table, annotations: &[Annotation]) -> Eval<()> {
        let def = self.declared(&ast.name)?;
        let name = path_of(&self.blocks[block].path, &ast.name.name, annotations);
        let mut table = Table {
            def,
            block,
            name,
            keys: self.keys(ast)?,
            actions: self.table_actions(def)?,
            default: None,
            entries: Vec::new(),
            profile: None,
        };
        for property in ["implementation", "action_profile"] {
            table.profile = table.profile.or(self.profile(ast, property, &table.name)?);
        }
        table.default = self.default_action(&table, ast)?;
        table.entries = self.first_entries(&table, ast)?;
        self.tables.push(table);
        Ok(())
    }

    fn profile(&mut self, ast: &'a ast::Table, name: &str, table_name: &str) -> Eval<Option<usize>> {
        let Some(TablePropertyValue::Expression(value)) = property(ast, name).map(|p| &p.value) else {
            return Ok(None);
        };
        let Value::Object(Object::Extern(id)) = self.expr(value)? else {
            return unknown("an action profile that is none");
        };
        // One that is made in place is called as the property says, else as the table is.
        if let (ExprKind::Call { .. }, Some(property)) = (&value.kind, property(ast, name)) {
            let given = name_annotation(&property.annotations);
            self.externs[id].path = given.unwrap_or_else(|| table_name.to_owned());
        }
        Ok(Some(id))
    }

    fn keys(&mut self, ast: &'a ast::Table) -> Eval<Vec<Key<'a>>> {
        let Some(TablePropertyValue::Key(elements)) = property(ast, "key").map(|p| &p.value) else {
            return Ok(Vec::new());
        };
        let mut keys = Vec::new();
        for element in elements {
            let ty = self.checked.ty(&element.expression);
            let Some(kind) = MatchKind::from_name(&element.match_kind.name) else {
                return unknown(format!("the match kind {}", element.match_kind.name));
            };
            let Some((width, _)) = self.zero(ty)?.bits() else {
                return unknown("a key without bits");
            };
            let name = name_annotation(&element.annotations).unwrap_or_else(|| key_name(&element.expression));
            keys.push(Key {
                expr: &element.expression,
                name,
                kind,
                ty,
                width,
            });
        }
        Ok(keys)
    }

    fn table_actions(&mut self, def: DefId) -> Eval<Vec<TableAction<'a>>> {
        let DefKind::Table { actions, .. } = self.def(def) else {
            return unknown("a table that is none");
        };
        let listed: Vec<(DefId, Option<&'a ActionReference>)> =
            actions.iter().map(|a| (a.action, a.reference)).collect();
        let mut all = Vec::new();
        for (def, reference) in listed {
            let DefKind::Action { signature, .. } = self.def(def) else {
                return unknown("an action that is none");
            };
            let data = signature.params.iter().filter(|p| p.direction == Direction::None);
            let data = data.map(|p| (p.name.name.to_string(), p.ty)).collect();
            let is_global = self.checked.globals.values().flatten().any(|&g| g == def);
            let path = if is_global { "" } else { &self.blocks[self.block].path };
            let declared = self.checked.def(def);
            all.push(TableAction {
                def,
                name: path_of(path, &declared.name, declared.annotations),
                data,
                given: reference.and_then(|r| r.arguments.as_deref()).unwrap_or_default(),
            });
        }
        Ok(all)
    }

    fn default_action(&mut self, table: &Table<'a>, ast: &'a ast::Table) -> Eval<Option<Chosen>> {
        let Some(TablePropertyValue::Expression(value)) = property(ast, "default_action").map(|p| &p.value) else {
            let nothing = table.actions.iter().position(|a| a.name == "NoAction");
            return Ok(nothing.map(|action| Chosen {
                action,
                data: Vec::new(),
            }));
        };
        let (callee, arguments): (_, &[Argument]) = match &value.kind {
            ExprKind::Call { callee, arguments, .. } => (&**callee, arguments),
            _ => (value, &[]),
        };
        match self.named(callee) {
            Some(def) => self.chosen(table, def, arguments).map(Some),
            None => unknown("a default action that is none"),
        }
    }

    /// An action with data that the program gives. Arguments for parameters with a direction repeat
    /// what the list of actions says.
    fn chosen(&mut self, table: &Table<'a>, def: DefId, arguments: &'a [Argument]) -> Eval<Chosen> {
        let Some(action) = table.actions.iter().position(|a| a.def == def) else {
            return unknown("an action that the table does not have");
        };
        let parameters = table.actions[action].data.clone();
        let skipped = arguments.len().saturating_sub(parameters.len());
        let mut data = Vec::new();
        for (at, (name, ty)) in parameters.iter().enumerate() {
            let by_name = arguments
                .iter()
                .find(|a| a.name.as_ref().is_some_and(|n| *n.name == **name));
            let by_place = arguments.get(skipped + at).filter(|a| a.name.is_none());
            match by_name.or(by_place) {
                Some(argument) => data.push(self.expr_as(&argument.value, *ty)?),
                None => return unknown("an action without data"),
            }
        }
        Ok(Chosen { action, data })
    }

    fn first_entries(&mut self, table: &Table<'a>, ast: &'a ast::Table) -> Eval<Vec<Entry>> {
        let Some(property) = property(ast, "entries") else {
            return Ok(Vec::new());
        };
        let TablePropertyValue::Entries(entries) = &property.value else {
            return Ok(Vec::new());
        };
        let priorities = self.priorities(ast, entries, property.is_const)?;
        let mut made = Vec::new();
        for (entry, priority) in entries.iter().zip(priorities) {
            let Some(&def) = self.checked.action_references.get(&std::ptr::from_ref(&entry.action)) else {
                return unknown("an action that is none");
            };
            let arguments = entry.action.arguments.as_deref().unwrap_or_default();
            let action = EntryAction::Run(self.chosen(table, def, arguments)?);
            made.push(Entry {
                id: None,
                matches: self.entry_matches(table, entry)?,
                priority,
                action,
                is_const: property.is_const || entry.is_const,
            });
        }
        Ok(made)
    }

    /// Priorities, the larger of which wins (14.2.1.4): `const entries` go in the order in which
    /// they are written. Others have what is given, or go on from the one before by
    /// `priority_delta`, down if the largest wins, else up; if none is given and the largest wins,
    /// they are such that the last one is 1.
    fn priorities(&mut self, ast: &'a ast::Table, entries: &'a [TableEntry], is_const: bool) -> Eval<Vec<u32>> {
        if entries
            .iter()
            .any(|e| e.annotations.iter().any(|a| &*a.name.name == "priority"))
        {
            return unknown("priorities as annotations");
        }
        let count = entries.len() as u32;
        if is_const {
            return Ok((0..count).map(|at| count - at).collect());
        }
        let largest_wins = self
            .property_value(ast, "largest_priority_wins")?
            .is_none_or(|v| v.is_true());
        let delta = self
            .property_value(ast, "priority_delta")?
            .and_then(|v| v.index())
            .unwrap_or(1) as u32;
        let mut numbers: Vec<u32> = Vec::new();
        let none_is_given = entries.iter().all(|e| e.priority.is_none());
        for (at, entry) in entries.iter().enumerate() {
            let number = match (&entry.priority, numbers.last()) {
                (Some(given), _) => self.constant(given)? as u32,
                (None, None) if none_is_given && largest_wins => 1 + (count - 1 - at as u32) * delta,
                (None, None) => 1,
                (None, Some(last)) if largest_wins => last.saturating_sub(delta),
                (None, Some(last)) => last + delta,
            };
            numbers.push(number);
        }
        // Where the smallest wins, the order is turned round.
        let ranks = numbers
            .into_iter()
            .map(|n| if largest_wins { n } else { i32::MAX as u32 - n });
        Ok(ranks.collect())
    }

    fn property_value(&mut self, ast: &'a ast::Table, name: &str) -> Eval<Option<Value>> {
        match property(ast, name).map(|p| &p.value) {
            Some(TablePropertyValue::Expression(value)) => self.expr(value).map(Some),
            _ => Ok(None),
        }
    }

    fn entry_matches(&mut self, table: &Table<'a>, entry: &'a TableEntry) -> Eval<Vec<Match>> {
        let keys: Vec<&Key<'a>> = table.matched_keys().collect();
        let sets: Vec<Option<&'a Expr>> = match &entry.keyset.kind {
            ExprKind::List(elements) if elements.len() == keys.len() => elements.iter().map(Some).collect(),
            ExprKind::Default | ExprKind::DontCare => vec![None; keys.len()],
            _ => vec![Some(&entry.keyset)],
        };
        let mut matches = Vec::new();
        for (key, set) in keys.into_iter().zip(sets) {
            matches.push(match set {
                Some(set) => self.entry_match(key, set)?,
                None => Match::Any,
            });
        }
        Ok(matches)
    }

    fn entry_match(&mut self, key: &Key<'a>, set: &'a Expr) -> Eval<Match> {
        let mut bits = |expr: &'a Expr| match self.expr_as(expr, key.ty)? {
            Value::Tuple(parts) if parts.len() == 1 => {
                let part = self.convert(parts[0].clone(), key.ty)?;
                part.bits().map_or_else(|| unknown("a key without bits"), |b| Ok(b.1))
            }
            value => value.bits().map_or_else(|| unknown("a key without bits"), |b| Ok(b.1)),
        };
        Ok(match &set.kind {
            ExprKind::Default | ExprKind::DontCare => Match::Any,
            ExprKind::Mask(value, mask) => {
                let (value, mask) = (bits(value)?, bits(mask)?);
                match key.kind {
                    MatchKind::Lpm => Match::Prefix(&value & &mask, mask.count_ones() as u32),
                    MatchKind::Ternary
                    | MatchKind::Exact
                    | MatchKind::Range
                    | MatchKind::Optional
                    | MatchKind::Selector => Match::Masked(value, mask),
                }
            }
            ExprKind::Range(low, high) => Match::Range(bits(low)?, bits(high)?),
            _ => match key.kind {
                MatchKind::Lpm => Match::Prefix(bits(set)?, key.width),
                MatchKind::Ternary => Match::Masked(bits(set)?, ones(key.width)),
                MatchKind::Exact | MatchKind::Range | MatchKind::Optional | MatchKind::Selector => {
                    Match::Exact(bits(set)?)
                }
            },
        })
    }

    // ------------------------------------------------------------------------------------ applying

    /// `t.apply()`
    pub fn apply_table(&mut self, def: DefId) -> Eval<Value> {
        let block = self.block;
        let Some(at) = self.tables.iter().position(|t| t.def == def && t.block == block) else {
            return unknown("a table that is not there");
        };
        let keys: Vec<(&'a Expr, MatchKind)> = self.tables[at].keys.iter().map(|k| (k.expr, k.kind)).collect();
        let (mut values, mut selector) = (Vec::new(), Vec::new());
        for (expr, kind) in keys {
            let value = self.expr(expr)?;
            match value.bits() {
                Some(_) if kind == MatchKind::Selector => flatten(&value, &mut selector)?,
                Some(bits) => values.push(bits),
                None => return unknown("a key without bits"),
            }
        }
        let found = self.tables[at].lookup(&values);
        let (hit, chosen) = match found {
            Some(entry) => (true, self.action_of(at, entry, &bytes(&selector))?),
            None => (false, self.tables[at].default.clone()),
        };
        let Some(chosen) = chosen else {
            return unknown("a table without a default action");
        };
        let action = self.tables[at].actions[chosen.action].clone();
        let before = self.entry.replace((at, found));
        let result = self.run_action(action.def, &chosen.data, action.given);
        self.entry = before;
        result?;
        Ok(Value::Applied {
            hit,
            action: action.def,
        })
    }

    /// The action of an entry, by way of the table's profile where it has one: of a group the
    /// member whose turn it is by the hash of the selector's keys. A member or group that is gone,
    /// or empty, leads to the default action.
    fn action_of(&mut self, table: usize, entry: usize, selector: &[u8]) -> Eval<Option<Chosen>> {
        let table = &self.tables[table];
        let member = match &table.entries[entry].action {
            EntryAction::Run(chosen) => return Ok(Some(chosen.clone())),
            EntryAction::Member(member) => Some(*member),
            EntryAction::Group(group) => {
                let Some(profile) = table.profile.map(|p| &self.externs[p]) else {
                    return unknown("a group without a selector");
                };
                let Some(algorithm) = profile.argument("algorithm") else {
                    return unknown("a selector without an algorithm");
                };
                let members = profile.groups.get(group).map(Vec::as_slice).unwrap_or_default();
                let turns = members
                    .iter()
                    .flat_map(|(m, weight)| std::iter::repeat_n(*m, *weight as usize));
                let turns: Vec<u32> = turns.collect();
                let hash = self.algorithm(algorithm, selector)?;
                turns
                    .get(hash.checked_rem(turns.len() as u64).unwrap_or(0) as usize)
                    .copied()
            }
        };
        let used = table
            .profile
            .and_then(|p| self.externs[p].members.get(&member?))
            .cloned();
        match used {
            Some(used) => {
                let actions = table.actions.clone();
                self.used(&actions, &used).map(Some)
            }
            None => Ok(table.default.clone()),
        }
    }
}

impl<'a> Table<'a> {
    /// Keys that entries match: all but those of a selector.
    pub fn matched_keys(&self) -> impl Iterator<Item = &Key<'a>> {
        self.keys.iter().filter(|k| k.kind != MatchKind::Selector)
    }

    /// The entry that wins. With keys that need them the larger priority goes first; then, and
    /// elsewhere alone, the longer prefix; then the older one.
    fn lookup(&self, values: &[(u32, BigUint)]) -> Option<usize> {
        if values.is_empty() {
            return None;
        }
        let has_priority = self.has_priority();
        let rank = |entry: &Entry| {
            let prefixes: u32 = entry.matches.iter().map(Match::prefix).sum();
            (if has_priority { entry.priority } else { 0 }, prefixes)
        };
        let mut best: Option<usize> = None;
        for (at, entry) in self.entries.iter().enumerate() {
            let is_better = best.is_none_or(|b| rank(entry) > rank(&self.entries[b]));
            if fits(&entry.matches, values) && is_better {
                best = Some(at);
            }
        }
        best
    }

    /// Whether entries have priorities.
    pub fn has_priority(&self) -> bool {
        let kinds = [MatchKind::Ternary, MatchKind::Range, MatchKind::Optional];
        self.keys.iter().any(|k| kinds.contains(&k.kind))
    }
}

/// The expression of a key as tests write it.
fn key_name(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Name { name, .. } => name.name.to_string(),
        ExprKind::Member(base, member) => format!("{}.{}", key_name(base), member.name),
        ExprKind::Index(base, index) => format!("{}[{}]", key_name(base), key_name(index)),
        ExprKind::Slice(base, hi, lo) => format!("{}[{}:{}]", key_name(base), key_name(hi), key_name(lo)),
        ExprKind::Int { value, .. } => value.to_string(),
        ExprKind::Call { callee, .. } => match &callee.kind {
            ExprKind::Member(base, member) if &*member.name == "isValid" => format!("{}.$valid$", key_name(base)),
            _ => String::new(),
        },
        ExprKind::Binary(ast::BinaryOp::BitAnd, a, b) => format!("{} & {}", key_name(a), key_name(b)),
        _ => String::new(),
    }
}
