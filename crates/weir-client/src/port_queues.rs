//! Queues of ports: rate and capacity, while the switch runs.
//!
//! By P4Runtime this is weir's own: an `ExternEntry` with a `weir.v1.PortQueues`, which other
//! targets refuse. By BF Runtime, rates are set in `tm.port.sched_shaping` and `tm.port.sched_cfg`,
//! and the capacity has no place.

use crate::client::{Client, read_error};
use crate::error::Error;
use crate::schema::{Protocol, Table};
use crate::{Entry, Operation};
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use weir_proto::p4::v1 as p4;
use weir_proto::port_queues::{EXTERN_TYPE, TYPE_URL, extern_id, port};
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::PortQueues as Wire;

/// The most a port sends, and the room of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortQueues {
    /// Bits per second; `None`: no limit.
    pub bits_per_second: Option<u64>,
    /// Packets per second; `None`: no limit.
    pub packets_per_second: Option<u64>,
    /// Packets for which each queue has room. Set as `None`: as many as the target has by default.
    /// Read as `None`: the protocol does not say.
    pub capacity: Option<u32>,
}

impl Client {
    /// The queues of the ports that the target knows, in the order of the ports.
    ///
    /// # Errors
    /// The target has no such objects, or refuses.
    pub async fn port_queues(&self) -> Result<Vec<(u32, PortQueues)>, Error> {
        match self.schema().protocol {
            Protocol::P4Runtime => self.p4_queues().await,
            Protocol::BfRuntime => self.bf_queues().await,
        }
    }

    /// Sets the queues of a port.
    ///
    /// # Errors
    /// The target has no such objects, refuses, or the protocol cannot express it: BF Runtime has
    /// no capacity, and one limit, of bits in thousands or of packets.
    pub async fn set_port_queues(&self, port: u32, queues: PortQueues) -> Result<(), Error> {
        match self.schema().protocol {
            Protocol::P4Runtime => {
                let wire = Wire {
                    bits_per_second: queues.bits_per_second.unwrap_or(0),
                    packets_per_second: queues.packets_per_second.unwrap_or(0),
                    capacity: queues.capacity.unwrap_or(0),
                };
                self.p4_update(p4::update::Type::Modify, port, Some(&wire)).await
            }
            Protocol::BfRuntime => self.set_bf_queues(port, queues).await,
        }
    }

    /// Sets the queues of a port to what the target has by default (P4Runtime), or lifts the limit
    /// of its rate (BF Runtime).
    ///
    /// # Errors
    /// The target has no such objects, or refuses.
    pub async fn reset_port_queues(&self, port: u32) -> Result<(), Error> {
        match self.schema().protocol {
            Protocol::P4Runtime => self.p4_update(p4::update::Type::Delete, port, None).await,
            Protocol::BfRuntime => self.set_bf_queues(port, PortQueues::default()).await,
        }
    }

    async fn p4_update(&self, ty: p4::update::Type, port: u32, queues: Option<&Wire>) -> Result<(), Error> {
        let id = extern_id(port).ok_or_else(|| Error::Input(format!("no port has the number {port}")))?;
        let update = p4::Update {
            r#type: ty.into(),
            entity: Some(entity(id, queues)),
        };
        let mut batch = self.batch();
        batch.add(&update.encode_to_vec())?;
        self.write(&batch).await
    }

    async fn p4_queues(&self) -> Result<Vec<(u32, PortQueues)>, Error> {
        let request = p4::ReadRequest {
            device_id: self.options().device_id,
            entities: vec![entity(0, None)],
            ..p4::ReadRequest::default()
        };
        let mut queues = Vec::new();
        for answer in self.read_raw(Bytes::from(request.encode_to_vec())).await? {
            for found in answer.entities {
                let Some(p4::entity::Entity::ExternEntry(entry)) = found.entity else {
                    continue;
                };
                let malformed = || Error::Malformed("an answer that is not about queues of a port".to_owned());
                let port = port(entry.extern_id).ok_or_else(malformed)?;
                let bytes = entry.entry.map(|any| any.value).unwrap_or_default();
                let wire = Wire::decode(bytes.as_slice()).map_err(|_| malformed())?;
                let limit = |rate: u64| (rate > 0).then_some(rate);
                let found = PortQueues {
                    bits_per_second: limit(wire.bits_per_second),
                    packets_per_second: limit(wire.packets_per_second),
                    capacity: (wire.capacity > 0).then_some(wire.capacity),
                };
                queues.push((port, found));
            }
        }
        Ok(queues)
    }

