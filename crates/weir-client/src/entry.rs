//! Entries of tables: built by name, checked against the schema, read by name.

use crate::error::Error;
use crate::schema::{Action, Field, MatchKind, Protocol, Scope, Table, Type};
use crate::value::{Match, Value};
use std::fmt;
use std::sync::Arc;

/// The field that a value of an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The n-th parameter of the action.
    Param(usize),
    /// The n-th data field of the table.
    Data(usize),
}

/// An entry of a table: matches, action, and data.
///
/// Entries are built by name:
///
/// ```no_run
/// # use weir_client::{Entry, Match, Table};
/// # use std::net::Ipv4Addr;
/// # fn with(routes: &std::sync::Arc<Table>) {
/// let route = Entry::of(routes)
///     .key("hdr.ipv4.dst_addr", Match::lpm(Ipv4Addr::new(10, 0, 0, 0), 8))
///     .action("forward")
///     .data("port", 3_u16);
/// # }
/// ```
///
/// Errors (an unknown name, a value too wide) are returned by the call that uses the entry;
/// [`Entry::check`] returns them earlier.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) table: Arc<Table>,
    pub(crate) keys: Vec<Match>,
    pub(crate) priority: u32,
    pub(crate) action: Option<usize>,
    pub(crate) data: Vec<(Place, Value)>,
    pub(crate) is_default: bool,
    pub(crate) is_const: bool,
    mistake: Option<Arc<Error>>,
}

impl Entry {
    /// An entry of a table that matches anything and has no action yet.
    #[must_use]
    pub fn of(table: &Arc<Table>) -> Entry {
        Entry {
            keys: vec![Match::Any; table.keys.len()],
            table: Arc::clone(table),
            priority: 0,
            action: None,
            data: Vec::new(),
            is_default: false,
            is_const: false,
            mistake: None,
        }
    }

    /// The default entry, which applies to packets that match no entry.
    #[must_use]
    pub fn default_of(table: &Arc<Table>) -> Entry {
        Entry {
            is_default: true,
            ..Entry::of(table)
        }
    }

    /// Sets the match of a key.
    #[must_use]
    pub fn key(mut self, name: &str, to: impl Into<Match>) -> Self {
        match self.table.key(name) {
            Ok(place) => self.keys[place] = to.into(),
            Err(mistake) => self.note(mistake),
        }
        self
    }

    /// Sets the matches of all keys, in the order of the table.
    #[must_use]
    pub fn keys<M: Into<Match>>(mut self, all: impl IntoIterator<Item = M>) -> Self {
        let keys: Vec<Match> = all.into_iter().map(Into::into).collect();
        if keys.len() == self.table.keys.len() {
            self.keys = keys;
        } else {
            self.note(Error::Value {
                table: self.table.name.clone(),
                field: "keys".to_owned(),
                reason: format!("there are {}, not {}", self.table.keys.len(), keys.len()),
            });
        }
        self
    }

    /// Sets the priority among matching entries, as defined by the protocol: the largest takes
    /// precedence with P4Runtime, the smallest with BF Runtime.
    #[must_use]
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the action. It must precede the data that are its parameters.
    #[must_use]
    pub fn action(mut self, name: &str) -> Self {
        match self.table.action(name) {
            Ok(place) => self.action = Some(place),
            Err(mistake) => self.note(mistake),
        }
        self
    }

    /// Sets a parameter of the action, or other data of the entry.
    #[must_use]
    pub fn data(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.place(name) {
            Some(place) => match self.data.iter_mut().find(|(p, _)| *p == place) {
                Some((_, old)) => *old = value,
                None => self.data.push((place, value)),
            },
            None => {
                let fields = self.action_params().iter().chain(&self.table.data);
                let owner = match self.chosen_action() {
                    Some(action) => format!("{} with {}", self.table.name, action.name),
                    None => self.table.name.clone(),
                };
                let names: Vec<String> = fields.map(|f| f.name.clone()).collect();
                let mistake = crate::schema::find("data", &owner, name, names.iter().map(String::as_str));
                self.note(mistake.err().unwrap_or(Error::Closed));
            }
        }
        self
    }

