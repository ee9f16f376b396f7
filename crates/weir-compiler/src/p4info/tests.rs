//! P4Info of programs made by hand.

use super::*;
use weir_ir::{
    Action, ActionCall, ActionParameter, AnnotationBody, Bits, ConstValue, ControlType, Display, Entry, ExternInstance,
    Key, KeyMatch, MatchKind, Table, TableAction, Translation, TypeSpec,
};

fn annotation(name: &str, token: &str) -> Annotation {
    let body = AnnotationBody::Text {
        text: token.to_string(),
        tokens: vec![token.to_string()],
    };
    Annotation {
        name: name.to_string(),
        body,
        loc: Loc::default(),
    }
}

fn key(name: &str, width: u32, match_kind: MatchKind) -> Key {
    Key {
        name: name.into(),
        width,
        match_kind,
        own_kind: None,
        display: Display::Unsigned,
        control: ControlType::default(),
        annotations: Vec::new(),
        loc: Loc::default(),
    }
}

/// A table `c.t` with one ternary key and one action with one parameter.
fn program() -> Program {
    let mut program = Program {
        target: "v1model".into(),
        ..Program::default()
    };
    let parameter = ActionParameter {
        name: "port".into(),
        width: 9,
        display: Display::Unsigned,
        control: ControlType::default(),
        annotations: vec![annotation("id", "7")],
    };
    let action = program.actions.push(Action {
        name: "c.send".into(),
        parameters: vec![parameter],
        annotations: Vec::new(),
        loc: Loc::default(),
    });
    program.tables.push(Table {
        name: "c.t".into(),
        keys: vec![
            key("hdr.a", 12, MatchKind::Ternary),
            key("hdr.h", 8, MatchKind::Selector),
            key("hdr.b", 8, MatchKind::Exact),
        ],
        actions: vec![TableAction {
            action,
            parameters: Vec::new(),
            default_only: false,
            table_only: false,
            executes: Vec::new(),
            annotations: Vec::new(),
        }],
        default_action: ActionCall {
            action: 0,
            arguments: vec![Bits::new(9, 511)],
        },
        const_default: true,
        size: Some(0),
        entries: vec![Entry {
            matches: vec![
                KeyMatch::Ternary {
                    value: Bits::zero(12),
                    mask: Bits::zero(12),
                },
                KeyMatch::Exact(Bits::new(8, 5)),
            ],
            action: ActionCall {
                action: 0,
                arguments: vec![Bits::new(9, 3)],
            },
            priority: 1,
            is_const: true,
            annotations: Vec::new(),
            loc: Loc::default(),
        }],
        const_entries: true,
        implementation: None,
        direct: Vec::new(),
        idle_timeout: true,
        properties: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    });
    program
}

fn instance(type_name: &str, type_arguments: Vec<TypeSpec>, arguments: Vec<(String, ConstValue)>) -> ExternInstance {
    ExternInstance {
        name: format!("c.{type_name}"),
        type_name: type_name.into(),
        type_arguments,
        arguments,
        methods: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    }
}

#[test]
fn a_table_has_its_keys_actions_and_flags() {
    let info = p4info(&program(), weir_arch::targets()).unwrap();
    let table = &info.tables[0];
    assert_eq!(table.preamble.as_ref().unwrap().alias, "t");
    let fields: Vec<_> = table.match_fields.iter().map(|f| (f.id, f.name.as_str())).collect();
    assert_eq!(fields, [(1, "hdr.a"), (3, "hdr.b")]);
    assert_eq!(table.size, 1024);
    assert!(table.is_const_table && table.has_initial_entries && table.idle_timeout_behavior == 1);
    let default = table.initial_default_action.as_ref().unwrap();
    assert_eq!(default.action_id, table.const_default_action_id);
    assert_eq!(
        (default.arguments[0].param_id, &default.arguments[0].value[..]),
        (7, &[1, 255][..])
    );
    assert_eq!(info.actions[0].params[0].id, 7);
}

