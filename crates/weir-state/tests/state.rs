//! Whatever is changed, and wherever the file ends: what is read again is the state after some
//! number of whole batches, and the last one where nothing is cut off.

use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options as CompilerOptions, compile_source};
use weir_ir::{ActionCall, Bits, KeyMatch, Program};
use weir_state::{Begin, Claim, Contents, Keeper, Options, Saved, StateError};
use weir_switch::{
    BatchMode, Cell, CloneSession, Count, Kept, MeterConfig, MulticastGroup, Rate, Replica, Switch, Write,
};
use weir_table::{EntryAction, EntryRef, Group, GroupMember, Member, NewEntry, ProfileOp, TableOp};

/// A program with everything that can be written.
const EVERYTHING: &str = include_str!("../../weir-server/tests/p4/everything.p4");

fn program() -> Arc<Program> {
    let compiled = compile_source("test.p4", EVERYTHING, &CompilerOptions::default(), weir_arch::targets());
    Arc::new(compiled.program.expect("compiles"))
}

fn fresh(program: &Arc<Program>) -> Switch {
    Switch::new(Arc::clone(program)).expect("loads")
}

/// Numbers that a change is made of.
type Dice = (u8, u8, u8, u8);

/// A change, which may well be refused.
fn change(switch: &Switch, (what, key, value, place): Dice) -> Write {
    let table = |name: &str| switch.table(name).expect("exists");
    let key32 = Bits::new(32, (key % 16).into());
    let action = EntryAction::call(0, vec![Bits::new(32, value.into())]);
    let exact = vec![KeyMatch::Exact(key32.clone())];
    let ternary = vec![
        KeyMatch::Ternary {
            value: key32.clone(),
            mask: Bits::new(32, 0x0f),
        },
        KeyMatch::Exact(Bits::new(8, 1)),
    ];
    let profile = switch.program().externs.iter().find(|(_, e)| e.name == "I.selector");
    let selector = profile.expect("exists").0;
    let resource = |kind, name: &str| switch.resource(kind, name).expect("exists");
    use weir_switch::ResourceKind::{Counter, Meter, Register};
    let count = Count {
        packets: value.into(),
        bytes: key.into(),
    };
    let rate = MeterConfig {
        cir: Rate::from_tokens_per_second(u64::from(value) + 1),
        cbs: 10,
        pir: Rate::from_tokens_per_second(u64::from(value) + 2),
        pbs: 20,
    };
    let index = Cell::Index((key % 8).into());
    let name = match what % 3 {
        0 => "exact_table",
        1 => "initial_table",
        _ => "idle_table",
    };
    match what % 20 {
        0..=3 => {
            let mut entry = NewEntry::new(exact, action);
            entry.metadata = place.into();
            entry.note = (place % 2 == 0).then(|| Arc::from(&[place][..]));
            entry.idle_timeout_ns = if name == "idle_table" { place.into() } else { 0 };
            Write::Table(table(name), TableOp::Insert(entry))
        }
        4 => Write::Table(
            table("ternary_table"),
            TableOp::Insert(NewEntry::new(ternary, action).with_priority(u32::from(place % 4) + 1)),
        ),
        5 => {
            let handles: Vec<_> = switch
                .table_state(table(name))
                .expect("exists")
                .table
                .entries()
                .collect();
            let entry = handles.get(usize::from(place) % handles.len().max(1)).map(|e| e.handle);
            let entry = entry.map_or(
                EntryRef::Key {
                    matches: exact,
                    priority: 0,
                },
                EntryRef::Handle,
            );
            Write::Table(
                table(name),
                TableOp::Modify {
                    entry,
                    action,
                    metadata: 7,
                    note: None,
                    idle_timeout_ns: 0,
                },
            )
        }
        6 => Write::Table(
            table(name),
            TableOp::Delete(EntryRef::Key {
                matches: exact,
                priority: 0,
            }),
        ),
        7 => Write::Table(table(name), TableOp::Clear),
        8 => Write::Table(
            table(name),
            TableOp::SetDefault(ActionCall {
                action: 0,
                arguments: vec![Bits::new(32, value.into())],
            }),
        ),
        9 => Write::Table(table(name), TableOp::ResetDefault),
        10 => {
            let entries: Vec<_> = switch
                .table_state(table("exact_table"))
                .expect("exists")
                .table
                .entries()
                .collect();
            let handle = entries
                .get(usize::from(place) % entries.len().max(1))
                .map_or(0, |e| e.handle.get());
            Write::Counter(resource(Counter, "exact_counter"), Cell::Index(handle.into()), count)
        }
        11 => Write::Counter(resource(Counter, "counts"), index, count),
        12 => Write::Meter(
            resource(Meter, "meters"),
            if place < 20 { Cell::All } else { index },
            Some(rate),
        ),
        13 => Write::Register(
            resource(Register, "words"),
            if place < 20 { Cell::All } else { index },
            vec![Bits::new(32, value.into())],
        ),
        14 => Write::Register(
            resource(Register, "cells"),
            Cell::Index((key % 4).into()),
            vec![Bits::new(12, value.into()), Bits::new(8, place.into())],
        ),
        15 => Write::Group(
            u32::from(key % 3),
            (place > 40).then(|| MulticastGroup::from(vec![Replica::new(value.into(), place.into())])),
        ),
        16 => Write::Session(
            u32::from(key % 3) + 1,
            (place > 40).then(|| CloneSession {
                replicas: vec![Replica::new(value.into(), 1)],
                truncate_bytes: place.into(),
                ..CloneSession::default()
            }),
        ),
        17 => {
            let member = Member {
                action: ActionCall {
                    action: 0,
                    arguments: vec![Bits::new(32, value.into())],
                },
            };
            let id = u32::from(key % 4) + 1;
            let group = || Group {
                members: vec![GroupMember::new(id, u32::from(value % 3) + 1)],
                max_size: 8,
            };
            let op = match place % 4 {
                0 | 1 => ProfileOp::InsertMember(id, member),
                2 => ProfileOp::InsertGroup(id, group()),
                _ => ProfileOp::DeleteMember(id),
            };
            Write::Profile(selector, op)
        }
        18 => {
            let entry = NewEntry::new(exact, EntryAction::Group(u32::from(value % 4) + 1));
            Write::Table(table("selector_table"), TableOp::Insert(entry))
        }
        _ => {
            let set = switch.value_set("specials").expect("exists");
            let entry = NewEntry::new(
                vec![KeyMatch::Exact(Bits::new(8, key.into()))],
                EntryAction::call(0, vec![]),
            );
            Write::ValueSet(
                set,
                if place < 30 {
                    TableOp::Clear
                } else {
                    TableOp::Insert(entry)
                },
            )
        }
    }
}

