//! Arbitration: a state machine that decides which stream of a role is primary, from the updates of
//! streams, and returns the notices to send (specification, section "Client Arbitration and
//! Controller Replication").
//!
//! It does no I/O and knows no time.

use super::refusal::Refusal;
use super::role::Scope;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tonic::Code;
use weir_proto::google::rpc;
use weir_proto::p4::v1 as pb;
use weir_proto::prost_types::Any;

/// Names a stream for as long as the server runs.
pub type StreamId = u64;

/// Election ids, as one number.
pub type Election = u128;

/// How many times as many roles without streams are remembered as there may be with streams.
pub const FORMER: usize = 16;

/// The number of roles without streams whose scope is remembered, those that left last. So Reads
/// keep working while a role's controller reconnects. A config takes up to 128 KiB.
const SCOPES: usize = 64;

/// Bytes of a role's name: names are kept.
const LONGEST_NAME: usize = 1024;

/// Limits of arbitration.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Streams of one role.
    pub streams_per_role: usize,
    /// Roles that have streams, and the default one. Of [`FORMER`] times as many others the highest
    /// election id is remembered.
    pub roles: usize,
}

/// A message to a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// The stream.
    pub stream: StreamId,
    /// The message.
    pub update: pb::MasterArbitrationUpdate,
    /// It must be sent after all changes that a former primary has submitted are done.
    pub after_writes: bool,
}

#[derive(Debug, Default)]
struct Role {
    /// The highest election id ever seen.
    highest: Option<Election>,
    /// The configuration that a primary gave last.
    config: Option<Any>,
    scope: Arc<Scope>,
    primary: Option<StreamId>,
    members: BTreeSet<StreamId>,
}

/// A role whose streams are gone.
#[derive(Debug)]
struct Former {
    highest: Election,
    /// When its last stream went, among the others.
    gone: u64,
    /// If it is among the last roles: its permission to read, until the next primary sets it anew.
    scope: Option<Arc<Scope>>,
}

#[derive(Debug)]
struct Stream {
    role: String,
    device: u64,
    election: Option<Election>,
    /// The role as the controller writes it, but for the configuration.
    message: Option<pb::Role>,
}

/// The streams of a device and who is primary of each role.
#[derive(Debug)]
pub struct Arbitration {
    roles: BTreeMap<String, Role>,
    former: BTreeMap<String, Former>,
    /// Roles whose last stream has gone, ever.
    departures: u64,
    streams: BTreeMap<StreamId, Stream>,
    limits: Limits,
}

/// The name of a role; the deprecated number stands for itself where there is no name.
#[must_use]
pub fn role_name(name: &str, id: u64) -> String {
    match (name.is_empty(), id) {
        (true, 1..) => id.to_string(),
        _ => name.to_string(),
    }
}

/// An election id as one number.
#[must_use]
pub fn election(id: &pb::Uint128) -> Election {
    u128::from(id.high) << 64 | u128::from(id.low)
}

fn message(id: Election) -> pb::Uint128 {
    pb::Uint128 {
        high: (id >> 64) as u64,
        low: id as u64,
    }
}

fn name_of(role: Option<&pb::Role>) -> String {
    role.map_or(String::new(), |r| role_name(&r.name, r.id))
}

