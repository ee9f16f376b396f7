//! The directory: which IPC process an application is registered at. Entries are flooded, with a
//! sequence number each, and acknowledged.

use crate::config::{Limits, MAX_NAME, Timers, ms};
use std::collections::{BTreeMap, BTreeSet};
use weir_rina::cdap::objects::{DirectoryEntry, Node};
use weir_rina::efcp::Address;
use weir_rina::{ApplicationName, Time};

/// Entries of one message.
const BATCH: usize = 10;
/// The largest sequence number of an entry. Those of others are refused from here on: there is no
/// larger one with which an application that is here could be announced again.
const MAX_SEQUENCE: u64 = 1 << 60;

/// Bytes of an entry without its name, at most.
const ENTRY: usize = 64;

/// What became of an entry of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    News,
    /// It is in the directory.
    Known,
    /// It is malformed, old, or of an application here, or there is no room.
    Refused,
}

/// Bytes of all components of a name.
fn name_bytes(name: &ApplicationName) -> usize {
    let ApplicationName {
        process,
        process_instance,
        entity,
        entity_instance,
    } = name;
    process.len() + process_instance.len() + entity.len() + entity_instance.len()
}

/// Whether an application may have a name: messages about it fit a PDU.
pub(crate) fn is_name(name: &ApplicationName) -> bool {
    !name.process.is_empty() && name_bytes(name) <= MAX_NAME
}

/// A withdrawn entry has address 0, and is remembered until it expires.
#[derive(Debug, Clone, Copy)]
struct Entry {
    address: Address,
    sequence: u64,
    at: Time,
    /// It is of an application here.
    is_local: bool,
}

#[derive(Debug, Default)]
struct Outbox {
    pending: BTreeSet<ApplicationName>,
    sent: Option<(i32, Vec<ApplicationName>, Time)>,
}

/// The entries, and what neighbours have yet to receive.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: BTreeMap<ApplicationName, Entry>,
    outboxes: BTreeMap<String, Outbox>,
    timers: Timers,
    most: usize,
    next_refresh: Time,
    /// Counts changes, so that flows that wait for a name look again.
    pub revision: u64,
}

impl Directory {
    pub fn new(timers: Timers, limits: &Limits, now: Time) -> Self {
        Directory {
            entries: BTreeMap::new(),
            outboxes: BTreeMap::new(),
            timers,
            most: limits.directory,
            next_refresh: now + ms(timers.refresh),
            revision: 0,
        }
    }

    /// Where an application is registered.
    pub fn find(&self, name: &ApplicationName) -> Option<Address> {
        let entry = self.entries.get(name).filter(|entry| entry.address != Address(0));
        entry.map(|entry| entry.address)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ApplicationName, Address)> {
        let all = self.entries.iter().filter(|(_, entry)| entry.address != Address(0));
        all.map(|(name, entry)| (name, entry.address))
    }

    /// Announces an application here, or withdraws it.
    pub fn set_local(&mut self, name: &ApplicationName, address: Address, is_local: bool, now: Time) {
        let sequence = self.entries.get(name).map_or(0, |entry| entry.sequence);
        let entry = Entry {
            address: if is_local { address } else { Address(0) },
            sequence: (sequence + 1).min(MAX_SEQUENCE),
            at: now,
            is_local,
        };
        self.replace(name.clone(), entry, None);
    }

    /// The address of this IPC process has changed.
    pub fn readdress(&mut self, address: Address, now: Time) {
        let local = self.entries.iter().filter(|(_, entry)| entry.is_local);
        let local: Vec<ApplicationName> = local.map(|(name, _)| name.clone()).collect();
        for name in local {
            self.set_local(&name, address, true, now);
        }
    }

