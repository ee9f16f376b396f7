//! Tables as types, for programs that are known when the controller is compiled.
//!
//! `weir build --emit rust` (or [`crate::generate`] in a build script) writes a module with a type
//! per table, key, action, digest and register. With it a wrong name, a missing parameter or a
//! field of another width does not compile:
//!
//! ```ignore
//! let routes = client.typed::<program::Ipv4Lpm>()?;
//! routes.insert(&program::Ipv4Lpm {
//!     key: program::Ipv4LpmKey { dst_addr: Prefix::new(0x0a00_0000, 8) },
//!     action: program::Ipv4LpmAction::Route { next_hop: 0, port: Bits::new(3).unwrap() },
//! }).await?;
//! ```
//!
//! [`Client::typed`] compares the types with the schema of the target, once; afterwards entries are
//! written by templates.

use crate::batch::Batch;
use crate::client::Client;
use crate::encode::{Operation, Template};
use crate::entry::Entry;
use crate::error::Error;
use crate::schema::{Schema, Table};
use crate::value::{Match, Value};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A number of `W` bits, for widths that Rust has no type for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bits<const W: u32>(u128);

impl<const W: u32> Bits<W> {
    /// The largest number.
    pub const MAX: Bits<W> = Bits(u128::MAX >> (128 - W));

    /// A number; `None` if it has more bits.
    #[must_use]
    pub const fn new(value: u128) -> Option<Bits<W>> {
        if value <= Self::MAX.0 { Some(Bits(value)) } else { None }
    }

    /// A constant; one with more bits does not compile.
    ///
    /// ```
    /// use weir_client::typed::Bits;
    /// const CPU: Bits<9> = Bits::constant::<510>();
    /// assert_eq!(CPU.get(), 510);
    /// ```
    #[must_use]
    pub const fn constant<const V: u128>() -> Bits<W> {
        const { assert!(V <= Self::MAX.0, "the number has more bits than the field") };
        Bits(V)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }
}

impl<const W: u32> fmt::Debug for Bits<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}w{}", W, self.0)
    }
}

/// A type that a field may have.
pub trait Number: Copy {
    /// Its width in bits.
    const WIDTH: u32;
    /// As a number.
    fn to_number(self) -> u128;
    /// From a number; `None` if it has more bits.
    fn from_number(number: u128) -> Option<Self>;
}

macro_rules! plain {
    ($($ty:ty: $width:literal),*) => {$(
        impl Number for $ty {
            const WIDTH: u32 = $width;
            fn to_number(self) -> u128 {
                self.into()
            }
            fn from_number(number: u128) -> Option<Self> {
                number.try_into().ok()
            }
        }
    )*};
}
plain!(u8: 8, u16: 16, u32: 32, u64: 64, u128: 128);

impl<const W: u32> Number for Bits<W> {
    const WIDTH: u32 = W;
    fn to_number(self) -> u128 {
        self.0
    }
    fn from_number(number: u128) -> Option<Self> {
        Bits::new(number)
    }
}

/// The first bits of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix<T> {
    /// The value; bits after the prefix are ignored.
    pub value: T,
    /// Length of the prefix in bits.
    pub length: u32,
}

impl<T> Prefix<T> {
    /// The first `length` bits of a value.
    pub const fn new(value: T, length: u32) -> Prefix<T> {
        Prefix { value, length }
    }
}

/// A value under a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Masked<T> {
    /// The value; bits outside of the mask are ignored.
    pub value: T,
    /// Bits that are compared.
    pub mask: T,
}

/// From one value to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range<T> {
    /// The smallest.
    pub low: T,
    /// The largest.
    pub high: T,
}