    fn place(&self, name: &str) -> Option<Place> {
        let among = |fields: &[Field]| fields.iter().position(|f| f.name == name);
        if let Some(param) = among(self.action_params()) {
            return Some(Place::Param(param));
        }
        among(&self.table.data).map(Place::Data).or_else(|| {
            // Names of a register's data are prefixed by the name of the register.
            let ends = |f: &Field| f.name.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
            self.table.data.iter().position(ends).map(Place::Data)
        })
    }

    fn note(&mut self, mistake: Error) {
        if self.mistake.is_none() {
            self.mistake = Some(Arc::new(mistake));
        }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The match of a key, by its name.
    #[must_use]
    pub fn key_of(&self, name: &str) -> Option<&Match> {
        self.table.key(name).ok().map(|place| &self.keys[place])
    }

    /// The matches of the keys, in the order of the table.
    #[must_use]
    pub fn matches(&self) -> &[Match] {
        &self.keys
    }

    /// The priority; 0 if the table has no priorities.
    #[must_use]
    pub fn priority_of(&self) -> u32 {
        self.priority
    }

    /// Whether this is a default entry.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.is_default
    }

    /// Whether the target marks it as const (P4Runtime).
    #[must_use]
    pub fn is_const(&self) -> bool {
        self.is_const
    }

    /// The action, if the entry has one of its own.
    #[must_use]
    pub fn chosen_action(&self) -> Option<&Action> {
        self.action.and_then(|place| self.table.actions.get(place))
    }

    fn action_params(&self) -> &[Field] {
        self.chosen_action().map_or(&[], |a| &a.params)
    }

    /// A parameter or other data, by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let place = self.place(name)?;
        self.data.iter().find(|(p, _)| *p == place).map(|(_, v)| v)
    }

    /// Parameters of the action, by their names.
    pub fn arguments(&self) -> impl Iterator<Item = (&Field, &Value)> {
        self.fields().filter(|(is_param, ..)| *is_param).map(|(_, f, v)| (f, v))
    }

    /// Data other than parameters, by their names.
    pub fn other_data(&self) -> impl Iterator<Item = (&Field, &Value)> {
        self.fields()
            .filter(|(is_param, ..)| !*is_param)
            .map(|(_, f, v)| (f, v))
    }

    fn fields(&self) -> impl Iterator<Item = (bool, &Field, &Value)> {
        self.data.iter().filter_map(|(place, value)| match place {
            Place::Param(i) => self.action_params().get(*i).map(|f| (true, f, value)),
            Place::Data(i) => self.table.data.get(*i).map(|f| (false, f, value)),
        })
    }

    /// The field of a value.
    pub(crate) fn field(&self, place: Place) -> Option<&Field> {
        match place {
            Place::Param(i) => self.action_params().get(i),
            Place::Data(i) => self.table.data.get(i),
        }
    }

    /// Checks the entry against the description of the table.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(mistake) = &self.mistake {
            return Err(copy(mistake));
        }
        for (key, to) in self.table.keys.iter().zip(&self.keys) {
            if !self.is_default {
                check_key(key.kind, &key.ty, to).map_err(|reason| self.wrong(&key.name, reason))?;
            }
        }
        if let Some(action) = self.chosen_action() {
            let fits = match action.scope {
                Scope::Both => true,
                Scope::Entries => !self.is_default,
                Scope::Default => self.is_default,
            };
            if !fits {
                let reason = if self.is_default {
                    "is not for the default entry"
                } else {
                    "is for the default entry only"
                };
                return Err(self.wrong(&action.name, reason.to_owned()));
            }
        }
        Ok(())
    }

    pub(crate) fn wrong(&self, field: &str, reason: String) -> Error {
        Error::Value {
            table: self.table.name.clone(),
            field: field.to_owned(),
            reason,
        }
    }

    /// The keys with their names, in [`crate::notation`].
    #[must_use]
    pub fn key_text(&self) -> String {
        if self.is_default {
            return "default".to_owned();
        }
        let mut parts: Vec<String> = Vec::new();
        for (key, to) in self.table.keys.iter().zip(&self.keys) {
            parts.push(format!("{}={}", key.name, crate::notation::match_text(key, to)));
        }
        if self.table.priority.is_some() && self.priority != 0 {
            parts.push(format!("priority={}", self.priority));
        }
        parts.join(" ")
    }
}

