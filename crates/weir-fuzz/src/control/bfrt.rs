//! Scripts for BF Runtime.

use super::script::{self, Kind, STREAMS, Server};
use super::{compiled, mangled, number, odd_number};
use crate::mutate::Mutator;
use crate::rng::Rng;
use prost::Message;
use std::sync::{Arc, OnceLock};
use tonic::Status;
use weir_ir::Program;
use weir_proto::bfrt_info::{BfrtInfo, DataChoice, Table};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::key_field::MatchType;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_proto::bfrt_raw::bf_runtime_server::BfRuntimeServer;
use weir_server::bfrt::{BfRuntime, Config};
use weir_server::{Clock, Device, Standalone};

/// What the program is called.
const NAME: &str = "kinds";

/// The program that has every kind of table.
fn source() -> String {
    let text = include_str!("../../../weir-rbfrt-tests/p4/kinds.p4");
    // Few cells, as the state is read again and again.
    let text = text
        .replace("(256, CounterType", "(8, CounterType")
        .replace("(256, MeterType", "(8, MeterType");
    format!("#define FULL\n{}", text.replace(">(256) last", ">(8) last"))
}

/// The program, its tables and those of the device.
struct World {
    program: Arc<Program>,
    tables: Vec<Table>,
}

fn server(program: &Arc<Program>) -> BfRuntime {
    let switch = Standalone::new(Arc::clone(program), Some(64), Clock::manual()).expect("runs");
    let device = Device::new(Arc::new(switch), Some(Arc::clone(program)), NAME, 16).expect("is described");
    BfRuntime::on(&device, Config::default())
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        use weir_proto::bfrt_raw::bf_runtime_server::BfRuntime as _;
        let program = compiled(&source());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let config = runtime.expect("a runtime").block_on(async {
            let request = pb::GetForwardingPipelineConfigRequest::default();
            let server = server(&program);
            let told = server.get_forwarding_pipeline_config(tonic::Request::new(request));
            told.await.expect("is told").into_inner()
        });
        let parse = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            BfrtInfo::from_json(&text).expect("is a description").tables
        };
        let mut tables = parse(&config.config[0].bfruntime_info);
        tables.extend(parse(&config.non_p4_config.unwrap_or_default().bfruntime_info));
        World { program, tables }
    })
}

/// Runs a script.
pub(crate) fn run(script: &[u8]) {
    let world = world();
    script::run(script, || Server {
        routes: tonic::service::Routes::new(BfRuntimeServer::new(server(&world.program))),
        service: "bfrt_proto.BfRuntime",
        is_refused,
        state: state(&world.tables),
        entities: |answer| script::entities(answer, |a: pb::ReadResponse| a.entities),
    });
}

fn is_refused(message: &[u8], status: &Status) -> bool {
    let Ok(request) = pb::WriteRequest::decode(message) else {
        // An update that is no message is one that failed, and others were made.
        return false;
    };
    if request.atomicity != i32::from(Atomicity::ContinueOnError) {
        return true;
    }
    let (errors, updates) = (script::errors::<pb::Error>(status), request.updates.len());
    assert!(errors.len() <= updates, "there are more errors than updates");
    errors.len() == updates && errors.iter().all(|e| e.canonical_code != 0)
}

fn target() -> pb::TargetDevice {
    pb::TargetDevice {
        device_id: 0,
        pipe_id: 0xffff,
        direction: 0xff,
        prsr_id: 0xff,
    }
}

/// `$ENTRY_TTL`.
const TTL: u32 = 65543;

/// Everything that can be read, and attributes. Of tables with idle time-outs the hit state is left
/// out: the clock of a program runs on during a warm init.
fn state(tables: &[Table]) -> Vec<Vec<u8>> {
    let times_out = |table: &Table| table.attributes.iter().any(|a| a == "IdleTimeout");
    let field = |field_id| pb::DataField { field_id, value: None };
    let entries = tables.iter().map(|table| {
        Entity::TableEntry(pb::TableEntry {
            table_id: table.id,
            data: times_out(table).then(|| pb::TableData {
                action_id: 0,
                fields: vec![field(1), field(TTL)],
            }),
            ..pb::TableEntry::default()
        })
    });
    let idle = tables.iter().filter(|t| times_out(t));
    let idle = idle.map(|table| {
        Entity::TableAttribute(pb::TableAttribute {
            table_id: table.id,
            attribute: Some(pb::table_attribute::Attribute::IdleTable(pb::IdleTable::default())),
        })
    });
    let request = |entities: Vec<Entity>| pb::ReadRequest {
        target: Some(target()),
        entities: entities.into_iter().map(|e| pb::Entity { entity: Some(e) }).collect(),
        p4_name: NAME.to_owned(),
        ..pb::ReadRequest::default()
    };
    vec![request(entries.chain(idle).collect()).encode_to_vec()]
}