/// The match of a key field.
pub trait Key: Sized {
    /// The width of the field, and the name of its match kind.
    const SHAPE: (u32, &'static str);
    /// As numbers for a template; `false` if a template cannot express it.
    fn numbers(&self, out: &mut Vec<u128>) -> bool;
    /// As a match.
    fn to_match(&self) -> Match;
    /// From a match.
    fn from_match(to: &Match) -> Option<Self>;
}

fn number<T: Number>(value: &Value) -> Option<T> {
    value.as_u128().and_then(T::from_number)
}

macro_rules! exact_key {
    ([$($generics:tt)*] $ty:ty) => {
        impl<$($generics)*> Key for $ty {
            const SHAPE: (u32, &'static str) = (<$ty as Number>::WIDTH, "exact");
            fn numbers(&self, out: &mut Vec<u128>) -> bool {
                out.push(self.to_number());
                true
            }
            fn to_match(&self) -> Match {
                Match::Exact(Value::Bits(self.to_number()))
            }
            fn from_match(to: &Match) -> Option<Self> {
                to.exact().and_then(number)
            }
        }
    };
}
exact_key!([] u8);
exact_key!([] u16);
exact_key!([] u32);
exact_key!([] u64);
exact_key!([] u128);
exact_key!([const W: u32] Bits<W>);

impl<T: Number> Key for Prefix<T> {
    const SHAPE: (u32, &'static str) = (T::WIDTH, "lpm");
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        out.extend([self.value.to_number(), self.length.into()]);
        true
    }
    fn to_match(&self) -> Match {
        Match::Lpm {
            value: Value::Bits(self.value.to_number()),
            prefix_len: self.length,
        }
    }
    fn from_match(to: &Match) -> Option<Self> {
        match to {
            Match::Any => T::from_number(0).map(|value| Prefix { value, length: 0 }),
            Match::Lpm { value, prefix_len } => number(value).map(|value| Prefix {
                value,
                length: *prefix_len,
            }),
            _ => None,
        }
    }
}

impl<T: Number> Key for Masked<T> {
    const SHAPE: (u32, &'static str) = (T::WIDTH, "ternary");
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        out.extend([self.value.to_number(), self.mask.to_number()]);
        true
    }
    fn to_match(&self) -> Match {
        Match::Ternary {
            value: Value::Bits(self.value.to_number()),
            mask: Value::Bits(self.mask.to_number()),
        }
    }
    fn from_match(to: &Match) -> Option<Self> {
        match to {
            Match::Any => T::from_number(0).map(|zero| Masked {
                value: zero,
                mask: zero,
            }),
            Match::Ternary { value, mask } => Some(Masked {
                value: number(value)?,
                mask: number(mask)?,
            }),
            _ => None,
        }
    }
}

impl<T: Number> Key for Range<T> {
    const SHAPE: (u32, &'static str) = (T::WIDTH, "range");
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        out.extend([self.low.to_number(), self.high.to_number()]);
        true
    }
    fn to_match(&self) -> Match {
        Match::Range {
            low: Value::Bits(self.low.to_number()),
            high: Value::Bits(self.high.to_number()),
        }
    }
    fn from_match(to: &Match) -> Option<Self> {
        match to {
            Match::Any => Some(Range {
                low: T::from_number(0)?,
                high: T::from_number(u128::MAX >> (128 - T::WIDTH))?,
            }),
            Match::Range { low, high } => Some(Range {
                low: number(low)?,
                high: number(high)?,
            }),
            _ => None,
        }
    }
}

impl<T: Number> Key for Option<T> {
    const SHAPE: (u32, &'static str) = (T::WIDTH, "optional");
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        out.push(self.map_or(0, Number::to_number));
        self.is_some()
    }
    fn to_match(&self) -> Match {
        self.map_or(Match::Any, |value| Match::Exact(Value::Bits(value.to_number())))
    }
    fn from_match(to: &Match) -> Option<Self> {
        match to {
            Match::Any => Some(None),
            other => other.exact().and_then(number).map(Some),
        }
    }
}

/// Name and width of a parameter or data field in a generated type.
pub type Shape = (&'static str, u32);

/// The key of a table.
pub trait TableKey: Sized {
    /// Names of the keys, their widths and kinds, in the order of the table.
    const KEYS: &'static [(&'static str, (u32, &'static str))];
    /// As numbers for a template; `false` if a template cannot express it.
    fn numbers(&self, out: &mut Vec<u128>) -> bool;
    /// As matches, in the order of the table.
    fn to_matches(&self) -> Vec<Match>;
    /// From matches.
    fn from_matches(keys: &[Match]) -> Option<Self>;
}

/// The action of an entry.
pub trait TableAction: Sized {
    /// Names of the actions and their parameters.
    const ACTIONS: &'static [(&'static str, &'static [Shape])];
    /// The index of this action among them.
    fn place(&self) -> usize;
    /// Its arguments.
    fn numbers(&self, out: &mut Vec<u128>);
    /// From the index of an action and its arguments.
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self>;
}

/// An entry of a table.
pub trait TableEntry: Sized {
    /// The table's name.
    const NAME: &'static str;
    /// Its entries have a priority.
    const HAS_PRIORITY: bool;
    /// The type of their keys.
    type Key: TableKey;
    /// The type of their actions.
    type Action: TableAction;
    /// The key of this entry.
    fn key(&self) -> &Self::Key;
    /// Its priority; 0 where the table has none.
    fn priority(&self) -> u32;
    /// Its action.
    fn action(&self) -> &Self::Action;
    /// From its parts.
    fn new(key: Self::Key, priority: u32, action: Self::Action) -> Self;
}

/// An element of a digest, or the value of a register.
pub trait Record: Sized {
    /// The digest's or register's name.
    const NAME: &'static str;
    /// Names and widths of the fields.
    const FIELDS: &'static [Shape];
    /// From the fields.
    fn from_numbers(numbers: &[u128]) -> Option<Self>;
    /// The fields.
    fn numbers(&self) -> Vec<u128>;

    /// From a value, as digests have it.
    fn from_value(value: &Value) -> Option<Self> {
        let numbers: Option<Vec<u128>> = Self::FIELDS
            .iter()
            .map(|(name, _)| match value {
                Value::Record(fields) => {
                    let ends = |n: &str| n == *name || n.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
                    fields.iter().find(|(n, _)| ends(n))?.1.as_u128()
                }
                other => other.as_u128(),
            })
            .collect();
        Self::from_numbers(&numbers?)
    }
}

/// A table of a target with entries of a generated type.
#[derive(Debug)]
pub struct TypedTable<T> {
    client: Client,
    table: Arc<Table>,
    /// For each action of the type, its index in the table.
    actions: Vec<usize>,
    inserts: Vec<Option<Template>>,
    modifies: Vec<Option<Template>>,
    entry: PhantomData<fn() -> T>,
}

impl Client {
    /// A table with entries of a generated type.
    ///
    /// # Errors
    /// The target has no such table, or its keys, actions or widths differ from those of the type.
    pub fn typed<T: TableEntry>(&self) -> Result<TypedTable<T>, Error> {
        let table = self.table(T::NAME)?;
        let actions = agree::<T>(&table)?;
        let templates = |operation: Operation| {
            let of = |place: &usize| Template::new(&table, operation, Some(&table.actions[*place].name)).ok();
            actions.iter().map(of).collect()
        };
        Ok(TypedTable {
            inserts: templates(Operation::Insert),
            modifies: templates(Operation::Modify),
            client: self.clone(),
            table,
            actions,
            entry: PhantomData,
        })
    }

    /// Registers with values of a generated type.
    ///
    /// # Errors
    /// The target has no such register, or its fields differ.
    pub fn typed_register<T: Record>(&self) -> Result<TypedRegister<T>, Error> {
        let table = self.table(T::NAME)?;
        check_fields(&table, T::FIELDS)?;
        Ok(TypedRegister {
            client: self.clone(),
            table,
            value: PhantomData,
        })
    }
}

fn differs(table: &str, what: String) -> Error {
    Error::Unsupported(format!(
        "{table} is not what the types were generated from: {what}; generate them again with `weir build --emit rust`"
    ))
}

/// Indexes of the type's actions in the table, if both agree.
fn agree<T: TableEntry>(table: &Table) -> Result<Vec<usize>, Error> {
    let keys = T::Key::KEYS;
    if keys.len() != table.keys.len() {
        return Err(differs(&table.name, format!("it has {} keys", table.keys.len())));
    }
    for ((name, (width, kind)), key) in keys.iter().zip(&table.keys) {
        if *name != key.name || key.ty.width() != Some(*width) || key.kind.name() != *kind {
            let is = format!(
                "the key {} is {} of {:?} bits",
                key.name,
                key.kind.name(),
                key.ty.width()
            );
            return Err(differs(&table.name, is));
        }
    }
    if T::HAS_PRIORITY != table.priority.is_some() {
        return Err(differs(
            &table.name,
            "entries have a priority in only one of them".to_owned(),
        ));
    }
    let mut places = Vec::new();
    for (name, params) in T::Action::ACTIONS {
        let place = table.action(name)?;
        let action = &table.actions[place];
        let is_same = params.len() == action.params.len()
            && params
                .iter()
                .zip(&action.params)
                .all(|((name, width), param)| *name == param.name && param.ty.width() == Some(*width));
        if !is_same {
            return Err(differs(
                &table.name,
                format!("the action {} has other parameters", action.name),
            ));
        }
        places.push(place);
    }
    Ok(places)
}

fn check_fields(table: &Table, fields: &[Shape]) -> Result<(), Error> {
    for (name, width) in fields {
        let ends = |n: &str| n == *name || n.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        let found = table.data.iter().find(|f| ends(&f.name));
        // The name of a register's only field differs in BF Runtime.
        let found = found.or(table.data.first().filter(|_| fields.len() == 1));
        if found.and_then(|f| f.ty.width()) != Some(*width) {
            return Err(differs(
                &table.name,
                format!("there is no field {name} of {width} bits"),
            ));
        }
    }
    Ok(())
}

impl<T: TableEntry> TypedTable<T> {
    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Adds an update to a batch.
    ///
    /// # Errors
    /// A prefix is longer than its field, or the batch is full.
    pub fn push(&self, batch: &mut Batch, operation: Operation, entry: &T) -> Result<(), Error> {
        let templates = match operation {
            Operation::Insert => &self.inserts,
            Operation::Modify => &self.modifies,
            _ => &Vec::new(),
        };
        if let Some(Some(template)) = templates.get(entry.action().place()) {
            let mut numbers = Vec::with_capacity(template.cells().len());
            if entry.key().numbers(&mut numbers) {
                if T::HAS_PRIORITY {
                    numbers.push(entry.priority().into());
                }
                entry.action().numbers(&mut numbers);
                return batch.push_numbers(template, &numbers).map(|_| ());
            }
        }
        batch.push(operation, &self.entry(entry)).map(|_| ())
    }

    /// The entry by names.
    #[must_use]
    pub fn entry(&self, typed: &T) -> Entry {
        let place = typed.action().place();
        let mut arguments = Vec::new();
        typed.action().numbers(&mut arguments);
        let action = self.actions.get(place).and_then(|a| self.table.actions.get(*a));
        let mut entry = self.of_key(typed.key(), typed.priority());
        if let Some(action) = action {
            entry = entry.action(&action.name);
            for (param, argument) in action.params.iter().zip(arguments) {
                entry = entry.data(&param.name, argument);
            }
        }
        entry
    }

    fn of_key(&self, key: &T::Key, priority: u32) -> Entry {
        Entry::of(&self.table).keys(key.to_matches()).priority(priority)
    }

    /// Inserts an entry.
    ///
    /// # Errors
    /// As [`Client::insert`].
    pub async fn insert(&self, entry: &T) -> Result<(), Error> {
        let mut batch = self.client.batch();
        self.push(&mut batch, Operation::Insert, entry)?;
        self.client.write(&batch).await
    }

    /// Modifies an entry.
    ///
    /// # Errors
    /// As [`Client::modify`].
    pub async fn modify(&self, entry: &T) -> Result<(), Error> {
        let mut batch = self.client.batch();
        self.push(&mut batch, Operation::Modify, entry)?;
        self.client.write(&batch).await
    }

    /// Deletes the entry with a key. `priority`: 0 where the table has none.
    ///
    /// # Errors
    /// As [`Client::delete`].
    pub async fn delete(&self, key: &T::Key, priority: u32) -> Result<(), Error> {
        self.client.delete(&self.of_key(key, priority)).await
    }

    /// All entries.
    ///
    /// # Errors
    /// As [`Client::entries`]; or one has an action that the type does not have.
    pub async fn entries(&self) -> Result<Vec<T>, Error> {
        let entries = self.client.entries(&self.table).await?;
        let entries = entries.iter().filter(|e| !e.is_default());
        entries.map(|e| self.typed(e)).collect()
    }

    /// An entry as the type.
    ///
    /// # Errors
    /// It is of another table, or has an action that the type does not have.
    pub fn typed(&self, entry: &Entry) -> Result<T, Error> {
        let wrong = || Error::Malformed(format!("{entry} is no entry of the type that was generated"));
        let key = T::Key::from_matches(entry.matches()).ok_or_else(wrong)?;
        let action = entry.chosen_action().ok_or_else(wrong)?;
        let place = self.actions.iter().position(|a| self.table.actions[*a].id == action.id);
        let arguments: Option<Vec<u128>> = action.params.iter().map(|p| entry.get(&p.name)?.as_u128()).collect();
        let action = place.zip(arguments).and_then(|(p, a)| T::Action::from_numbers(p, &a));
        Ok(T::new(key, entry.priority_of(), action.ok_or_else(wrong)?))
    }
}

/// Registers of a target with values of a generated type.
#[derive(Debug)]
pub struct TypedRegister<T> {
    client: Client,
    table: Arc<Table>,
    value: PhantomData<fn() -> T>,
}

impl<T: Record> TypedRegister<T> {
    fn at(&self, index: u64) -> Entry {
        Entry::of(&self.table).keys([Match::from(index)])
    }

    /// The value of a register.
    ///
    /// # Errors
    /// There is no such index, or the target refuses.
    pub async fn read(&self, index: u64) -> Result<T, Error> {
        let malformed = || Error::Malformed(format!("{}: a value that is not of the type", self.table.name));
        let entry = self.client.entry(&self.at(index)).await?.ok_or_else(malformed)?;
        let mut numbers = Vec::new();
        for field in &self.table.data {
            let value = entry.get(&field.name);
            // With several pipes, the value of the first one.
            let value = match value {
                Some(Value::List(values)) => values.first(),
                other => other,
            };
            numbers.push(value.and_then(Value::as_u128).ok_or_else(malformed)?);
        }
        T::from_numbers(&numbers).ok_or_else(malformed)
    }

    /// Sets a register.
    ///
    /// # Errors
    /// There is no such index, or the target refuses.
    pub async fn write(&self, index: u64, value: &T) -> Result<(), Error> {
        let mut entry = self.at(index);
        for (field, number) in self.table.data.iter().zip(value.numbers()) {
            entry = entry.data(&field.name, number);
        }
        self.client.modify(&entry).await
    }
}

/// Whether a table can have a generated type: keys and parameters are numbers of 1 to 128 bits.
pub(crate) fn has_a_type(table: &Table) -> bool {
    let fits = |width: Option<u32>| width.is_some_and(|w| (1..=128).contains(&w));
    table.kind == crate::schema::Kind::Match
        && table.keys.iter().all(|k| fits(k.ty.width()))
        && table
            .actions
            .iter()
            .all(|a| a.params.iter().all(|p| fits(p.ty.width()) && !p.is_list))
}

/// The tables without a generated type, by name, and the reason.
#[must_use]
pub fn without_a_type(schema: &Schema) -> Vec<String> {
    let tables = schema.tables.iter().filter(|t| t.kind.is_match() && !has_a_type(t));
    tables.map(|t| t.name.clone()).collect()
}