/// A copy of an error: those that an entry stores are about names and values.
fn copy(error: &Error) -> Error {
    match error {
        Error::Name {
            what,
            owner,
            name,
            is_ambiguous,
            candidates,
        } => Error::Name {
            what,
            owner: owner.clone(),
            name: name.clone(),
            is_ambiguous: *is_ambiguous,
            candidates: candidates.clone(),
        },
        Error::Value { table, field, reason } => Error::Value {
            table: table.clone(),
            field: field.clone(),
            reason: reason.clone(),
        },
        other => Error::Unsupported(other.to_string()),
    }
}

fn check_key(kind: MatchKind, ty: &Type, to: &Match) -> Result<(), String> {
    let fits = |value: &Value| check_value(ty, value);
    match to {
        Match::Any if kind == MatchKind::Exact => Err("an exact key needs a value".to_owned()),
        Match::Any => Ok(()),
        Match::Exact(value) => fits(value),
        Match::Lpm { value, prefix_len } => {
            let width = ty.width().unwrap_or(0);
            if kind != MatchKind::Lpm && kind != MatchKind::Ternary {
                return Err(format!("a prefix does not do for a key of the kind {}", kind.name()));
            }
            if *prefix_len > width {
                return Err(format!(
                    "the prefix of {prefix_len} bits is longer than the {width} bits of the key"
                ));
            }
            fits(value)
        }
        Match::Ternary { value, mask } => {
            if kind != MatchKind::Ternary {
                return Err(format!("a mask does not do for a key of the kind {}", kind.name()));
            }
            fits(value).and_then(|()| fits(mask))
        }
        Match::Range { low, high } => {
            if kind != MatchKind::Range {
                return Err(format!("a range does not do for a key of the kind {}", kind.name()));
            }
            fits(low).and_then(|()| fits(high))
        }
    }
}

fn check_value(ty: &Type, value: &Value) -> Result<(), String> {
    match (ty, value) {
        (Type::Text(choices), Value::Text(text)) => {
            if choices.is_empty() || choices.contains(text) {
                return Ok(());
            }
            Err(format!("{text} is none of {}", choices.join(", ")))
        }
        (Type::Bool, value) => value
            .as_bool()
            .map(|_| ())
            .ok_or_else(|| format!("{value} is not true or false")),
        _ => {
            let Some(width) = ty.width() else {
                return Ok(());
            };
            match value.bit_length() {
                Some(length) if length <= width => Ok(()),
                Some(length) => Err(format!("{value} has {length} bits, the field has {width}")),
                None => Err(format!("{value} is no number of {width} bits")),
            }
        }
    }
}

/// Entries are equal if they have the same contents and table.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        let data = |e: &Entry| {
            let mut data: Vec<(bool, usize, Value)> = e
                .data
                .iter()
                .map(|(place, value)| match place {
                    Place::Param(i) => (true, *i, value.clone()),
                    Place::Data(i) => (false, *i, value.clone()),
                })
                .collect();
            data.sort_by_key(|(is_param, place, _)| (*is_param, *place));
            data
        };
        self.table.id == other.table.id
            && self.table.protocol == other.table.protocol
            && self.keys == other.keys
            && self.priority == other.priority
            && self.action == other.action
            && self.is_default == other.is_default
            && data(self) == data(other)
    }
}

/// `table [key=value …] -> action(parameter=value …) data=value …`
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.table.name, self.key_text())?;
        if let Some(action) = self.chosen_action() {
            write!(f, " -> {}(", action.name)?;
            for (i, (field, value)) in self.arguments().enumerate() {
                let text = crate::notation::value_text(field, value);
                write!(f, "{}{}={text}", if i == 0 { "" } else { ", " }, field.name)?;
            }
            f.write_str(")")?;
        }
        for (field, value) in self.other_data() {
            write!(f, " {}={}", field.name, crate::notation::value_text(field, value))?;
        }
        Ok(())
    }
}

impl Table {
    /// Whether the table belongs to a P4Runtime target.
    pub(crate) fn is_p4runtime(&self) -> bool {
        self.protocol == Protocol::P4Runtime
    }
}
