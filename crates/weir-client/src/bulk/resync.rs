//! Resynchronises a table: makes it hold given entries with the fewest updates.

use crate::client::{Client, Query};
use crate::encode::{Operation, ReadOptions};
use crate::entry::Entry;
use crate::error::{Error, UpdateError};
use crate::schema::Table;
use std::collections::HashMap;
use std::sync::Arc;

/// The updates that were needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Entries that were missing.
    pub inserted: u64,
    /// Entries with other contents.
    pub modified: u64,
    /// Entries that were surplus.
    pub deleted: u64,
    /// Entries that were already equal.
    pub unchanged: u64,
    /// Updates that the target has refused.
    pub failed: Vec<UpdateError>,
}

impl Client {
    /// Makes a table hold exactly these entries, and writes only the differences: for a controller
    /// after its own restart or the target's. Counters and times are not compared.
    ///
    /// # Errors
    /// The target refuses the Read, a request fails as a whole, or an entry is of another table.
    pub async fn resync(&self, table: &Arc<Table>, wanted: &[Entry]) -> Result<SyncReport, Error> {
        if let Some(other) = wanted.iter().find(|e| e.table().id != table.id) {
            return Err(Error::Unsupported(format!(
                "an entry of {} for {}",
                other.table().name,
                table.name
            )));
        }
        let options = ReadOptions {
            counters: false,
            idle: false,
            ..ReadOptions::default()
        };
        let queries = [Query::Table(Arc::clone(table))];
        let current = self.read_pages(&queries, &options).await?.collect().await?;
        let mut current: HashMap<String, Entry> = current
            .into_iter()
            .filter(|e| !e.is_default())
            .map(|e| (e.key_text(), e))
            .collect();
        let mut report = SyncReport::default();
        let mut changes = Vec::new();
        for entry in wanted {
            let entry = canonical(entry);
            match current.remove(&entry.key_text()) {
                None => {
                    changes.push((Operation::Insert, entry));
                    report.inserted += 1;
                }
                Some(old) if does_the_same(&old, &entry) => report.unchanged += 1,
                Some(_) => {
                    changes.push((Operation::Modify, entry));
                    report.modified += 1;
                }
            }
        }
        // Deletions come first, to make space in the table.
        let mut pipeline = self.bulk();
        for entry in current.into_values() {
            pipeline.push(Operation::Delete, &entry).await?;
            report.deleted += 1;
        }
        pipeline.flush().await?;
        for (operation, entry) in &changes {
            pipeline.push(*operation, entry).await?;
        }
        report.failed = pipeline.finish().await?.failed;
        Ok(report)
    }
}

/// The entry with normalised keys: unmatched bits are 0.
fn canonical(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    let table = Arc::clone(&entry.table);
    for (key, to) in table.keys.iter().zip(&mut entry.keys) {
        *to = crate::encode::normal(key, to);
    }
    entry
}

fn does_the_same(old: &Entry, new: &Entry) -> bool {
    let data = |e: &Entry| {
        let mut data: Vec<(String, String)> = e.arguments().map(|(f, v)| (f.name.clone(), v.to_string())).collect();
        data.sort();
        data
    };
    // Of other data, only those of the new entry are compared.
    let others = new.other_data().all(|(f, v)| old.get(&f.name) == Some(v));
    old.chosen_action().map(|a| a.id) == new.chosen_action().map(|a| a.id) && data(old) == data(new) && others
}
