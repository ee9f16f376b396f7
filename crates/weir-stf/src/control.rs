//! Directives of the control plane.

use crate::ast::{ActionUse, Comparison, CounterIndex, Directive, KeyValue, Quantity, Rate};
use crate::generator;
use crate::value::{Value, omitted};
use std::collections::BTreeMap;
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind, TableId};
use weir_switch::{
    Cell, CloneSession, Count, KeyBytes, MeterConfig, Rate as MeterRate, Replica, ReplicationError, ResourceKind,
    Switch, Write, WriteResult, resolve,
};
use weir_table::{
    ActionSpec, EntryAction, EntryHandle, EntryRef, Group, GroupMember, Member, NewEntry, OpResult, ProfileOp, TableOp,
    TableSpec,
};

/// A directive that could not be done, or whose check did not hold.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub expected: String,
    pub got: String,
}

impl Refusal {
    fn new(expected: impl ToString, got: impl ToString) -> Self {
        Refusal {
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }
}

/// Any error of a library below: the directive should have worked.
impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::new("a directive that can be done", error)
    }
}

type Done<T> = Result<T, Refusal>;

/// A switch and what a test calls things on it.
pub(crate) struct Control {
    pub switch: Switch,
    /// Handles of entries added as `= ID`.
    entries: BTreeMap<String, EntryHandle>,
}

impl Control {
    pub(crate) fn new(switch: Switch) -> Self {
        Control {
            switch,
            entries: BTreeMap::new(),
        }
    }

    /// Does what a directive says; gives what a read without comparison found.
    pub(crate) fn directive(&mut self, directive: &Directive) -> Done<Option<String>> {
        match directive {
            Directive::Add {
                table,
                priority,
                keys,
                action,
                id,
            } => {
                let handle = self.add(table, *priority, keys, action)?;
                if let Some(id) = id {
                    self.entries.insert(id.clone(), handle);
                }
            }
            Directive::SetDefault { table, action } => {
                let table = self.switch.table(table)?;
                let action = call(self.spec(table)?, action)?;
                self.switch.write(Write::Table(table, TableOp::SetDefault(action)))?;
            }
            Directive::Modify { table, id, action } => {
                let table = self.switch.table(table)?;
                let action = entry_action(self.spec(table)?, action)?;
                let op = TableOp::Modify {
                    entry: EntryRef::Handle(self.handle(id)?),
                    action,
                    metadata: 0,
                    note: None,
                    idle_timeout_ns: 0,
                };
                self.switch.write(Write::Table(table, op))?;
            }
            Directive::Delete { table, id } => {
                let table = self.switch.table(table)?;
                let op = TableOp::Delete(EntryRef::Handle(self.handle(id)?));
                self.switch.write(Write::Table(table, op))?;
            }
            Directive::RemoveAll => self.remove_all()?,
            Directive::Member { profile, id, action } => {
                let profile = self.switch.resource(ResourceKind::Profile, profile)?;
                let Some(state) = self.switch.state().profile(profile) else {
                    return Err(Refusal::new("an action profile", "none"));
                };
                let member = Member {
                    action: call_of(&state.spec().actions, action)?,
                };
                self.switch
                    .write(Write::Profile(profile, ProfileOp::InsertMember(*id, member)))?;
            }
            Directive::SelectorGroup { profile, id, members } => {
                let profile = self.switch.resource(ResourceKind::Profile, profile)?;
                let member = |&(member, weight): &(u32, u32)| GroupMember::new(member, weight);
                let group = Group {
                    members: members.iter().map(member).collect(),
                    max_size: 0,
                };
                self.switch
                    .write(Write::Profile(profile, ProfileOp::InsertGroup(*id, group)))?;
            }
            Directive::ValueSet { name, values } => self.value_set(name, values)?,
            Directive::ExpectDigest { name, fields } => self.digest(name, fields)?,
            other => return self.resources(other),
        }
        Ok(None)
    }

