//! A server of one switch without devices, and a client of it.
#![allow(
    dead_code,
    deprecated,
    reason = "every test file uses a part of it; old fields are tested, too"
)]

use crate::shared::batches::How;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use weir_compiler::{Options, compile_source};
use weir_ir::Program;
use weir_proto::google::rpc;
use weir_proto::p4::config::v1::P4Info;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::prost::Message;
use weir_server::p4rt::{self, Config, P4Runtime};
use weir_server::{Clock, Standalone};

/// The program that has everything.
pub const EVERYTHING: &str = include_str!("../p4/everything.p4");
/// Its port of the control plane.
pub const CPU: u32 = 510;

pub fn compile(source: &str) -> Arc<Program> {
    let compiled = compile_source("test.p4", source, &Options::default(), weir_arch::targets());
    let errors: Vec<String> = compiled
        .diagnostics
        .list()
        .iter()
        .map(|d| weir_syntax::render::short(d, &compiled.sources))
        .collect();
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{}", errors.concat())))
}

pub type Client = P4RuntimeClient<Channel>;

/// A switch, its server and a client.
#[derive(Clone)]
pub struct Bench {
    pub switch: Arc<Standalone>,
    pub server: P4Runtime,
    pub client: Client,
    pub info: P4Info,
    pub address: std::net::SocketAddr,
}

/// The stream of a controller.
pub struct Controller {
    pub out: mpsc::Sender<pb::StreamMessageRequest>,
    pub incoming: Streaming<pb::StreamMessageResponse>,
}

pub fn hello(role: &str, election: Option<u64>) -> pb::MasterArbitrationUpdate {
    pb::MasterArbitrationUpdate {
        device_id: 1,
        role: (!role.is_empty()).then(|| pb::Role {
            name: role.to_string(),
            ..pb::Role::default()
        }),
        election_id: election.map(|low| pb::Uint128 { high: 0, low }),
        status: None,
    }
}

impl Controller {
    pub async fn open(client: &Client) -> Self {
        let (out, requests) = mpsc::channel(64);
        let mut client = client.clone();
        let stream = client.stream_channel(ReceiverStream::new(requests));
        let incoming = stream.await.expect("a stream").into_inner();
        Controller { out, incoming }
    }

    pub async fn say(&self, update: pb::stream_message_request::Update) {
        let message = pb::StreamMessageRequest { update: Some(update) };
        self.out.send(message).await.expect("the stream is open");
    }

    pub async fn arbitrate(&self, update: pb::MasterArbitrationUpdate) {
        self.say(pb::stream_message_request::Update::Arbitration(update)).await;
    }

    /// The next message, within two seconds.
    pub async fn next(&mut self) -> Result<pb::stream_message_response::Update, Status> {
        let next = tokio::time::timeout(Duration::from_secs(2), self.incoming.message()).await;
        let message = next.expect("a message comes in time")?;
        Ok(message
            .expect("the stream goes on")
            .update
            .expect("a message says something"))
    }

    /// Whether nothing comes for a while.
    pub async fn is_silent(&mut self) -> bool {
        let next = tokio::time::timeout(Duration::from_millis(150), self.incoming.message());
        next.await.is_err()
    }

    /// The next message, which is about who is primary.
    pub async fn arbitration(&mut self) -> pb::MasterArbitrationUpdate {
        match self.next().await {
            Ok(pb::stream_message_response::Update::Arbitration(update)) => update,
            other => panic!("{other:?} is no arbitration"),
        }
    }

    pub async fn code(&mut self) -> i32 {
        self.arbitration().await.status.map_or(-1, |s| s.code)
    }
}

impl Bench {
    /// A server of the program that has everything, on a clock that stands still.
    pub async fn everything() -> Self {
        Self::new(Some(compile(EVERYTHING)), Config::default()).await
    }

    pub async fn new(program: Option<Arc<Program>>, config: Config) -> Self {
        let runs = program.clone().unwrap_or_else(|| compile(EVERYTHING));
        let switch = Arc::new(
            Standalone::with_externs(runs, Some(CPU), Clock::manual(), weir_externs::registry()).expect("runs"),
        );
        let server = P4Runtime::new(switch.clone(), program, config).expect("has a P4Info");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(p4rt::serve_on(server.clone(), listener, std::future::pending()));
        let mut client = connect(address).await;
        let config = client
            .get_forwarding_pipeline_config(pb::GetForwardingPipelineConfigRequest::default())
            .await
            .expect("a config")
            .into_inner()
            .config;
        Bench {
            switch,
            server,
            client,
            info: config.and_then(|c| c.p4info).unwrap_or_default(),
            address,
        }
    }

