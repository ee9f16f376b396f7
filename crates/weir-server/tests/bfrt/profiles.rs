//! Tests of action profiles and selectors.

use crate::common::{Bench, exact, flags, number, numbers, stream, value, with_data};
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;

const MEMBER: u32 = 65539;
const GROUP: u32 = 65540;

fn member(bench: &Bench, profile: &str, id: u32, answer: u32) -> pb::TableEntry {
    let entry = bench.keyed(profile, vec![exact(MEMBER, &id.to_be_bytes())]);
    with_data(
        entry,
        bench.action(profile, "In.answer"),
        vec![stream(1, &answer.to_be_bytes())],
    )
}

fn refers(bench: &Bench, table: &str, key: u32, field: u32, id: u32) -> pb::TableEntry {
    with_data(bench.exact(table, key), 0, vec![stream(field, &id.to_be_bytes())])
}

fn group(bench: &Bench, id: u32, fields: Vec<pb::DataField>) -> pb::TableEntry {
    with_data(
        bench.keyed("In.selector", vec![exact(GROUP, &id.to_be_bytes())]),
        0,
        fields,
    )
}

#[tokio::test]
async fn entries_name_members_which_cannot_go_before_them() {
    let bench = Bench::new().await;
    let entry = || refers(&bench, "In.member_keys", 1, MEMBER, 5);
    assert_eq!(bench.insert(entry()).await, Err(Code::NotFound));
    assert_eq!(bench.insert(member(&bench, "In.plain", 5, 50)).await, Ok(()));
    assert_eq!(
        bench.insert(member(&bench, "In.plain", 5, 51)).await,
        Err(Code::AlreadyExists)
    );
    assert_eq!(bench.insert(entry()).await, Ok(()));
    assert_eq!(bench.answer_to_packet(12, 0, 1), Some(50));
    assert_eq!(bench.modify(member(&bench, "In.plain", 5, 52)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(12, 0, 1), Some(52));
    let returned = bench.entries("In.member_keys").await;
    assert_eq!(number(&returned[0], MEMBER), 5);
    let key = || bench.keyed("In.plain", vec![exact(MEMBER, &5u32.to_be_bytes())]);
    let refused = bench
        .write(vec![crate::common::update(Type::Delete, Entity::TableEntry(key()))])
        .await;
    let details = crate::common::details(&refused.unwrap_err());
    assert_eq!(details[0].canonical_code, Code::AlreadyExists as i32);
    assert!(
        details[0].message.contains("being referenced by match entries"),
        "{}",
        details[0].message
    );
    assert_eq!(bench.delete(bench.exact("In.member_keys", 1)).await, Ok(()));
    assert_eq!(bench.delete(key()).await, Ok(()));
    assert_eq!(bench.read(key()).await, Err(Code::NotFound));
}

#[tokio::test]
async fn groups_have_members_of_which_some_may_be_off() {
    let bench = Bench::new().await;
    for (id, answer) in [(1, 10), (2, 20)] {
        assert_eq!(bench.insert(member(&bench, "In.profile", id, answer)).await, Ok(()));
    }
    let members = |list: &[u32], on: &[bool]| {
        let status = bench.field("In.selector", "$ACTION_MEMBER_STATUS");
        vec![numbers(MEMBER, list), flags(status, on)]
    };
    assert_eq!(
        bench.insert(group(&bench, 7, members(&[1, 2], &[true]))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(group(&bench, 7, members(&[1, 2], &[false, true]))).await,
        Ok(())
    );
    assert_eq!(bench.insert(refers(&bench, "In.group_keys", 1, GROUP, 7)).await, Ok(()));
    for port in 0..8 {
        assert_eq!(bench.answer_to_packet(13, port, 1), Some(20), "member 1 is off");
    }
    let query = bench.keyed(
        "In.selector_get_member",
        vec![
            exact(
                bench.key_id("In.selector_get_member", "$SELECTOR_GROUP_ID"),
                &7u64.to_be_bytes(),
            ),
            exact(
                bench.key_id("In.selector_get_member", "hash_value"),
                &123u64.to_be_bytes(),
            ),
        ],
    );
    let returned = bench.read(query).await.expect("is read");
    assert_eq!(
        number(&returned[0], bench.field("In.selector_get_member", "$ACTION_MEMBER_ID")),
        2
    );
    let returned = bench.read(group(&bench, 7, Vec::new())).await.expect("is read");
    assert_eq!(
        value(&returned[0], MEMBER),
        Wire::IntArrVal(pb::data_field::IntArray { val: vec![1, 2] })
    );
    let status = bench.field("In.selector", "$ACTION_MEMBER_STATUS");
    assert_eq!(
        value(&returned[0], status),
        Wire::BoolArrVal(pb::data_field::BoolArray { val: vec![false, true] })
    );
    assert_eq!(bench.modify(group(&bench, 7, members(&[1], &[true]))).await, Ok(()));
    assert_eq!(bench.answer_to_packet(13, 0, 1), Some(10));
}

#[tokio::test]
async fn members_are_added_to_groups_and_removed() {
    let bench = Bench::new().await;
    for id in 1..=3 {
        assert_eq!(bench.insert(member(&bench, "In.profile", id, id * 10)).await, Ok(()));
    }
    assert_eq!(
        bench.insert(group(&bench, 7, vec![numbers(MEMBER, &[1])])).await,
        Ok(())
    );
    let change = async |list: &[u32], takes: bool| {
        let entry = pb::TableEntry {
            table_flags: Some(pb::TableFlags {
                mod_del: takes,
                ..pb::TableFlags::default()
            }),
            ..group(&bench, 7, vec![numbers(MEMBER, list)])
        };
        bench.one(Type::ModifyInc, Entity::TableEntry(entry)).await
    };
    let members = async || {
        let returned = bench.read(group(&bench, 7, Vec::new())).await.expect("is read");
        match value(&returned[0], MEMBER) {
            Wire::IntArrVal(list) => list.val,
            other => panic!("{other:?} is no list"),
        }
    };
    assert_eq!(change(&[2, 3], false).await, Ok(()));
    assert_eq!(members().await, [1, 2, 3]);
    assert_eq!(change(&[1, 3], true).await, Ok(()));
    assert_eq!(members().await, [2]);
    assert_eq!(change(&[3], true).await, Err(Code::NotFound));
    assert_eq!(change(&[9], false).await, Err(Code::NotFound));
    // A member of a group cannot be deleted.
    let key = bench.keyed("In.profile", vec![exact(MEMBER, &2u32.to_be_bytes())]);
    assert_eq!(bench.delete(key).await, Err(Code::AlreadyExists));
    assert_eq!(bench.delete(bench.all("In.selector")).await, Ok(()));
    assert_eq!(bench.delete(bench.all("In.profile")).await, Ok(()));
    assert!(bench.entries("In.profile").await.is_empty());
}

#[tokio::test]
async fn an_entry_has_a_member_or_a_group() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(member(&bench, "In.profile", 1, 10)).await, Ok(()));
    assert_eq!(
        bench.insert(group(&bench, 7, vec![numbers(MEMBER, &[1])])).await,
        Ok(())
    );
    let both = vec![stream(MEMBER, &[0, 0, 0, 1]), stream(GROUP, &[0, 0, 0, 7])];
    let entry = with_data(bench.exact("In.group_keys", 1), 0, both);
    assert_eq!(bench.insert(entry).await, Err(Code::InvalidArgument));
    assert_eq!(
        bench
            .insert(with_data(bench.exact("In.group_keys", 1), 0, Vec::new()))
            .await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(refers(&bench, "In.group_keys", 1, MEMBER, 1)).await,
        Ok(())
    );
    assert_eq!(bench.modify(refers(&bench, "In.group_keys", 1, GROUP, 7)).await, Ok(()));
    assert_eq!(
        bench.delete(group(&bench, 7, Vec::new())).await,
        Err(Code::AlreadyExists)
    );
    assert_eq!(bench.answer_to_packet(13, 0, 1), Some(10));
}
