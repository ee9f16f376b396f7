//! Attributes of tables: idle time-outs, entry scopes, port status notifications, polling
//! intervals.
//!
//! The server stores them itself, outside of the switch. A batch changes a copy, which replaces the
//! original if the batch succeeds.

use super::change::{Change, Step};
use super::schema::{Schema, Table};
use super::target::Scopes;
use crate::refusal::Refusal;
use crate::state;
use prost::Message;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::table_attribute::Attribute;

/// How long an entry without its own time to live counts as active after a hit, by default, in ms.
const QUERY_INTERVAL_MS: u32 = 1000;

/// The attributes of all tables of a program and its device, by table id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    /// Idle time-outs of entries.
    pub idle: BTreeMap<u32, pb::IdleTable>,
    /// Clients are notified of ports that go up or down.
    pub port_status: bool,
    /// Polling intervals of port counters in ms. Stored only: weir always reads current counts.
    poll_ms: BTreeMap<u32, u32>,
    /// Entry scopes. Only scopes equivalent to the default are accepted.
    scopes: BTreeMap<u32, pb::EntryScope>,
}

fn no_attribute(table: &Table, name: &str) -> Refusal {
    let known = table.attributes.join(", ");
    Refusal::unsupported(format!(
        "the table has no attribute {name}; it has {}",
        if known.is_empty() { "none" } else { &known }
    ))
}

/// The saved form of attributes: encoded messages by table.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedAttributes {
    idle: Vec<(u32, Vec<u8>)>,
    port_status: bool,
    poll_ms: BTreeMap<u32, u32>,
    scopes: Vec<(u32, Vec<u8>)>,
}

impl Attributes {
    /// Encodes the attributes for the journal.
    pub fn to_saved(&self) -> Vec<u8> {
        let saved = SavedAttributes {
            idle: self.idle.iter().map(|(t, m)| (*t, m.encode_to_vec())).collect(),
            port_status: self.port_status,
            poll_ms: self.poll_ms.clone(),
            scopes: self.scopes.iter().map(|(t, m)| (*t, m.encode_to_vec())).collect(),
        };
        state::encoded(&saved)
    }

    /// Restores saved attributes.
    pub fn from_saved(saved: SavedAttributes) -> Self {
        fn decoded<T: Message + Default>(list: Vec<(u32, Vec<u8>)>) -> BTreeMap<u32, T> {
            let messages = list.into_iter().filter_map(|(t, m)| Some((t, T::decode(&*m).ok()?)));
            messages.collect()
        }
        Attributes {
            idle: decoded(saved.idle),
            port_status: saved.port_status,
            poll_ms: saved.poll_ms,
            scopes: decoded(saved.scopes),
        }
    }

    /// How long an entry without its own time to live counts as active after a hit, in ns.
    pub fn query_interval_ns(&self, table: u32) -> u64 {
        let said = self.idle.get(&table).map(|i| i.ttl_query_interval).filter(|ms| *ms > 0);
        u64::from(said.unwrap_or(QUERY_INTERVAL_MS)) * 1_000_000
    }