/// All that can be told of a switch, with entries in the place of their numbers.
fn told(switch: &Switch) -> Vec<String> {
    let program = switch.program();
    let mut lines = Vec::new();
    for id in program.tables.ids() {
        let state = switch.table_state(id).expect("exists");
        let table = &state.table;
        for entry in table.entries_by_age() {
            let handle = u64::from(entry.handle.get());
            let direct: Vec<_> = state
                .direct
                .iter()
                .map(|r| (switch.counter(*r, handle).ok(), switch.meter(*r, handle).ok()))
                .collect();
            let call = (&entry.matches, entry.priority, &entry.action, entry.metadata);
            let more = (&entry.note, entry.idle_timeout_ns, entry.is_const);
            lines.push(format!("{id:?} {call:?} {more:?} {direct:?}"));
        }
        lines.push(format!(
            "{id:?} {:?} {:?}",
            table.default_action(),
            table.default_note()
        ));
    }
    switch.keep(|piece| match piece {
        Kept::Replication(all) => lines.push(format!("{all:?}")),
        Kept::Change(write @ (Write::Profile(..) | Write::Register(..) | Write::Meter(..)), _) => {
            lines.push(format!("{write:?}"));
        }
        Kept::Change(Write::ValueSet(id, op), _) => lines.push(format!("{id:?} {op:?}")),
        Kept::Change(..) => {}
    });
    let counts = switch
        .resource(weir_switch::ResourceKind::Counter, "counts")
        .expect("exists");
    lines.extend((0..8).map(|i| format!("{:?}", switch.counter(counts, i))));
    lines
}

