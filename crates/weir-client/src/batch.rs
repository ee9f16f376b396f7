//! Batches: updates that are sent in one request.

use crate::encode::{self, Operation, Template};
use crate::entry::Entry;
use crate::error::Error;
use crate::schema::{Protocol, Schema, Table};
use crate::transport::Encoded;
use crate::wire::{Writer, put_varint};
use bytes::Bytes;
use std::sync::Arc;

/// What a target does with a batch if an update fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Atomicity {
    /// The others are executed.
    #[default]
    Continue,
    /// None takes effect, but packets may have seen some of them.
    Rollback,
    /// None takes effect, and no packet sees a part of the batch.
    DataplaneAtomic,
}

impl Atomicity {
    fn number(self) -> u64 {
        match self {
            Atomicity::Continue => 0,
            Atomicity::Rollback => 1,
            Atomicity::DataplaneAtomic => 2,
        }
    }
}

/// Updates that are sent in one request. They are encoded when they are added.
#[derive(Debug, Clone)]
pub struct Batch {
    schema: Arc<Schema>,
    /// Shared with requests in flight, and with clones until one of them changes (copy on write).
    bytes: Arc<Vec<u8>>,
    /// The range of each update's message.
    updates: Vec<(u32, u32)>,
    /// P4Runtime: indexes of updates that insert or modify.
    upserts: Vec<u32>,
    atomicity: Atomicity,
    scratch: Writer,
}

/// Most bytes of a batch: a request is one message, and offsets in it have 32 bits.
const MAX_BYTES: usize = 1 << 30;

impl Batch {
    /// An empty batch for a target with this schema.
    #[must_use]
    pub fn new(schema: &Arc<Schema>) -> Batch {
        Batch {
            schema: Arc::clone(schema),
            bytes: Arc::default(),
            updates: Vec::new(),
            upserts: Vec::new(),
            atomicity: Atomicity::default(),
            scratch: Writer::default(),
        }
    }

    /// Sets the atomicity, which applies if an update fails.
    #[must_use]
    pub fn atomicity(mut self, atomicity: Atomicity) -> Self {
        self.atomicity = atomicity;
        self
    }

    /// Adds an update.
    ///
    /// # Errors
    /// The entry does not fit its table, or the protocol has no such operation. The batch is then
    /// unchanged.
    pub fn push(&mut self, operation: Operation, entry: &Entry) -> Result<&mut Self, Error> {
        if entry.table().protocol != self.schema.protocol {
            return Err(Error::Unsupported(format!(
                "{}: the entry is for another protocol than the batch",
                entry.table().name
            )));
        }
        self.scratch.out.clear();
        self.scratch.slots.clear();
        encode::update(&mut self.scratch, operation, entry)?;
        let body = std::mem::take(&mut self.scratch.out);
        let is_added = self.add(&body).map(|_| ());
        self.scratch.out = body;
        is_added?;
        let is_array = !entry.table().has_entries() || entry.is_default();
        if operation == Operation::InsertOrModify && self.schema.protocol == Protocol::P4Runtime && !is_array {
            self.upserts.push(self.updates.len() as u32 - 1);
        }
        Ok(self)
    }

    /// Inserts an entry that must not exist.
    ///
    /// # Errors
    /// As for [`Batch::push`].
    pub fn insert(&mut self, entry: &Entry) -> Result<&mut Self, Error> {
        self.push(Operation::Insert, entry)
    }

    /// Modifies an entry that must exist.
    ///
    /// # Errors
    /// As for [`Batch::push`].
    pub fn modify(&mut self, entry: &Entry) -> Result<&mut Self, Error> {
        self.push(Operation::Modify, entry)
    }

    /// Inserts an entry, or modifies an existing one.
    ///
    /// # Errors
    /// As for [`Batch::push`].
    pub fn insert_or_modify(&mut self, entry: &Entry) -> Result<&mut Self, Error> {
        self.push(Operation::InsertOrModify, entry)
    }

    /// Deletes an entry.
    ///
    /// # Errors
    /// As for [`Batch::push`].
    pub fn delete(&mut self, entry: &Entry) -> Result<&mut Self, Error> {
        self.push(Operation::Delete, entry)
    }

    /// Adds an update from a [`Template`].
    ///
    /// # Errors
    /// The count of numbers is not that of the cells, or one does not fit. The batch is then
    /// unchanged.
    pub fn push_numbers(&mut self, template: &Template, numbers: &[u128]) -> Result<&mut Self, Error> {
        if template.operation() == Operation::InsertOrModify && self.schema.protocol == Protocol::P4Runtime {
            return self.push(template.operation(), &template.entry(numbers));
        }
        let tag = self.tag();
        let bytes = Arc::make_mut(&mut self.bytes);
        let before = bytes.len();
        begin(bytes, tag, template.len());
        let start = bytes.len();
        match template.append(numbers, bytes) {
            Ok(true) => {
                self.updates.push((start as u32, bytes.len() as u32));
                self.check_size(before)
            }
            Ok(false) => {
                bytes.truncate(before);
                self.push(template.operation(), &template.entry(numbers))
            }
            Err(error) => {
                bytes.truncate(before);
                Err(error)
            }
        }
    }