    /// A controller that is primary with election id 1.
    pub async fn primary(&self) -> Controller {
        let mut controller = Controller::open(&self.client).await;
        controller.arbitrate(hello("", Some(1))).await;
        assert_eq!(controller.code().await, 0);
        controller
    }

    // ------------------------------------------------------------------------------------ names

    pub fn table(&self, name: &str) -> u32 {
        let tables = self.info.tables.iter().filter_map(|t| t.preamble.as_ref());
        let mut found = tables.filter(|p| p.alias == name);
        found.next().unwrap_or_else(|| panic!("no table {name}")).id
    }

    pub fn action(&self, name: &str) -> u32 {
        let actions = self.info.actions.iter().filter_map(|a| a.preamble.as_ref());
        let mut found = actions.filter(|p| p.alias == name);
        found.next().unwrap_or_else(|| panic!("no action {name}")).id
    }

    /// Anything else, by its alias.
    pub fn id(&self, name: &str) -> u32 {
        let info = &self.info;
        let all = (info.action_profiles.iter().map(|o| &o.preamble))
            .chain(info.counters.iter().map(|o| &o.preamble))
            .chain(info.meters.iter().map(|o| &o.preamble))
            .chain(info.registers.iter().map(|o| &o.preamble))
            .chain(info.digests.iter().map(|o| &o.preamble))
            .chain(info.value_sets.iter().map(|o| &o.preamble));
        let mut found = all.flatten().filter(|p| p.alias == name);
        found.next().unwrap_or_else(|| panic!("no {name}")).id
    }

    // ---------------------------------------------------------------------------------- requests

    pub async fn write_with(&self, updates: Vec<pb::Update>, atomicity: Atomicity) -> Result<(), Status> {
        let request = write_request(updates, atomicity);
        self.client.clone().write(request).await.map(|_| ())
    }

    pub async fn write(&self, updates: Vec<pb::Update>) -> Result<(), Status> {
        self.write_with(updates, Atomicity::ContinueOnError).await
    }

    /// Writes one entity; the code of its error.
    pub async fn one(&self, ty: Type, entity: Entity) -> Result<(), Code> {
        let status = match self.write(vec![update(ty, entity)]).await {
            Ok(()) => return Ok(()),
            Err(status) => status,
        };
        assert_eq!(status.code(), Code::Unknown, "{status:?}");
        let details = details(&status);
        assert_eq!(details.len(), 1);
        assert!(!details[0].message.is_empty());
        Err(Code::from_i32(details[0].canonical_code))
    }

    pub async fn insert(&self, entity: Entity) -> Result<(), Code> {
        self.one(Type::Insert, entity).await
    }

    pub async fn modify(&self, entity: Entity) -> Result<(), Code> {
        self.one(Type::Modify, entity).await
    }

    pub async fn delete(&self, entity: Entity) -> Result<(), Code> {
        self.one(Type::Delete, entity).await
    }

    pub async fn read_all(&self, queries: Vec<Entity>) -> (Vec<Entity>, Option<Status>) {
        let request = pb::ReadRequest {
            device_id: 1,
            entities: queries.into_iter().map(entity).collect(),
            ..pb::ReadRequest::default()
        };
        let mut found = Vec::new();
        let mut stream = match self.client.clone().read(request).await {
            Ok(stream) => stream.into_inner(),
            Err(status) => return (found, Some(status)),
        };
        loop {
            match stream.message().await {
                Ok(Some(response)) => found.extend(response.entities.into_iter().filter_map(|e| e.entity)),
                Ok(None) => return (found, None),
                Err(status) => return (found, Some(status)),
            }
        }
    }

    pub async fn read(&self, query: Entity) -> Vec<Entity> {
        let (found, error) = self.read_all(vec![query]).await;
        assert!(error.is_none(), "{error:?}");
        found
    }

    /// The code of the error of a query.
    pub async fn read_error(&self, query: Entity) -> Code {
        let (_, error) = self.read_all(vec![query]).await;
        let error = error.expect("an error");
        details(&error)
            .first()
            .map_or(error.code(), |d| Code::from_i32(d.canonical_code))
    }

    // ----------------------------------------------------------------------------------- packets

    /// What the switch answers to a question at port 1, if anything.
    pub fn ask(&self, kind: u8, hash: u8, key: u32) -> Option<u32> {
        let out = self.switch.send(1, &question(kind, hash, key));
        let out: Vec<_> = out.into_iter().filter(|o| o.port == 1).collect();
        let bytes = &out.first()?.bytes;
        Some(u32::from_be_bytes([bytes[6], bytes[7], bytes[8], bytes[9]]))
    }