fn restored(path: &Path, bytes: Vec<u8>, program: &Arc<Program>) -> Switch {
    let saved = Saved::of(path, bytes).expect("is whole but for its end");
    let mut switch = fresh(program);
    saved.restore(0, &mut switch).expect("fits");
    switch
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_again_is_what_was_changed(
        batches in prop::collection::vec((prop::collection::vec(any::<Dice>(), 1..6), any::<bool>()), 1..40),
        many in prop::option::of(1u64..4000),
    ) {
        let program = program();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut switch = fresh(&program);
        let options = Options { many, ..Options::default() };
        let keeper = Keeper::start(Claim::new(&path).unwrap(), options, Contents::new(&Begin::of(&program))).unwrap();
        switch.set_journal(Some(keeper.journal()));
        let mut states = vec![told(&switch)];
        for (dice, is_atomic) in batches {
            let writes: Vec<Write> = dice.into_iter().map(|d| change(&switch, d)).collect();
            let mode = if is_atomic { BatchMode::Rollback } else { BatchMode::Continue };
            let _ = switch.write_all(writes, mode);
            states.push(told(&switch));
        }
        keeper.kept_blocking().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        prop_assert_eq!(&told(&restored(&path, bytes.clone(), &program)), states.last().unwrap());
        // Cut off anywhere after what was written at once, also where that is a longer state than
        // the one with which the switch began.
        let first = u64::from_le_bytes(bytes[17..25].try_into().unwrap()) as usize;
        for cut in (first..bytes.len()).step_by(((bytes.len() - first) / 12).max(1)) {
            let state = told(&restored(&path, bytes[..cut].to_vec(), &program));
            prop_assert!(many.is_some() || states.contains(&state), "cut at {}", cut);
        }
        // Put together anew it says the same.
        let again = Contents::new(&Begin::of(&program)).switch(&switch).counters(&switch.counter_values());
        let claim = Claim::new(&folder.path().join("again")).unwrap();
        let keeper = Keeper::start(claim, Options::default(), again).unwrap();
        keeper.kept_blocking().unwrap();
        let bytes = std::fs::read(folder.path().join("again")).unwrap();
        prop_assert_eq!(&told(&restored(&path, bytes, &program)), states.last().unwrap());
    }
}

#[test]
fn a_file_does_not_grow_with_what_is_changed_again_and_again() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut switch = fresh(&program);
    let options = Options {
        many: Some(100_000),
        ..Options::default()
    };
    let keeper = Keeper::start(Claim::new(&path).unwrap(), options, Contents::new(&Begin::of(&program))).unwrap();
    keeper.set("mine", b"first");
    switch.set_journal(Some(keeper.journal()));
    let beginning = std::fs::metadata(&path).unwrap().len();
    let mut longest = 0;
    for round in 0..400u16 {
        for key in 0..16 {
            let _ = switch.write(change(&switch, (0, key, (round % 251) as u8, 1)));
            let _ = switch.write(change(&switch, (6, key, 0, 1)));
            let _ = switch.write(change(&switch, (13, key, (round % 251) as u8, 100)));
        }
        if round == 300 {
            keeper.set("mine", b"second");
        }
        keeper.kept_blocking().unwrap();
        longest = longest.max(std::fs::metadata(&path).unwrap().len());
    }
    // Without being shortened it would have more than a million bytes.
    assert!(
        longest < beginning * 4 + 600_000,
        "{longest} bytes, {beginning} in the beginning"
    );
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(told(&restored(&path, bytes.clone(), &program)), told(&switch));
    assert_eq!(Saved::of(&path, bytes).unwrap().setting("mine"), Some(&b"second"[..]));
}

#[test]
fn a_file_belongs_to_one_switch_at_a_time() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let contents = || Contents::new(&Begin::of(&program));
    // As long as there is no file, the first that begins one has it.
    let mut claims = [Claim::new(&path).unwrap(), Claim::new(&path).unwrap()];
    assert!(claims[0].read().unwrap().is_none());
    assert!(!path.exists());
    let [claim, late] = claims;
    let keeper = Keeper::start(claim, Options::default(), contents()).unwrap();
    let refused = Keeper::start(late, Options::default(), contents());
    assert!(matches!(refused, Err(StateError::InUse { .. })));
    assert!(matches!(Claim::new(&path), Err(StateError::InUse { .. })));
    keeper.replace(Contents::new(&Begin::of(&program)).setting("a", b"b"));
    keeper.kept_blocking().unwrap();
    assert!(matches!(Claim::new(&path), Err(StateError::InUse { .. })));
}

#[test]
fn what_is_no_state_is_not_taken_for_one() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    std::fs::write(&path, "ten lines of somebody's notes").unwrap();
    assert!(matches!(
        Claim::new(&path).unwrap().read(),
        Err(StateError::Foreign { .. })
    ));

    std::fs::remove_file(&path).unwrap();
    let contents = Contents::new(&Begin::of(&program))
        .setting("a", b"b")
        .switch(&fresh(&program));
    let keeper = Keeper::start(Claim::new(&path).unwrap(), Options::default(), contents).unwrap();
    keeper.kept_blocking().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 0x10;
    assert!(matches!(
        Saved::of(&path, bytes),
        Err(StateError::Damaged { at: 25, .. })
    ));
}
