//! The client: connecting, reading, subscribing, and packet-out. Writing is in `client/write.rs`.

mod bind;
mod details;
mod pipeline_config;
mod subscribe;
mod write;

pub(crate) use bind::bind;
pub(crate) use details::read_error;
pub use pipeline_config::{Config, ConfigAction};

use crate::encode::{ReadOptions, query};
use crate::entry::Entry;
use crate::error::Error;
use crate::events::{Hub, Standing};
use crate::options::Options;
use crate::read::Pages;
use crate::schema::{Field, Kind, Protocol, Schema, Table};
use crate::session::{self, Shared};
use crate::transport::Transport;
use crate::value::Value;
use crate::wire::Writer;
use bytes::Bytes;
use prost::Message;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use weir_proto::p4::v1 as p4;

/// When and in what list sizes digests are sent (P4Runtime).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestConfig {
    /// Longest time for which the target collects elements.
    pub max_timeout: Duration,
    /// Most elements of one list; 0: the target decides.
    pub max_list_size: u32,
    /// Time after which the target repeats an unacknowledged list.
    pub ack_timeout: Duration,
}

impl Default for DigestConfig {
    /// At most 10 ms, 1000 elements, acknowledged within 1 s.
    fn default() -> Self {
        DigestConfig {
            max_timeout: Duration::from_millis(10),
            max_list_size: 1000,
            ack_timeout: Duration::from_secs(1),
        }
    }
}

