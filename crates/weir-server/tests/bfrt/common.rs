//! The test bench: a server of one switch without devices, and a client of it.
#![allow(dead_code, reason = "every test file uses a part of it")]

use crate::shared::batches::How;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use weir_compiler::{Options, compile_source};
use weir_ir::Program;
use weir_proto::bfrt_info::{BfrtInfo, DataChoice, Table};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::key_field::MatchType;
use weir_proto::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use weir_proto::bfrt_proto::stream_message_response::Update as Notification;
use weir_proto::bfrt_proto::update::Type;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_proto::google::rpc;
use weir_proto::prost::Message;
use weir_server::bfrt::{self, BfRuntime, Config};
use weir_server::{Clock, DataPlane, Device, Standalone};

/// The name of the test programs.
pub const NAME: &str = "kinds";
/// All pipes.
pub const ALL: u32 = 0xffff;

/// The program with every kind of table.
pub fn source() -> String {
    format!(
        "#define FULL\n{}",
        include_str!("../../../weir-rbfrt-tests/p4/kinds.p4")
    )
}

pub fn compile(source: &str) -> Arc<Program> {
    let compiled = compile_source("test.p4", source, &Options::default(), weir_arch::targets());
    let errors = compiled.diagnostics.list().iter();
    let errors: Vec<String> = errors
        .map(|d| weir_syntax::render::short(d, &compiled.sources))
        .collect();
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{}", errors.concat())))
}

pub type Client = BfRuntimeClient<Channel>;

/// A switch, its server and a client.
#[derive(Clone)]
pub struct Bench {
    pub switch: Arc<Standalone>,
    pub device: Arc<Device>,
    pub server: BfRuntime,
    pub client: Client,
    /// Descriptions of the program's tables and of the device's.
    pub info: BfrtInfo,
    pub fixed: BfrtInfo,
    pub address: std::net::SocketAddr,
}

/// An open stream of a client.
pub struct Session {
    pub id: u32,
    pub out: mpsc::Sender<pb::StreamMessageRequest>,
    pub incoming: Streaming<pb::StreamMessageResponse>,
}

pub fn everything() -> pb::subscribe::Notifications {
    pb::subscribe::Notifications {
        enable_learn_notifications: true,
        enable_idletimeout_notifications: true,
        enable_port_status_change_notifications: true,
        enable_entry_active_notifications: true,
        enable_selector_update_change_notifications: true,
    }
}

impl Session {
    pub async fn open(client: &Client, id: u32) -> Self {
        let (out, requests) = mpsc::channel(16);
        // The response headers arrive with the server's first message at the latest.
        let mut client = client.clone();
        let stream = client.stream_channel(ReceiverStream::new(requests));
        let incoming = stream.await.expect("a stream").into_inner();
        Session { id, out, incoming }
    }

    pub async fn say(&self, update: Option<pb::stream_message_request::Update>) {
        let client_id = self.id;
        let _ = self.out.send(pb::StreamMessageRequest { client_id, update }).await;
    }

    pub async fn subscribe(&self, wants: pb::subscribe::Notifications) {
        let subscribe = pb::Subscribe {
            notifications: Some(wants),
            ..pb::Subscribe::default()
        };
        self.say(Some(pb::stream_message_request::Update::Subscribe(subscribe)))
            .await;
    }

    /// The next message, within five seconds.
    pub async fn next(&mut self) -> Result<Notification, Status> {
        let next = tokio::time::timeout(Duration::from_secs(5), self.incoming.message()).await;
        let message = next.expect("a message comes in time")?;
        Ok(message
            .expect("the stream goes on")
            .update
            .expect("a message says something"))
    }

    /// Whether no message arrives for a while.
    pub async fn is_silent(&mut self) -> bool {
        let next = tokio::time::timeout(Duration::from_millis(150), self.incoming.message());
        next.await.is_err()
    }
}

impl Bench {
    /// A server of the program with every kind of table, on a manual clock.
    pub async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub async fn with(config: Config) -> Self {
        Self::of(&source(), config, Clone::clone).await
    }

    /// The same for a program, behind a data plane that wraps the switch.
    pub async fn of<P: DataPlane>(source: &str, config: Config, behind: impl Fn(&Arc<Standalone>) -> Arc<P>) -> Self {
        let program = compile(source);
        let externs = weir_externs::registry();
        let switch = Standalone::with_externs(Arc::clone(&program), Some(64), Clock::manual(), externs);
        let switch = Arc::new(switch.expect("runs"));
        let device = Device::new(behind(&switch), Some(program), NAME, 16).expect("is described");
        let server = BfRuntime::on(&device, config);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(bfrt::serve_on(server.clone(), listener, std::future::pending()));
        let mut client = connect(address).await;
        let config = client
            .get_forwarding_pipeline_config(pb::GetForwardingPipelineConfigRequest::default())
            .await;
        let config = config.expect("a config").into_inner();
        let parse =
            |bytes: &[u8]| BfrtInfo::from_json(std::str::from_utf8(bytes).expect("UTF-8")).expect("a description");
        Bench {
            switch,
            device,
            server,
            client,
            info: parse(&config.config[0].bfruntime_info),
            fixed: parse(&config.non_p4_config.expect("always there").bfruntime_info),
            address,
        }
    }

