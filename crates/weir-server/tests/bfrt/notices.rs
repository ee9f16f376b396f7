//! Tests of notifications: digests, idle entries, port status.

use crate::common::{Bench, Session, exact, field, numbers, stream, text, with_data};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::idle_timeout_notification::NotificationType;
use weir_proto::bfrt_proto::stream_message_response::Update as Notification;
use weir_proto::bfrt_proto::table_attribute::Attribute;
use weir_proto::bfrt_proto::update::Type;

#[tokio::test]
async fn digests_begin_with_the_bond_and_all_their_fields_are_bytes() {
    let bench = Bench::new().await;
    bench.answer_to_packet(7, 0, 1);
    let mut session = bench.bound(7).await;
    assert!(
        session.is_silent().await,
        "digests from before the subscription are not sent"
    );
    bench.answer_to_packet(7, 0, 0x1234);
    let list = match session.next().await {
        Ok(Notification::Digest(list)) => list,
        other => panic!("{other:?} is no digest"),
    };
    assert_eq!((list.digest_id, list.list_id), (bench.info.learn_filters[0].id, 0));
    let expected = vec![stream(1, &[0, 0, 0x12, 0x34]), stream(2, &[1, 0xff]), stream(3, &[7])];
    assert_eq!(
        list.data,
        [pb::TableData {
            action_id: 0,
            fields: expected
        }]
    );
    assert!(list.target.is_some());
}

#[tokio::test]
async fn clients_without_a_digest_subscription_get_none() {
    let bench = Bench::new().await;
    let mut session = Session::open(&bench.client, 7).await;
    session.subscribe(pb::subscribe::Notifications::default()).await;
    assert!(matches!(session.next().await, Ok(Notification::Subscribe(_))));
    bench.bind(7, crate::common::NAME).await.expect("is bound");
    bench.answer_to_packet(7, 0, 1);
    assert!(session.is_silent().await);
}

fn idle(bench: &Bench, mode: pb::idle_table::IdleTableMode, enable: bool) -> pb::TableAttribute {
    pb::TableAttribute {
        table_id: bench.table("In.timed_keys").id,
        attribute: Some(Attribute::IdleTable(pb::IdleTable {
            ttl_query_interval: 50,
            max_ttl: 10_000,
            min_ttl: 100,
            idle_table_mode: mode.into(),
            enable,
        })),
    }
}

