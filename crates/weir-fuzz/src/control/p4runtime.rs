//! Scripts for P4Runtime.
#![allow(
    deprecated,
    reason = "controllers of older versions use fields that newer ones should not"
)]

use super::script::{self, Kind, STREAMS, Server};
use super::{compiled, mangled, number, odd_number};
use crate::mutate::Mutator;
use crate::rng::Rng;
use prost::Message;
use std::sync::{Arc, OnceLock};
use tonic::Status;
use weir_ir::Program;
use weir_proto::p4::config::v1::P4Info;
use weir_proto::p4::config::v1::match_field::{Match, MatchType};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::p4rt_raw::p4_runtime_server::P4RuntimeServer;
use weir_proto::prost_types::Any;
use weir_server::p4rt::{Config, P4Runtime};
use weir_server::{Clock, Standalone};

/// The program that has everything, with fewer bits, as the state is read again and again.
fn source() -> String {
    include_str!("../../../weir-server/tests/p4/everything.p4").replace("0x100000", "8")
}

/// The program and what P4Runtime is told of it.
fn world() -> &'static (Arc<Program>, P4Info) {
    static WORLD: OnceLock<(Arc<Program>, P4Info)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let program = compiled(&source());
        let info = weir_compiler::p4info::p4info(&program, weir_arch::targets()).expect("has a P4Info");
        (program, info)
    })
}

/// Runs a script.
pub(crate) fn run(script: &[u8]) {
    let (program, info) = world();
    script::run(script, || {
        let switch = Standalone::new(Arc::clone(program), Some(510), Clock::manual()).expect("runs");
        let server = P4Runtime::new(Arc::new(switch), Some(Arc::clone(program)), Config::default());
        Server {
            routes: tonic::service::Routes::new(P4RuntimeServer::new(server.expect("is described"))),
            service: "p4.v1.P4Runtime",
            is_refused,
            state: state(info),
            entities: |answer| script::entities(answer, |a: pb::ReadResponse| a.entities),
        }
    });
}

fn is_refused(message: &[u8], status: &Status) -> bool {
    let Ok(request) = pb::WriteRequest::decode(message) else {
        return true;
    };
    if request.atomicity != i32::from(Atomicity::ContinueOnError) {
        return true;
    }
    let errors = script::errors::<pb::Error>(status);
    assert_eq!(
        errors.len(),
        request.updates.len(),
        "there is an error for every update"
    );
    errors.iter().all(|e| e.canonical_code != 0)
}

/// Everything that can be read.
fn state(info: &P4Info) -> Vec<Vec<u8>> {
    let ids = info.tables.iter().filter_map(|t| t.preamble.as_ref()).map(|p| p.id);
    let tables = ids.flat_map(|table_id| {
        let of = |is_default_action| pb::TableEntry {
            table_id,
            is_default_action,
            counter_data: Some(pb::CounterData::default()),
            meter_config: Some(pb::MeterConfig::default()),
            ..pb::TableEntry::default()
        };
        [Entity::TableEntry(of(false)), Entity::TableEntry(of(true))]
    });
    let others = [
        Entity::ActionProfileMember(pb::ActionProfileMember::default()),
        Entity::ActionProfileGroup(pb::ActionProfileGroup::default()),
        Entity::CounterEntry(pb::CounterEntry::default()),
        Entity::MeterEntry(pb::MeterEntry::default()),
        Entity::RegisterEntry(pb::RegisterEntry::default()),
        Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry::default()),
        Entity::ValueSetEntry(pb::ValueSetEntry::default()),
        Entity::DigestEntry(pb::DigestEntry::default()),
    ];
    let request = pb::ReadRequest {
        device_id: 1,
        entities: tables.chain(others).map(|e| pb::Entity { entity: Some(e) }).collect(),
        ..pb::ReadRequest::default()
    };
    vec![request.encode_to_vec()]
}

