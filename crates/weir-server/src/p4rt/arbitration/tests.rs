//! The rules of arbitration, one by one.

use super::*;
use crate::p4rt::refusal::Cause;
use prost::Message;
use weir_proto::weir::v1::RoleConfig;

const LIMITS: Limits = Limits {
    streams_per_role: 3,
    roles: 3,
};

fn arbitration() -> Arbitration {
    Arbitration::new(LIMITS)
}

fn hello(role: &str, id: Option<u64>) -> pb::MasterArbitrationUpdate {
    pb::MasterArbitrationUpdate {
        device_id: 1,
        role: (!role.is_empty()).then(|| pb::Role {
            name: role.to_string(),
            ..pb::Role::default()
        }),
        election_id: id.map(|low| pb::Uint128 { high: 0, low }),
        status: None,
    }
}

/// The notices: stream, code and highest election id.
fn sent(notices: &[Notice]) -> Vec<(StreamId, i32, Option<u64>)> {
    let one = |n: &Notice| {
        let code = n.update.status.as_ref().map_or(-1, |s| s.code);
        (n.stream, code, n.update.election_id.map(|e| e.low))
    };
    notices.iter().map(one).collect()
}

const OK: i32 = 0;
const NOT_FOUND: i32 = 5;
const ALREADY_EXISTS: i32 = 6;

#[test]
fn the_first_controller_with_an_election_id_is_primary() {
    let mut a = arbitration();
    let notices = a.update(1, &hello("", Some(0))).unwrap();
    assert_eq!(sent(&notices), [(1, OK, Some(0))]);
    assert!(a.check("", Some(&pb::Uint128 { high: 0, low: 0 })).is_ok());
}

#[test]
fn a_controller_without_an_election_id_never_becomes_primary() {
    let mut a = arbitration();
    let notices = a.update(1, &hello("", None)).unwrap();
    assert_eq!(sent(&notices), [(1, NOT_FOUND, None)]);
    assert_eq!(a.check("", None).unwrap_err().cause, Cause::Forbidden);
}

#[test]
fn a_higher_election_id_takes_over_and_everybody_is_told_the_new_primary_last() {
    let mut a = arbitration();
    a.update(2, &hello("", Some(5))).unwrap();
    a.update(3, &hello("", Some(4))).unwrap();
    let notices = a.update(1, &hello("", Some(6))).unwrap();
    assert_eq!(
        sent(&notices),
        [
            (2, ALREADY_EXISTS, Some(6)),
            (3, ALREADY_EXISTS, Some(6)),
            (1, OK, Some(6))
        ]
    );
    assert!(
        notices[2].after_writes,
        "what the old primary has begun is finished first"
    );
    assert_eq!(
        a.check("", Some(&pb::Uint128 { high: 0, low: 5 })).unwrap_err().cause,
        Cause::Forbidden
    );
}

#[test]
fn a_lower_election_id_makes_a_backup_and_only_it_is_told() {
    let mut a = arbitration();
    a.update(1, &hello("", Some(5))).unwrap();
    let notices = a.update(2, &hello("", Some(4))).unwrap();
    assert_eq!(sent(&notices), [(2, ALREADY_EXISTS, Some(5))]);
}

#[test]
fn when_the_primary_leaves_there_is_none_until_somebody_has_the_highest_election_id_ever() {
    let mut a = arbitration();
    a.update(1, &hello("", Some(5))).unwrap();
    a.update(2, &hello("", Some(4))).unwrap();
    assert_eq!(sent(&a.leave(1)), [(2, NOT_FOUND, Some(5))]);
    // The same id is not enough.
    assert_eq!(
        sent(&a.update(2, &hello("", Some(4))).unwrap()),
        [(2, NOT_FOUND, Some(5))]
    );
    assert_eq!(sent(&a.update(2, &hello("", Some(5))).unwrap()), [(2, OK, Some(5))]);
}

#[test]
fn a_backup_that_leaves_is_not_worth_a_word() {
    let mut a = arbitration();
    a.update(1, &hello("", Some(5))).unwrap();
    a.update(2, &hello("", Some(4))).unwrap();
    assert!(a.leave(2).is_empty());
}