    /// The tables of rates, and of whether they apply.
    fn bf_tables(&self) -> Result<(Arc<Table>, Arc<Table>), Error> {
        let schema = self.schema();
        let find = |end: &str| {
            let mut tables = schema.tables.iter().filter(|t| t.name.ends_with(end));
            let missing = || Error::Unsupported(format!("the target has no table {end}"));
            tables.next().map(Arc::clone).ok_or_else(missing)
        };
        Ok((find("tm.port.sched_shaping")?, find("tm.port.sched_cfg")?))
    }

    async fn bf_queues(&self) -> Result<Vec<(u32, PortQueues)>, Error> {
        let (shaping, scheduling) = self.bf_tables()?;
        let rates = self.entries(&shaping).await?;
        let enabled: Vec<u64> = self
            .entries(&scheduling)
            .await?
            .iter()
            .filter(|entry| entry.get("max_rate_enable").and_then(|v| v.as_bool()) == Some(true))
            .filter_map(dev_port)
            .collect();
        let queues = rates.iter().filter_map(|entry| {
            let port = dev_port(entry)?;
            let rate = entry.get("max_rate").and_then(|v| v.as_u64());
            let rate = rate.filter(|rate| *rate > 0 && enabled.contains(&port));
            let is_packets = entry.get("unit").and_then(|v| v.as_str()) == Some("PPS");
            let queues = PortQueues {
                bits_per_second: rate
                    .filter(|_| !is_packets)
                    .map(|kilobits| kilobits.saturating_mul(1000)),
                packets_per_second: rate.filter(|_| is_packets),
                capacity: None,
            };
            Some((u32::try_from(port).ok()?, queues))
        });
        Ok(queues.collect())
    }

    async fn set_bf_queues(&self, port: u32, queues: PortQueues) -> Result<(), Error> {
        if queues.capacity.is_some() {
            return Err(Error::Unsupported(
                "BF Runtime has no table for the capacity of queues here; P4Runtime takes it".to_owned(),
            ));
        }
        let (unit, rate) = match (queues.bits_per_second, queues.packets_per_second) {
            (Some(_), Some(_)) => {
                return Err(Error::Unsupported(
                    "BF Runtime takes one limit of a port, in bits or in packets".to_owned(),
                ));
            }
            (Some(bits), None) if bits % 1000 != 0 => {
                return Err(Error::Unsupported(format!(
                    "BF Runtime takes rates in thousands of bits per second; found {bits}"
                )));
            }
            (Some(bits), None) => ("BPS", bits / 1000),
            (None, packets) => ("PPS", packets.unwrap_or(0)),
        };
        let (shaping, scheduling) = self.bf_tables()?;
        let of = |table: &Arc<Table>| Entry::of(table).key("dev_port", u64::from(port));
        let mut batch = self.batch();
        if rate > 0 {
            let shaped = of(&shaping)
                .data("unit", unit)
                .data("provisioning", "UPPER")
                .data("max_rate", rate)
                .data("max_burst_size", 0u64);
            batch.push(Operation::Modify, &shaped)?;
        }
        batch.push(Operation::Modify, &of(&scheduling).data("max_rate_enable", rate > 0))?;
        self.write(&batch).await
    }

    /// The answers to a Read of P4Runtime.
    async fn read_raw(&self, request: Bytes) -> Result<Vec<p4::ReadResponse>, Error> {
        let schema = self.schema();
        let stream = self.shared.transport.streaming("/p4.v1.P4Runtime/Read", request).await;
        let mut stream = stream.map_err(|status| read_error(&schema, &[], &status))?;
        let patience = self.options().deadline;
        let mut answers = Vec::new();
        loop {
            let message = tokio::time::timeout(patience, stream.message()).await;
            let message = message.map_err(|_| Error::Closed)?;
            match message.map_err(|status| read_error(&schema, &[], &status))? {
                Some(bytes) => answers.push(
                    p4::ReadResponse::decode(bytes).map_err(|e| Error::Malformed(format!("an answer to Read: {e}")))?,
                ),
                None => return Ok(answers),
            }
        }
    }
}

fn dev_port(entry: &Entry) -> Option<u64> {
    entry.key_of("dev_port")?.exact()?.as_u64()
}

fn entity(extern_id: u32, queues: Option<&Wire>) -> p4::Entity {
    let entry = p4::ExternEntry {
        extern_type_id: EXTERN_TYPE,
        extern_id,
        entry: queues.map(|queues| Any {
            type_url: TYPE_URL.to_owned(),
            value: queues.encode_to_vec(),
        }),
    };
    p4::Entity {
        entity: Some(p4::entity::Entity::ExternEntry(entry)),
    }
}