/// The next script.
pub(crate) fn input(mutator: &mut Mutator) -> Vec<u8> {
    let rng = &mut Rng::new(mutator.next_number());
    let info = &world().1;
    let mut script = Vec::new();
    if rng.chance(90) {
        // Somebody is primary, so that writes are looked at.
        script::push(
            &mut script,
            Kind::Say(0),
            &arbitration(1, "", Some(1), None).encode_to_vec(),
        );
    }
    for _ in 0..rng.between(1, 24) {
        let (kind, message) = match rng.below(40) {
            0..26 => (Kind::Write, write(rng, info).encode_to_vec()),
            26..31 => (Kind::Read, read(rng, info).encode_to_vec()),
            31 if rng.chance(30) => (Kind::SetPipeline, set_pipeline(rng, info).encode_to_vec()),
            31 | 32 => (Kind::GetPipeline, get_pipeline(rng).encode_to_vec()),
            33 => {
                let device_id = device(rng);
                (
                    Kind::Capabilities,
                    pb::CapabilitiesRequest { device_id }.encode_to_vec(),
                )
            }
            34 => (Kind::Close(rng.below(STREAMS.into()) as u8), Vec::new()),
            _ => (Kind::Say(rng.below(STREAMS.into()) as u8), message(rng).encode_to_vec()),
        };
        let message = mangled(rng, message);
        script::push(&mut script, kind, &message);
    }
    script
}

fn device(rng: &mut Rng) -> u64 {
    rng.one([1, 1, 1, 1, 1, 1, 1, 0, 7, u64::MAX])
}

fn role(rng: &mut Rng) -> &'static str {
    rng.one(["", "", "", "", "", "", "role"])
}

fn election(rng: &mut Rng) -> Option<u64> {
    rng.one([
        Some(1),
        Some(1),
        Some(1),
        Some(1),
        Some(1),
        Some(1),
        Some(2),
        Some(u64::MAX),
        None,
    ])
}

fn arbitration(device_id: u64, role: &str, election: Option<u64>, config: Option<Any>) -> pb::StreamMessageRequest {
    use pb::stream_message_request::Update;
    let role = (!role.is_empty() || config.is_some()).then(|| pb::Role {
        name: role.to_owned(),
        config,
        ..pb::Role::default()
    });
    pb::StreamMessageRequest {
        update: Some(Update::Arbitration(pb::MasterArbitrationUpdate {
            device_id,
            role,
            election_id: election.map(|low| pb::Uint128 { high: 0, low }),
            status: None,
        })),
    }
}

/// A message on a stream.
fn message(rng: &mut Rng) -> pb::StreamMessageRequest {
    use pb::stream_message_request::Update;
    let update = match rng.below(8) {
        0 => None,
        1..4 => {
            let config = rng.chance(20).then(|| Any {
                type_url: rng.one(["type.googleapis.com/weir.v1.RoleConfig", "x", ""]).to_owned(),
                value: number(rng, 64),
            });
            return arbitration(device(rng), role(rng), election(rng), config);
        }
        4..6 => Some(Update::Packet(pb::PacketOut {
            payload: number(rng, 200),
            metadata: (0..rng.below(4))
                .map(|_| pb::PacketMetadata {
                    metadata_id: rng.below(4) as u32,
                    value: odd_number(rng, 9),
                })
                .collect(),
        })),
        6 => Some(Update::DigestAck(pb::DigestListAck {
            digest_id: any_id(rng, &world().1),
            list_id: rng.below(3) as u64,
        })),
        _ => Some(Update::Other(Any::default())),
    };
    pb::StreamMessageRequest { update }
}

fn write(rng: &mut Rng, info: &P4Info) -> pb::WriteRequest {
    let updates = (0..rng.between(0, 6)).map(|_| pb::Update {
        r#type: rng.one([1, 1, 1, 1, 2, 2, 2, 3, 3, 0, 9]),
        entity: rng.chance(98).then(|| entity(rng, info)),
    });
    let updates = updates.collect();
    pb::WriteRequest {
        device_id: device(rng),
        role: role(rng).to_owned(),
        election_id: election(rng).map(|low| pb::Uint128 { high: 0, low }),
        updates,
        atomicity: rng.one([0, 0, 1, 1, 2, 2, 2, 3, -1]),
        ..pb::WriteRequest::default()
    }
}