/// Controls a target. Clones share one client; their requests are in flight concurrently.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.shared.options)
            .field("standing", &self.standing())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects, identifies the client (unless it only reads), and reads the target's program.
    ///
    /// A P4Runtime client with a lower election id than another becomes a backup:
    /// [`Client::standing`] reports it, and writes are refused. A BF Runtime client is bound to the
    /// program.
    ///
    /// # Errors
    /// The target is unreachable, refuses the client, or does not run the program.
    pub async fn connect(options: Options) -> Result<Client, Error> {
        let transport = Transport::connect(&options).await?;
        let protocol = options.protocol;
        let is_observer = options.is_observer;
        let patience = options.deadline;
        let shared = Arc::new(Shared {
            options,
            transport,
            hub: Hub::default(),
            schema: Mutex::new(Arc::new(Schema::new(protocol, String::new(), Vec::new(), Vec::new()))),
            standing: watch::Sender::new(if is_observer {
                Standing::Observer
            } else {
                Standing::Connecting
            }),
            outgoing: Mutex::default(),
            closing: std::sync::atomic::AtomicBool::new(false),
            generation: watch::Sender::new(0),
        });
        let client = Client { shared };
        if !is_observer {
            let mut standing = client.shared.standing.subscribe();
            tokio::spawn(session::run(Arc::downgrade(&client.shared)));
            let heard = tokio::time::timeout(patience, standing.wait_for(|s| *s != Standing::Connecting)).await;
            let heard = heard.map(|s| s.map(|s| s.clone()));
            let failed = |reason: String| Error::Connect {
                target: client.shared.options.address.to_string(),
                reason,
            };
            match heard {
                Ok(Ok(Standing::Lost(reason))) => return Err(failed(reason)),
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return Err(Error::Closed),
                Err(_) => return Err(failed("the target does not answer on the stream".to_owned())),
            }
        }
        client.refresh().await?;
        if protocol == Protocol::BfRuntime && !is_observer {
            bind(&client.shared).await?;
        }
        Ok(client)
    }

    /// Closes the stream. When this returns, all messages are sent and the target has ended the
    /// stream, or a second has passed. Subscriptions end. Other clones of the client can still read
    /// and, with BF Runtime, write.
    pub async fn close(self) {
        self.shared.closing.store(true, std::sync::atomic::Ordering::Relaxed);
        self.shared.set_outgoing(None);
        let mut standing = self.shared.standing.subscribe();
        let ended = standing.wait_for(|s| matches!(s, Standing::Lost(_) | Standing::Observer));
        let _ = tokio::time::timeout(Duration::from_secs(1), ended).await;
        self.shared.hub.close();
    }

    /// The options of the connection.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// The current standing with the target.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.shared.standing.borrow().clone()
    }

    /// A receiver of changes of the standing: connection lost or restored, or another client became
    /// primary.
    #[must_use]
    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.shared.standing.subscribe()
    }

    /// Waits until this client controls the target.
    ///
    /// # Errors
    /// The client only reads, or its connection is lost without reconnection.
    pub async fn primary(&self) -> Result<(), Error> {
        let mut standing = self.shared.standing.subscribe();
        let is_for_good = self.shared.options.reconnect.is_none();
        let is_closing = || self.shared.closing.load(std::sync::atomic::Ordering::Relaxed);
        let reached = standing
            .wait_for(|s| match s {
                Standing::Primary | Standing::Observer => true,
                Standing::Lost(_) => is_for_good || is_closing(),
                Standing::Connecting | Standing::Backup(_) => false,
            })
            .await
            .map_err(|_| Error::Closed)?;
        match &*reached {
            Standing::Primary => Ok(()),
            Standing::Observer => Err(Error::Unsupported("this client only reads".to_owned())),
            _ => Err(Error::Closed),
        }
    }

    /// The tables of the running program, as last read by this client.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        self.shared.schema()
    }

    /// Finds a table by its full name, or by the last part of it after a dot.
    ///
    /// # Errors
    /// No table or several match.
    pub fn table(&self, name: &str) -> Result<Arc<Table>, Error> {
        self.schema().table(name).map(Arc::clone)
    }

    /// Reads entries page by page.
    ///
    /// # Errors
    /// The target refuses the Read. Errors of single queries are in the pages.
    pub async fn read_pages(&self, queries: &[Query], options: &ReadOptions) -> Result<Pages, Error> {
        let schema = self.schema();
        let mut writer = Writer::default();
        let options_of = &self.shared.options;
        let entities = match schema.protocol {
            Protocol::P4Runtime => {
                writer.varint(1, options_of.device_id);
                // A Read without a role returns everything readable, which is intended.
                2
            }
            Protocol::BfRuntime => {
                self.target(&mut writer, None)?;
                writer.varint(2, u64::from(options_of.client_id));
                writer.bytes(4, schema.program.as_bytes());
                3
            }
        };
        for one in queries {
            writer.message(entities, |w| match one {
                Query::Table(table) => query(w, table, None, options),
                Query::Entry(entry) => query(w, entry.table(), Some(entry), options),
            })?;
        }
        let path = match schema.protocol {
            Protocol::P4Runtime => "/p4.v1.P4Runtime/Read",
            Protocol::BfRuntime => "/bfrt_proto.BfRuntime/Read",
        };
        let stream = self.shared.transport.streaming(path, Bytes::from(writer.out)).await;
        let stream = stream.map_err(|status| read_error(&schema, queries, &status))?;
        Ok(Pages::new(
            schema,
            stream,
            queries.to_vec(),
            self.shared.options.deadline,
        ))
    }

    /// All entries of a table; with P4Runtime without the default entry, see
    /// [`Client::default_entry`].
    ///
    /// # Errors
    /// The target refuses the Read, or its answer is malformed.
    pub async fn entries(&self, table: &Arc<Table>) -> Result<Vec<Entry>, Error> {
        let pages = self
            .read_pages(&[Query::Table(Arc::clone(table))], &ReadOptions::default())
            .await?;
        pages.collect().await
    }

    /// The entry with the same key; `None` if it does not exist.
    ///
    /// # Errors
    /// As for [`Client::entries`].
    pub async fn entry(&self, like: &Entry) -> Result<Option<Entry>, Error> {
        let read = async {
            let queries = [Query::Entry(like.clone())];
            self.read_pages(&queries, &ReadOptions::default())
                .await?
                .collect()
                .await
        };
        match read.await {
            Ok(entries) => Ok(entries.into_iter().next()),
            Err(error) if details::is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The default entry of a table, which applies to packets that match no entry.
    ///
    /// # Errors
    /// As for [`Client::entries`].
    pub async fn default_entry(&self, table: &Arc<Table>) -> Result<Option<Entry>, Error> {
        let options = ReadOptions {
            default_only: true,
            ..ReadOptions::default()
        };
        let pages = self.read_pages(&[Query::Table(Arc::clone(table))], &options).await?;
        let entries = pages.collect().await?;
        Ok(entries.into_iter().find(Entry::is_default))
    }

    /// Sends a packet (P4Runtime): its bytes after the packet-out header, and the fields of that
    /// header. Missing fields are 0.
    ///
    /// # Errors
    /// The program has no such field, a value does not fit, or there is no stream.
    pub async fn packet_out(&self, payload: Vec<u8>, metadata: &[(&str, Value)]) -> Result<(), Error> {
        let schema = self.schema();
        if schema.protocol != Protocol::P4Runtime {
            return Err(Error::Unsupported(
                "BF Runtime has no packets from controllers".to_owned(),
            ));
        }
        for (name, _) in metadata {
            let names = schema.packet_out.iter().map(|f| f.name.as_str());
            crate::schema::find("field", "packet_out", name, names)?;
        }
        let field = |field: &Field| {
            let given = metadata.iter().find(|(name, _)| *name == field.name);
            let zero = Value::Bits(0);
            let value = given.map_or(&zero, |(_, value)| value);
            let bytes = crate::encode::p4rt_scalar(&field.ty, value).map_err(|reason| Error::Value {
                table: "packet_out".to_owned(),
                field: field.name.clone(),
                reason,
            })?;
            Ok(p4::PacketMetadata {
                metadata_id: field.id,
                value: bytes,
            })
        };
        let metadata: Result<Vec<_>, Error> = schema.packet_out.iter().map(field).collect();
        let packet = p4::PacketOut {
            payload,
            metadata: metadata?,
        };
        let message = p4::StreamMessageRequest {
            update: Some(p4::stream_message_request::Update::Packet(packet)),
        };
        self.shared.send(message.encode_to_vec().into()).await
    }

    /// The target of BF Runtime requests: all pipes, both directions, all parsers.
    fn target(&self, writer: &mut Writer, pipe: Option<u32>) -> Result<(), Error> {
        writer.message::<Error>(1, |w| {
            w.varint(1, self.shared.options.device_id);
            w.varint(2, u64::from(pipe.unwrap_or(0xffff)));
            w.varint(3, 0xff);
            w.varint(4, 0xff);
            Ok(())
        })
    }
}

/// A query of a Read.
#[derive(Debug, Clone)]
pub enum Query {
    /// All of a table.
    Table(Arc<Table>),
    /// The entry with this key.
    Entry(Entry),
}

impl Query {
    pub(crate) fn table(&self) -> &Arc<Table> {
        match self {
            Query::Table(table) => table,
            Query::Entry(entry) => entry.table(),
        }
    }
}

/// Whether a table of this kind can be cleared.
pub(crate) fn can_be_cleared(table: &Table) -> bool {
    !table.is_const
        && matches!(
            table.kind,
            Kind::Match
                | Kind::MatchIndirect
                | Kind::Members
                | Kind::Groups
                | Kind::MulticastGroups
                | Kind::CloneSessions
                | Kind::ExternKeys
                | Kind::Other(_)
        )
}