#[test]
fn the_entries_of_the_source_are_written_with_padded_values() {
    let request = entries(&program(), weir_arch::targets()).unwrap();
    let Some(weir_proto::p4::v1::entity::Entity::TableEntry(entry)) =
        &request.updates[0].entity.as_ref().unwrap().entity
    else {
        panic!()
    };
    assert_eq!(entry.r#match.len(), 1, "a key that matches anything is left out");
    assert_eq!(entry.r#match[0].field_id, 3);
    assert_eq!((entry.priority, entry.is_const), (1, true));
    let Some(weir_proto::p4::v1::table_action::Type::Action(action)) = &entry.action.as_ref().unwrap().r#type else {
        panic!()
    };
    assert_eq!(action.params[0].value, [0, 3]);
}

#[test]
fn hidden_objects_are_not_shown() {
    let mut program = program();
    for (_, table) in program.tables.iter_mut() {
        table.annotations.push(Annotation {
            name: "hidden".into(),
            body: AnnotationBody::Empty,
            loc: Loc::default(),
        });
    }
    assert!(p4info(&program, weir_arch::targets()).unwrap().tables.is_empty());
}

#[test]
fn a_given_id_gets_the_prefix_of_its_kind_and_no_other() {
    let mut program = program();
    let id = weir_ir::TableId::new(0);
    program.tables[id].annotations = vec![annotation("id", "0x10")];
    assert_eq!(
        p4info(&program, weir_arch::targets()).unwrap().tables[0]
            .preamble
            .as_ref()
            .unwrap()
            .id,
        0x0200_0010
    );
    program.tables[id].annotations = vec![annotation("id", "0x01000010")];
    let errors = p4info(&program, weir_arch::targets()).unwrap_err();
    assert!(
        matches!(errors[..], [P4InfoError::WrongPrefix { expected: 2, .. }]),
        "{errors:?}"
    );
}

#[test]
fn two_tables_of_one_name_are_an_error() {
    let mut program = program();
    let table = program.tables[weir_ir::TableId::new(0)].clone();
    program.tables.push(table);
    let errors = p4info(&program, weir_arch::targets()).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "there are two objects of the kind table named `c.t`; give one of them another @name"
    );
}

#[test]
fn a_translated_type_has_the_width_the_controller_sees() {
    let mut program = program();
    let table = &mut program.tables[weir_ir::TableId::new(0)];
    let translation = Translation {
        uri: "u".into(),
        sdn_width: None,
        mappings: Vec::new(),
    };
    table.keys[0].control = ControlType {
        type_name: Some("port_t".into()),
        translation: Some(translation),
    };
    program.type_info.push(weir_ir::NamedType {
        name: "port_t".into(),
        spec: TypeSpec::New("port_t".into(), Box::new(TypeSpec::Bit(12)), Some(("u".into(), None))),
        annotations: Vec::new(),
    });
    let info = p4info(&program, weir_arch::targets()).unwrap();
    let field = &info.tables[0].match_fields[0];
    assert_eq!(
        (field.bitwidth, field.type_name.as_ref().map(|t| t.name.as_str())),
        (0, Some("port_t"))
    );
    assert!(info.type_info.unwrap().new_types.contains_key("port_t"));
}

#[test]
fn externs_are_described_by_what_their_types_are() {
    let mut program = program();
    let both = ConstValue::Enum {
        enum_name: "CounterType".into(),
        member: "packets_and_bytes".into(),
    };
    let size = |n| ("size".to_string(), ConstValue::Bits(Bits::new(32, n)));
    let index = TypeSpec::New("index_t".into(), Box::new(TypeSpec::Bit(10)), None);
    program.externs.push(instance(
        "counter",
        vec![TypeSpec::Bit(32)],
        vec![size(8), ("type".into(), both.clone())],
    ));
    let direct = program.externs.push(instance(
        "direct_counter",
        Vec::new(),
        vec![("type".into(), both.clone())],
    ));
    program
        .externs
        .push(instance("DirectCounter", Vec::new(), vec![("type".into(), both)]));
    program
        .externs
        .push(instance("register", vec![TypeSpec::Bit(48), index], vec![size(4)]));
    program
        .externs
        .push(instance("action_selector", Vec::new(), vec![size(2)]));
    program.externs.push(instance("Checksum", Vec::new(), Vec::new()));
    program.tables[weir_ir::TableId::new(0)].direct.push(direct);
    let info = p4info(&program, weir_arch::targets()).unwrap();
    assert_eq!(
        info.counters[0].spec,
        Some(pb::CounterSpec {
            unit: pb::counter_spec::Unit::Both.into()
        })
    );
    assert_eq!(info.counters[0].size, 8);
    assert_eq!(info.direct_counters.len(), 1, "one that no table has is not described");
    assert_eq!(
        info.tables[0].direct_resource_ids,
        [info.direct_counters[0].preamble.as_ref().unwrap().id]
    );
    assert_eq!(info.registers[0].index_type_name.as_ref().unwrap().name, "index_t");
    assert!(info.action_profiles[0].with_selector);
}
