//! Operations that the control plane may execute, and those that are refused.

use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::{
    ActionProfile, ActionSpec, BatchMode, EntryAction, EntryRef, ErrorKind, Group, GroupMember, KeySpec, Member,
    NewEntry, ProfileOp, ProfileSpec, Table, TableError, TableOp, TableSpec,
};

fn exact(value: u128) -> Vec<KeyMatch> {
    vec![KeyMatch::Exact(Bits::new(8, value))]
}

fn forward(port: u128) -> EntryAction {
    EntryAction::call(0, vec![Bits::new(9, port)])
}

fn spec(kind: MatchKind) -> TableSpec {
    let mut spec = TableSpec::new("ingress.t")
        .key(KeySpec::new("hdr.h.f", 8, kind))
        .action(ActionSpec::new("forward").parameter("port", 9))
        .action(ActionSpec {
            default_only: true,
            ..ActionSpec::new("miss")
        })
        .action(ActionSpec {
            table_only: true,
            ..ActionSpec::new("drop")
        });
    spec.default_action = ActionCall {
        action: 1,
        arguments: Vec::new(),
    };
    spec
}

fn key(value: u128) -> EntryRef {
    EntryRef::Key {
        matches: exact(value),
        priority: 0,
    }
}

#[test]
fn errors_name_what_was_expected_and_found() {
    let mut table = Table::new(spec(MatchKind::Exact));
    let error = |r: Result<_, TableError>| {
        r.map(|_: weir_table::EntryHandle| ())
            .expect_err("must fail")
            .to_string()
    };
    assert!(error(table.insert(NewEntry::new(vec![], forward(1)))).contains("1 match fields, the request gives 0"));
    let wide = vec![KeyMatch::Exact(Bits::new(9, 1))];
    assert!(error(table.insert(NewEntry::new(wide, forward(1)))).contains("key `hdr.h.f`: expected 8 bits, found 9"));
    let lpm = vec![KeyMatch::Lpm {
        value: Bits::new(8, 0),
        prefix_length: 0,
    }];
    assert!(error(table.insert(NewEntry::new(lpm, forward(1)))).contains("as exact, the request as lpm"));
    assert!(error(table.insert(NewEntry::new(exact(1), forward(1)).with_priority(3))).contains("found 3, use 0"));
    let unknown = EntryAction::call(7, vec![]);
    assert!(error(table.insert(NewEntry::new(exact(1), unknown))).contains("`forward`, `miss`, `drop`"));
    let none = EntryAction::call(0, vec![]);
    assert!(error(table.insert(NewEntry::new(exact(1), none))).contains("expected 1 parameters, found 0"));
    assert!(error(table.insert(NewEntry::new(exact(1), EntryAction::call(1, vec![])))).contains("@defaultonly"));
    assert!(error(table.insert(NewEntry::new(exact(1), EntryAction::Member(1)))).contains("take an action, found"));
    let tableonly = table
        .set_default(ActionCall {
            action: 2,
            arguments: vec![],
        })
        .expect_err("table only");
    assert!(tableonly.to_string().contains("@tableonly"));
    assert!(table.is_empty());
}

#[test]
fn matches_must_be_canonical() {
    let kind = |m| {
        let kind = match &m {
            KeyMatch::Lpm { .. } => MatchKind::Lpm,
            KeyMatch::Range { .. } => MatchKind::Range,
            _ => MatchKind::Ternary,
        };
        Table::new(spec(kind))
            .insert(NewEntry::new(vec![m], forward(1)))
            .expect_err("must fail")
    };
    let b = |v| Bits::new(8, v);
    assert!(matches!(
        kind(KeyMatch::Lpm {
            value: b(0xff),
            prefix_length: 4
        }),
        TableError::NotCanonical { .. }
    ));
    assert!(matches!(
        kind(KeyMatch::Lpm {
            value: b(0),
            prefix_length: 9
        }),
        TableError::PrefixLength { .. }
    ));
    assert!(matches!(
        kind(KeyMatch::Ternary {
            value: b(3),
            mask: b(1)
        }),
        TableError::NotCanonical { .. }
    ));
    assert!(matches!(
        kind(KeyMatch::Range { low: b(3), high: b(2) }),
        TableError::EmptyRange { .. }
    ));
}

#[test]
fn an_entry_exists_once_until_it_is_deleted() {
    let mut table = Table::new(spec(MatchKind::Exact));
    let first = table.insert(NewEntry::new(exact(1), forward(1))).expect("fits");
    let twice = table.insert(NewEntry::new(exact(1), forward(2))).expect_err("twin");
    assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
    assert_eq!(table.modify(&key(1), forward(3), 9, 0).expect("there"), first);
    assert_eq!(table.get(&EntryRef::Handle(first)).expect("there").metadata, 9);
    table.delete(&key(1)).expect("there");
    assert_eq!(table.delete(&key(1)).expect_err("gone").kind(), ErrorKind::NotFound);
    let second = table.insert(NewEntry::new(exact(1), forward(1))).expect("fits");
    assert_ne!(first, second, "a handle is not reused at once");
}

#[test]
fn size_is_a_limit() {
    let mut table = Table::new(TableSpec {
        size: 1,
        ..spec(MatchKind::Exact)
    });
    table.insert(NewEntry::new(exact(1), forward(1))).expect("fits");
    let error = table.insert(NewEntry::new(exact(2), forward(1))).expect_err("full");
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted);
}

