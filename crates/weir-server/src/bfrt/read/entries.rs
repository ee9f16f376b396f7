//! Reads entries of each kind of table and encodes them as messages.
//!
//! For whole match-action tables without special state, `rows` encodes to bytes instead; the
//! messages of this module are its reference.

use super::rows::Layout;
use super::{Entries, Portion, ReadContext, Selection};
use crate::bfrt::cells;
use crate::bfrt::entry;
use crate::bfrt::fixed::{self, Fixed, Source};
use crate::bfrt::schema::{Kind, MatchTable, Resources, Role, Table};
use crate::bfrt::value::{self, Value};
use crate::refusal::Refusal;
use weir_interp::read_bits;
use weir_ir::{Bits, ExternId};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::key_field::{Exact, MatchType};
use weir_proto::bfrt_proto::table_entry::Value as EntryKey;
use weir_switch::Switch;
use weir_table::{Entry, EntryAction, EntryRef, Group, Member};

impl Entries {
    /// Reads a portion from a position on. Returns the position to continue at.
    pub(super) fn read(
        &self,
        context: &ReadContext,
        table: &Table,
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        match &table.kind {
            Kind::Match(match_table) => self.match_entries(context, (table, match_table), switch, from, out),
            Kind::Array(resources) => self.cells((table, resources), switch, from, out),
            Kind::Parameter(resources) => {
                let fields = resources.read(switch, 0, &table.data, &self.fields)?;
                let message = self.table_entry(table, None, Some(data(0, fields)));
                out.push(Entity::TableEntry(pb::TableEntry {
                    is_default_entry: true,
                    ..message
                }));
                Ok(None)
            }
            Kind::Members(instances) => self.members(table, instances, switch, from, out),
            Kind::Groups(selector) => self.groups(table, *selector, switch, from, out),
            Kind::GetMember(selector) => self.choice(table, *selector, switch, out),
            Kind::ValueSet(set) => {
                let state = switch.state().value_set(*set);
                let entries = state.into_iter().flat_map(|s| s.entries());
                let is_selected = |e: &&Entry| match &self.which {
                    Selection::Value(matches) => e.matches == *matches,
                    _ => true,
                };
                let found: Vec<&Entry> = entries.filter(is_selected).collect();
                if found.is_empty() && matches!(self.which, Selection::Value(_)) {
                    return Err(missing());
                }
                let first = usize::try_from(from).unwrap_or(usize::MAX);
                for (place, entry) in found.into_iter().enumerate().skip(first) {
                    if out.is_full() {
                        return Ok(Some(place as u64));
                    }
                    let keys = table.keys.iter().zip(&entry.matches);
                    let fields = keys.map(|(key, m)| entry::encode_match(key, m, true)).collect();
                    out.push(Entity::TableEntry(self.table_entry(table, Some(fields), None)));
                }
                Ok(None)
            }
            Kind::PortMetadata => self.port_metadata(table, switch, from, out),
            Kind::Fixed(fixed) => self.fixed((context, *fixed), table, switch, from, out),
        }
    }

    /// A `TableEntry` message with this key and data.
    fn table_entry(
        &self,
        table: &Table,
        key: Option<Vec<pb::KeyField>>,
        data: Option<pb::TableData>,
    ) -> pb::TableEntry {
        pb::TableEntry {
            table_id: table.id,
            value: key.map(|fields| EntryKey::Key(pb::TableKey { fields })),
            data: data.filter(|_| !self.key_only),
            entry_tgt: self.target,
            ..pb::TableEntry::default()
        }
    }

    pub(super) fn selects(&self, id: u32) -> bool {
        self.fields.is_empty() || self.fields.contains(&id)
    }

    // ------------------------------------------------------------------------- match-action tables

