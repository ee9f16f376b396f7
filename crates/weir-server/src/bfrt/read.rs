//! Resolves an entity of a `ReadRequest` to a [`Query`] and reads what it finds.
//!
//! Reading is in portions, each within one step of the switch: [`Query::read`] continues where the
//! last portion ended. `crate::reading` decides when a step ends and adds up replicas by [`merge`].

mod entries;
mod objects;
mod rows;

pub(crate) use entries::key_of;
use rows::Rows;

use super::attribute::Attributes;
use super::entry;
use super::fixed::{self, Fixed, Row};
use super::schema::{Kind, Role, Schema, Table};
use super::target::{self, Scopes};
use super::{change, value};
use crate::ports::Ports;
use crate::reading::{StepBudget, cost_of_bytes};
use crate::refusal::Refusal;
use std::sync::Arc;
use weir_ir::KeyMatch;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::table_entry::Value as EntryKey;
use weir_switch::Switch;
use weir_table::{EntryHandle, EntryRef};

/// Read-only state that queries need besides the switch.
#[derive(Clone)]
pub(crate) struct ReadContext {
    pub schema: Arc<Schema>,
    pub ports: Arc<Ports>,
    pub cpu_port: Option<u32>,
    /// Attributes of tables, such as the idle query interval.
    pub attributes: Arc<Attributes>,
}

/// The entries that a query selects.
#[derive(Debug)]
pub(crate) enum Selection {
    /// All entries, and the default entry.
    All,
    /// The default entry.
    Default,
    /// The entry of a match-action table with this key or handle.
    Entry(EntryRef),
    /// The entry with this number: a member, a group or a cell.
    Number(u64),
    /// A member of a value set.
    Value(Vec<KeyMatch>),
    /// The member that a group chooses for a hash: group id, hash.
    Choice(u32, u64),
    /// The entry of a fixed table with the key of this row.
    Row(Row),
}

/// A query for entries of one table, and the fields that it selects.
#[derive(Debug)]
pub(crate) struct Entries {
    pub at: usize,
    pub which: Selection,
    /// Only entries with this action; 0 selects any.
    pub action: u32,
    /// Only these fields; an empty list selects all.
    pub fields: Vec<u32>,
    pub key_only: bool,
    /// Report the remaining time to live, not the configured one.
    pub from_hw: bool,
    /// The addressed pipe; `None` means all.
    pub pipe: Option<u32>,
    /// Target of the request, repeated in each entry.
    pub target: Option<pb::TargetDevice>,
    /// Identify the entry by this handle, not by its key.
    pub by_handle: Option<u32>,
}

/// One entity of a request, resolved.
#[derive(Debug)]
pub(crate) enum Query {
    Entries(Entries),
    Usage(usize),
    HandleOf(usize, EntryRef),
    KeyOf(usize, EntryHandle),
    /// An answer that needs no switch.
    Known(Box<pb::Entity>),
}

/// A part of an answer: one entity, or many that are already encoded.
#[derive(Debug)]
pub(crate) enum ReadItem {
    Entity(Box<pb::Entity>),
    Rows(Rows),
}

/// Bytes from which on a new [`ReadItem::Rows`] begins, so that it exceeds this by at most one
/// entry. That is little beside one message of a streamed answer.
const MAX_ROWS_BYTES: usize = 64 << 10;

/// The entities of one step.
pub(crate) struct Portion {
    found: Vec<ReadItem>,
    /// Encoded entities that follow those in `found`.
    rows: Rows,
    budget: StepBudget,
}

impl AsRef<StepBudget> for Portion {
    fn as_ref(&self) -> &StepBudget {
        &self.budget
    }
}

impl Portion {
    /// An empty portion with a limit in plain entities, at least one.
    pub fn new(limit: usize) -> Self {
        Portion {
            found: Vec::new(),
            rows: Rows::default(),
            budget: StepBudget::with_max_cost(limit),
        }
    }

    /// The cost of the entities.
    pub fn cost(&self) -> usize {
        self.budget.charged()
    }

    pub fn is_full(&self) -> bool {
        self.budget.is_full()
    }