    /// Directives about counters, registers, meters and replication.
    fn resources(&mut self, directive: &Directive) -> Done<Option<String>> {
        match directive {
            Directive::CheckCounter { name, index, check } => {
                return self.counter(name, index, check.as_ref());
            }
            Directive::CounterWrite {
                name,
                index,
                packets,
                bytes,
            } => {
                let id = self.switch.resource(ResourceKind::Counter, name)?;
                let value = Count {
                    packets: *packets,
                    bytes: *bytes,
                };
                self.switch.write(Write::Counter(id, Cell::Index(*index), value))?;
            }
            Directive::RegisterRead { name, index, check } => {
                return self.register(name, index, check.as_ref());
            }
            Directive::ExternKey { name, index, bytes } => {
                let id = self.switch.extern_with_keys(name)?;
                let key = KeyBytes::new(bytes.clone());
                self.switch.write(Write::Key(id, *index, key))?;
            }
            Directive::RegisterWrite { name, index, values } => self.register_write(name, *index, values)?,
            Directive::RegisterReset { name } => {
                let id = self.switch.resource(ResourceKind::Register, name)?;
                let zeros = match self.switch.register(id, 0) {
                    Ok(cell) => cell.iter().map(|v| Bits::zero(v.width())).collect(),
                    // A register without cells is reset already.
                    Err(_) => return Ok(None),
                };
                self.switch.write(Write::Register(id, Cell::All, zeros))?;
            }
            Directive::MeterGetRates { name, index } => {
                let id = self.switch.resource(ResourceKind::Meter, name)?;
                return Ok(Some(rates_text(self.switch.meter(id, *index)?)));
            }
            Directive::MeterSetRates { name, index, rates } => {
                self.meter(name, Cell::Index(*index), rates)?;
            }
            Directive::MeterArraySetRates { name, rates } => self.meter(name, Cell::All, rates)?,
            other => return self.replication(other),
        }
        Ok(None)
    }

    fn replication(&mut self, directive: &Directive) -> Done<Option<String>> {
        match directive {
            Directive::MirroringAdd { session, port } => {
                let replicas = vec![Replica::new(*port, 0)];
                self.session(
                    *session,
                    Some(CloneSession {
                        replicas,
                        ..CloneSession::default()
                    }),
                )?;
            }
            Directive::MirroringAddGroup { session, group } => {
                self.session(
                    *session,
                    Some(CloneSession {
                        group: Some(*group),
                        ..CloneSession::default()
                    }),
                )?;
            }
            Directive::MirroringDelete { session } => self.session(*session, None)?,
            Directive::MirroringGet { session } => {
                return match self.switch.replication().session(*session) {
                    Some(found) => Ok(Some(format!("{found:?}"))),
                    None => Err(ReplicationError::NotFound {
                        what: "clone session",
                        id: *session,
                    }
                    .into()),
                };
            }
            Directive::GroupCreate { group } => self.switch.replication_mut().create_group(*group)?,
            Directive::NodeCreate { rid, ports } => {
                let handle = self.switch.replication_mut().create_node(*rid, ports.clone());
                return Ok(Some(format!("handle {handle}")));
            }
            Directive::NodeUpdate { handle, ports } => {
                self.switch.replication_mut().update_node(*handle, ports.clone())?;
            }
            Directive::NodeAssociate {
                group,
                handle,
                exclusion,
            } => {
                if let Some(number) = exclusion {
                    self.exclusions()?;
                    if *number > 0xffff {
                        return Err(Refusal::new("a number from 0 to 65535, as packets have", number));
                    }
                }
                let replication = self.switch.replication_mut();
                replication.associate(*group, *handle)?;
                replication.set_exclusion(*group, *handle, *exclusion)?;
            }
            other => return self.device(other),
        }
        Ok(None)
    }

    fn session(&mut self, id: u32, session: Option<CloneSession>) -> Done<()> {
        self.switch.write(Write::Session(id, session))?;
        Ok(())
    }

    fn handle(&self, entry: &str) -> Done<EntryHandle> {
        let handle = self.entries.get(entry).copied();
        handle.ok_or_else(|| Refusal::new(format!("an entry that was added as `= {entry}`"), "none"))
    }

    /// The cell that a directive means: by number, or that of an entry.
    fn index(&self, index: &CounterIndex) -> Done<u64> {
        Ok(match index {
            CounterIndex::Number(index) => *index,
            CounterIndex::Entry(entry) => self.handle(entry)?.get().into(),
        })
    }

    fn spec(&self, table: TableId) -> Done<&TableSpec> {
        Ok(self.switch.table_state(table)?.table.spec())
    }