/// The next script.
pub(crate) fn input(mutator: &mut Mutator) -> Vec<u8> {
    let rng = &mut Rng::new(mutator.next_number());
    let tables = &world().tables;
    let mut script = Vec::new();
    if rng.chance(60) {
        script::push(&mut script, Kind::Say(0), &subscription(rng, 1).encode_to_vec());
    }
    for _ in 0..rng.between(1, 24) {
        let (kind, message) = match rng.below(40) {
            0..26 => (Kind::Write, write(rng, tables).encode_to_vec()),
            26..31 => (Kind::Read, read(rng, tables).encode_to_vec()),
            31..33 => (Kind::SetPipeline, set_pipeline(rng).encode_to_vec()),
            33 => (Kind::GetPipeline, number(rng, 24)),
            34 => (Kind::Close(rng.below(STREAMS.into()) as u8), Vec::new()),
            _ => (Kind::Say(rng.below(STREAMS.into()) as u8), message(rng).encode_to_vec()),
        };
        let message = mangled(rng, message);
        script::push(&mut script, kind, &message);
    }
    script
}

fn subscription(rng: &mut Rng, client_id: u32) -> pb::StreamMessageRequest {
    use pb::stream_message_request::Update;
    pb::StreamMessageRequest {
        client_id,
        update: Some(Update::Subscribe(pb::Subscribe {
            device_id: rng.one([0, 0, 0, 0, 5]),
            notifications: rng.chance(80).then(|| pb::subscribe::Notifications {
                enable_learn_notifications: rng.chance(50),
                enable_idletimeout_notifications: rng.chance(50),
                enable_port_status_change_notifications: rng.chance(50),
                ..pb::subscribe::Notifications::default()
            }),
            ..pb::Subscribe::default()
        })),
    }
}

fn message(rng: &mut Rng) -> pb::StreamMessageRequest {
    use pb::stream_message_request::Update;
    let client_id = rng.below(4) as u32;
    match rng.below(6) {
        0 => pb::StreamMessageRequest {
            client_id,
            update: None,
        },
        1 => pb::StreamMessageRequest {
            client_id,
            update: Some(Update::DigestAck(pb::DigestListAck::default())),
        },
        _ => subscription(rng, client_id),
    }
}

fn name(rng: &mut Rng) -> String {
    rng.one([NAME, NAME, NAME, NAME, NAME, NAME, NAME, "", "$SHARED", "other"])
        .to_owned()
}

fn odd_target(rng: &mut Rng) -> Option<pb::TargetDevice> {
    let target = pb::TargetDevice {
        device_id: rng.one([0, 0, 0, 0, 0, 0, 0, 0, 3]),
        pipe_id: rng.one([0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0, 1, 3, 77]),
        ..target()
    };
    rng.chance(95).then_some(target)
}

fn write(rng: &mut Rng, tables: &[Table]) -> pb::WriteRequest {
    let updates = (0..rng.between(0, 6)).map(|_| pb::Update {
        r#type: rng.one([1, 1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 0, 9]),
        entity: rng.chance(98).then(|| entity(rng, tables)),
    });
    let updates = updates.collect();
    pb::WriteRequest {
        target: odd_target(rng),
        client_id: rng.below(4) as u32,
        updates,
        atomicity: rng.one([0, 0, 1, 1, 1, 2, 2, 3, -1]),
        p4_name: name(rng),
    }
}

fn read(rng: &mut Rng, tables: &[Table]) -> pb::ReadRequest {
    pb::ReadRequest {
        target: odd_target(rng),
        client_id: rng.below(4) as u32,
        entities: (0..rng.between(0, 4)).map(|_| entity(rng, tables)).collect(),
        p4_name: name(rng),
    }
}

fn set_pipeline(rng: &mut Rng) -> pb::SetForwardingPipelineConfigRequest {
    let config = |rng: &mut Rng| pb::ForwardingPipelineConfig {
        p4_name: name(rng),
        bfruntime_info: rng.one([b"".as_slice(), b"{}", b"{\"tables\": []}"]).to_vec().into(),
        profiles: (0..rng.below(2))
            .map(|_| pb::forwarding_pipeline_config::Profile {
                profile_name: "pipe".to_owned(),
                context: number(rng, 64).into(),
                binary: match rng.below(6) {
                    0 => source().into_bytes().into(),
                    _ => number(rng, 200).into(),
                },
                pipe_scope: Vec::new(),
            })
            .collect(),
    };
    pb::SetForwardingPipelineConfigRequest {
        device_id: rng.one([0, 0, 0, 0, 5]),
        client_id: rng.below(4) as u32,
        action: rng.one([0, 0, 0, 0, 1, 2, 3, 4, 5, 9]),
        dev_init_mode: rng.below(3) as i32,
        base_path: String::new(),
        config: (0..rng.one([1, 1, 1, 0, 2])).map(|_| config(rng)).collect(),
    }
}