    /// The entities in order.
    pub fn into_found(mut self) -> Vec<ReadItem> {
        self.end_rows();
        self.found
    }

    fn end_rows(&mut self) {
        if !self.rows.bytes.is_empty() {
            self.found.push(ReadItem::Rows(std::mem::take(&mut self.rows)));
        }
    }

    fn push(&mut self, entity: Entity) {
        self.entity(pb::Entity { entity: Some(entity) });
    }

    fn entity(&mut self, entity: pb::Entity) {
        self.end_rows();
        self.budget.charge(cost(&entity));
        self.found.push(ReadItem::Entity(Box::new(entity)));
    }

    /// The rows to which a reader appends one encoded entity.
    fn row(&mut self) -> &mut Rows {
        if self.rows.bytes.len() >= MAX_ROWS_BYTES {
            self.end_rows();
        }
        self.budget.charge(1);
        &mut self.rows
    }
}

/// The cost of an entity, in plain entities.
fn cost(entity: &pb::Entity) -> usize {
    let Some(Entity::TableEntry(entry)) = &entity.entity else {
        return 1;
    };
    let fields = entry.data.iter().flat_map(|d| &d.fields);
    let lists = fields.map(|field| match &field.value {
        Some(Wire::IntArrVal(list)) => list.val.len(),
        Some(Wire::BoolArrVal(list)) => list.val.len(),
        Some(Wire::Stream(bytes)) => cost_of_bytes(bytes.len()),
        _ => 0,
    });
    1 + lists.sum::<usize>()
}

impl Query {
    /// Resolves an entity of a request.
    ///
    /// # Errors
    /// It names a missing object, or cannot be read.
    pub fn new(
        context: &ReadContext,
        scopes: &Scopes,
        request: Option<&pb::TargetDevice>,
        given: &pb::Entity,
    ) -> Result<Self, Refusal> {
        match given.entity.as_ref() {
            Some(Entity::TableEntry(entry)) => entries(context, scopes, request, entry),
            Some(Entity::TableUsage(usage)) => Ok(Query::Usage(context.schema.index_of(usage.table_id)?)),
            Some(Entity::Handle(handle)) => of_handle(context, handle),
            Some(Entity::ObjectId(object)) => objects::find(context, object).map(|e| Query::Known(Box::new(e))),
            Some(Entity::TableAttribute(attribute)) => {
                let at = context.schema.index_of(attribute.table_id)?;
                let found = context.attributes.read(&context.schema.tables[at], attribute)?;
                let entity = Some(Entity::TableAttribute(found));
                Ok(Query::Known(Box::new(pb::Entity { entity })))
            }
            Some(Entity::TableOperation(_)) => Err(Refusal::malformed(
                "Invalid Read entity received: operations are written",
            )),
            None => Err(Refusal::malformed("Invalid Read entity received: it is empty")),
        }
    }

    /// Whether replicas may have different values for this query.
    pub fn differs_by_replica(&self, schema: &Schema) -> bool {
        let Query::Entries(entries) = self else { return false };
        match &schema.tables[entries.at].kind {
            Kind::Match(match_table) => match_table.resources.differs_by_replica() || match_table.idle_timeout,
            Kind::Array(resources) => resources.differs_by_replica(),
            Kind::Fixed(fixed) => matches!(fixed, Fixed::PortStat | Fixed::Applications),
            _ => false,
        }
    }

