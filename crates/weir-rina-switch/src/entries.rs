//! Entries of the program `rina_router`, or of another one with the same tables and actions.

use crate::error::SwitchError;
use crate::plan::{Entries, NextHop, RouteEntry, Update};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_client::schema::p4info::ACTION_SET;
use weir_client::{Batch, Client, Entry, Match, Operation, Table, Value};
use weir_rina::arp::MacAddress;
use weir_rina::efcp::Address;
use weir_rina::routing::Change;

/// The tables that an IPC process writes.
#[derive(Debug, Clone)]
pub struct Tables {
    own: Arc<Table>,
    routes: Arc<Table>,
    groups: Arc<Table>,
    macs: Arc<Table>,
}

impl Tables {
    /// The tables of the program that the switch runs.
    ///
    /// # Errors
    /// The program has other tables.
    pub fn of(client: &Client) -> Result<Self, SwitchError> {
        let table = |name: &str| client.table(name).map_err(SwitchError::Program);
        Ok(Tables {
            own: table("own_addresses")?,
            routes: table("efcp_exact")?,
            groups: table("next_hops")?,
            macs: table("port_macs")?,
        })
    }

    /// Reads the entries that are there.
    ///
    /// # Errors
    /// The switch refuses, or an entry is not understood.
    pub async fn read(&self, client: &Client) -> Result<Entries, SwitchError> {
        let mut all = Entries::default();
        for entry in client.entries(&self.own).await? {
            all.own.insert(Address(key(&entry)?), ());
        }
        for entry in client.entries(&self.routes).await? {
            all.routes.insert(Address(key(&entry)?), route(&entry)?);
        }
        for entry in client.entries(&self.groups).await? {
            all.groups.insert(key(&entry)?, group(&entry)?);
        }
        for entry in client.entries(&self.macs).await? {
            // An entry with another action has no MAC address: it is replaced.
            let address = entry.get("mac").and_then(mac).unwrap_or_default();
            all.macs.insert(key(&entry)?, address);
        }
        Ok(all)
    }

    /// Adds an update to a batch.
    ///
    /// # Errors
    /// The program's tables have other keys or actions, or a value does not fit.
    pub fn push(&self, batch: &mut Batch, update: &Update) -> Result<(), SwitchError> {
        let (operation, entry) = match update {
            Update::Own(change) => self.own(change),
            Update::Route(change) => self.route(change),
            Update::Group(change) => self.group(change),
            Update::Mac(change) => self.mac(change),
        };
        batch.push(operation, &entry)?;
        Ok(())
    }

    fn own(&self, change: &Change<Address, ()>) -> (Operation, Entry) {
        let (operation, address) = of(change);
        let entry = keyed(&self.own, address.0);
        match value(change) {
            Some(()) => (operation, entry.action("NoAction")),
            None => (operation, entry),
        }
    }

    fn route(&self, change: &Change<Address, RouteEntry>) -> (Operation, Entry) {
        let (operation, address) = of(change);
        let entry = keyed(&self.routes, address.0);
        let entry = match value(change) {
            None | Some(RouteEntry::Other) => entry,
            Some(RouteEntry::Forward(hop)) => entry
                .action("efcp_forward")
                .data("vlan_id", hop.vlan)
                .data("dst_mac", mac_value(hop.mac))
                .data("port", hop.port),
            Some(RouteEntry::Group(group)) => entry.action("efcp_multipath").data("group", *group),
            Some(RouteEntry::Cpu) => entry.action("to_cpu"),
        };
        (operation, entry)
    }

    fn group(&self, change: &Change<u16, BTreeSet<NextHop>>) -> (Operation, Entry) {
        let (operation, group) = of(change);
        let entry = keyed(&self.groups, u32::from(*group));
        let Some(hops) = value(change) else {
            return (operation, entry);
        };
        let member = |hop: &NextHop| {
            let fields = [
                ("action", Value::from("efcp_forward")),
                ("weight", Value::from(1_u32)),
                ("vlan_id", Value::from(hop.vlan)),
                ("dst_mac", mac_value(hop.mac)),
                ("port", Value::from(hop.port)),
            ];
            Value::Record(fields.map(|(name, value)| (name.to_owned(), value)).into())
        };
        let set = Value::List(hops.iter().map(member).collect());
        (operation, entry.data(ACTION_SET, set))
    }

