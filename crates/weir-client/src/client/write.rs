//! Writing: single updates, batches, and operations on whole tables.

use super::{Client, Query, can_be_cleared, details};
use crate::batch::{Atomicity, Batch};
use crate::encode::{Operation, ReadOptions};
use crate::entry::Entry;
use crate::error::Error;
use crate::events::Standing;
use crate::schema::{Protocol, Table};
use crate::session;
use crate::transport::Encoded;
use crate::wire::Writer;
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use tonic::{Code, Status};

/// Updates of one request when many are sent.
const PORTION: usize = 10_000;

impl Client {
    /// An empty batch for this target.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch::new(&self.schema())
    }

    /// Inserts an entry that must not exist.
    ///
    /// # Errors
    /// The entry does not fit, or the target refuses it.
    pub async fn insert(&self, entry: &Entry) -> Result<(), Error> {
        self.update(Operation::Insert, entry).await
    }

    /// Modifies an entry that must exist; sets counters, meters and registers.
    ///
    /// # Errors
    /// The entry does not fit, or the target refuses it.
    pub async fn modify(&self, entry: &Entry) -> Result<(), Error> {
        self.update(Operation::Modify, entry).await
    }

    /// Inserts an entry, or modifies an existing one.
    ///
    /// # Errors
    /// The entry does not fit, or the target refuses it.
    pub async fn insert_or_modify(&self, entry: &Entry) -> Result<(), Error> {
        self.update(Operation::InsertOrModify, entry).await
    }

    /// Deletes an entry. A default entry is reset to the program's.
    ///
    /// # Errors
    /// The target refuses.
    pub async fn delete(&self, entry: &Entry) -> Result<(), Error> {
        self.update(Operation::Delete, entry).await
    }

    /// Writes one update.
    ///
    /// # Errors
    /// The entry does not fit, or the target refuses it.
    pub async fn update(&self, operation: Operation, entry: &Entry) -> Result<(), Error> {
        let mut batch = self.batch();
        batch.push(operation, entry)?;
        self.write(&batch).await
    }

    /// Writes a batch in one request.
    ///
    /// # Errors
    /// [`Error::Updates`] lists the failed updates; [`Error::NotPrimary`]: another client controls
    /// the target; [`Error::Rpc`]: the target refuses the whole batch.
    pub async fn write(&self, batch: &Batch) -> Result<(), Error> {
        self.write_numbered(batch, 0).await
    }

    /// As [`Client::write`], with the index of the first update for errors.
    pub(crate) async fn write_numbered(&self, batch: &Batch, first: u64) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let can_upsert = batch.atomicity_of() == Atomicity::Continue;
        if !batch.upserts().is_empty() && !can_upsert {
            return Err(Error::Unsupported(
                "P4Runtime has no update that inserts or modifies: a batch with such cannot be atomic".to_owned(),
            ));
        }
        let answer = self.send(batch.request(&self.sender(batch)?)).await;
        let Err(status) = answer else { return Ok(()) };
        let error = self.refused(batch, first, &status);
        if batch.upserts().is_empty() {
            return Err(error);
        }
        self.modify_existing(batch, first, error).await
    }

    /// Converts a status to an error.
    fn refused(&self, batch: &Batch, first: u64, status: &Status) -> Error {
        let is_p4runtime = batch.schema().protocol == Protocol::P4Runtime;
        if is_p4runtime && status.code() == Code::PermissionDenied {
            return match self.standing() {
                Standing::Backup(id) => Error::NotPrimary(id),
                Standing::Observer => Error::Unsupported("this client only reads".to_owned()),
                _ => Error::rpc("write", status),
            };
        }
        details::write_error(batch, first, status)
    }

    async fn send(&self, request: Encoded) -> Result<Bytes, Status> {
        let path = match self.shared.options.protocol {
            Protocol::P4Runtime => "/p4.v1.P4Runtime/Write",
            Protocol::BfRuntime => "/bfrt_proto.BfRuntime/Write",
        };
        self.shared.transport.unary(path, request).await
    }

    /// Second request for updates that insert or modify: modifies those that exist.
    async fn modify_existing(&self, batch: &Batch, first: u64, error: Error) -> Result<(), Error> {
        let Error::Updates(errors) = error else {
            return Err(error);
        };
        let is_upsert = |index: u64| {
            let place = (index - first) as u32;
            batch.upserts().binary_search(&place).is_ok()
        };
        let mut second = Batch::new(batch.schema());
        let mut places = Vec::new();
        let mut others = Vec::new();
        for error in errors {
            let update = batch.update((error.index - first) as usize);
            match update {
                Some(update) if error.code == Code::AlreadyExists && is_upsert(error.index) => {
                    // The first field of an update is its type: INSERT becomes MODIFY.
                    let mut update = update.to_vec();
                    if let Some(ty) = update.get_mut(1) {
                        *ty = 2;
                    }
                    second.add(&update)?;
                    places.push(error.index);
                }
                _ => others.push(error),
            }
        }
        if !second.is_empty()
            && let Err(status) = self.send(second.request(&self.sender(&second)?)).await
        {
            match details::write_error(&second, 0, &status) {
                Error::Updates(errors) => others.extend(errors.into_iter().map(|mut e| {
                    e.index = places.get(e.index as usize).copied().unwrap_or(e.index);
                    e
                })),
                other => return Err(other),
            }
        }
        if others.is_empty() {
            return Ok(());
        }
        others.sort_by_key(|e| e.index);
        Err(Error::Updates(others))
    }

    /// The fields of a request that identify the sender.
    fn sender(&self, batch: &Batch) -> Result<Vec<u8>, Error> {
        let options = &self.shared.options;
        let mut writer = Writer::default();
        match options.protocol {
            Protocol::P4Runtime => {
                writer.varint(1, options.device_id);
                if !options.role.is_empty() {
                    writer.bytes(6, options.role.as_bytes());
                }
                let election = session::election(options.election_id);
                writer.bytes(3, &election.encode_to_vec());
            }
            Protocol::BfRuntime => {
                self.target(&mut writer, None)?;
                writer.varint(2, u64::from(options.client_id));
                writer.bytes(5, batch.schema().program.as_bytes());
            }
        }
        Ok(writer.out)
    }

    /// Deletes all entries of a table; with BF Runtime it also resets the default entry.
    ///
    /// # Errors
    /// The table cannot be cleared, or the target refuses.
    pub async fn clear(&self, table: &Arc<Table>) -> Result<(), Error> {
        if self.shared.options.protocol == Protocol::BfRuntime {
            let mut batch = self.batch();
            batch.clear_table(table)?;
            return self.write(&batch).await;
        }
        if !can_be_cleared(table) {
            return Err(Error::Unsupported(format!(
                "{}: a {} cannot be emptied",
                table.name,
                table.kind.name()
            )));
        }
        let options = ReadOptions {
            counters: false,
            meters: false,
            idle: false,
            ..ReadOptions::default()
        };
        let pages = self.read_pages(&[Query::Table(Arc::clone(table))], &options).await?;
        let entries = pages.collect().await?;
        for portion in entries.chunks(PORTION) {
            let mut batch = self.batch();
            for entry in portion {
                batch.delete(entry)?;
            }
            self.write(&batch).await?;
        }
        Ok(())
    }

    /// BF Runtime: an operation on a whole table, such as `SyncCounters`. It is complete when this
    /// returns.
    ///
    /// # Errors
    /// The table has no such operation, or the target refuses.
    pub async fn operation(&self, table: &Table, name: &str) -> Result<(), Error> {
        let mut batch = self.batch();
        batch.operation(table, name)?;
        self.write(&batch).await
    }
}