#[test]
fn const_tables_keep_their_entries() {
    let program = weir_ir::Entry {
        matches: exact(1),
        action: ActionCall {
            action: 0,
            arguments: vec![Bits::new(9, 4)],
        },
        priority: 0,
        is_const: true,
        annotations: vec![],
        loc: weir_ir::Loc::default(),
    };
    let base = TableSpec {
        initial: vec![program],
        ..spec(MatchKind::Exact)
    };
    let mut mixed = Table::new(base.clone());
    assert_eq!(
        mixed.delete(&key(1)).expect_err("const entry").kind(),
        ErrorKind::PermissionDenied
    );
    mixed
        .insert(NewEntry::new(exact(2), forward(1)))
        .expect("the table is not const");
    assert_eq!(mixed.clear().expect("clears the rest").len(), 1);
    let mut table = Table::new(TableSpec {
        const_entries: true,
        ..base
    });
    assert_eq!(table.clear().expect_err("const").kind(), ErrorKind::PermissionDenied);
    assert!(table.lookup(&[Bits::new(8, 1)]).is_some());
}

#[test]
fn a_failing_batch_leaves_nothing_behind_with_rollback() {
    let mut table = Table::new(spec(MatchKind::Exact));
    table.insert(NewEntry::new(exact(1), forward(1))).expect("fits");
    table.insert(NewEntry::new(exact(2), forward(2))).expect("fits");
    let before: Vec<_> = table.entries().cloned().collect();
    let ops = |last| {
        vec![
            TableOp::Delete(key(1)),
            TableOp::Insert(NewEntry::new(exact(9), forward(1))),
            TableOp::Modify {
                entry: key(2),
                action: forward(8),
                metadata: 0,
                note: None,
                idle_timeout_ns: 0,
            },
            TableOp::SetDefault(ActionCall {
                action: 0,
                arguments: vec![Bits::new(9, 1)],
            }),
            TableOp::Clear,
            TableOp::Delete(last),
        ]
    };
    let error = table
        .apply_batch(ops(key(1)), BatchMode::Rollback, 0)
        .expect_err("the last one fails");
    assert_eq!(error.failures[0].0, 5);
    assert!(error.to_string().contains("none was applied"));
    assert_eq!(table.entries().cloned().collect::<Vec<_>>(), before);
    assert_eq!(table.default_action().action, 1);
    assert!(table.lookup(&[Bits::new(8, 1)]).is_some() && table.lookup(&[Bits::new(8, 9)]).is_none());
    table
        .apply_batch(ops(key(1)), BatchMode::Continue, 0)
        .expect_err("the last one fails");
    assert!(table.is_empty());
}

#[test]
fn idle_entries_are_those_not_hit_for_their_timeout() {
    let mut table = Table::new(TableSpec {
        idle_timeout: true,
        ..spec(MatchKind::Exact)
    });
    let entry = NewEntry {
        idle_timeout_ns: 100,
        ..NewEntry::new(exact(1), forward(1))
    };
    let handle = table.insert_at(entry, 50).expect("fits");
    assert_eq!(table.idle(149).count(), 0);
    assert_eq!(table.idle(150).count(), 1);
    table.touch(handle, 140);
    assert_eq!(table.idle(239).count(), 0);
}

#[test]
fn profiles_hold_members_and_groups_within_limits() {
    let mut profile = ActionProfile::new(ProfileSpec {
        name: "ecmp".into(),
        actions: vec![ActionSpec::new("set").parameter("port", 9)],
        size: 2,
        selector: true,
        max_group_size: 3,
        counts_members: false,
    });
    let member = |p| Member {
        action: ActionCall {
            action: 0,
            arguments: vec![Bits::new(9, p)],
        },
    };
    let group = |ws: &[(u32, u32)]| Group {
        members: ws
            .iter()
            .map(|&(member, weight)| GroupMember::new(member, weight))
            .collect(),
        max_size: 0,
    };
    profile.apply(ProfileOp::InsertMember(7, member(1))).expect("fits");
    profile.apply(ProfileOp::InsertMember(3, member(2))).expect("fits");
    let kind = |r: Result<_, TableError>| r.map(|_: weir_table::ProfileUndo| ()).expect_err("must fail").kind();
    assert_eq!(
        kind(profile.apply(ProfileOp::InsertMember(4, member(2)))),
        ErrorKind::ResourceExhausted
    );
    assert_eq!(
        kind(profile.apply(ProfileOp::InsertMember(7, member(2)))),
        ErrorKind::AlreadyExists
    );
    assert_eq!(
        kind(profile.apply(ProfileOp::InsertGroup(1, group(&[(9, 1)])))),
        ErrorKind::NotFound
    );
    assert_eq!(
        kind(profile.apply(ProfileOp::InsertGroup(1, group(&[(7, 4)])))),
        ErrorKind::ResourceExhausted
    );
    assert_eq!(
        kind(profile.apply(ProfileOp::InsertGroup(1, group(&[(7, 0)])))),
        ErrorKind::InvalidArgument
    );
    let undo = profile
        .apply(ProfileOp::InsertGroup(1, group(&[(7, 1), (3, 2)])))
        .expect("fits");
    assert_eq!(
        kind(profile.apply(ProfileOp::DeleteMember(7))),
        ErrorKind::FailedPrecondition
    );
    let chosen: Vec<_> = (0..4).map(|i| profile.group(1).and_then(|g| g.at(i))).collect();
    assert_eq!(chosen, [Some(3), Some(3), Some(7), None]);
    profile.revert(undo);
    assert!(profile.group(1).is_none());
}