    fn add(&mut self, table: &str, priority: Option<u32>, keys: &[KeyValue], action: &ActionUse) -> Done<EntryHandle> {
        let table = self.switch.table(table)?;
        let spec = self.spec(table)?;
        let matches = matches(spec, keys)?;
        // A priority on a table that has no use for it says nothing.
        let priority = if spec.has_priority() { priority.unwrap_or(0) } else { 0 };
        let entry = NewEntry::new(matches, entry_action(spec, action)?).with_priority(priority);
        match self.switch.write(Write::Table(table, TableOp::Insert(entry)))? {
            WriteResult::Table(OpResult::Handle(handle)) => Ok(handle),
            other => Err(Refusal::new("a handle", format!("{other:?}"))),
        }
    }

    fn remove_all(&mut self) -> Done<()> {
        let ids: Vec<TableId> = self.switch.program().tables.ids().collect();
        for id in ids {
            if !self.spec(id)?.const_entries {
                self.switch.write(Write::Table(id, TableOp::Clear))?;
            }
        }
        Ok(())
    }

    fn value_set(&mut self, name: &str, values: &[Value]) -> Done<()> {
        let id = self.switch.value_set(name)?;
        let Some(set) = self.switch.state().value_set(id) else {
            return Err(Refusal::new("a value set", "none"));
        };
        let spec = set.spec();
        let fields = spec.match_keys().count();
        if values.len() != fields {
            return Err(Refusal::new(format!("{fields} values, one per field"), values.len()));
        }
        let matches = spec
            .match_keys()
            .zip(values)
            .map(|(k, v)| v.key_match(k.kind, k.width, &k.name));
        let entry = NewEntry::new(matches.collect::<Result<_, _>>()?, EntryAction::call(0, Vec::new()));
        self.switch.write(Write::ValueSet(id, TableOp::Insert(entry)))?;
        Ok(())
    }

    fn digest(&mut self, name: &str, fields: &[KeyValue]) -> Done<()> {
        let Some(digest) = self.switch.next_digest() else {
            return Err(Refusal::new(format!("a digest `{name}`"), "none"));
        };
        // PSA's are called by the path of their instance.
        let suffix = |full: &str| full.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        if digest.name != name && !suffix(&digest.name) {
            return Err(Refusal::new(
                format!("a digest `{name}`"),
                format!("one named `{}`", digest.name),
            ));
        }
        for field in fields {
            let named = digest.fields.iter().map(|(n, v)| (n.as_str(), v)).enumerate();
            let index = resolve("field of the digest", &field.name, named.map(|(i, (n, _))| (n, i)))?;
            let value = &digest.fields[index].1;
            let wanted = field.value.key_match(MatchKind::Ternary, value.width(), &field.name)?;
            if !covers(&wanted, value) {
                return Err(Refusal::new(
                    format!("{} to be {}", field.name, field.value),
                    format!("{value:#x}"),
                ));
            }
        }
        Ok(())
    }

    fn counter(
        &self,
        name: &str,
        index: &CounterIndex,
        check: Option<&(Quantity, Comparison, u64)>,
    ) -> Done<Option<String>> {
        let id = self.switch.resource(ResourceKind::Counter, name)?;
        let index = self.index(index)?;
        let count = self.switch.counter(id, index)?;
        let Some((quantity, comparison, wanted)) = check else {
            return Ok(Some(format!("{} packets, {} bytes", count.packets, count.bytes)));
        };
        let (found, what) = match quantity {
            Quantity::Packets => (count.packets, "packets"),
            Quantity::Bytes => (count.bytes, "bytes"),
        };
        if comparison.holds(&found, wanted) {
            return Ok(None);
        }
        Err(Refusal::new(
            format!("{name}({index}) {what} {} {wanted}", comparison.sign()),
            found,
        ))
    }

    fn register(
        &self,
        name: &str,
        index: &CounterIndex,
        check: Option<&(Comparison, Vec<Value>)>,
    ) -> Done<Option<String>> {
        let id = self.switch.resource(ResourceKind::Register, name)?;
        let index = self.index(index)?;
        let cell = self.switch.register(id, index)?;
        let text: Vec<String> = cell.iter().map(ToString::to_string).collect();
        let Some((comparison, wanted)) = check else {
            return Ok(Some(text.join(", ")));
        };
        let wanted_text: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        let refused = |expected: &str| Refusal::new(expected, wanted_text.join(" "));
        if wanted.len() > cell.len() {
            return Err(refused("no more numbers than the cell has"));
        }
        let numbers: Option<Vec<_>> = wanted.iter().map(Value::single).collect();
        let numbers = numbers.ok_or_else(|| refused("numbers to compare with"))?;
        let mut pairs = cell.iter().zip(&numbers);
        if pairs.all(|(found, number)| comparison.holds(&found.to_biguint(), number)) {
            return Ok(None);
        }
        Err(Refusal::new(
            format!("{name}[{index}] {} {}", comparison.sign(), wanted_text.join(" ")),
            text.join(", "),
        ))
    }