    // --------------------------------------------------------------------------------------
    // clients

    /// A client that is subscribed and bound.
    pub async fn bound(&self, id: u32) -> Session {
        let mut session = self.subscribed(id).await;
        self.bind(id, NAME).await.expect("is bound");
        session.id = id;
        session
    }

    /// A client that is subscribed.
    pub async fn subscribed(&self, id: u32) -> Session {
        let mut session = Session::open(&self.client, id).await;
        session.subscribe(everything()).await;
        match session.next().await {
            Ok(Notification::Subscribe(answer)) => assert_eq!(answer.status.expect("is set").code, 0),
            other => panic!("{other:?} is no answer to a subscription"),
        }
        session
    }

    pub async fn set(
        &self,
        client: u32,
        action: Action,
        config: Vec<pb::ForwardingPipelineConfig>,
    ) -> Result<i32, Code> {
        let request = pb::SetForwardingPipelineConfigRequest {
            client_id: client,
            action: action.into(),
            config,
            ..pb::SetForwardingPipelineConfigRequest::default()
        };
        let answer = self.client.clone().set_forwarding_pipeline_config(request).await;
        let answer = answer.map_err(|s| s.code())?.into_inner();
        Ok(answer.set_forwarding_pipeline_config_response_type)
    }

    pub async fn bind(&self, client: u32, name: &str) -> Result<(), Code> {
        let config = pb::ForwardingPipelineConfig {
            p4_name: name.to_owned(),
            ..pb::ForwardingPipelineConfig::default()
        };
        self.set(client, Action::Bind, vec![config]).await.map(|_| ())
    }

    pub async fn config(&self) -> pb::GetForwardingPipelineConfigResponse {
        let request = pb::GetForwardingPipelineConfigRequest::default();
        let answer = self.client.clone().get_forwarding_pipeline_config(request).await;
        answer.expect("a config").into_inner()
    }

    // ----------------------------------------------------------------------------------------
    // names

    pub fn table(&self, name: &str) -> &Table {
        let full = format!("pipe.{name}");
        let mut all = self.info.tables.iter().chain(&self.fixed.tables);
        let found = all.find(|t| t.name == full || t.name == name);
        found.unwrap_or_else(|| panic!("there is no table {name}"))
    }

    pub fn action(&self, table: &str, name: &str) -> u32 {
        let actions = self.table(table).action_specs.iter().flatten();
        let mut found = actions.clone().filter(|a| a.name.ends_with(name));
        found.next().unwrap_or_else(|| panic!("there is no action {name}")).id
    }

    /// The id of a field of a table's data.
    pub fn field(&self, table: &str, name: &str) -> u32 {
        let fields = self.table(table).data.iter().flat_map(|d| match &d.field {
            DataChoice::One(field) => vec![field],
            DataChoice::OneOf(fields) => fields.iter().collect(),
        });
        let mut found = fields.filter(|f| f.name == name);
        found.next().unwrap_or_else(|| panic!("there is no field {name}")).id
    }

    pub fn key_id(&self, table: &str, name: &str) -> u32 {
        let mut keys = self.table(table).key.iter().filter(|k| k.name.ends_with(name));
        keys.next().unwrap_or_else(|| panic!("there is no key {name}")).id
    }

    // -------------------------------------------------------------------------------------
    // requests

    pub async fn write_request(&self, request: Request<pb::WriteRequest>) -> Result<pb::WriteResponse, Status> {
        let written = self.client.clone().write(request).await;
        written.map(tonic::Response::into_inner)
    }

    pub async fn write_with(
        &self,
        updates: Vec<pb::Update>,
        atomicity: Atomicity,
    ) -> Result<pb::WriteResponse, Status> {
        self.write_request(Request::new(write_request(updates, atomicity)))
            .await
    }

    pub async fn write(&self, updates: Vec<pb::Update>) -> Result<pb::WriteResponse, Status> {
        self.write_with(updates, Atomicity::ContinueOnError).await
    }

    /// Writes one entity; returns the code of its error.
    pub async fn one(&self, ty: Type, entity: Entity) -> Result<(), Code> {
        match self.write(vec![update(ty, entity)]).await {
            Ok(_) => Ok(()),
            Err(status) => {
                assert_eq!(
                    (status.code(), status.message()),
                    (Code::Unknown, "Write Error Status"),
                    "{status:?}"
                );
                let details = details(&status);
                assert_eq!(details.len(), 1);
                assert!(!details[0].message.is_empty());
                Err(Code::from_i32(details[0].canonical_code))
            }
        }
    }

