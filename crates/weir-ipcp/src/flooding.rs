//! Link states and directory entries: taken from neighbours, flooded to them, and forgotten.

use crate::config::{MAX_NAME, ms};
use crate::directory::Taken;
use crate::neighbours::NeighbourKey;
use crate::output::Refused;
use crate::process::IpcProcess;
use crate::{MESSAGES, VALUES};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_rina::cdap::objects::{Directory as DirectoryObject, LinkStateObject, LinkStates, Object, WellKnown};
use weir_rina::cdap::{Message, Opcode, result};
use weir_rina::efcp::{Address, Paper};
use weir_rina::link_state::{Database, Link, LinkState, Rejection};
use weir_rina::{ApplicationName, Time};

/// How long an address is announced before it replaces another.
const CONTRADICTION: Duration = Duration::from_millis(500);
/// Bytes of a message of flooding without its entries, at most.
const MESSAGE: usize = 100;
/// Bytes of a link state without its names, at most.
const LINK_STATE: usize = 64;

impl IpcProcess {
    pub(crate) fn receive_link_states(&mut self, key: NeighbourKey, message: &Message, now: Time) {
        self.floods = true;
        let Some(name) = self.neighbour_name(key) else {
            return;
        };
        if message.opcode == Opcode::WriteR {
            self.links.acknowledge(&name, message.invoke_id as u32);
            return;
        }
        let bytes = message.value.as_ref().and_then(|value| value.as_bytes());
        let states = bytes.and_then(|bytes| LinkStates::decode(bytes, VALUES).ok());
        let (Opcode::Write, Some(states)) = (message.opcode, states) else {
            return self.refuse_input(Refused::MalformedMessage);
        };
        for object in states.0 {
            self.receive_link_state(&name, object, now);
        }
        if let Some(response) = message.response(result::SUCCESS, "") {
            self.send_to_neighbour(key, &response);
        }
    }

    fn receive_link_state(&mut self, from: &str, object: LinkStateObject, now: Time) {
        let address = object
            .origin_addresses
            .first()
            .and_then(|address| u32::try_from(*address).ok());
        let state = LinkState {
            origin: object.origin.clone(),
            neighbour: object.neighbour,
            cost: object.cost,
            sequence: object.sequence,
            is_up: object.is_up,
            age: ms(object.age.into()),
        };
        if [&state.origin, &state.neighbour]
            .iter()
            .any(|name| name.len() > MAX_NAME)
        {
            return self.refuse_input(Refused::State);
        }
        match self.links.receive(&from.to_owned(), state, now) {
            Ok(()) => {
                if let Some(address) = address.filter(|address| (1..=65_535).contains(address)) {
                    let claim = self.claims.entry(object.origin).or_insert((Address(0), now));
                    if claim.0 != Address(address) {
                        *claim = (Address(address), now);
                        self.routes_dirty = true;
                    }
                }
            }
            // Part of flooding.
            Err(Rejection::Duplicate) => {}
            Err(_) => self.refuse_input(Refused::State),
        }
    }

    pub(crate) fn receive_directory(&mut self, key: NeighbourKey, message: &Message, now: Time) {
        self.floods = true;
        let Some(name) = self.neighbour_name(key) else {
            return;
        };
        if message.opcode == Opcode::WriteR {
            return self.directory.acknowledge(&name, message.invoke_id);
        }
        let bytes = message.value.as_ref().and_then(|value| value.as_bytes());
        let entries = bytes.and_then(|bytes| DirectoryObject::decode(bytes, VALUES).ok());
        let (Opcode::Write, Some(entries)) = (message.opcode, entries) else {
            return self.refuse_input(Refused::MalformedMessage);
        };
        let own = self.address.unwrap_or(Address(0));
        for entry in entries.0 {
            match self.directory.receive(&name, entry, own, now) {
                Taken::News | Taken::Known => {}
                Taken::Refused => self.refuse_input(Refused::State),
            }
        }
        self.announce_again(now);
        if let Some(response) = message.response(result::SUCCESS, "") {
            self.send_to_neighbour(key, &response);
        }
    }