#[test]
fn a_primary_that_lowers_its_election_id_becomes_a_backup_and_everybody_is_told() {
    let mut a = arbitration();
    a.update(1, &hello("", Some(5))).unwrap();
    a.update(2, &hello("", Some(3))).unwrap();
    let notices = a.update(1, &hello("", Some(4))).unwrap();
    assert_eq!(sent(&notices), [(1, NOT_FOUND, Some(5)), (2, NOT_FOUND, Some(5))]);
}

#[test]
fn an_election_id_is_one_live_controllers_only() {
    let mut a = arbitration();
    a.update(1, &hello("", Some(5))).unwrap();
    assert_eq!(a.update(2, &hello("", Some(5))).unwrap_err().cause, Cause::Malformed);
    // Of another role it may be.
    assert!(a.update(3, &hello("other", Some(5))).is_ok());
    a.leave(1);
    assert!(a.update(2, &hello("", Some(5))).is_ok());
}

#[test]
fn a_stream_keeps_its_device_and_role() {
    let mut a = arbitration();
    a.update(1, &hello("", Some(5))).unwrap();
    assert_eq!(
        a.update(1, &hello("r", Some(5))).unwrap_err().cause,
        Cause::Precondition
    );
    let other = pb::MasterArbitrationUpdate {
        device_id: 0,
        ..hello("", Some(5))
    };
    assert_eq!(a.update(1, &other).unwrap_err().cause, Cause::Precondition);
}

#[test]
fn streams_and_roles_are_limited() {
    let mut a = arbitration();
    for stream in 0..3 {
        a.update(stream, &hello("", Some(stream))).unwrap();
    }
    assert_eq!(a.update(9, &hello("", Some(9))).unwrap_err().cause, Cause::Exhausted);
    a.update(10, &hello("a", None)).unwrap();
    a.update(11, &hello("b", None)).unwrap();
    assert_eq!(a.update(12, &hello("c", None)).unwrap_err().cause, Cause::Exhausted);
    // Nothing is to be remembered of a role that never had a primary.
    a.leave(10);
    assert!(a.update(12, &hello("c", None)).is_ok());
}

#[test]
fn of_roles_without_streams_the_highest_election_id_is_remembered_and_no_config() {
    let mut a = arbitration();
    a.update(1, &configured(&[7])).unwrap();
    a.leave(1);
    assert_eq!(
        sent(&a.update(2, &hello("r", Some(0))).unwrap()),
        [(2, NOT_FOUND, Some(1))]
    );
    assert_eq!(sent(&a.update(2, &hello("r", Some(1))).unwrap()), [(2, OK, Some(1))]);
    assert!(a.scope("r").unwrap().has(8), "its config is the new primary's");
}

#[test]
fn roles_that_come_and_go_keep_nobody_out() {
    let mut a = arbitration();
    let most = LIMITS.roles as u64 * FORMER as u64;
    for stream in 0..=most {
        a.update(stream, &hello(&format!("role{stream}"), Some(5))).unwrap();
        a.leave(stream);
    }
    assert_eq!(a.former.len() as u64, most);
    // That which has been without streams for longest is forgotten, and no other.
    assert_eq!(
        sent(&a.update(1, &hello("role1", Some(4))).unwrap()),
        [(1, NOT_FOUND, Some(5))]
    );
    assert_eq!(
        sent(&a.update(2, &hello("role0", Some(4))).unwrap()),
        [(2, OK, Some(4))]
    );
    // The default role is never forgotten.
    a.leave(1);
    a.update(1, &hello("", Some(7))).unwrap();
    a.leave(1);
    assert_eq!(
        sent(&a.update(1, &hello("", Some(6))).unwrap()),
        [(1, NOT_FOUND, Some(7))]
    );
}