fn read(rng: &mut Rng, info: &P4Info) -> pb::ReadRequest {
    pb::ReadRequest {
        device_id: device(rng),
        role: role(rng).to_owned(),
        entities: (0..rng.between(0, 4)).map(|_| entity(rng, info)).collect(),
    }
}

fn get_pipeline(rng: &mut Rng) -> pb::GetForwardingPipelineConfigRequest {
    pb::GetForwardingPipelineConfigRequest {
        device_id: device(rng),
        response_type: rng.below(6) as i32,
    }
}

fn set_pipeline(rng: &mut Rng, info: &P4Info) -> pb::SetForwardingPipelineConfigRequest {
    let program = match rng.below(6) {
        0 => Vec::new(),
        1 => number(rng, 400),
        2 => {
            let mut text = source().into_bytes();
            text.truncate(rng.below(text.len()));
            text
        }
        _ => source().into_bytes(),
    };
    let mut info = info.clone();
    if rng.chance(30) {
        info.tables.truncate(rng.below(info.tables.len()));
    }
    pb::SetForwardingPipelineConfigRequest {
        device_id: device(rng),
        role: role(rng).to_owned(),
        election_id: election(rng).map(|low| pb::Uint128 { high: 0, low }),
        action: rng.below(7) as i32,
        config: rng.chance(80).then(|| pb::ForwardingPipelineConfig {
            p4info: rng.chance(90).then_some(info),
            p4_device_config: program,
            cookie: Some(pb::forwarding_pipeline_config::Cookie { cookie: 5 }),
        }),
        ..pb::SetForwardingPipelineConfigRequest::default()
    }
}

/// The id of something, mostly of what is there.
fn any_id(rng: &mut Rng, info: &P4Info) -> u32 {
    let preambles = (info.tables.iter().map(|o| &o.preamble))
        .chain(info.actions.iter().map(|o| &o.preamble))
        .chain(info.action_profiles.iter().map(|o| &o.preamble))
        .chain(info.counters.iter().map(|o| &o.preamble))
        .chain(info.meters.iter().map(|o| &o.preamble))
        .chain(info.registers.iter().map(|o| &o.preamble))
        .chain(info.digests.iter().map(|o| &o.preamble))
        .chain(info.value_sets.iter().map(|o| &o.preamble));
    let ids: Vec<u32> = preambles.flatten().map(|p| p.id).chain([0, u32::MAX]).collect();
    ids[rng.below(ids.len())]
}

/// One of a list's ids, now and then of something else.
fn id<'a>(
    rng: &mut Rng,
    info: &P4Info,
    of: impl Iterator<Item = &'a Option<weir_proto::p4::config::v1::Preamble>>,
) -> u32 {
    if rng.chance(4) {
        return any_id(rng, info);
    }
    let ids: Vec<u32> = of.flatten().map(|p| p.id).collect();
    rng.pick(&ids).copied().unwrap_or(0)
}