    /// Whether clients are notified of the idle entries of a table.
    pub fn notifies(&self, table: u32) -> bool {
        let notify = i32::from(pb::idle_table::IdleTableMode::IdleTableNotifyMode);
        self.idle
            .get(&table)
            .is_some_and(|i| i.enable && i.idle_table_mode == notify)
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// The table does not have the attribute, or weir does not support the value.
    pub fn set(&mut self, table: &Table, scopes: &Scopes, given: &pb::TableAttribute) -> Result<(), Refusal> {
        let has = |name: &str| match table.has_attribute(name) {
            true => Ok(()),
            false => Err(no_attribute(table, name)),
        };
        match given.attribute.as_ref() {
            Some(Attribute::IdleTable(idle)) => {
                has("IdleTimeout")?;
                if pb::idle_table::IdleTableMode::try_from(idle.idle_table_mode).is_err() {
                    return Err(Refusal::malformed("there is no such mode of idle time-outs"));
                }
                if idle.max_ttl != 0 && idle.min_ttl > idle.max_ttl {
                    return Err(Refusal::malformed("min_ttl exceeds max_ttl"));
                }
                self.idle.insert(table.id, *idle);
            }
            Some(Attribute::EntryScope(scope)) => {
                has("EntryScope")?;
                scopes.check_scope(scope)?;
                self.scopes.insert(table.id, *scope);
            }
            Some(Attribute::ByteCountAdj(adjust)) => {
                has("MeterByteCountAdjust")?;
                if adjust.byte_count_adjust != 0 {
                    return Err(Refusal::unsupported(
                        "weir counts bytes of packets as they were received: the adjustment is 0",
                    ));
                }
            }
            Some(Attribute::PortStatusNotify(notify)) => {
                has("port_status_notif_cb")?;
                self.port_status = notify.enable;
            }
            Some(Attribute::IntvlMs(interval)) => {
                has("poll_intvl_ms")?;
                self.poll_ms.insert(table.id, interval.intvl_val);
            }
            Some(Attribute::DynKeyMask(_)) => {
                return Err(Refusal::unsupported(
                    "masks of exact keys are the program's; make the key ternary",
                ));
            }
            Some(Attribute::DynHashing(_)) => return Err(Refusal::unsupported("hashes are the program's")),
            Some(Attribute::PreDeviceConfig(_)) => {
                return Err(Refusal::unsupported("weir's replication has no such settings"));
            }
            Some(Attribute::SelectorUpdateNotify(_)) => {
                return Err(no_attribute(table, "SelectorUpdateCb"));
            }
            None => return Err(Refusal::malformed("the attribute is missing")),
        }
        Ok(())
    }

    /// Reads the attribute of a table of the kind in `requested`.
    ///
    /// # Errors
    /// The table has no such attribute.
    pub fn read(&self, table: &Table, requested: &pb::TableAttribute) -> Result<pb::TableAttribute, Refusal> {
        let has = |name: &str| match table.has_attribute(name) {
            true => Ok(()),
            false => Err(no_attribute(table, name)),
        };
        let all = || pb::Mode {
            scope: Some(pb::mode::Scope::Predef(pb::mode::PredefinedMode::All.into())),
            args: 0,
        };
        let attribute = match requested.attribute.as_ref() {
            Some(Attribute::IdleTable(_)) => {
                has("IdleTimeout")?;
                Attribute::IdleTable(self.idle.get(&table.id).copied().unwrap_or_default())
            }
            Some(Attribute::EntryScope(_)) => {
                has("EntryScope")?;
                let said = self.scopes.get(&table.id).copied().unwrap_or_default();
                Attribute::EntryScope(pb::EntryScope {
                    gress_scope: Some(said.gress_scope.unwrap_or_else(all)),
                    pipe_scope: Some(said.pipe_scope.unwrap_or_else(all)),
                    prsr_scope: Some(said.prsr_scope.unwrap_or_else(all)),
                })
            }
            Some(Attribute::ByteCountAdj(_)) => {
                has("MeterByteCountAdjust")?;
                Attribute::ByteCountAdj(pb::ByteCountAdj::default())
            }
            Some(Attribute::PortStatusNotify(_)) => {
                has("port_status_notif_cb")?;
                Attribute::PortStatusNotify(pb::PortStatusChg {
                    enable: self.port_status,
                })
            }
            Some(Attribute::IntvlMs(_)) => {
                has("poll_intvl_ms")?;
                let intvl_val = self.poll_ms.get(&table.id).copied().unwrap_or(0);
                Attribute::IntvlMs(pb::StatePullIntvl { intvl_val })
            }
            Some(_) => return Err(Refusal::unsupported("the table has no such attribute")),
            None => return Err(Refusal::malformed("the attribute is missing")),
        };
        Ok(pb::TableAttribute {
            table_id: table.id,
            attribute: Some(attribute),
        })
    }
}

/// Whether a step sets an attribute.
pub(crate) fn is_attribute(step: &Step) -> bool {
    matches!(step.change, Ok(Change::Attribute(_)))
}

/// Applies the attributes that steps set, in order. A refusal replaces the change of the step.
pub(crate) fn configure(schema: &Schema, scopes: &Scopes, attributes: &mut Attributes, steps: &mut [Step]) {
    for step in steps {
        let (Ok(Change::Attribute(given)), Some(at)) = (&step.change, step.table) else {
            continue;
        };
        if let Err(refusal) = attributes.set(&schema.tables[at], scopes, given) {
            step.change = Err(refusal);
        }
    }
}