/// The bits of a type of bfrt.json.
fn bits(kind: &str, width: Option<u32>) -> usize {
    let digits: String = kind.chars().filter(char::is_ascii_digit).collect();
    width.map_or_else(|| digits.parse().unwrap_or(32), |w| w as usize)
}

fn key(rng: &mut Rng, of: &weir_proto::bfrt_info::KeyField) -> pb::KeyField {
    use pb::key_field::{Exact, Lpm, Optional, Range, Ternary};
    let width = bits(&of.ty.kind, of.ty.width);
    let own = of.match_type.as_str();
    let kind = if rng.chance(95) {
        own
    } else {
        rng.one(["Exact", "LPM", "Ternary", "Range", "Optional"])
    };
    let value = odd_number(rng, width);
    let matched = match kind {
        "LPM" => {
            let prefix_len = rng.one([width as i32, width as i32, 8, 0, -1, 129]);
            MatchType::Lpm(Lpm {
                value: value.into(),
                prefix_len,
            })
        }
        "Ternary" => MatchType::Ternary(Ternary {
            value: value.into(),
            mask: odd_number(rng, width).into(),
        }),
        "Range" => MatchType::Range(Range {
            low: value.into(),
            high: odd_number(rng, width).into(),
        }),
        "Optional" => MatchType::Optional(Optional {
            value: value.into(),
            is_valid: rng.chance(50),
        }),
        _ if of.ty.kind == "string" => {
            let text = rng.one(["1/0", "BF_SPEED_100G", "", "\u{0}"]);
            MatchType::Exact(Exact {
                value: text.as_bytes().to_vec().into(),
            })
        }
        _ => MatchType::Exact(Exact { value: value.into() }),
    };
    pb::KeyField {
        field_id: if rng.chance(98) { of.id } else { rng.below(4) as u32 },
        match_type: rng.chance(99).then_some(matched),
    }
}

/// A value of a field: of the type that it has, or of any.
fn value(rng: &mut Rng, shape: &weir_proto::bfrt_info::DataShape, repeated: bool) -> Option<Wire> {
    use weir_proto::bfrt_info::DataShape;
    let any = !rng.chance(93);
    let DataShape::Value(ty) = shape else {
        return Some(Wire::ContainerArrVal(pb::data_field::ContainerArray::default()));
    };
    let wire = match ty.kind.as_str() {
        _ if any => match rng.below(8) {
            0 => return None,
            1 => Wire::FloatVal(f32::from_bits(rng.number() as u32)),
            2 => Wire::StrVal("BF_SPEED_100G".to_owned()),
            3 => Wire::BoolVal(true),
            4 => Wire::StrArrVal(pb::data_field::StrArray::default()),
            5 => Wire::IntArrVal(pb::data_field::IntArray { val: vec![1, 2] }),
            _ => Wire::Stream(odd_number(rng, 32).into()),
        },
        "bool" if repeated => Wire::BoolArrVal(pb::data_field::BoolArray {
            val: (0..rng.below(4)).map(|_| rng.chance(50)).collect(),
        }),
        "bool" => Wire::BoolVal(rng.chance(50)),
        "float" => Wire::FloatVal(rng.one([0.0, 1.5, -1.0, f32::NAN, f32::INFINITY, 1e30])),
        "string" => {
            let choices = ty.choices.clone().unwrap_or_default();
            Wire::StrVal(rng.pick(&choices).cloned().unwrap_or_else(|| "x".to_owned()))
        }
        _ if repeated => Wire::IntArrVal(pb::data_field::IntArray {
            val: (0..rng.below(5))
                .map(|_| rng.one([0, 1, 2, 3, 4, 600, u32::MAX]))
                .collect(),
        }),
        kind => Wire::Stream(odd_number(rng, bits(kind, ty.width)).into()),
    };
    Some(wire)
}