    /// Reads a portion from a position on. Returns the position to continue at, if there is more.
    ///
    /// # Errors
    /// The selected entry does not exist.
    pub fn read(
        &self,
        context: &ReadContext,
        switch: &Switch,
        from: u64,
        out: &mut Portion,
    ) -> Result<Option<u64>, Refusal> {
        let table = |at: usize| &*context.schema.tables[at];
        match self {
            Query::Entries(entries) => entries.read(context, table(entries.at), switch, from, out),
            Query::Usage(at) => {
                let usage = objects::usage(context, table(*at), switch)?;
                if !matches!(table(*at).kind, Kind::Match(_)) {
                    // Tables of this kind have no count, so their entries were visited.
                    out.budget.charge(usage as usize / StepBudget::VISITS_PER_ENTRY);
                }
                out.push(Entity::TableUsage(pb::TableUsage {
                    table_id: table(*at).id,
                    usage,
                    ..pb::TableUsage::default()
                }));
                Ok(None)
            }
            Query::HandleOf(at, which) => {
                let Kind::Match(match_table) = &table(*at).kind else {
                    return Ok(None);
                };
                let entry = switch.table_state(match_table.table)?.table.get(which);
                let handle = entry.map_err(weir_switch::ControlError::from)?.handle;
                out.push(Entity::Handle(pb::HandleId {
                    table_id: table(*at).id,
                    value: Some(pb::handle_id::Value::HandleId(handle.get())),
                }));
                Ok(None)
            }
            Query::KeyOf(at, handle) => {
                let Kind::Match(match_table) = &table(*at).kind else {
                    return Ok(None);
                };
                let entry = switch.table_state(match_table.table)?.table.entry(*handle);
                let entry = entry.ok_or_else(|| Refusal::not_found("there is no entry with this handle"))?;
                out.push(Entity::Handle(pb::HandleId {
                    table_id: table(*at).id,
                    value: Some(pb::handle_id::Value::Key(entry::encode_key(
                        table(*at),
                        match_table,
                        entry,
                    ))),
                }));
                Ok(None)
            }
            Query::Known(entity) => {
                out.entity((**entity).clone());
                Ok(None)
            }
        }
    }
}

fn of_handle(context: &ReadContext, handle: &pb::HandleId) -> Result<Query, Refusal> {
    let at = context.schema.index_of(handle.table_id)?;
    let table = &context.schema.tables[at];
    let Kind::Match(match_table) = &table.kind else {
        return Err(Refusal::unsupported("entries of this table have no handles"));
    };
    match &handle.value {
        Some(pb::handle_id::Value::Key(key)) => {
            let (matches, priority) = entry::matches(table, match_table, key)?;
            Ok(Query::HandleOf(at, EntryRef::Key { matches, priority }))
        }
        Some(pb::handle_id::Value::HandleId(number)) => Ok(Query::KeyOf(at, change::handle_of(*number)?)),
        None => Err(Refusal::malformed("Table key cannot be empty")),
    }
}

#[allow(deprecated, reason = "older clients")]
fn entries(
    context: &ReadContext,
    scopes: &Scopes,
    request: Option<&pb::TargetDevice>,
    given: &pb::TableEntry,
) -> Result<Query, Refusal> {
    let at = context.schema.index_of(given.table_id)?;
    let table = &*context.schema.tables[at];
    scopes.check(table, given.entry_tgt.as_ref().or(request))?;
    let flags = given.table_flags.unwrap_or_default();
    let older = given.table_read_flag.unwrap_or_default();
    let key = match &given.value {
        Some(EntryKey::Key(key)) if !key.fields.is_empty() || !given.is_default_entry => Some(key),
        _ => None,
    };
    let which = match (&given.value, key, &table.kind) {
        (_, Some(_), _) if given.is_default_entry => {
            return Err(Refusal::malformed("the default entry has no key"));
        }
        _ if given.is_default_entry => Selection::Default,
        (Some(EntryKey::HandleId(number)), _, Kind::Match(_)) => {
            Selection::Entry(EntryRef::Handle(change::handle_of(*number)?))
        }
        (Some(EntryKey::HandleId(_)), ..) => return Err(Refusal::unsupported("entries of this table have no handles")),
        (_, None, _) => Selection::All,
        (_, Some(key), Kind::Match(match_table)) => {
            let (matches, priority) = entry::matches(table, match_table, key)?;
            Selection::Entry(EntryRef::Key { matches, priority })
        }
        (_, Some(key), Kind::ValueSet(_)) => Selection::Value(change::value_matches(table, key)?),
        (_, Some(key), Kind::GetMember(_)) => {
            let row = fixed::key(table, key)?;
            let number = |at: usize| row.get(at).and_then(|(_, v)| v.as_number()).unwrap_or(0);
            Selection::Choice(u32::try_from(number(0)).unwrap_or(u32::MAX), number(1))
        }
        (_, Some(key), Kind::Fixed(_)) => Selection::Row(Row {
            key: fixed::key(table, key)?,
            ..Row::default()
        }),
        (_, Some(key), _) => Selection::Number(change::only_key(table, key)?),
    };
    let data = given.data.as_ref();
    let mut fields: Vec<u32> = data.map_or(Vec::new(), |d| d.fields.iter().map(|f| f.field_id).collect());
    // Duplicates would be searched for once per entry.
    fields.sort_unstable();
    fields.dedup();
    let action = data.map_or(0, |d| d.action_id);
    let knows = |id: &u32| {
        table.data.iter().any(|f| f.id == *id)
            || table
                .actions
                .iter()
                .any(|a| a.params.iter().any(|p| p.id == *id) || a.fields.iter().any(|f| f.id == *id))
    };
    if let Some(unknown) = fields.iter().find(|id| !knows(id)) {
        return Err(Refusal::malformed(format!("there is no field with the id {unknown}")));
    }
    if action != 0 {
        table.action(action)?;
    }
    let key_only = flags.key_only || older.key_only;
    Ok(Query::Entries(Entries {
        at,
        which,
        action,
        fields,
        key_only,
        from_hw: flags.from_hw || older.from_hw,
        pipe: target::pipe_of(given.entry_tgt.as_ref().or(request)),
        target: given.entry_tgt,
        by_handle: match &given.value {
            Some(EntryKey::HandleId(number)) if key_only => Some(*number),
            _ => None,
        },
    }))
}

