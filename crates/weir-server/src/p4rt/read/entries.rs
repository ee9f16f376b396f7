//! Entries of tables and their direct resources.

use super::{Cursor, Entity, Portion, Progress, Reader, counter_data, meter_config};
use crate::p4rt::change::no_meter_counts;
use crate::p4rt::refusal::Refusal;
use crate::p4rt::schema::Table;
use crate::p4rt::{action, matching};
use crate::reading::cost_of_bytes;
use weir_ir::{ExternId, KeyMatch};
use weir_proto::p4::v1 as pb;
use weir_table::{Entry, EntryAction, EntryRef};

/// Selects entries of a table.
#[derive(Default)]
struct Filter {
    /// With this match.
    matches: Option<Vec<KeyMatch>>,
    /// With this priority; 0: any.
    priority: u32,
    /// With this action: its number in the table, or all of it.
    action: Option<ActionFilter>,
    metadata: u64,
    note: Vec<u8>,
    /// The default entry instead.
    is_default: bool,
}

enum ActionFilter {
    Number(usize),
    Whole(EntryAction),
}

impl Filter {
    fn admits(&self, entry: &Entry) -> bool {
        let by_action = match (&self.action, &entry.action) {
            (None, _) => true,
            (Some(ActionFilter::Number(number)), EntryAction::Call(call)) => call.action == *number,
            (Some(ActionFilter::Number(_)), _) => false,
            (Some(ActionFilter::Whole(action)), found) => action == found,
        };
        by_action
            && self.matches.as_ref().is_none_or(|m| *m == entry.matches)
            && (self.priority == 0 || self.priority == entry.priority)
            && (self.metadata == 0 || self.metadata == entry.metadata)
            && (self.note.is_empty() || action::read_note(&entry.note).1 == self.note)
    }

    /// The cost of visiting an entry.
    fn cost(&self) -> usize {
        1 + cost_of_bytes(self.note.len())
    }

    /// Whether at most one entry fits, which a key finds.
    fn key(&self, table: &Table) -> Option<EntryRef> {
        let matches = self.matches.clone()?;
        (!table.has_priority || self.priority > 0).then_some(EntryRef::Key {
            matches,
            priority: self.priority,
        })
    }
}

/// The optional parts of an entry in the answer.
#[derive(Clone, Copy, Default)]
struct Parts {
    counter: bool,
    meter: bool,
    last_hit: bool,
}

/// Encodes an entry of a table, or its default entry.
type OneEntry<'a> = dyn FnMut(&Table, Option<&Entry>) -> Result<Option<Entity>, Refusal> + 'a;