    fn mac(&self, change: &Change<u32, MacAddress>) -> (Operation, Entry) {
        let (operation, port) = of(change);
        let entry = keyed(&self.macs, *port);
        let entry = match value(change) {
            Some(mac) => entry.action("set_src_mac").data("mac", mac_value(*mac)),
            None => entry,
        };
        (operation, entry)
    }
}

fn of<K, V>(change: &Change<K, V>) -> (Operation, &K) {
    match change {
        Change::Insert(key, _) => (Operation::Insert, key),
        Change::Modify(key, _) => (Operation::Modify, key),
        Change::Delete(key) => (Operation::Delete, key),
    }
}

fn value<K, V>(change: &Change<K, V>) -> Option<&V> {
    match change {
        Change::Insert(_, value) | Change::Modify(_, value) => Some(value),
        Change::Delete(_) => None,
    }
}

/// An entry of a table whose only key that an entry has is exact; selectors have none.
fn keyed(table: &Arc<Table>, key: u32) -> Entry {
    match table.keys.first() {
        Some(field) => Entry::of(table).key(&field.name.clone(), key),
        None => Entry::of(table),
    }
}

fn wrong(entry: &Entry, expected: &'static str) -> SwitchError {
    SwitchError::Entry {
        table: entry.table().name.clone(),
        expected,
        found: entry.to_string(),
    }
}

fn key<T: TryFrom<u128>>(entry: &Entry) -> Result<T, SwitchError> {
    let value = match entry.matches().first() {
        Some(Match::Exact(value)) => number(value),
        Some(_) | None => None,
    };
    value.ok_or_else(|| wrong(entry, "an exact key of its width"))
}

fn number<T: TryFrom<u128>>(value: &Value) -> Option<T> {
    T::try_from(value.as_u128()?).ok()
}

fn mac(value: &Value) -> Option<MacAddress> {
    let [_, _, bytes @ ..] = number::<u64>(value)?.to_be_bytes();
    Some(MacAddress(bytes))
}

fn mac_value(mac: MacAddress) -> Value {
    let [a, b, c, d, e, f] = mac.0;
    Value::from(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// The parameters of `efcp_forward`.
fn hop<'a>(field: impl Fn(&str) -> Option<&'a Value>) -> Option<NextHop> {
    Some(NextHop {
        port: number(field("port")?)?,
        vlan: number(field("vlan_id")?)?,
        mac: mac(field("dst_mac")?)?,
    })
}

/// The last part of a name with dots.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn route(entry: &Entry) -> Result<RouteEntry, SwitchError> {
    let route = match entry.chosen_action().map(|action| short(&action.name)) {
        Some("efcp_forward") => hop(|name| entry.get(name)).map(RouteEntry::Forward),
        Some("efcp_multipath") => entry.get("group").and_then(number).map(RouteEntry::Group),
        Some("to_cpu") => Some(RouteEntry::Cpu),
        Some(_) | None => Some(RouteEntry::Other),
    };
    route.ok_or_else(|| wrong(entry, "the parameters of its action"))
}

/// The next hops of a group; none where it refers to members, or has another action: an IPC process
/// replaces it.
fn group(entry: &Entry) -> Result<BTreeSet<NextHop>, SwitchError> {
    let members = entry.get(ACTION_SET).and_then(Value::as_list).unwrap_or_default();
    let is_forward =
        |member: &&Value| member.field("action").and_then(Value::as_str).map(short) == Some("efcp_forward");
    let hops = members.iter().filter(is_forward);
    let hops = hops.map(|member| hop(|name| member.field(name)));
    let all: Option<BTreeSet<NextHop>> = hops.collect();
    all.ok_or_else(|| wrong(entry, "the parameters of efcp_forward"))
}