/// Adds the counts of another replica to the same entities.
pub(crate) fn merge(schema: &Schema, into: &mut [ReadItem], other: &[ReadItem]) {
    for both in into.iter_mut().zip(other) {
        match both {
            (ReadItem::Rows(into), ReadItem::Rows(other)) => into.merge(other),
            (ReadItem::Entity(into), ReadItem::Entity(other)) => merge_entity(schema, into, other),
            // Replicas have the same entries at the same positions.
            _ => debug_assert!(false, "replicas differ in what they find"),
        }
    }
}

fn merge_entity(schema: &Schema, into: &mut pb::Entity, other: &pb::Entity) {
    let (Some(Entity::TableEntry(into)), Some(Entity::TableEntry(other))) = (&mut into.entity, &other.entity) else {
        return;
    };
    let Ok(table) = schema.table(into.table_id) else {
        return;
    };
    let (Some(into), Some(other)) = (&mut into.data, &other.data) else {
        return;
    };
    for (into, other) in into.fields.iter_mut().zip(&other.fields) {
        merge_field(table, into, other);
    }
}

fn merge_field(table: &Table, into: &mut pb::DataField, other: &pb::DataField) {
    let field = table.data.iter().find(|f| f.id == into.field_id);
    let is_counted = matches!((&table.kind, field), (Kind::Fixed(fixed), Some(f)) if fixed.is_count(&f.name));
    let role = field.map(|f| f.role);
    match (role, &mut into.value, &other.value) {
        (Some(Role::CounterBytes | Role::CounterPackets), Some(Wire::Stream(a)), Some(Wire::Stream(b))) => {
            *a = sum(a, b);
        }
        (Some(Role::Plain), Some(Wire::Stream(a)), Some(Wire::Stream(b))) if is_counted => *a = sum(a, b),
        (Some(Role::Ttl), Some(Wire::Stream(a)), Some(Wire::Stream(b))) if b > a => *a = b.clone(),
        (Some(Role::HitState), Some(Wire::StrVal(a)), Some(Wire::StrVal(b))) if b == "ENTRY_ACTIVE" => *a = b.clone(),
        _ => {}
    }
}

fn sum(a: &[u8], b: &[u8]) -> prost::bytes::Bytes {
    let number = |bytes| value::number(64, bytes).unwrap_or(0);
    value::number_bytes(64, number(a).wrapping_add(number(b)))
}