    fn register_write(&mut self, name: &str, index: u64, values: &[Value]) -> Done<()> {
        let id = self.switch.resource(ResourceKind::Register, name)?;
        let widths: Vec<u32> = self.switch.register(id, index)?.iter().map(Bits::width).collect();
        if widths.len() != values.len() {
            return Err(Refusal::new(
                format!("{} numbers, one for each of the cell's", widths.len()),
                values.len(),
            ));
        }
        let what = format!("register `{name}`");
        let values = values.iter().zip(widths).map(|(v, width)| v.bits(width, &what));
        let values = values.collect::<Result<_, _>>()?;
        self.switch.write(Write::Register(id, Cell::Index(index), values))?;
        Ok(())
    }

    /// A directive about something that the program's architecture has not.
    fn no_such(&self, what: &str) -> Refusal {
        let target = &self.switch.program().target;
        Refusal::new(
            format!("an architecture with {what}"),
            format!("{target}, which has none"),
        )
    }

    /// How many numbers packets have to exclude copies by.
    fn exclusions(&self) -> Done<u32> {
        match self.switch.replication().exclusions() {
            0 => Err(self.no_such("packets that exclude copies")),
            most => Ok(most),
        }
    }

    /// Directives about what only some architectures have.
    fn device(&mut self, directive: &Directive) -> Done<Option<String>> {
        match directive {
            Directive::PortList { number, ports } => {
                let most = self.exclusions()?;
                if *number >= most {
                    return Err(Refusal::new(format!("a list from 0 to {}", most - 1), number));
                }
                self.switch.replication_mut().set_port_list(*number, ports.clone());
            }
            Directive::Loopback { port } => self.switch.set_loopback(*port, true),
            Directive::Generator(directive) => generator::perform(&mut self.switch, directive)?,
            Directive::Deflection { port } => {
                if !self.switch.replication().deflects() {
                    return Err(self.no_such("packets that ask to be deflected"));
                }
                self.switch.set_deflection(Some(*port));
            }
            Directive::FrameCheck { bytes } => self.switch.state_mut().set_frame_check(*bytes),
            Directive::CustomCrc { name, parameters } => {
                let width = parameters.width;
                if !self.switch.state().custom_crcs().contains(&width) {
                    let hash = format!("a program that hashes by crc{width}_custom");
                    return Err(Refusal::new(hash, "one that does not"));
                }
                let scope = self.switch.state().crc_named(width, name);
                let scope = scope?;
                self.switch.write(Write::crc(scope, Some(*parameters)))?;
            }
            Directive::PortMetadata { port, bytes } => {
                let Some(most) = self.switch.port_metadata_bytes() else {
                    return Err(self.no_such("data of ports that parsers read"));
                };
                if bytes.len() > most {
                    return Err(Refusal::new(
                        format!("at most {most} bytes, as the chip has"),
                        bytes.len(),
                    ));
                }
                self.switch.state_mut().port_metadata.insert(*port, bytes.clone());
            }
            Directive::Lpf { name, index, config } => {
                let id = self.switch.resource(ResourceKind::Lpf, name)?;
                let cell = Cell::Index(self.index(index)?);
                self.switch.write(Write::Lpf(id, cell, Some(*config)))?;
            }
            Directive::Wred { name, index, config } => {
                let id = self.switch.resource(ResourceKind::Wred, name)?;
                let cell = Cell::Index(self.index(index)?);
                self.switch.write(Write::Wred(id, cell, Some(*config)))?;
            }
            _ => {}
        }
        Ok(None)
    }

    fn meter(&mut self, name: &str, cell: Cell, rates: &[Rate; 2]) -> Done<()> {
        let id = self.switch.resource(ResourceKind::Meter, name)?;
        let [committed, peak] = rates;
        let config = MeterConfig {
            cir: MeterRate::from_tokens_per_us(committed.rate),
            cbs: committed.burst,
            pir: MeterRate::from_tokens_per_us(peak.rate),
            pbs: peak.burst,
        };
        self.switch.write(Write::Meter(id, cell, Some(config)))?;
        Ok(())
    }
}

fn rates_text(config: Option<MeterConfig>) -> String {
    match config {
        Some(c) => format!(
            "{}:{} {}:{}",
            c.cir.tokens_per_us(),
            c.cbs,
            c.pir.tokens_per_us(),
            c.pbs
        ),
        None => "no rates".to_owned(),
    }
}

