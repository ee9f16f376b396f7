//! Subscriptions to what a target reports.

use super::{Client, DigestConfig};
use crate::error::Error;
use crate::events::{DigestList, IdleEntry, Overflow, PacketIn, PortChange, Subscription};
use crate::schema::{Digest, Protocol, Table};
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use weir_proto::bfrt_proto as bfrt;
use weir_proto::bfrt_proto::table_attribute::Attribute;
use weir_proto::p4::v1 as p4;

/// The attribute of tables whose entries have idle time-outs (BF Runtime).
const IDLE_TIMEOUT: &str = "IdleTimeout";
/// The table of ports (BF Runtime).
const PORT: &str = "$PORT";

impl Client {
    /// Subscribes to digests of one kind. With P4Runtime, this enables them at the target.
    ///
    /// # Errors
    /// The program has no such digest, or the target refuses.
    pub async fn digests(
        &self,
        name: &str,
        config: DigestConfig,
        capacity: usize,
        overflow: Overflow,
    ) -> Result<Subscription<DigestList>, Error> {
        let digest = self.schema().digest(name).map(Arc::clone)?;
        let subscription = self.shared.hub.digests.subscribe(digest.id, capacity, overflow);
        if self.shared.options.protocol == Protocol::P4Runtime {
            self.configure_digest(&digest, config).await?;
        }
        Ok(subscription)
    }

    async fn configure_digest(&self, digest: &Digest, config: DigestConfig) -> Result<(), Error> {
        let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let entry = p4::DigestEntry {
            digest_id: digest.id,
            config: Some(p4::digest_entry::Config {
                max_timeout_ns: nanoseconds(config.max_timeout),
                max_list_size: i32::try_from(config.max_list_size).unwrap_or(i32::MAX),
                ack_timeout_ns: nanoseconds(config.ack_timeout),
            }),
        };
        let update = |ty: p4::update::Type| {
            p4::Update {
                r#type: ty.into(),
                entity: Some(p4::Entity {
                    entity: Some(p4::entity::Entity::DigestEntry(entry)),
                }),
            }
            .encode_to_vec()
        };
        // Another client may have enabled them before.
        let mut batch = self.batch();
        batch.add(&update(p4::update::Type::Insert))?;
        match self.write(&batch).await {
            Err(Error::Updates(errors)) if errors.iter().all(|e| e.code == tonic::Code::AlreadyExists) => {
                batch.clear();
                batch.add(&update(p4::update::Type::Modify))?;
                self.write(&batch).await
            }
            other => other,
        }
    }

    /// Subscribes to packets for the controller (P4Runtime).
    #[must_use]
    pub fn packets(&self, capacity: usize, overflow: Overflow) -> Subscription<PacketIn> {
        self.shared.hub.packets.subscribe(0, capacity, overflow)
    }

    /// Subscribes to idle entries of one table or of all. With BF Runtime, this sets the attribute
    /// of idle time-outs of those tables to notifications, with a query interval of 1 s.
    ///
    /// # Errors
    /// The table has no idle time-outs (BF Runtime), or the target refuses.
    pub async fn idle_entries(
        &self,
        of: Option<&Table>,
        capacity: usize,
        overflow: Overflow,
    ) -> Result<Subscription<IdleEntry>, Error> {
        let id = of.map_or(0, |t| t.id);
        let subscription = self.shared.hub.idle.subscribe(id, capacity, overflow);
        if self.shared.options.protocol == Protocol::BfRuntime {
            let has_timeouts = |t: &Table| t.attributes.iter().any(|a| a == IDLE_TIMEOUT);
            if let Some(table) = of.filter(|t| !has_timeouts(t)) {
                return Err(Error::Unsupported(format!(
                    "`{}` has no idle time-outs: its P4 table has no `idle_timeout = true`",
                    table.name
                )));
            }
            let schema = self.schema();
            let tables = schema.tables.iter().filter(|t| has_timeouts(t));
            let tables: Vec<u32> = tables.map(|t| t.id).filter(|t| id == 0 || *t == id).collect();
            let idle = Attribute::IdleTable(bfrt::IdleTable {
                ttl_query_interval: 1000,
                max_ttl: 3_600_000,
                min_ttl: 1000,
                idle_table_mode: bfrt::idle_table::IdleTableMode::IdleTableNotifyMode.into(),
                enable: true,
            });
            self.set_attribute(&tables, &idle).await?;
        }
        Ok(subscription)
    }

    /// Subscribes to ports that go up or down, and has the target report them (BF Runtime).
    ///
    /// # Errors
    /// The protocol is P4Runtime, which does not report ports, or the target refuses.
    pub async fn port_changes(&self, capacity: usize, overflow: Overflow) -> Result<Subscription<PortChange>, Error> {
        if self.shared.options.protocol == Protocol::P4Runtime {
            return Err(Error::Unsupported("P4Runtime does not report ports".to_owned()));
        }
        let subscription = self.shared.hub.ports.subscribe(0, capacity, overflow);
        let ports = self.table(PORT)?;
        let notify = Attribute::PortStatusNotify(bfrt::PortStatusChg { enable: true });
        self.set_attribute(&[ports.id], &notify).await?;
        Ok(subscription)
    }

    /// Sets an attribute of tables (BF Runtime).
    async fn set_attribute(&self, tables: &[u32], attribute: &Attribute) -> Result<(), Error> {
        let mut batch = self.batch();
        for &table_id in tables {
            let attribute = bfrt::TableAttribute {
                table_id,
                attribute: Some(attribute.clone()),
            };
            let update = bfrt::Update {
                r#type: bfrt::update::Type::Insert.into(),
                entity: Some(bfrt::Entity {
                    entity: Some(bfrt::entity::Entity::TableAttribute(attribute)),
                }),
            };
            batch.add(&update.encode_to_vec())?;
        }
        self.write(&batch).await
    }
}