#[test]
fn what_is_kept_of_a_role_is_bounded() {
    let mut a = arbitration();
    let full = |refused: Refusal, said: &str| {
        assert_eq!(refused.cause, Cause::Exhausted);
        assert!(refused.message.contains(said), "{refused}");
    };
    let long = hello(&"r".repeat(1025), Some(1));
    full(a.update(1, &long).unwrap_err(), "name has 1025 bytes");
    assert!(a.update(1, &configured(&[u32::MAX; 1 << 14])).is_ok());
    full(
        a.update(1, &configured(&[7; (1 << 14) + 1])).unwrap_err(),
        "more than 16384 fields",
    );
    let mut padded = configured(&[7]);
    padded.role.as_mut().unwrap().config.as_mut().unwrap().type_url =
        format!("{}/{}", "x".repeat(128 << 10), crate::p4rt::role::TYPE_NAME);
    full(a.update(1, &padded).unwrap_err(), "bytes; at most 131072");
}

#[test]
fn roles_have_primaries_of_their_own() {
    let mut a = arbitration();
    a.update(1, &hello("a", Some(5))).unwrap();
    assert_eq!(sent(&a.update(2, &hello("b", Some(1))).unwrap()), [(2, OK, Some(1))]);
    assert!(a.check("a", Some(&pb::Uint128 { high: 0, low: 5 })).is_ok());
    assert_eq!(
        a.check("b", Some(&pb::Uint128 { high: 0, low: 5 })).unwrap_err().cause,
        Cause::Forbidden
    );
    assert_eq!(a.check("c", None).unwrap_err().cause, Cause::NotFound);
}

fn configured(ids: &[u32]) -> pb::MasterArbitrationUpdate {
    let config = RoleConfig {
        ids: ids.to_vec(),
        ..RoleConfig::default()
    };
    let mut update = hello("r", Some(1));
    update.role.as_mut().unwrap().config = Some(Any {
        type_url: format!("type.googleapis.com/{}", crate::p4rt::role::TYPE_NAME),
        value: config.encode_to_vec(),
    });
    update
}

#[test]
fn the_primary_sets_the_roles_config_and_everybody_is_told_it() {
    let mut a = arbitration();
    a.update(2, &hello("r", None)).unwrap();
    let notices = a.update(1, &configured(&[7])).unwrap();
    let sent = notices[0].update.role.as_ref().unwrap().config.clone();
    assert_eq!(sent, configured(&[7]).role.unwrap().config);
    let scope = a.check("r", Some(&pb::Uint128 { high: 0, low: 1 })).unwrap();
    assert!(scope.has(7) && !scope.has(8));
}

#[test]
fn a_config_that_is_not_understood_ends_the_stream() {
    let mut a = arbitration();
    let mut update = configured(&[]);
    update.role.as_mut().unwrap().config.as_mut().unwrap().type_url = "type.googleapis.com/other".to_string();
    assert_eq!(a.update(1, &update).unwrap_err().cause, Cause::Malformed);
    let mut default = configured(&[]);
    default.role.as_mut().unwrap().name.clear();
    assert_eq!(a.update(1, &default).unwrap_err().cause, Cause::Malformed);
}

#[test]
fn what_the_last_roles_might_read_is_remembered() {
    let mut a = Arbitration::new(Limits { roles: 30, ..LIMITS });
    a.update(1, &configured(&[7])).unwrap();
    a.leave(1);
    let id = pb::Uint128 { high: 0, low: 1 };
    let scope = a.scope("r").expect("who reads goes on");
    assert!(scope.has(7) && !scope.has(8));
    assert_eq!(a.check("r", Some(&id)).unwrap_err().cause, Cause::Forbidden);
    assert_eq!(a.scope("other").unwrap_err().cause, Cause::NotFound);
    assert_eq!(a.check("other", Some(&id)).unwrap_err().cause, Cause::NotFound);
    // A backup that comes first sees no more.
    a.update(2, &hello("r", None)).unwrap();
    assert!(!a.scope("r").expect("is there").has(8));
    a.leave(2);
    // The next primary says anew what it is.
    a.update(1, &hello("r", Some(1))).unwrap();
    assert!(a.scope("r").expect("is there").has(8));
    a.leave(1);
    for number in 0..SCOPES {
        assert!(a.scope("r").is_ok());
        a.update(3, &hello(&format!("role{number}"), Some(1))).unwrap();
        a.leave(3);
    }
    assert_eq!(a.scope("r").unwrap_err().cause, Cause::NotFound);
    assert!(a.scope("role0").is_ok());
}