    fn match_entries(
        &self,
        context: &ReadContext,
        (table, match_table): (&Table, &MatchTable),
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        let state = &switch.table_state(match_table.table)?.table;
        match &self.which {
            Selection::Entry(which) => {
                let entry = state.get(which).map_err(weir_switch::ControlError::from)?;
                let message = self.entry(context, (table, match_table), switch, entry)?;
                out.push(Entity::TableEntry(message));
                return Ok(None);
            }
            Selection::All => {
                let mut layout = Layout::new(self, table, match_table);
                for entry in state.entries_from(from) {
                    let is_selected = self.action == 0 || self.action_of(table, entry) == self.action;
                    if (is_selected && out.is_full()) || !out.budget.visit(1) {
                        return Ok(Some(entry.place()));
                    }
                    if !is_selected {
                        continue;
                    }
                    let message = || {
                        self.entry(context, (table, match_table), switch, entry)
                            .map(Entity::TableEntry)
                    };
                    match &mut layout {
                        Some(layout) => layout.add(switch, entry, out.row(), message)?,
                        None => out.push(message()?),
                    }
                }
            }
            _ => {}
        }
        let message = self.default_entry((table, match_table), switch)?;
        let has_action = |t: &pb::TableEntry| t.data.as_ref().map_or(0, |d| d.action_id) == self.action;
        if let Some(message) =
            message.filter(|t| self.action == 0 || has_action(t) || matches!(self.which, Selection::Default))
        {
            out.push(Entity::TableEntry(message));
        }
        Ok(None)
    }

    fn action_of(&self, table: &Table, entry: &Entry) -> u32 {
        match &entry.action {
            EntryAction::Call(call) => {
                let action = table.actions.iter().find(|a| a.numbers.first() == Some(&call.action));
                action.map_or(0, |a| a.id)
            }
            _ => 0,
        }
    }

    fn entry(
        &self,
        context: &ReadContext,
        (table, match_table): (&Table, &MatchTable),
        switch: &Switch,
        entry: &Entry,
    ) -> Result<pb::TableEntry, Refusal> {
        if let Some(handle) = self.by_handle {
            let message = self.table_entry(table, None, None);
            return Ok(pb::TableEntry {
                value: Some(EntryKey::HandleId(handle)),
                ..message
            });
        }
        let key = entry::encode_key(table, match_table, entry).fields;
        if self.key_only {
            return Ok(self.table_entry(table, Some(key), None));
        }
        let (action_id, mut fields) = match &entry.action {
            EntryAction::Call(call) => entry::encode_call(&table.actions, call, 0, &self.fields),
            EntryAction::Member(id) => (0, self.reference(table, Role::Member, *id)),
            EntryAction::Group(id) => (0, self.reference(table, Role::Group, *id)),
            // An entry with a one-shot action set, written by P4Runtime: BF Runtime has no field
            // for it.
            EntryAction::OneShot(_) => (0, Vec::new()),
        };
        if !table.data.is_empty() {
            fields.extend(
                match_table
                    .resources
                    .read(switch, entry.handle.get().into(), &table.data, &self.fields)?,
            );
            fields.extend(self.idle(context, (table, match_table), switch, entry));
        }
        Ok(self.table_entry(table, Some(key), Some(data(action_id, fields))))
    }

    fn reference(&self, table: &Table, role: Role, id: u32) -> Vec<pb::DataField> {
        let field = table.field_with_role(role).filter(|f| self.selects(f.id));
        let field = field.map(|f| value::encode(f.id, &f.ty, &Value::Number(id.into())));
        field.into_iter().collect()
    }

    /// The time to live and the hit state of an entry.
    fn idle(
        &self,
        context: &ReadContext,
        (table, match_table): (&Table, &MatchTable),
        switch: &Switch,
        entry: &Entry,
    ) -> Vec<pb::DataField> {
        if !match_table.idle_timeout {
            return Vec::new();
        }
        let last = switch.last_hit_ns(match_table.table, entry.handle).unwrap_or(0);
        let elapsed = switch.now_ns().saturating_sub(last);
        let ttl = entry.idle_timeout_ns;
        let active_ns = if ttl > 0 {
            ttl
        } else {
            context.attributes.query_interval_ns(table.id)
        };
        let left = if self.from_hw { ttl.saturating_sub(elapsed) } else { ttl };
        let fields = table.data.iter().filter(|f| self.selects(f.id));
        let fields = fields.filter_map(|field| {
            let value = match field.role {
                Role::Ttl => Value::Number((left / 1_000_000).min(u32::MAX.into())),
                Role::HitState if elapsed < active_ns => Value::Text("ENTRY_ACTIVE".to_owned()),
                Role::HitState => Value::Text("ENTRY_IDLE".to_owned()),
                _ => return None,
            };
            Some(value::encode(field.id, &field.ty, &value))
        });
        fields.collect()
    }