    pub async fn insert(&self, entry: pb::TableEntry) -> Result<(), Code> {
        self.one(Type::Insert, Entity::TableEntry(entry)).await
    }

    pub async fn modify(&self, entry: pb::TableEntry) -> Result<(), Code> {
        self.one(Type::Modify, Entity::TableEntry(entry)).await
    }

    pub async fn delete(&self, entry: pb::TableEntry) -> Result<(), Code> {
        self.one(Type::Delete, Entity::TableEntry(entry)).await
    }

    /// All responses to a Read, and the status at the end.
    pub async fn read_request(&self, request: Request<pb::ReadRequest>) -> (Vec<pb::ReadResponse>, Option<Status>) {
        let mut client = self.client.clone();
        let mut stream = match client.read(request).await {
            Ok(stream) => stream.into_inner(),
            Err(status) => return (Vec::new(), Some(status)),
        };
        let mut found = Vec::new();
        loop {
            match stream.message().await {
                Ok(Some(response)) => found.push(response),
                Ok(None) => return (found, None),
                Err(status) => return (found, Some(status)),
            }
        }
    }

    pub async fn read_all(&self, queries: Vec<Entity>) -> (Vec<pb::ReadResponse>, Option<Status>) {
        self.read_request(Request::new(read_request(queries))).await
    }

    /// The entities found for one query.
    pub async fn read_entities(&self, query: Entity) -> Result<Vec<Entity>, Code> {
        let (responses, status) = self.read_all(vec![query]).await;
        match status {
            None => Ok(responses
                .into_iter()
                .flat_map(|r| r.entities)
                .filter_map(|e| e.entity)
                .collect()),
            Some(status) => {
                assert_eq!(
                    (status.code(), status.message()),
                    (Code::Unknown, "Read Error Status"),
                    "{status:?}"
                );
                Err(Code::from_i32(details(&status)[0].canonical_code))
            }
        }
    }

    /// The entries found for one query.
    pub async fn read(&self, query: pb::TableEntry) -> Result<Vec<pb::TableEntry>, Code> {
        let found = self.read_entities(Entity::TableEntry(query)).await?;
        Ok(found
            .into_iter()
            .map(|e| match e {
                Entity::TableEntry(entry) => entry,
                other => panic!("{other:?} is no entry"),
            })
            .collect())
    }

    /// All entries of a table but the default one.
    pub async fn entries(&self, table: &str) -> Vec<pb::TableEntry> {
        let mut found = self.read(self.all(table)).await.expect("is read");
        found.retain(|e| !e.is_default_entry);
        found
    }

    // -------------------------------------------------------------------------------------
    // entities

    /// The query for all of a table.
    pub fn all(&self, table: &str) -> pb::TableEntry {
        pb::TableEntry {
            table_id: self.table(table).id,
            ..pb::TableEntry::default()
        }
    }

    pub fn keyed(&self, table: &str, key: Vec<pb::KeyField>) -> pb::TableEntry {
        pb::TableEntry {
            value: Some(pb::table_entry::Value::Key(pb::TableKey { fields: key })),
            ..self.all(table)
        }
    }

    /// The entry of a table with one exact key.
    pub fn exact(&self, table: &str, key: u32) -> pb::TableEntry {
        self.keyed(table, vec![exact(self.table(table).key[0].id, &key.to_be_bytes())])
    }

    /// The same with the action `answer…` and a value.
    pub fn answer(&self, table: &str, key: u32, action: &str, value: u32) -> pb::TableEntry {
        with_data(
            self.exact(table, key),
            self.action(table, action),
            vec![stream(1, &value.to_be_bytes())],
        )
    }

    /// An entry of `In.exact_keys`.
    pub fn entry(&self, key: u32, value: u32) -> pb::TableEntry {
        self.answer("In.exact_keys", key, "answer_counted", value)
    }

    pub fn default_entry(&self, table: &str) -> pb::TableEntry {
        pb::TableEntry {
            is_default_entry: true,
            ..self.all(table)
        }
    }

    // --------------------------------------------------------------------------------------
    // packets

    /// The answer to a packet received at a port.
    pub fn answer_to_packet(&self, kind: u8, port: u8, key: u32) -> Option<u32> {
        let out = self.switch.send(1, &query_packet(kind, port, key));
        let bytes = &out.first()?.bytes;
        Some(u32::from_be_bytes([bytes[6], bytes[7], bytes[8], bytes[9]]))
    }
}

pub async fn connect(address: std::net::SocketAddr) -> Client {
    let channel = Channel::from_shared(format!("http://{address}")).expect("a URI");
    let channel = channel
        .http2_max_header_list_size(16 << 20)
        .connect()
        .await
        .expect("connects");
    BfRuntimeClient::new(channel).max_decoding_message_size(256 << 20)
}