fn field(rng: &mut Rng, of: &weir_proto::p4::config::v1::MatchField) -> pb::FieldMatch {
    use pb::field_match::{Exact, FieldMatchType as Kind, Lpm, Optional, Range, Ternary};
    let bits = if of.bitwidth > 0 { of.bitwidth as usize } else { 32 };
    let own = match of.r#match {
        Some(Match::MatchType(n)) => MatchType::try_from(n).unwrap_or(MatchType::Unspecified),
        _ => MatchType::Unspecified,
    };
    let kinds = [
        MatchType::Exact,
        MatchType::Lpm,
        MatchType::Ternary,
        MatchType::Range,
        MatchType::Optional,
    ];
    let kind = if rng.chance(95) { own } else { rng.one(kinds) };
    let value = odd_number(rng, bits);
    let matched = match kind {
        MatchType::Lpm => {
            let prefix_len = rng.one([bits as i32, bits as i32, 8, 0, -1, 129]);
            let value = if prefix_len == 8 {
                vec![0; bits.div_ceil(8)]
            } else {
                value
            };
            Kind::Lpm(Lpm { value, prefix_len })
        }
        MatchType::Ternary => {
            let mask = if rng.chance(80) {
                vec![0xff; bits.div_ceil(8)]
            } else {
                odd_number(rng, bits)
            };
            Kind::Ternary(Ternary { value, mask })
        }
        MatchType::Range => Kind::Range(Range {
            low: value,
            high: odd_number(rng, bits),
        }),
        MatchType::Optional => Kind::Optional(Optional { value }),
        _ => Kind::Exact(Exact { value }),
    };
    pb::FieldMatch {
        field_id: if rng.chance(98) { of.id } else { rng.below(5) as u32 },
        field_match_type: rng.chance(99).then_some(matched),
    }
}

fn action(rng: &mut Rng, info: &P4Info, table: Option<&weir_proto::p4::config::v1::Table>) -> pb::Action {
    let own: Vec<u32> = table.iter().flat_map(|t| &t.action_refs).map(|a| a.id).collect();
    let action_id = match rng.pick(&own).copied() {
        Some(own) if rng.chance(95) => own,
        _ => id(rng, info, info.actions.iter().map(|a| &a.preamble)),
    };
    let of = info
        .actions
        .iter()
        .find(|a| a.preamble.as_ref().is_some_and(|p| p.id == action_id));
    let params = of.iter().flat_map(|a| &a.params);
    let params: Vec<_> = params
        .map(|p| (p.id, if p.bitwidth > 0 { p.bitwidth as usize } else { 32 }))
        .collect();
    let mut given = Vec::new();
    for (param_id, bits) in params {
        if rng.chance(98) {
            let value = odd_number(rng, bits);
            given.push(pb::action::Param { param_id, value });
        }
    }
    pb::Action {
        action_id,
        params: given,
    }
}

fn table_entry(rng: &mut Rng, info: &P4Info) -> pb::TableEntry {
    use pb::table_action::Type as Kind;
    let table = rng.pick(&info.tables);
    let is_default_action = rng.chance(8);
    let fields = table.iter().flat_map(|t| &t.match_fields);
    let fields: Vec<_> = match is_default_action && rng.chance(90) {
        true => Vec::new(),
        false => fields.filter(|_| rng.chance(97)).collect(),
    };
    let has_profile = table.is_some_and(|t| t.implementation_id != 0);
    let kind = match rng.below(8) {
        _ if !has_profile && rng.chance(95) => Kind::Action(action(rng, info, table)),
        0..3 => Kind::ActionProfileMemberId(rng.below(4) as u32),
        3..5 => Kind::ActionProfileGroupId(rng.below(4) as u32),
        5 => Kind::Action(action(rng, info, table)),
        _ => Kind::ActionProfileActionSet(pb::ActionProfileActionSet {
            action_profile_actions: (0..rng.below(4))
                .map(|_| pb::ActionProfileAction {
                    action: rng.chance(98).then(|| action(rng, info, table)),
                    weight: rng.one([1, 1, 1, 2, 0, -1, i32::MAX]),
                    watch_kind: rng
                        .chance(30)
                        .then(|| pb::action_profile_action::WatchKind::WatchPort(odd_number(rng, 9))),
                })
                .collect(),
            ..pb::ActionProfileActionSet::default()
        }),
    };
    let priority = if rng.chance(90) {
        table.map_or(0, |t| i32::from(needs_priority(t)))
    } else {
        rng.number() as i32
    };
    pb::TableEntry {
        table_id: match table.and_then(|t| t.preamble.as_ref()) {
            Some(preamble) if rng.chance(98) => preamble.id,
            _ => any_id(rng, info),
        },
        r#match: fields.into_iter().map(|f| field(rng, f)).collect(),
        action: rng.chance(93).then_some(pb::TableAction {
            r#type: rng.chance(99).then_some(kind),
        }),
        priority: if is_default_action { 0 } else { priority },
        controller_metadata: rng.one([0, 0, 7]),
        meter_config: rng.chance(10).then(|| meter(rng)),
        counter_data: rng.chance(10).then(|| counter(rng)),
        is_default_action,
        idle_timeout_ns: rng.one([0, 0, 0, 0, 0, 1, -1, i64::MAX]),
        metadata: rng.one([b"".as_slice(), b"", b"", b"m"]).to_vec(),
        is_const: rng.chance(1),
        ..pb::TableEntry::default()
    }
}