    /// The default entry; `None` if the table has no actions of its own.
    fn default_entry(
        &self,
        (table, match_table): (&Table, &MatchTable),
        switch: &Switch,
    ) -> Result<Option<pb::TableEntry>, Refusal> {
        if table.actions.is_empty() {
            return Ok(None);
        }
        let state = &switch.table_state(match_table.table)?.table;
        let (action_id, mut fields) = entry::encode_call(&table.actions, state.default_action(), 0, &self.fields);
        fields.extend(match_table.resources.read(switch, 0, &table.data, &self.fields)?);
        Ok(Some(pb::TableEntry {
            is_default_entry: true,
            ..self.table_entry(table, None, Some(data(action_id, fields)))
        }))
    }

    // ------------------------------------------------------------------------------- other tables

    fn cells(
        &self,
        (table, resources): (&Table, &Resources),
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        let (first, end) = match &self.which {
            Selection::Number(index) => (*index, index.saturating_add(1)),
            Selection::Default => return Err(Refusal::unsupported("the table has no default entry")),
            _ => (from, resources.size(switch)),
        };
        for index in first..end {
            if out.is_full() {
                return Ok(Some(index));
            }
            let fields = resources.read(switch, index, &table.data, &self.fields)?;
            let message = self.table_entry(table, Some(number_key(table, index)), Some(data(0, fields)));
            out.push(Entity::TableEntry(message));
        }
        Ok(None)
    }

    fn members(
        &self,
        table: &Table,
        instances: &[ExternId],
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        // This server writes the same members to all instances.
        let profile = instances.first().and_then(|id| switch.state().profile(*id));
        let message = |id: u32, member: &Member| {
            let (action, fields) = entry::encode_call(&table.actions, &member.action, 0, &self.fields);
            self.table_entry(table, Some(number_key(table, id.into())), Some(data(action, fields)))
        };
        if let Selection::Number(number) = self.which {
            let id = u32::try_from(number).map_err(|_| missing())?;
            let member = profile.and_then(|p| p.member(id)).ok_or_else(missing)?;
            out.push(Entity::TableEntry(message(id, member)));
            return Ok(None);
        }
        let all = profile.into_iter().flat_map(|p| p.members());
        for (id, member) in all.filter(|(id, _)| u64::from(*id) >= from) {
            if out.is_full() || !out.budget.visit(1) {
                return Ok(Some(id.into()));
            }
            let message = message(id, member);
            if self.action == 0 || message.data.as_ref().is_none_or(|d| d.action_id == self.action) {
                out.push(Entity::TableEntry(message));
            }
        }
        Ok(None)
    }

    fn groups(
        &self,
        table: &Table,
        selector: ExternId,
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        let profile = switch.state().profile(selector);
        let message = |id: u32, group: &Group| {
            let fields = table.data.iter().filter(|f| self.selects(f.id)).filter_map(|field| {
                let value = match field.role {
                    Role::Member => Value::Numbers(group.members.iter().map(|m| m.member).collect()),
                    Role::MemberStatus => Value::Bools(group.members.iter().map(|m| !m.is_off).collect()),
                    Role::MaxGroupSize if group.max_size > 0 => Value::Number(group.max_size),
                    Role::MaxGroupSize => field.default.clone()?,
                    _ => return None,
                };
                Some(value::encode(field.id, &field.ty, &value))
            });
            let data = data(0, fields.collect());
            self.table_entry(table, Some(number_key(table, id.into())), Some(data))
        };
        if let Selection::Number(number) = self.which {
            let id = u32::try_from(number).map_err(|_| missing())?;
            let group = profile.and_then(|p| p.group(id)).ok_or_else(missing)?;
            out.push(Entity::TableEntry(message(id, group)));
            return Ok(None);
        }
        let all = profile.into_iter().flat_map(|p| p.groups());
        for (id, group) in all.filter(|(id, _)| u64::from(*id) >= from) {
            if out.is_full() {
                return Ok(Some(id.into()));
            }
            out.push(Entity::TableEntry(message(id, group)));
        }
        Ok(None)
    }