impl Reader<'_> {
    fn filter(&self, table: &Table, query: &pb::TableEntry) -> Result<Filter, Refusal> {
        if query.is_default_action && (!query.r#match.is_empty() || query.priority != 0) {
            return Err(Refusal::malformed("the default entry has no match and no priority"));
        }
        let matches = match query.r#match.is_empty() {
            true => None,
            false => Some(matching::decode(&table.fields, &query.r#match)?),
        };
        use pb::table_action::Type;
        let action = match query.action.as_ref().and_then(|a| a.r#type.as_ref()) {
            None => None,
            Some(Type::Action(a)) if a.params.is_empty() => Some(ActionFilter::Number(table.action(a.action_id)?.0)),
            Some(_) => {
                let given = query
                    .action
                    .as_ref()
                    .map(|a| action::decode(self.schema, table, a))
                    .transpose()?;
                given.map(|(action, _)| ActionFilter::Whole(action))
            }
        };
        Ok(Filter {
            matches,
            action,
            priority: u32::try_from(query.priority).map_err(|_| Refusal::malformed("the priority is negative"))?,
            metadata: query.controller_metadata,
            note: query.metadata.clone(),
            is_default: query.is_default_action,
        })
    }

    /// The tables of a query, with the filter for each.
    fn tables(&self, query: &pb::TableEntry) -> Result<Vec<(&Table, Filter)>, Refusal> {
        if query.table_id != 0 {
            let table = self.schema.table(query.table_id)?;
            let filter = self.filter(table, query);
            let filter = filter.map_err(|e| e.within(&format!("table `{}`", table.name)))?;
            return Ok(vec![(table, filter)]);
        }
        let is_filtered = !query.r#match.is_empty()
            || query.priority != 0
            || query.action.is_some()
            || query.controller_metadata != 0
            || !query.metadata.is_empty();
        if is_filtered {
            return Err(Refusal::malformed(
                "a query of all tables has no filters; give a table_id",
            ));
        }
        let filter = || Filter {
            is_default: query.is_default_action,
            ..Filter::default()
        };
        Ok(self.schema.tables.values().map(|t| (t, filter())).collect())
    }

    /// The entries that a query is about, as `one` makes them of a handle (0: the default entry)
    /// and an entry.
    fn each_entry(
        &self,
        query: &pb::TableEntry,
        from: Cursor,
        out: &mut Portion,
        one: &mut OneEntry<'_>,
    ) -> Result<Progress, Refusal> {
        for (table, filter) in self.tables(query)? {
            if table.id < from.id || !self.sees(table.id) {
                continue;
            }
            let state = &self.switch.table_state(table.table)?.table;
            if filter.is_default {
                if out.is_full() {
                    return Ok(Some(Cursor { id: table.id, place: 0 }));
                }
                one(table, None)?.into_iter().for_each(|e| out.push(e));
                continue;
            }
            if let Some(key) = filter.key(table) {
                let entry = state.get(&key).ok().filter(|e| filter.admits(e));
                let entity = entry.map(|e| one(table, Some(e))).transpose()?.flatten();
                entity.into_iter().for_each(|e| out.push(e));
                continue;
            }
            let first = if table.id == from.id { from.place } else { 0 };
            for entry in state.entries_from(first) {
                let is_wanted = filter.admits(entry);
                if (is_wanted && out.is_full()) || !out.budget.visit(filter.cost()) {
                    return Ok(Some(Cursor {
                        id: table.id,
                        place: entry.place(),
                    }));
                }
                if is_wanted {
                    one(table, Some(entry))?.into_iter().for_each(|e| out.push(e));
                }
            }
        }
        Ok(None)
    }

    pub(super) fn table_entries(
        &self,
        query: &pb::TableEntry,
        from: Cursor,
        out: &mut Portion,
    ) -> Result<Progress, Refusal> {
        let parts = Parts {
            counter: query.counter_data.is_some(),
            meter: query.meter_config.is_some(),
            last_hit: query.time_since_last_hit.is_some(),
        };
        if query.meter_counter_data.is_some() {
            return Err(no_meter_counts());
        }
        if query.table_id != 0 {
            check_parts(self.schema.table(query.table_id)?, query, parts)?;
        }
        self.each_entry(query, from, out, &mut |table, entry| {
            Ok(Some(Entity::TableEntry(self.entry(table, entry, parts)?)))
        })
    }

    /// An entry, or the default entry.
    fn entry(&self, table: &Table, entry: Option<&Entry>, parts: Parts) -> Result<pb::TableEntry, Refusal> {
        let mut encoded = match entry {
            Some(entry) => self.key_of(table, entry),
            None => default_key(table),
        };
        match entry {
            Some(entry) => {
                let (settings, _) = action::read_note(&entry.note);
                encoded.action = Some(action::encode(table, &entry.action, settings));
                encoded.is_const = entry.is_const;
                if parts.last_hit && table.idle_timeout {
                    let last = self.switch.last_hit_ns(table.table, entry.handle).unwrap_or(0);
                    let elapsed = self.switch.now_ns().saturating_sub(last);
                    encoded.time_since_last_hit = Some(pb::table_entry::IdleTimeout {
                        elapsed_ns: i64::try_from(elapsed).unwrap_or(i64::MAX),
                    });
                }
            }
            None => {
                let state = &self.switch.table_state(table.table)?.table;
                let call = action::encode_call(&table.actions, state.default_action());
                let ty = Some(pb::table_action::Type::Action(call));
                encoded.action = Some(pb::TableAction { r#type: ty });
                let (metadata, note) = state.default_note();
                encoded.controller_metadata = *metadata;
                encoded.metadata = action::read_note(note).1.to_vec();
            }
        }
        let handle = entry.map_or(0, |e| e.handle.get());
        // Resources that the action does not execute cannot be written with the entry, so they are
        // not read with it.
        let is_visible = |resource: &(u32, ExternId)| {
            self.with_dormant || action::executes(table, encoded.action.as_ref(), resource.1)
        };
        let (counter, meter) = (table.counter.filter(is_visible), table.meter.filter(is_visible));
        if let (true, Some((_, instance))) = (parts.counter, counter) {
            encoded.counter_data = Some(counter_data(self.switch.counter(instance, handle.into())?));
        }
        if let (true, Some((_, instance))) = (parts.meter, meter) {
            encoded.meter_config = self.switch.meter(instance, handle.into())?.map(meter_config);
        }
        Ok(encoded)
    }

    /// The key of an entry, and its controller's metadata.
    pub fn key_of(&self, table: &Table, entry: &Entry) -> pb::TableEntry {
        pb::TableEntry {
            metadata: action::read_note(&entry.note).1.to_vec(),
            controller_metadata: entry.metadata,
            idle_timeout_ns: i64::try_from(entry.idle_timeout_ns).unwrap_or(i64::MAX),
            ..key_of(table, entry)
        }
    }

    pub(super) fn direct_counters(
        &self,
        query: &pb::DirectCounterEntry,
        from: Cursor,
        out: &mut Portion,
    ) -> Result<Progress, Refusal> {
        let all = pb::TableEntry::default();
        let entries = query.table_entry.as_ref().unwrap_or(&all);
        if entries.table_id != 0 && self.schema.table(entries.table_id)?.counter.is_none() {
            let name = &self.schema.table(entries.table_id)?.name;
            return Err(Refusal::malformed(format!("table `{name}` has no direct counter")));
        }
        let before = out.entities.len();
        let progress = self.each_entry(entries, from, out, &mut |table, entry| {
            let Some((_, instance)) = table.counter else {
                return Ok(None);
            };
            let handle = entry.map_or(0, |e| e.handle.get());
            let count = self.switch.counter(instance, handle.into())?;
            Ok(Some(Entity::DirectCounterEntry(pb::DirectCounterEntry {
                table_entry: Some(entry.map_or_else(|| default_key(table), |e| key_of(table, e))),
                data: Some(counter_data(count)),
            })))
        })?;
        self.must_be_found(entries, from, out.entities.len() > before, progress)
    }

    pub(super) fn direct_meters(
        &self,
        query: &pb::DirectMeterEntry,
        from: Cursor,
        out: &mut Portion,
    ) -> Result<Progress, Refusal> {
        if query.counter_data.is_some() {
            return Err(no_meter_counts());
        }
        let all = pb::TableEntry::default();
        let entries = query.table_entry.as_ref().unwrap_or(&all);
        if entries.table_id != 0 && self.schema.table(entries.table_id)?.meter.is_none() {
            let name = &self.schema.table(entries.table_id)?.name;
            return Err(Refusal::malformed(format!("table `{name}` has no direct meter")));
        }
        let before = out.entities.len();
        let progress = self.each_entry(entries, from, out, &mut |table, entry| {
            let Some((_, instance)) = table.meter else {
                return Ok(None);
            };
            let handle = entry.map_or(0, |e| e.handle.get());
            let config = self.switch.meter(instance, handle.into())?;
            Ok(Some(Entity::DirectMeterEntry(pb::DirectMeterEntry {
                table_entry: Some(entry.map_or_else(|| default_key(table), |e| key_of(table, e))),
                config: config.map(meter_config),
                counter_data: None,
            })))
        })?;
        self.must_be_found(entries, from, out.entities.len() > before, progress)
    }

    /// The resource of an entry that is named must be there.
    fn must_be_found(
        &self,
        query: &pb::TableEntry,
        from: Cursor,
        is_any: bool,
        progress: Progress,
    ) -> Result<Progress, Refusal> {
        let is_one = !query.r#match.is_empty() && query.table_id != 0;
        if is_one && !is_any && progress.is_none() && from == Cursor::default() && self.sees(query.table_id) {
            let name = &self.schema.table(query.table_id)?.name;
            return Err(Refusal::not_found(format!("table `{name}` has no such entry")));
        }
        Ok(progress)
    }
}

fn check_parts(table: &Table, query: &pb::TableEntry, parts: Parts) -> Result<(), Refusal> {
    let missing = match () {
        () if parts.counter && table.counter.is_none() => "direct counter; leave out counter_data",
        () if parts.meter && table.meter.is_none() => "direct meter; leave out meter_config",
        () if parts.last_hit && !table.idle_timeout => "idle time-out; leave out time_since_last_hit",
        () if parts.last_hit && query.is_default_action => {
            return Err(Refusal::malformed("the default entry does not time out"));
        }
        () => return Ok(()),
    };
    Err(Refusal::malformed(format!("table `{}` has no {missing}", table.name)))
}

/// The key of an entry.
pub fn key_of(table: &Table, entry: &Entry) -> pb::TableEntry {
    pb::TableEntry {
        table_id: table.id,
        r#match: matching::encode(&table.fields, &entry.matches),
        priority: i32::try_from(entry.priority).unwrap_or(i32::MAX),
        ..pb::TableEntry::default()
    }
}

fn default_key(table: &Table) -> pb::TableEntry {
    pb::TableEntry {
        table_id: table.id,
        is_default_action: true,
        ..pb::TableEntry::default()
    }
}