fn needs_priority(table: &weir_proto::p4::config::v1::Table) -> bool {
    let with = [MatchType::Ternary, MatchType::Range, MatchType::Optional].map(i32::from);
    let mut fields = table.match_fields.iter();
    fields.any(|f| matches!(f.r#match, Some(Match::MatchType(n)) if with.contains(&n)))
}

fn meter(rng: &mut Rng) -> pb::MeterConfig {
    let mut n = || rng.one([0, 1, 1000, 1000, -1, i64::MAX]);
    pb::MeterConfig {
        cir: n(),
        cburst: n(),
        pir: n(),
        pburst: n(),
        eburst: n() & 1,
    }
}

fn counter(rng: &mut Rng) -> pb::CounterData {
    pb::CounterData {
        byte_count: rng.one([0, 5, -1, i64::MAX]),
        packet_count: rng.one([0, 5, 6, i64::MIN]),
    }
}

fn index(rng: &mut Rng) -> Option<pb::Index> {
    let index = rng.one([0, 1, 1, 7, 8, -1, i64::MAX]);
    rng.chance(90).then_some(pb::Index { index })
}

fn replicas(rng: &mut Rng) -> Vec<pb::Replica> {
    use pb::replica::PortKind;
    let replica = |rng: &mut Rng| pb::Replica {
        instance: rng.below(3) as u32,
        port_kind: match rng.below(8) {
            0 => None,
            1 => Some(PortKind::EgressPort(rng.below(600) as u32)),
            _ => Some(PortKind::Port(odd_number(rng, 9))),
        },
        ..pb::Replica::default()
    };
    (0..rng.below(4)).map(|_| replica(rng)).collect()
}

fn data(rng: &mut Rng, depth: usize) -> pb::P4Data {
    use pb::p4_data::Data;
    let many = |rng: &mut Rng| -> Vec<pb::P4Data> {
        let count = if depth > 2 { 0 } else { rng.below(4) };
        (0..count).map(|_| data(rng, depth + 1)).collect()
    };
    let data = match rng.below(12) {
        0 => None,
        1 => Some(Data::Bool(rng.chance(50))),
        2 => Some(Data::Tuple(pb::P4StructLike { members: many(rng) })),
        3..6 => Some(Data::Struct(pb::P4StructLike { members: many(rng) })),
        6 => Some(Data::Header(pb::P4Header {
            is_valid: rng.chance(50),
            bitstrings: vec![odd_number(rng, 8)],
        })),
        7 => Some(Data::Enum("LIGHT".to_owned())),
        _ => Some(Data::Bitstring(odd_number(rng, 12))),
    };
    pb::P4Data { data }
}

fn entity(rng: &mut Rng, info: &P4Info) -> pb::Entity {
    let entry = |rng: &mut Rng| rng.chance(98).then(|| table_entry(rng, info));
    let profile = |rng: &mut Rng| id(rng, info, info.action_profiles.iter().map(|o| &o.preamble));
    let entity = match rng.below(32) {
        0..10 => Entity::TableEntry(table_entry(rng, info)),
        10..14 => Entity::ActionProfileMember(pb::ActionProfileMember {
            action_profile_id: profile(rng),
            member_id: rng.below(5) as u32,
            action: rng.chance(95).then(|| action(rng, info, None)),
        }),
        14..18 => Entity::ActionProfileGroup(pb::ActionProfileGroup {
            action_profile_id: profile(rng),
            group_id: rng.below(4) as u32,
            members: (0..rng.below(4))
                .map(|_| pb::action_profile_group::Member {
                    member_id: rng.below(5) as u32,
                    weight: rng.one([1, 1, 1, 2, 0, -1, i32::MAX]),
                    watch_kind: rng
                        .chance(30)
                        .then(|| pb::action_profile_group::member::WatchKind::WatchPort(odd_number(rng, 9))),
                })
                .collect(),
            max_size: rng.one([8, 8, 8, 4, 0, -1]),
        }),
        18..20 => Entity::CounterEntry(pb::CounterEntry {
            counter_id: id(rng, info, info.counters.iter().map(|o| &o.preamble)),
            index: index(rng),
            data: rng.chance(90).then(|| counter(rng)),
        }),
        20 => Entity::DirectCounterEntry(pb::DirectCounterEntry {
            table_entry: entry(rng),
            data: Some(counter(rng)),
        }),
        21..23 => Entity::MeterEntry(pb::MeterEntry {
            meter_id: id(rng, info, info.meters.iter().map(|o| &o.preamble)),
            index: index(rng),
            config: rng.chance(90).then(|| meter(rng)),
            counter_data: None,
        }),
        23 => Entity::DirectMeterEntry(pb::DirectMeterEntry {
            table_entry: entry(rng),
            config: rng.chance(90).then(|| meter(rng)),
            counter_data: None,
        }),
        24..26 => Entity::RegisterEntry(pb::RegisterEntry {
            register_id: id(rng, info, info.registers.iter().map(|o| &o.preamble)),
            index: index(rng),
            data: rng.chance(95).then(|| data(rng, 0)),
        }),
        26 => Entity::DigestEntry(pb::DigestEntry {
            digest_id: id(rng, info, info.digests.iter().map(|o| &o.preamble)),
            config: rng.chance(90).then(|| pb::digest_entry::Config {
                max_timeout_ns: rng.one([0, 1000, -1]),
                max_list_size: rng.one([0, 1, 10, -1]),
                ack_timeout_ns: rng.one([0, 1000, -1]),
            }),
        }),
        27 => Entity::ValueSetEntry(pb::ValueSetEntry {
            value_set_id: id(rng, info, info.value_sets.iter().map(|o| &o.preamble)),
            members: (0..rng.below(6))
                .map(|_| pb::ValueSetMember {
                    r#match: vec![pb::FieldMatch {
                        field_id: 1,
                        field_match_type: Some(pb::field_match::FieldMatchType::Exact(pb::field_match::Exact {
                            value: odd_number(rng, 8),
                        })),
                    }],
                })
                .collect(),
        }),
        28 | 29 => Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry {
            r#type: rng.chance(98).then(|| {
                pb::packet_replication_engine_entry::Type::MulticastGroupEntry(pb::MulticastGroupEntry {
                    multicast_group_id: rng.below(4) as u32,
                    replicas: replicas(rng),
                    ..pb::MulticastGroupEntry::default()
                })
            }),
        }),
        30 => Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry {
            r#type: Some(pb::packet_replication_engine_entry::Type::CloneSessionEntry(
                pb::CloneSessionEntry {
                    session_id: rng.below(4) as u32,
                    replicas: replicas(rng),
                    class_of_service: rng.below(10) as u32,
                    packet_length_bytes: rng.one([0, 10, -1]),
                },
            )),
        }),
        _ => Entity::ExternEntry(pb::ExternEntry {
            extern_type_id: rng.one([0, 0x81, 0x82, 0x83]),
            extern_id: rng.one([0, 0x8100_0001, 0x8200_0001]),
            entry: None,
        }),
    };
    pb::Entity {
        entity: rng.chance(99).then_some(entity),
    }
}