#[tokio::test]
async fn an_idle_entry_is_reported_once_and_again_after_a_hit() {
    use pb::idle_table::IdleTableMode::{IdleTableNotifyMode, IdleTablePollMode};
    let bench = Bench::new().await;
    let mut session = bench.bound(7).await;
    let ttl = bench.field("In.timed_keys", "$ENTRY_TTL");
    let mut entry = bench.answer("In.timed_keys", 5, "In.answer", 1);
    entry
        .data
        .as_mut()
        .expect("has data")
        .fields
        .push(stream(ttl, &300u32.to_be_bytes()));
    assert_eq!(bench.insert(entry).await, Ok(()));
    bench.switch.clock().advance(400_000_000);
    assert!(session.is_silent().await, "idle notifications are not enabled");
    let set = |attribute| bench.one(Type::Insert, Entity::TableAttribute(attribute));
    assert_eq!(set(idle(&bench, IdleTablePollMode, true)).await, Ok(()));
    assert!(session.is_silent().await);
    assert_eq!(set(idle(&bench, IdleTableNotifyMode, true)).await, Ok(()));
    let mut next = async || match session.next().await {
        Ok(Notification::IdleTimeoutNotification(notice)) => notice,
        other => panic!("{other:?} is no idle entry"),
    };
    let notice = next().await;
    assert_eq!(notice.r#type, i32::from(NotificationType::EntryIdle));
    let key = bench.exact("In.timed_keys", 5);
    assert_eq!(notice.table_entry, Some(key), "its key and nothing else");
    assert!(notice.target.is_some());
    assert_eq!(bench.answer_to_packet(9, 0, 5), Some(1));
    assert_eq!(next().await.r#type, i32::from(NotificationType::EntryActive));
    bench.switch.clock().advance(400_000_000);
    assert_eq!(next().await.r#type, i32::from(NotificationType::EntryIdle));
    let read = bench
        .read_entities(Entity::TableAttribute(idle(&bench, IdleTablePollMode, false)))
        .await;
    assert_eq!(
        read,
        Ok(vec![Entity::TableAttribute(idle(&bench, IdleTableNotifyMode, true))])
    );
    let other = pb::TableAttribute {
        table_id: bench.table("In.exact_keys").id,
        ..idle(&bench, IdleTableNotifyMode, true)
    };
    assert_eq!(set(other).await, Err(tonic::Code::Unimplemented));
}

#[tokio::test]
async fn port_status_is_reported_if_the_attribute_enables_it() {
    let bench = Bench::new().await;
    // An unbound client: ports belong to the device.
    let mut session = bench.subscribed(7).await;
    let port = |enabled: bool| {
        let fields = vec![
            text(bench.field("$PORT", "$SPEED"), "BF_SPEED_10G"),
            text(bench.field("$PORT", "$FEC"), "BF_FEC_TYP_NONE"),
            field(bench.field("$PORT", "$PORT_ENABLE"), Wire::BoolVal(enabled)),
        ];
        with_data(bench.keyed("$PORT", vec![exact(1, &3u32.to_be_bytes())]), 0, fields)
    };
    assert_eq!(bench.insert(port(true)).await, Ok(()));
    assert!(session.is_silent().await);
    let attribute = pb::TableAttribute {
        table_id: bench.table("$PORT").id,
        attribute: Some(Attribute::PortStatusNotify(pb::PortStatusChg { enable: true })),
    };
    assert_eq!(bench.one(Type::Insert, Entity::TableAttribute(attribute)).await, Ok(()));
    let mut next = async || match session.next().await {
        Ok(Notification::PortStatusChangeNotification(notice)) => {
            (notice.table_entry.and_then(|e| e.value), notice.port_up)
        }
        other => panic!("{other:?} is no port"),
    };
    let key = bench.keyed("$PORT", vec![exact(1, &3u32.to_be_bytes())]).value;
    assert_eq!(bench.modify(port(false)).await, Ok(()));
    assert_eq!(next().await, (key.clone(), false));
    assert_eq!(bench.modify(port(true)).await, Ok(()));
    assert_eq!(next().await, (key.clone(), true));
    bench.switch.set_port(3, false);
    assert_eq!(next().await, (key, false));
}

/// Each protocol reads the entries that the other wrote.
#[tokio::test]
async fn p4runtime_sees_the_same_state() {
    use weir_proto::p4::v1 as p4;
    use weir_server::p4rt::{self, P4Runtime};
    let bench = Bench::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = P4Runtime::on(&bench.device, p4rt::Config::default());
    tokio::spawn(p4rt::serve_on(server, listener, std::future::pending()));
    let channel = tonic::transport::Channel::from_shared(format!("http://{address}")).expect("a URI");
    let channel = channel.connect().await.expect("connects");
    let mut client = p4::p4_runtime_client::P4RuntimeClient::new(channel);
    let config = client
        .get_forwarding_pipeline_config(p4::GetForwardingPipelineConfigRequest::default())
        .await;
    let info = config
        .expect("a config")
        .into_inner()
        .config
        .expect("there is one")
        .p4info
        .expect("has one");
    let table = info
        .tables
        .iter()
        .filter_map(|t| t.preamble.as_ref())
        .find(|p| p.name == "In.exact_keys");
    let table_id = table.expect("is there").id;
    assert_eq!(bench.insert(bench.entry(7, 70)).await, Ok(()));
    let key = vec![crate::common::ternary(
        bench.key_id("In.ternary_keys", "key"),
        &[0; 4],
        &[0; 4],
    )];
    let ternary = with_data(
        bench.keyed("In.ternary_keys", key),
        bench.action("In.ternary_keys", "answer_metered"),
        vec![stream(1, &[0; 4])],
    );
    assert_eq!(bench.insert(ternary).await, Ok(()));
    let mut read = async |table_id| {
        let query = p4::Entity {
            entity: Some(p4::entity::Entity::TableEntry(p4::TableEntry {
                table_id,
                ..p4::TableEntry::default()
            })),
        };
        let request = p4::ReadRequest {
            device_id: 1,
            entities: vec![query],
            ..p4::ReadRequest::default()
        };
        let stream = client
            .read(request)
            .await
            .expect("is read")
            .into_inner()
            .message()
            .await;
        let entities = stream.expect("is read").map_or(Vec::new(), |r| r.entities);
        let entries = entities.into_iter().filter_map(|e| match e.entity {
            Some(p4::entity::Entity::TableEntry(entry)) => Some(entry),
            _ => None,
        });
        entries.collect::<Vec<_>>()
    };
    assert_eq!(read(table_id).await.len(), 1);
    let ternary_id = info
        .tables
        .iter()
        .filter_map(|t| t.preamble.as_ref())
        .find(|p| p.name == "In.ternary_keys");
    let returned = read(ternary_id.expect("is there").id).await;
    assert_eq!(returned[0].priority, i32::MAX, "0 wins here, the largest number there");
    // Nodes and groups are shared state, too: P4Runtime shows them as replicas.
    let node = with_data(
        bench.keyed("$pre.node", vec![exact(1, &9u32.to_be_bytes())]),
        0,
        vec![
            stream(bench.field("$pre.node", "$MULTICAST_RID"), &[0, 1]),
            numbers(bench.field("$pre.node", "$MULTICAST_LAG_ID"), &[]),
            numbers(bench.field("$pre.node", "$DEV_PORT"), &[2]),
        ],
    );
    assert_eq!(bench.insert(node).await, Ok(()));
    let group = with_data(
        bench.keyed("$pre.mgid", vec![exact(1, &4u16.to_be_bytes())]),
        0,
        vec![numbers(bench.field("$pre.mgid", "$MULTICAST_NODE_ID"), &[9])],
    );
    assert_eq!(bench.insert(group).await, Ok(()));
    let all = p4::PacketReplicationEngineEntry {
        r#type: Some(p4::packet_replication_engine_entry::Type::MulticastGroupEntry(
            p4::MulticastGroupEntry::default(),
        )),
    };
    let request = p4::ReadRequest {
        device_id: 1,
        entities: vec![p4::Entity {
            entity: Some(p4::entity::Entity::PacketReplicationEngineEntry(all)),
        }],
        ..p4::ReadRequest::default()
    };
    let returned = client
        .read(request)
        .await
        .expect("is read")
        .into_inner()
        .message()
        .await;
    assert_eq!(returned.expect("is read").map_or(0, |r| r.entities.len()), 1);
}

#[tokio::test]
async fn a_program_that_p4runtime_loads_is_this_servers_too() {
    use weir_proto::p4::v1 as p4;
    use weir_server::p4rt::{self, P4Runtime};
    let bench = Bench::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = P4Runtime::on(&bench.device, p4rt::Config::default());
    tokio::spawn(p4rt::serve_on(server, listener, std::future::pending()));
    let channel = tonic::transport::Channel::from_shared(format!("http://{address}")).expect("a URI");
    let mut client = p4::p4_runtime_client::P4RuntimeClient::new(channel.connect().await.expect("connects"));
    let config = client
        .get_forwarding_pipeline_config(p4::GetForwardingPipelineConfigRequest::default())
        .await;
    let config = config.expect("a config").into_inner().config;
    let (out, requests) = tokio::sync::mpsc::channel(1);
    let election_id = Some(p4::Uint128 { high: 0, low: 1 });
    let hello = p4::MasterArbitrationUpdate {
        device_id: 1,
        election_id,
        ..p4::MasterArbitrationUpdate::default()
    };
    let update = Some(p4::stream_message_request::Update::Arbitration(hello));
    out.send(p4::StreamMessageRequest { update }).await.expect("is sent");
    let stream = client
        .stream_channel(tokio_stream::wrappers::ReceiverStream::new(requests))
        .await;
    let mut incoming = stream.expect("a stream").into_inner();
    incoming.message().await.expect("is answered");
    let mut session = bench.bound(7).await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let set = p4::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id,
        action: p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit.into(),
        config,
        ..p4::SetForwardingPipelineConfigRequest::default()
    };
    client.set_forwarding_pipeline_config(set).await.expect("is loaded");
    for expected in [0, 1] {
        match session.next().await {
            Ok(Notification::SetForwardingPipelineConfigResponse(n)) => {
                assert_eq!(n.set_forwarding_pipeline_config_response_type, expected);
            }
            other => panic!("{other:?} is no notice of a program"),
        }
    }
    assert!(bench.entries("In.exact_keys").await.is_empty());
    assert_eq!(
        bench.bind(7, crate::common::NAME).await,
        Err(tonic::Code::AlreadyExists),
        "the bond is as before"
    );
}
