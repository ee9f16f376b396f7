//! Queues of ports as `ExternEntry` has them: an `Any` of weir's `PortQueues`.
//!
//! MODIFY sets all fields, DELETE restores what the switch was started with.

use super::change::Change;
use super::refusal::Refusal;
use prost::Message;
use weir_proto::budget;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::update::Type;
use weir_proto::port_queues::{self, EXTERN_TYPE, MESSAGE, TYPE_URL};
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::PortQueues;
use weir_switch::{PortRate, QueueConfig, Switch};

/// The most fields of a `PortQueues`.
const MAX_FIELDS: usize = 8;
/// The most packets of a queue: as many as `weir run --queue-capacity` takes.
const MAX_CAPACITY: u32 = 1 << 20;

/// The change of a port's queues.
///
/// # Errors
/// The id is none of a port, or the entry is malformed or out of range.
pub fn decode(ty: Type, entry: &pb::ExternEntry) -> Result<Change, Refusal> {
    let port = port(entry.extern_id)?;
    let within = |e: Refusal| e.within(&format!("queues of port {port}"));
    match ty {
        Type::Modify => {}
        Type::Delete => return Ok(Change::Queues(port, None)),
        Type::Insert | Type::Unspecified => {
            return Err(within(Refusal::malformed(
                "every port has queues: use MODIFY, or DELETE for what the switch was started with",
            )));
        }
    }
    let config = message(entry.entry.as_ref()).and_then(|m| config(&m));
    Ok(Change::Queues(port, Some(config.map_err(within)?)))
}

/// The port of an extern_id.
///
/// # Errors
/// It is the id of something else.
pub fn port(extern_id: u32) -> Result<u32, Refusal> {
    port_queues::port(extern_id).ok_or_else(|| {
        Refusal::malformed(format!(
            "the extern_id of a port's queues is {:#x} + the number of the port; found {extern_id:#x}",
            EXTERN_TYPE << 24
        ))
    })
}

fn message(entry: Option<&Any>) -> Result<PortQueues, Refusal> {
    let any = entry.ok_or_else(|| Refusal::malformed(format!("the entry is missing; it is a {MESSAGE}")))?;
    let name = any.type_url.rsplit('/').next().unwrap_or("");
    if name != MESSAGE {
        return Err(Refusal::malformed(format!(
            "the entry is a {MESSAGE}; found the type `{name}`"
        )));
    }
    let broken = || Refusal::malformed(format!("the entry is no {MESSAGE}"));
    budget::fields::<PortQueues>(&any.value, MAX_FIELDS).map_err(|_| broken())?;
    PortQueues::decode(any.value.as_slice()).map_err(|_| broken())
}

fn config(given: &PortQueues) -> Result<QueueConfig, Refusal> {
    if given.capacity > MAX_CAPACITY {
        return Err(Refusal::malformed(format!(
            "the capacity is at most {MAX_CAPACITY} packets; found {}",
            given.capacity
        )));
    }
    let limit = |rate: u64| (rate > 0).then_some(rate);
    let rate = PortRate {
        bits_per_second: limit(given.bits_per_second),
        packets_per_second: limit(given.packets_per_second),
    };
    Ok(QueueConfig {
        rate,
        is_shaped: rate != PortRate::default(),
        capacity: (given.capacity > 0).then_some(given.capacity),
    })
}

/// The configuration as it is stored. A capacity that is the initial one stays unset, so that a
/// client that changes only a rate does not set it.
#[must_use]
pub fn normalised(switch: &Switch, port: u32, config: QueueConfig) -> QueueConfig {
    let is_unset = switch.queue_config(port).capacity.is_none();
    let initial = u32::try_from(switch.queue_capacity(port)).ok();
    match is_unset && config.capacity == initial {
        true => QueueConfig {
            capacity: None,
            ..config
        },
        false => config,
    }
}

/// The entry of a port's queues in a Read; `None`: its number has no id.
#[must_use]
pub fn encode(switch: &Switch, port: u32) -> Option<pb::ExternEntry> {
    let rate = switch.queue_config(port).effective_rate();
    let queues = PortQueues {
        bits_per_second: rate.bits_per_second.unwrap_or(0),
        packets_per_second: rate.packets_per_second.unwrap_or(0),
        capacity: u32::try_from(switch.queue_capacity(port)).unwrap_or(u32::MAX),
    };
    Some(pb::ExternEntry {
        extern_type_id: EXTERN_TYPE,
        extern_id: port_queues::extern_id(port)?,
        entry: Some(Any {
            type_url: TYPE_URL.to_owned(),
            value: queues.encode_to_vec(),
        }),
    })
}