pub fn query_packet(kind: u8, port: u8, key: u32) -> Vec<u8> {
    let mut packet = vec![kind, port];
    packet.extend_from_slice(&key.to_be_bytes());
    packet.resize(64, 0);
    packet
}

pub fn write_request(updates: Vec<pb::Update>, atomicity: Atomicity) -> pb::WriteRequest {
    pb::WriteRequest {
        target: Some(target(ALL)),
        updates,
        atomicity: atomicity.into(),
        p4_name: NAME.to_owned(),
        ..pb::WriteRequest::default()
    }
}

pub fn read_request(queries: Vec<Entity>) -> pb::ReadRequest {
    pb::ReadRequest {
        target: Some(target(ALL)),
        entities: queries.into_iter().map(|e| pb::Entity { entity: Some(e) }).collect(),
        p4_name: NAME.to_owned(),
        ..pb::ReadRequest::default()
    }
}

pub fn target(pipe_id: u32) -> pb::TargetDevice {
    pb::TargetDevice {
        device_id: 0,
        pipe_id,
        direction: 0xff,
        prsr_id: 0xff,
    }
}

pub fn update(ty: Type, entity: Entity) -> pb::Update {
    pb::Update {
        r#type: ty.into(),
        entity: Some(pb::Entity { entity: Some(entity) }),
    }
}

pub fn with_data(entry: pb::TableEntry, action_id: u32, fields: Vec<pb::DataField>) -> pb::TableEntry {
    pb::TableEntry {
        data: Some(pb::TableData { action_id, fields }),
        ..entry
    }
}

fn key(field_id: u32, of: MatchType) -> pb::KeyField {
    pb::KeyField {
        field_id,
        match_type: Some(of),
    }
}

pub fn exact(field_id: u32, value: &[u8]) -> pb::KeyField {
    let value = value.to_vec().into();
    key(field_id, MatchType::Exact(pb::key_field::Exact { value }))
}

pub fn lpm(field_id: u32, value: &[u8], prefix_len: i32) -> pb::KeyField {
    let value = value.to_vec().into();
    key(field_id, MatchType::Lpm(pb::key_field::Lpm { value, prefix_len }))
}

pub fn ternary(field_id: u32, value: &[u8], mask: &[u8]) -> pb::KeyField {
    let (value, mask) = (value.to_vec().into(), mask.to_vec().into());
    key(field_id, MatchType::Ternary(pb::key_field::Ternary { value, mask }))
}

pub fn range(field_id: u32, low: &[u8], high: &[u8]) -> pb::KeyField {
    let (low, high) = (low.to_vec().into(), high.to_vec().into());
    key(field_id, MatchType::Range(pb::key_field::Range { low, high }))
}

pub fn field(field_id: u32, value: Wire) -> pb::DataField {
    pb::DataField {
        field_id,
        value: Some(value),
    }
}

pub fn stream(field_id: u32, value: &[u8]) -> pb::DataField {
    field(field_id, Wire::Stream(value.to_vec().into()))
}

pub fn numbers(field_id: u32, val: &[u32]) -> pb::DataField {
    field(
        field_id,
        Wire::IntArrVal(pb::data_field::IntArray { val: val.to_vec() }),
    )
}

pub fn flags(field_id: u32, val: &[bool]) -> pb::DataField {
    field(
        field_id,
        Wire::BoolArrVal(pb::data_field::BoolArray { val: val.to_vec() }),
    )
}

pub fn text(field_id: u32, value: &str) -> pb::DataField {
    field(field_id, Wire::StrVal(value.to_owned()))
}

/// The value of a field of an entry.
pub fn value(entry: &pb::TableEntry, field_id: u32) -> Wire {
    let fields = &entry.data.as_ref().expect("has data").fields;
    let found = fields.iter().find(|f| f.field_id == field_id);
    let found = found.unwrap_or_else(|| panic!("{entry:?} has no field {field_id}"));
    found.value.clone().expect("no field is without a value")
}

/// The same as a number.
pub fn number(entry: &pb::TableEntry, field_id: u32) -> u64 {
    match value(entry, field_id) {
        Wire::Stream(bytes) => bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)),
        other => panic!("{other:?} is no number"),
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
    assert_eq!((decoded.code, decoded.message.as_str()), (2, status.message()));
    let errors = decoded.details.iter().map(|d| {
        assert_eq!(d.type_url, "type.googleapis.com/bfrt_proto.Error");
        pb::Error::decode(d.value.as_slice()).expect("an error")
    });
    errors.collect()
}

/// The codes of the details.
pub fn codes(status: &Status) -> Vec<i32> {
    details(status).iter().map(|d| d.canonical_code).collect()
}