fn data(rng: &mut Rng, table: &Table) -> pb::TableData {
    let mut fields = Vec::new();
    let mut action_id = 0;
    if let Some(action) = rng.pick(table.action_specs.as_deref().unwrap_or_default()) {
        action_id = action.id;
        for field in &action.data {
            if rng.chance(97) {
                let given = value(
                    rng,
                    &weir_proto::bfrt_info::DataShape::Value(field.ty.clone()),
                    field.repeated,
                );
                fields.push(pb::DataField {
                    field_id: field.id,
                    value: given,
                });
            }
        }
    }
    // Tables with actions need no other fields; those without need most of them.
    let percent = if action_id == 0 { 85 } else { 8 };
    for given in &table.data {
        let field = match &given.field {
            DataChoice::One(field) => field,
            DataChoice::OneOf(fields) => match rng.pick(fields) {
                Some(field) => field,
                None => continue,
            },
        };
        if rng.chance(percent) || given.mandatory {
            let given = value(rng, &field.shape, field.repeated);
            fields.push(pb::DataField {
                field_id: field.id,
                value: given,
            });
        }
    }
    if rng.chance(2) {
        action_id = rng.number() as u32;
    }
    pb::TableData { action_id, fields }
}

fn entity(rng: &mut Rng, tables: &[Table]) -> pb::Entity {
    // The program's tables come first, and more often.
    let among = if rng.chance(70) { tables.len() / 2 } else { tables.len() };
    let table = &tables[rng.below(among)];
    let table_id = if rng.chance(98) { table.id } else { rng.number() as u32 };
    let fields = || pb::TableKey::default();
    let entity = match rng.below(24) {
        0 => Entity::TableUsage(pb::TableUsage {
            table_id,
            ..pb::TableUsage::default()
        }),
        1 => Entity::TableOperation(pb::TableOperation {
            table_id,
            table_operations_type: rng
                .pick(&table.supported_operations)
                .cloned()
                .unwrap_or_else(|| "SyncCounters".to_owned()),
        }),
        2 => Entity::TableAttribute(attribute(rng, table_id)),
        3 => Entity::Handle(pb::HandleId {
            table_id,
            value: Some(pb::handle_id::Value::Key(fields())),
        }),
        4 => Entity::ObjectId(pb::ObjectId::default()),
        _ => {
            let is_default_entry = rng.chance(8);
            let keys: Vec<pb::KeyField> = table.key.iter().filter(|_| true).map(|k| key(rng, k)).collect();
            let keys = keys.into_iter().filter(|_| rng.chance(98)).collect();
            let value = match rng.below(20) {
                _ if is_default_entry && rng.chance(90) => None,
                0 => None,
                1 => Some(pb::table_entry::Value::HandleId(rng.below(6) as u32)),
                _ => Some(pb::table_entry::Value::Key(pb::TableKey { fields: keys })),
            };
            Entity::TableEntry(pb::TableEntry {
                table_id,
                value,
                data: rng.chance(90).then(|| data(rng, table)),
                is_default_entry,
                entry_tgt: if rng.chance(10) { odd_target(rng) } else { None },
                table_flags: rng.chance(15).then(|| pb::TableFlags {
                    from_hw: rng.chance(50),
                    key_only: rng.chance(50),
                    mod_del: rng.chance(50),
                    reset_ttl: rng.chance(50),
                    reset_stats: rng.chance(50),
                }),
                ..pb::TableEntry::default()
            })
        }
    };
    pb::Entity {
        entity: rng.chance(99).then_some(entity),
    }
}

fn attribute(rng: &mut Rng, table_id: u32) -> pb::TableAttribute {
    use pb::table_attribute::Attribute;
    let mode = |rng: &mut Rng| {
        let scope = match rng.below(3) {
            0 => pb::mode::Scope::UserDefined(rng.number()),
            n => pb::mode::Scope::Predef(n as i32 - 1),
        };
        rng.chance(80).then_some(pb::Mode {
            scope: Some(scope),
            args: 0,
        })
    };
    let attribute = match rng.below(6) {
        0 => Attribute::IdleTable(pb::IdleTable {
            ttl_query_interval: rng.below(100) as u32,
            max_ttl: rng.below(100) as u32,
            min_ttl: rng.below(100) as u32,
            idle_table_mode: rng.below(3) as i32,
            enable: rng.chance(70),
        }),
        1 | 2 => Attribute::EntryScope(pb::EntryScope {
            gress_scope: mode(rng),
            pipe_scope: mode(rng),
            prsr_scope: mode(rng),
        }),
        3 => Attribute::PortStatusNotify(pb::PortStatusChg { enable: rng.chance(50) }),
        4 => Attribute::IntvlMs(pb::StatePullIntvl {
            intvl_val: rng.below(5) as u32,
        }),
        _ => Attribute::ByteCountAdj(pb::ByteCountAdj {
            byte_count_adjust: rng.one([0, 4, -4]),
        }),
    };
    pb::TableAttribute {
        table_id,
        attribute: rng.chance(98).then_some(attribute),
    }
}