    /// Takes an entry of a neighbour.
    pub fn receive(&mut self, from: &str, entry: DirectoryEntry, own: Address, now: Time) -> Taken {
        let Node::Address(address) = entry.node else {
            return Taken::Refused;
        };
        let Ok(address) = u32::try_from(address) else {
            return Taken::Refused;
        };
        if entry.sequence >= MAX_SEQUENCE || !is_name(&entry.application) {
            return Taken::Refused;
        }
        let name = entry.application;
        let known = self.entries.get(&name).copied();
        if let Some(known) = known {
            // Two IPC processes have the name: that with the smaller address keeps it, or both
            // would announce it in turn without end.
            let is_lost = address != 0 && address < own.0;
            if !is_lost
                && known.is_local
                && (entry.sequence > known.sequence || (address != own.0 && entry.sequence == known.sequence))
            {
                // Of the time before a restart, or of another: the application is here.
                let defended = Entry {
                    sequence: (entry.sequence + 1).min(MAX_SEQUENCE),
                    at: now,
                    ..known
                };
                self.replace(name, defended, None);
                return Taken::Refused;
            }
            let order = (entry.sequence, std::cmp::Reverse(address));
            match order.cmp(&(known.sequence, std::cmp::Reverse(known.address.0))) {
                std::cmp::Ordering::Equal => {
                    if let Some(outbox) = self.outboxes.get_mut(from) {
                        outbox.pending.remove(&name);
                    }
                    return Taken::Known;
                }
                std::cmp::Ordering::Less => {
                    if let Some(outbox) = self.outboxes.get_mut(from) {
                        outbox.pending.insert(name);
                    }
                    return Taken::Refused;
                }
                std::cmp::Ordering::Greater => {}
            }
        } else if address == own.0 && address != 0 {
            // An application that is not here any more.
            let withdrawn = Entry {
                address: Address(0),
                sequence: (entry.sequence + 1).min(MAX_SEQUENCE),
                at: now,
                is_local: false,
            };
            if self.entries.len() < self.most {
                self.replace(name, withdrawn, None);
            }
            return Taken::Refused;
        }
        if known.is_none() && self.entries.len() >= self.most {
            return Taken::Refused;
        }
        let new = Entry {
            address: Address(address),
            sequence: entry.sequence,
            at: now,
            is_local: false,
        };
        self.replace(name, new, Some(from));
        Taken::News
    }

    fn replace(&mut self, name: ApplicationName, entry: Entry, from: Option<&str>) {
        for (neighbour, outbox) in &mut self.outboxes {
            if Some(neighbour.as_str()) == from {
                outbox.pending.remove(&name);
            } else {
                outbox.pending.insert(name.clone());
            }
        }
        self.revision += 1;
        self.entries.insert(name, entry);
    }

    /// A neighbour gets all entries.
    pub fn neighbour_up(&mut self, neighbour: &str) {
        let pending = self.entries.keys().cloned().collect();
        self.outboxes
            .insert(neighbour.to_owned(), Outbox { pending, sent: None });
    }

    pub fn neighbour_down(&mut self, neighbour: &str) {
        self.outboxes.remove(neighbour);
    }

    /// The entries to send to a neighbour now, as the message with this invoke id. They have at
    /// most `room` bytes, but there is at least one.
    pub fn transmit(&mut self, neighbour: &str, room: usize, invoke_id: i32, now: Time) -> Option<Vec<DirectoryEntry>> {
        let outbox = self.outboxes.get_mut(neighbour)?;
        if let Some((_, names, at)) = &outbox.sent {
            if now.since(*at) < ms(self.timers.flooding) {
                return None;
            }
            outbox.pending.extend(names.iter().cloned());
            outbox.sent = None;
        }
        if outbox.pending.is_empty() {
            return None;
        }
        let mut names = Vec::new();
        let mut bytes = 0;
        while let Some(name) = outbox.pending.first() {
            bytes += ENTRY + name_bytes(name);
            if names.len() == BATCH || (bytes > room && !names.is_empty()) {
                break;
            }
            names.extend(outbox.pending.pop_first());
        }
        let entry = |name: &ApplicationName| {
            let entry = self.entries.get(name)?;
            Some(DirectoryEntry {
                application: name.clone(),
                node: Node::Address(entry.address.0.into()),
                sequence: entry.sequence,
            })
        };
        let entries = names.iter().filter_map(entry).collect();
        outbox.sent = Some((invoke_id, names, now));
        Some(entries)
    }

    pub fn acknowledge(&mut self, neighbour: &str, id: i32) {
        if let Some(outbox) = self.outboxes.get_mut(neighbour)
            && outbox.sent.as_ref().is_some_and(|(sent, ..)| *sent == id)
        {
            outbox.sent = None;
        }
    }

    /// Forgets entries of addresses that no member has.
    pub fn retain_addresses(&mut self, members: &BTreeSet<Address>) {
        self.entries
            .retain(|_, entry| entry.is_local || entry.address == Address(0) || members.contains(&entry.address));
    }

    /// Announces local entries again, and forgets old ones. Whether it was time.
    pub fn tick(&mut self, now: Time) -> bool {
        if now < self.next_refresh {
            return false;
        }
        self.next_refresh = now + ms(self.timers.refresh);
        let max_age = ms(self.timers.max_age);
        self.entries
            .retain(|_, entry| entry.is_local || now.since(entry.at) < max_age);
        let local: Vec<(ApplicationName, Entry)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.is_local)
            .map(|(name, entry)| (name.clone(), *entry))
            .collect();
        for (name, entry) in local {
            self.set_local(&name, entry.address, true, now);
        }
        true
    }

    pub fn deadline(&self) -> Time {
        let resend = self.outboxes.values().filter_map(|outbox| outbox.sent.as_ref());
        let resend = resend.map(|(_, _, at)| *at + ms(self.timers.flooding)).min();
        resend.map_or(self.next_refresh, |resend| resend.min(self.next_refresh))
    }
}