fn covers(m: &KeyMatch, value: &Bits) -> bool {
    matches!(m, KeyMatch::Ternary { value: wanted, mask } if value.and(mask) == *wanted)
}

/// `extra$0.h` to `extra[0].h`, `h.valid` to `h.$valid$`.
fn key_names(written: &str) -> Vec<String> {
    let mut indexed = String::new();
    let mut rest = written;
    while let Some(at) = rest.find('$') {
        let after = &rest[at + 1..];
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        indexed.push_str(&rest[..at]);
        if digits > 0 {
            indexed.push_str(&format!("[{}]", &after[..digits]));
        } else {
            indexed.push('$');
        }
        rest = &after[digits..];
    }
    indexed.push_str(rest);
    let mut names = vec![written.to_owned(), indexed.clone()];
    if let Some(header) = indexed.strip_suffix(".valid") {
        names.extend([format!("{header}.$valid$"), format!("{header}.isValid()")]);
    } else if let Some(header) = indexed.strip_suffix(".$valid$") {
        names.extend([format!("{header}.isValid()"), format!("{header}.valid")]);
    }
    names
}

/// The matches of an entry: keys given, keys left out.
fn matches(spec: &TableSpec, given: &[KeyValue]) -> Done<Vec<KeyMatch>> {
    let mut matches: Vec<KeyMatch> = spec.match_keys().map(|k| omitted(k.kind, k.width)).collect();
    for key in given {
        let keys = || spec.match_keys().map(|k| k.name.as_str()).zip(0..);
        let mut found = resolve("key of the table", &key.name, keys());
        for name in key_names(&key.name) {
            if found.is_ok() {
                break;
            }
            let other = resolve("key of the table", &name, keys());
            found = other.or(found);
        }
        let index: usize = found?;
        if let Some(spec) = spec.match_keys().nth(index) {
            matches[index] = key.value.key_match(spec.kind, spec.width, &spec.name)?;
        }
    }
    Ok(matches)
}

/// An action with its data, among these.
fn call_of(actions: &[ActionSpec], used: &ActionUse) -> Done<ActionCall> {
    let index = resolve(
        "action of the table",
        &used.name,
        actions.iter().map(|a| a.name.as_str()).zip(0..),
    )?;
    let action: &ActionSpec = &actions[index];
    let parameters = &action.parameters;
    if used.arguments.len() != parameters.len() {
        let names: Vec<_> = parameters.iter().map(|(n, _)| n.as_str()).collect();
        let expected = format!(
            "{} arguments for `{}` ({})",
            parameters.len(),
            action.name,
            names.join(", ")
        );
        return Err(Refusal::new(expected, used.arguments.len()));
    }
    let mut values: Vec<Option<Bits>> = vec![None; parameters.len()];
    for (position, argument) in used.arguments.iter().enumerate() {
        let position = match &argument.name {
            Some(name) => resolve("parameter", name, parameters.iter().map(|(n, _)| n.as_str()).zip(0..))?,
            None => position,
        };
        let (name, width) = &parameters[position];
        values[position] = Some(argument.value.bits(*width, &format!("parameter `{name}`"))?);
    }
    let all: Option<Vec<Bits>> = values.into_iter().collect();
    let arguments = all.ok_or_else(|| Refusal::new("every parameter once", "one of them twice"))?;
    Ok(ActionCall {
        action: index,
        arguments,
    })
}

fn call(spec: &TableSpec, used: &ActionUse) -> Done<ActionCall> {
    call_of(&spec.actions, used)
}

/// What an entry does: an action, or `member(ID)` and `group(ID)` where the table has a profile.
fn entry_action(spec: &TableSpec, used: &ActionUse) -> Done<EntryAction> {
    if spec.implementation == weir_table::Implementation::Direct {
        return Ok(EntryAction::Call(call(spec, used)?));
    }
    let id = used
        .arguments
        .first()
        .and_then(|a| a.value.single())
        .and_then(|v| u32::try_from(v).ok());
    match (used.name.as_str(), id) {
        ("member", Some(id)) => Ok(EntryAction::Member(id)),
        ("group", Some(id)) => Ok(EntryAction::Group(id)),
        _ => {
            let one = weir_table::OneShotMember::new(call(spec, used)?, 1);
            Ok(EntryAction::OneShot(vec![one]))
        }
    }
}