    /// Sends link states and directory entries that neighbours have yet to receive.
    pub(crate) fn flood(&mut self, now: Time) {
        // One link of each neighbour.
        let up = self.neighbours.iter().filter(|(_, neighbour)| neighbour.up.is_some());
        let links: BTreeMap<String, NeighbourKey> = up
            .filter_map(|(key, neighbour)| Some((neighbour.name.clone()?, *key)))
            .collect();
        for (name, key) in links {
            let room = self.room_for_entries();
            let next = |links: &mut Database<String>| {
                let mut bytes = 0;
                links.transmit(&name, now, |state| {
                    bytes += LINK_STATE + state.origin.len() + state.neighbour.len();
                    bytes <= room
                })
            };
            while let Some(batch) = next(&mut self.links) {
                let objects = batch.states.iter().map(|state| self.link_state_object(state)).collect();
                let object = WellKnown::LinkStates.id(MESSAGES);
                let value = LinkStates(objects).to_value(VALUES);
                let message = Message {
                    invoke_id: batch.id as i32,
                    ..Message::about(Opcode::Write, object.class, object.name, Some(value))
                };
                self.send_to_neighbour(key, &message);
            }
            let id = self.next_invoke_id();
            if let Some(entries) = self.directory.transmit(&name, room, id, now) {
                let object = WellKnown::Directory.id(MESSAGES);
                let value = DirectoryObject(entries).to_value(VALUES);
                let message = Message {
                    invoke_id: id,
                    ..Message::about(Opcode::Write, object.class, object.name, Some(value))
                };
                self.send_to_neighbour(key, &message);
            }
        }
    }

    /// Bytes for the entries of a message, so that it fits a PDU.
    fn room_for_entries(&self) -> usize {
        self.config.max_pdu - Paper::BYTES - MESSAGE
    }

    /// Takes the addresses of origins that are members: links of both ends connect them.
    ///
    /// An address that replaces another, or that another member has, counts only after a while: the
    /// true origin of a forged state has announced its own address by then.
    pub(crate) fn take_claims(&mut self, links: &[Link<String>], now: Time) {
        let origins: BTreeSet<&String> = links.iter().map(|link| &link.from).collect();
        let (mut new, mut next) = (Vec::new(), None::<Time>);
        for name in origins {
            let Some(&(address, since)) = self.claims.get(name) else {
                continue;
            };
            if *name == self.config.name || self.names.get(name) == Some(&address) {
                continue;
            }
            let is_free = self.addresses.holder(address).is_none_or(|holder| holder == name);
            let is_plain = is_free && !self.names.contains_key(name);
            if is_plain || now.since(since) >= CONTRADICTION {
                new.push((name.clone(), address));
            } else {
                let due = since + CONTRADICTION;
                next = Some(next.map_or(due, |other| other.min(due)));
            }
        }
        for (name, address) in new {
            self.note_name(&name, address);
        }
        self.next_claim = next;
    }

    /// Announces applications here whose name another IPC process had, and has withdrawn.
    pub(crate) fn announce_again(&mut self, now: Time) {
        let is_free = |name: &&ApplicationName| self.directory.find(name).is_none();
        let free: Vec<ApplicationName> = self.registrations.iter().filter(is_free).cloned().collect();
        let Some(address) = self.address() else {
            return;
        };
        for name in free {
            self.directory.set_local(&name, address, true, now);
            self.floods = true;
        }
    }

    /// Forgets the names and addresses of members that no link state knows any more, and where they
    /// had registered applications.
    pub(crate) fn forget_members(&mut self) {
        let neighbours: BTreeSet<&str> = self.neighbours.values().filter_map(|n| n.name.as_deref()).collect();
        let (links, own) = (&self.links, self.config.name.as_str());
        let is_kept = |name: &str| name == own || neighbours.contains(name) || links.has_origin(&name.to_owned());
        self.claims.retain(|name, _| is_kept(name));
        self.names.retain(|name, _| is_kept(name));
        self.addresses.retain(is_kept);
        let addresses: BTreeSet<Address> = self.names.values().copied().collect();
        self.directory.retain_addresses(&addresses);
    }

    fn link_state_object(&self, state: &LinkState<String>) -> LinkStateObject {
        let address = |name: &String| {
            let claim = self.claims.get(name).map(|(address, _)| address);
            let address = claim.or_else(|| self.names.get(name));
            address.map(|address| u64::from(address.0)).into_iter().collect()
        };
        LinkStateObject {
            origin: state.origin.clone(),
            origin_addresses: address(&state.origin),
            neighbour: state.neighbour.clone(),
            neighbour_addresses: address(&state.neighbour),
            cost: state.cost,
            sequence: state.sequence,
            is_up: state.is_up,
            age: u32::try_from(state.age.as_millis()).unwrap_or(u32::MAX),
        }
    }
}