impl Arbitration {
    /// Without streams.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Arbitration {
            // The default role is always there.
            roles: BTreeMap::from([(String::new(), Role::default())]),
            former: BTreeMap::new(),
            departures: 0,
            streams: BTreeMap::new(),
            limits,
        }
    }

    /// A stream says who it is. The device is known to be this one.
    ///
    /// # Errors
    /// The stream is to be ended with the refusal. It is still to [leave](Arbitration::leave).
    pub fn update(&mut self, stream: StreamId, update: &pb::MasterArbitrationUpdate) -> Result<Vec<Notice>, Refusal> {
        let name = name_of(update.role.as_ref());
        let election = update.election_id.as_ref().map(election);
        if let Some(known) = self.streams.get(&stream) {
            if known.device != update.device_id {
                return Err(Refusal::precondition("a stream is for one device; open another stream"));
            }
            if known.role != name {
                return Err(Refusal::precondition(
                    "a stream is for one role; close it and open another one for the other role",
                ));
            }
        } else {
            self.admit(&name)?;
        }
        let config = update.role.as_ref().and_then(|r| r.config.as_ref());
        if name.is_empty() && config.is_some() {
            return Err(Refusal::malformed(
                "the default role may do everything and has no config; name the role",
            ));
        }
        let scope = Arc::new(Scope::decode(config)?);
        let taken = |(id, s): (&StreamId, &Stream)| *id != stream && s.role == name && s.election == election;
        if election.is_some() && self.streams.iter().any(taken) {
            return Err(Refusal::malformed(
                "another controller of the role has this election_id",
            ));
        }
        let known = Stream {
            role: name.clone(),
            device: update.device_id,
            election,
            message: update.role.as_ref().map(|role| pb::Role {
                name: role.name.clone(),
                id: role.id,
                config: None,
            }),
        };
        self.streams.insert(stream, known);
        let former = &mut self.former;
        let role = self.roles.entry(name.clone()).or_insert_with(|| {
            let was = former.remove(&name);
            Role {
                highest: was.as_ref().map(|f| f.highest),
                scope: was.and_then(|f| f.scope).unwrap_or_default(),
                ..Role::default()
            }
        });
        role.members.insert(stream);
        let was_primary = role.primary == Some(stream);
        if let Some(id) = election.filter(|id| role.highest.is_none_or(|h| *id >= h)) {
            let had_primary = role.primary.is_some();
            role.highest = Some(id);
            role.primary = Some(stream);
            role.config = config.cloned();
            role.scope = scope;
            return Ok(self.notify_all(&name, had_primary));
        }
        if was_primary {
            role.primary = None;
            return Ok(self.notify_all(&name, false));
        }
        Ok(self.notice(stream, false).into_iter().collect())
    }

    /// Whether there is room for one more stream of a role.
    fn admit(&self, name: &str) -> Result<(), Refusal> {
        if name.len() > LONGEST_NAME {
            return Err(Refusal::exhausted(format!(
                "the role's name has {} bytes; at most {LONGEST_NAME} are taken",
                name.len()
            )));
        }
        match self.roles.get(name) {
            Some(role) if role.members.len() >= self.limits.streams_per_role => Err(Refusal::exhausted(format!(
                "the role has {} streams already, as many as it may",
                role.members.len()
            ))),
            None if self.roles.len() >= self.limits.roles => Err(Refusal::exhausted(format!(
                "there are {} roles already, as many as there may be",
                self.roles.len()
            ))),
            _ => Ok(()),
        }
    }

    /// A stream has ended.
    pub fn leave(&mut self, stream: StreamId) -> Vec<Notice> {
        let Some(gone) = self.streams.remove(&stream) else {
            return Vec::new();
        };
        let Some(role) = self.roles.get_mut(&gone.role) else {
            return Vec::new();
        };
        role.members.remove(&stream);
        let was_primary = role.primary == Some(stream);
        if was_primary {
            role.primary = None;
        }
        if role.members.is_empty() && !gone.role.is_empty() {
            let (highest, scope) = (role.highest, Arc::clone(&role.scope));
            self.roles.remove(&gone.role);
            self.remember(gone.role, highest, scope);
            return Vec::new();
        }
        match was_primary {
            true => self.notify_all(&gone.role, false),
            false => Vec::new(),
        }
    }

    /// Remembers the highest election id of a role that has no streams any more, if it ever had
    /// one, and what it may do.
    ///
    /// If there are too many, the one without streams for longest is forgotten. Otherwise a client
    /// that opens streams for one role after the other would keep all others from new roles.
    fn remember(&mut self, role: String, highest: Option<Election>, scope: Arc<Scope>) {
        let Some(highest) = highest else { return };
        if self.former.len() >= self.limits.roles.saturating_mul(FORMER) {
            let oldest = self.former.iter().min_by_key(|(_, former)| former.gone);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.former.remove(&name);
            }
        }
        let with_scopes = self.former.values_mut().filter(|f| f.scope.is_some());
        let with_scopes: Vec<&mut Former> = with_scopes.collect();
        if with_scopes.len() >= SCOPES
            && let Some(oldest) = with_scopes.into_iter().min_by_key(|f| f.gone)
        {
            oldest.scope = None;
        }
        let gone = self.departures;
        self.departures += 1;
        let former = Former {
            highest,
            gone,
            scope: Some(scope),
        };
        self.former.insert(role, former);
    }

    /// Notices to all streams of a role, the primary last.
    fn notify_all(&self, name: &str, after_writes: bool) -> Vec<Notice> {
        let Some(role) = self.roles.get(name) else {
            return Vec::new();
        };
        let others = role.members.iter().filter(|s| role.primary != Some(**s));
        let others = others.filter_map(|s| self.notice(*s, false));
        let primary = role.primary.and_then(|s| self.notice(s, after_writes));
        others.chain(primary).collect()
    }

    fn notice(&self, stream: StreamId, after_writes: bool) -> Option<Notice> {
        let known = self.streams.get(&stream)?;
        let role = self.roles.get(&known.role)?;
        let (code, text) = match role.primary {
            Some(primary) if primary == stream => (Code::Ok, "you are primary"),
            Some(_) => (Code::AlreadyExists, "you are a backup, another controller is primary"),
            None => (Code::NotFound, "you are a backup, there is no primary"),
        };
        let status = rpc::Status {
            code: code as i32,
            message: text.to_string(),
            details: Vec::new(),
        };
        let role_message = known.message.clone().map(|message| pb::Role {
            config: role.config.clone(),
            ..message
        });
        Some(Notice {
            stream,
            update: pb::MasterArbitrationUpdate {
                device_id: known.device,
                role: role_message,
                election_id: role.highest.map(message),
                status: Some(status),
            },
            after_writes,
        })
    }

    /// Whether who says to be of this role with this election id may change things, and what.
    ///
    /// # Errors
    /// There is no such role, or another one is its primary, or none.
    pub fn check(&self, role: &str, id: Option<&pb::Uint128>) -> Result<Arc<Scope>, Refusal> {
        let Some(role) = self.roles.get(role) else {
            // No stream has it now.
            self.scope(role)?;
            return Err(no_primary());
        };
        let primary = role.primary.and_then(|p| self.streams.get(&p)).and_then(|s| s.election);
        if primary.is_none() || id.map(election) != primary {
            return Err(match primary {
                Some(_) => Refusal::forbidden("another controller is primary, or the election_id is not the primary's"),
                None => no_primary(),
            });
        }
        Ok(Arc::clone(&role.scope))
    }

    /// The permission of a role to read.
    ///
    /// # Errors
    /// The role does not exist, and did not recently.
    pub fn scope(&self, role: &str) -> Result<Arc<Scope>, Refusal> {
        let now = self.roles.get(role).map(|r| &r.scope);
        let scope = now.or_else(|| self.former.get(role)?.scope.as_ref());
        let scope = scope.ok_or_else(|| Refusal::not_found(format!("no controller has the role `{role}`")))?;
        Ok(Arc::clone(scope))
    }

    /// The primaries of all roles, with what they may do.
    pub fn primaries(&self) -> impl Iterator<Item = (StreamId, &Scope)> {
        self.roles.values().filter_map(|r| Some((r.primary?, &*r.scope)))
    }

    /// The permissions of a stream that is primary.
    ///
    /// # Errors
    /// It is not.
    pub fn as_primary(&self, stream: StreamId) -> Result<&Scope, Refusal> {
        let primary = self.primaries().find(|(s, _)| *s == stream);
        primary
            .map(|(_, scope)| scope)
            .ok_or_else(|| Refusal::forbidden("only the primary may do this"))
    }

    /// Open streams that have sent an arbitration update.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }
}

fn no_primary() -> Refusal {
    Refusal::forbidden("there is no primary; open a stream and become primary")
}

#[cfg(test)]
mod tests;