    // ---------------------------------------------------------------------------------- entities

    /// An entry of a table that answers with a value.
    pub fn entry(&self, table: &str, matches: Vec<pb::FieldMatch>, value: u32) -> pb::TableEntry {
        pb::TableEntry {
            table_id: self.table(table),
            r#match: matches,
            action: Some(pb::TableAction {
                r#type: Some(pb::table_action::Type::Action(self.answer(value))),
            }),
            ..pb::TableEntry::default()
        }
    }

    pub fn answer(&self, value: u32) -> pb::Action {
        pb::Action {
            action_id: self.action("answer"),
            params: vec![pb::action::Param {
                param_id: 1,
                value: shortest(value),
            }],
        }
    }
}

pub async fn connect(address: std::net::SocketAddr) -> Client {
    let channel = Channel::from_shared(format!("http://{address}")).expect("a URI");
    let channel = channel.http2_max_header_list_size(16 << 20).connect().await;
    P4RuntimeClient::new(channel.expect("connects")).max_decoding_message_size(64 << 20)
}

/// What a primary with election id 1 writes.
pub fn write_request(updates: Vec<pb::Update>, atomicity: Atomicity) -> pb::WriteRequest {
    pb::WriteRequest {
        device_id: 1,
        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
        updates,
        atomicity: atomicity.into(),
        ..pb::WriteRequest::default()
    }
}

pub fn question(kind: u8, hash: u8, key: u32) -> Vec<u8> {
    let mut bytes = vec![kind, hash];
    bytes.extend_from_slice(&key.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

pub fn shortest(value: u32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|b| **b == 0).count().min(3);
    bytes[zeros..].to_vec()
}

pub fn entity(entity: Entity) -> pb::Entity {
    pb::Entity { entity: Some(entity) }
}

pub fn update(ty: Type, of: Entity) -> pb::Update {
    pb::Update {
        r#type: ty.into(),
        entity: Some(entity(of)),
    }
}

pub fn exact(field_id: u32, value: &[u8]) -> pb::FieldMatch {
    field(
        field_id,
        pb::field_match::FieldMatchType::Exact(pb::field_match::Exact { value: value.to_vec() }),
    )
}

pub fn lpm(field_id: u32, value: &[u8], prefix_len: i32) -> pb::FieldMatch {
    let value = value.to_vec();
    field(
        field_id,
        pb::field_match::FieldMatchType::Lpm(pb::field_match::Lpm { value, prefix_len }),
    )
}

pub fn ternary(field_id: u32, value: &[u8], mask: &[u8]) -> pb::FieldMatch {
    let (value, mask) = (value.to_vec(), mask.to_vec());
    field(
        field_id,
        pb::field_match::FieldMatchType::Ternary(pb::field_match::Ternary { value, mask }),
    )
}

pub fn range(field_id: u32, low: &[u8], high: &[u8]) -> pb::FieldMatch {
    let (low, high) = (low.to_vec(), high.to_vec());
    field(
        field_id,
        pb::field_match::FieldMatchType::Range(pb::field_match::Range { low, high }),
    )
}

pub fn optional(field_id: u32, value: &[u8]) -> pb::FieldMatch {
    field(
        field_id,
        pb::field_match::FieldMatchType::Optional(pb::field_match::Optional { value: value.to_vec() }),
    )
}

fn field(field_id: u32, ty: pb::field_match::FieldMatchType) -> pb::FieldMatch {
    pb::FieldMatch {
        field_id,
        field_match_type: Some(ty),
    }
}

/// The atomicity of a batch.
pub fn atomicity(how: How) -> Atomicity {
    match how {
        How::Continue => Atomicity::ContinueOnError,
        How::Rollback => Atomicity::RollbackOnError,
        How::Atomic => Atomicity::DataplaneAtomic,
    }
}

/// The details of a status.
pub fn details(status: &Status) -> Vec<pb::Error> {
    if status.details().is_empty() {
        return Vec::new();
    }
    let decoded = rpc::Status::decode(status.details()).expect("a status");
    let errors = decoded.details.iter().map(|d| pb::Error::decode(d.value.as_slice()));
    errors.collect::<Result<_, _>>().expect("errors")
}

/// The codes of the details.
pub fn codes(status: &Status) -> Vec<Code> {
    details(status)
        .iter()
        .map(|d| Code::from_i32(d.canonical_code))
        .collect()
}