    /// The member that a group chooses for a hash.
    fn choice(
        &self,
        table: &Table,
        selector: ExternId,
        switch: &Switch,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        let Selection::Choice(group, hash) = &self.which else {
            return Err(Refusal::unsupported("the table is read by group and hash"));
        };
        let found = switch.state().profile(selector).and_then(|p| p.group(*group));
        let found = found.ok_or_else(missing)?;
        let outcomes = found.live_weight();
        let member = (outcomes > 0).then(|| found.at(hash % outcomes)).flatten();
        let member = member.ok_or_else(|| Refusal::not_found("no member of the group takes part in the choice"))?;
        let keys = table.keys.iter().zip([u64::from(*group), *hash]);
        let keys = keys.map(|(key, number)| exact(key.id, key.width, number)).collect();
        let fields = table
            .data
            .iter()
            .map(|f| value::encode(f.id, &f.ty, &Value::Number(member.into())));
        let message = self.table_entry(table, Some(keys), Some(data(0, fields.collect())));
        out.push(Entity::TableEntry(message));
        Ok(None)
    }

    fn port_metadata(
        &self,
        table: &Table,
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        let all = &switch.state().port_metadata;
        let selected = match &self.which {
            Selection::Number(port) => Some(u32::try_from(*port).unwrap_or(u32::MAX)),
            Selection::Default => return Err(Refusal::unsupported("the table has no default entry")),
            _ => None,
        };
        if selected.is_some_and(|port| !all.contains_key(&port)) {
            return Err(missing());
        }
        let first = selected.unwrap_or(u32::try_from(from).unwrap_or(u32::MAX));
        for (port, bytes) in all.range(first..=selected.unwrap_or(u32::MAX)) {
            if out.is_full() {
                return Ok(Some((*port).into()));
            }
            let mut at = 0;
            let fields: Vec<pb::DataField> = table
                .data
                .iter()
                .map(|field| {
                    let width = match field.ty {
                        value::Type::Bits(width) => width,
                        _ => 1,
                    };
                    let bits = read_bits(bytes, at, width).unwrap_or_else(|| Bits::zero(width));
                    at += width as usize;
                    value::encode(field.id, &field.ty, &cells::scalar_value(&field.ty, &bits))
                })
                .collect();
            let fields = fields.into_iter().filter(|f| self.selects(f.field_id)).collect();
            let message = self.table_entry(table, Some(number_key(table, (*port).into())), Some(data(0, fields)));
            out.push(Entity::TableEntry(message));
        }
        Ok(None)
    }

    fn fixed(
        &self,
        (context, kind): (&ReadContext, Fixed),
        table: &Table,
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        let source = Source {
            switch,
            ports: &context.ports,
            cpu_port: context.cpu_port,
            pipe: self.pipe,
        };
        if matches!(self.which, Selection::Default) && !table.keys.is_empty() {
            return Err(Refusal::unsupported("the table has no default entry"));
        }
        let key = match &self.which {
            Selection::Row(row) => Some(row),
            _ => None,
        };
        let rows = fixed::read(kind, table, key, from, &source)?;
        for place in rows.places {
            if out.is_full() || !out.budget.visit(1) {
                return Ok(Some(place));
            }
            let row = (rows.make)(place);
            if self.action == 0 || row.action == self.action {
                let message = fixed::encode(table, &row, &self.fields, self.key_only);
                out.push(Entity::TableEntry(pb::TableEntry {
                    entry_tgt: self.target,
                    ..message
                }));
            }
        }
        Ok(None)
    }
}

fn missing() -> Refusal {
    Refusal::not_found("there is no such entry")
}

/// The key of an entry, for idle time-out notifications.
pub(crate) fn key_of(table: &Table, switch: &Switch, which: &EntryRef) -> Option<pb::TableEntry> {
    let Kind::Match(match_table) = &table.kind else {
        return None;
    };
    let entry = switch.state().table(match_table.table)?.table.get(which).ok()?;
    Some(pb::TableEntry {
        table_id: table.id,
        value: Some(EntryKey::Key(entry::encode_key(table, match_table, entry))),
        ..pb::TableEntry::default()
    })
}

fn data(action_id: u32, fields: Vec<pb::DataField>) -> pb::TableData {
    pb::TableData { action_id, fields }
}

fn exact(id: u32, width: u32, number: u64) -> pb::KeyField {
    pb::KeyField {
        field_id: id,
        match_type: Some(MatchType::Exact(Exact {
            value: value::number_bytes(width, number),
        })),
    }
}

/// The key of a table with one numeric key field.
fn number_key(table: &Table, number: u64) -> Vec<pb::KeyField> {
    table
        .keys
        .first()
        .map(|key| exact(key.id, key.width, number))
        .into_iter()
        .collect()
}