    /// BF Runtime: deletes all entries of a table, and resets its default entry.
    ///
    /// # Errors
    /// P4Runtime has no such update; see [`Client::clear`](crate::Client::clear).
    pub fn clear_table(&mut self, table: &Table) -> Result<&mut Self, Error> {
        self.only_bf_runtime("clear a table in one update")?;
        let mut writer = Writer::default();
        writer.varint(1, 4);
        writer.message(2, |w| {
            w.message::<Error>(1, |w| {
                w.varint(1, u64::from(table.id));
                Ok(())
            })
        })?;
        self.add(&writer.out)
    }

    /// BF Runtime: an operation on a whole table, such as `SyncCounters`.
    ///
    /// # Errors
    /// The table has no such operation, or the target uses P4Runtime.
    pub fn operation(&mut self, table: &Table, name: &str) -> Result<&mut Self, Error> {
        self.only_bf_runtime("do operations on tables")?;
        if !table.operations.iter().any(|o| o == name) {
            return Err(Error::Name {
                what: "operation",
                owner: table.name.clone(),
                name: name.to_owned(),
                is_ambiguous: false,
                candidates: table.operations.clone(),
            });
        }
        let mut writer = Writer::default();
        writer.varint(1, 1);
        writer.message(2, |w| {
            w.message::<Error>(4, |w| {
                w.varint(1, u64::from(table.id));
                w.bytes(2, name.as_bytes());
                Ok(())
            })
        })?;
        self.add(&writer.out)
    }

    fn only_bf_runtime(&self, what: &str) -> Result<(), Error> {
        match self.schema.protocol {
            Protocol::BfRuntime => Ok(()),
            Protocol::P4Runtime => Err(Error::Unsupported(format!("P4Runtime cannot {what}"))),
        }
    }

    /// The tag of an update.
    fn tag(&self) -> u8 {
        let field = match self.schema.protocol {
            Protocol::P4Runtime => 4,
            Protocol::BfRuntime => 3,
        };
        field << 3 | 2
    }

    /// Adds an encoded update.
    pub(crate) fn add(&mut self, body: &[u8]) -> Result<&mut Self, Error> {
        let tag = self.tag();
        let bytes = Arc::make_mut(&mut self.bytes);
        let before = bytes.len();
        begin(bytes, tag, body.len());
        let start = bytes.len();
        bytes.extend_from_slice(body);
        self.updates.push((start as u32, bytes.len() as u32));
        self.check_size(before)
    }

    fn check_size(&mut self, before: usize) -> Result<&mut Self, Error> {
        if self.bytes.len() <= MAX_BYTES {
            return Ok(self);
        }
        Arc::make_mut(&mut self.bytes).truncate(before);
        self.updates.pop();
        Err(Error::Unsupported(
            "a batch of more than 1 GiB: send several".to_owned(),
        ))
    }

    /// The number of updates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.updates.len()
    }

    /// Whether there are no updates.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Bytes of the updates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all updates. The memory is kept, unless a clone or a request in flight shares it.
    pub fn clear(&mut self) {
        match Arc::get_mut(&mut self.bytes) {
            Some(bytes) => bytes.clear(),
            None => self.bytes = Arc::default(),
        }
        self.updates.clear();
        self.upserts.clear();
    }

    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub(crate) fn update(&self, place: usize) -> Option<&[u8]> {
        let (from, to) = self.updates.get(place)?;
        self.bytes.get(*from as usize..*to as usize)
    }

    pub(crate) fn upserts(&self) -> &[u32] {
        &self.upserts
    }

    pub(crate) fn atomicity_of(&self) -> Atomicity {
        self.atomicity
    }

    /// The request: the updates, then the fields that identify the sender (fields of a message may
    /// have any order). The updates are not copied.
    pub(crate) fn request(&self, sender: &[u8]) -> Encoded {
        let mut behind = Vec::with_capacity(sender.len() + 2);
        behind.extend_from_slice(sender);
        let field = match self.schema.protocol {
            Protocol::P4Runtime => 5,
            Protocol::BfRuntime => 4,
        };
        behind.push(field << 3);
        put_varint(&mut behind, self.atomicity.number());
        let updates = Bytes::from_owner(Shared(Arc::clone(&self.bytes)));
        Encoded([updates, behind.into()])
    }
}

/// The owner type that [`Bytes`] requires.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Writes the tag and the length of an update.
fn begin(bytes: &mut Vec<u8>, tag: u8, length: usize) {
    bytes.push(tag);
    put_varint(bytes, length as u64);
}
