//! CDAP: bytes by hand, properties, and prost as a second implementation.

mod common;

use common::hex;
use proptest::prelude::*;
use prost::Message as _;
use weir_rina::cdap::objects::{
    AData, AddressClaim, ConnectionId, Directory, DirectoryEntry, Enrolment, FlowRequest, LinkStateObject, LinkStates,
    Neighbour, Neighbours, Node, Object, QosRequest, WellKnown,
};
use weir_rina::cdap::{Authentication, CdapDialect, Message, Opcode, Value};
use weir_rina::{ApplicationName, Reason};

const DIALECTS: [CdapDialect; 2] = [CdapDialect::Rlite, CdapDialect::Irati];

/// The message by prost, with rlite's authentication.
#[derive(Clone, PartialEq, prost::Message)]
struct Second {
    #[prost(int32, optional, tag = "1")]
    abs_syntax: Option<i32>,
    #[prost(int32, required, tag = "2")]
    op_code: i32,
    #[prost(int32, optional, tag = "3")]
    invoke_id: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    flags: Option<i32>,
    #[prost(string, optional, tag = "5")]
    obj_class: Option<String>,
    #[prost(string, optional, tag = "6")]
    obj_name: Option<String>,
    #[prost(int64, optional, tag = "7")]
    obj_inst: Option<i64>,
    #[prost(message, optional, tag = "8")]
    obj_value: Option<SecondValue>,
    #[prost(int32, optional, tag = "9")]
    result: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    scope: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "11")]
    filter: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "17")]
    auth_mech: Option<i32>,
    #[prost(message, optional, tag = "18")]
    auth_value: Option<SecondAuth>,
    #[prost(string, optional, tag = "19")]
    dest_ae_inst: Option<String>,
    #[prost(string, optional, tag = "20")]
    dest_ae_name: Option<String>,
    #[prost(string, optional, tag = "21")]
    dest_ap_inst: Option<String>,
    #[prost(string, optional, tag = "22")]
    dest_ap_name: Option<String>,
    #[prost(string, optional, tag = "23")]
    src_ae_inst: Option<String>,
    #[prost(string, optional, tag = "24")]
    src_ae_name: Option<String>,
    #[prost(string, optional, tag = "25")]
    src_ap_inst: Option<String>,
    #[prost(string, optional, tag = "26")]
    src_ap_name: Option<String>,
    #[prost(string, optional, tag = "27")]
    result_reason: Option<String>,
    #[prost(int64, optional, tag = "28")]
    version: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SecondValue {
    #[prost(int32, optional, tag = "1")]
    int: Option<i32>,
    #[prost(sint32, optional, tag = "2")]
    sint: Option<i32>,
    #[prost(int64, optional, tag = "3")]
    int64: Option<i64>,
    #[prost(sint64, optional, tag = "4")]
    sint64: Option<i64>,
    #[prost(string, optional, tag = "5")]
    text: Option<String>,
    #[prost(bytes = "vec", optional, tag = "6")]
    bytes: Option<Vec<u8>>,
    #[prost(fixed32, optional, tag = "7")]
    fixed32: Option<u32>,
    #[prost(fixed64, optional, tag = "8")]
    fixed64: Option<u64>,
    #[prost(bool, optional, tag = "9")]
    bool: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SecondAuth {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    password: Option<String>,
    #[prost(bytes = "vec", optional, tag = "3")]
    other: Option<Vec<u8>>,
}

/// prost's message with the contents of ours.
fn second(message: &Message) -> Second {
    let number = |value: i32| (value != 0).then_some(value);
    let long = |value: i64| (value != 0).then_some(value);
    let text = |value: &String| (!value.is_empty()).then(|| value.clone());
    let bytes = |value: &Vec<u8>| (!value.is_empty()).then(|| value.clone());
    let obj_value = message.value.clone().map(|value| {
        let mut second = SecondValue::default();
        match value {
            Value::Int(v) => second.int = Some(v),
            Value::Sint(v) => second.sint = Some(v),
            Value::Int64(v) => second.int64 = Some(v),
            Value::Sint64(v) => second.sint64 = Some(v),
            Value::Text(v) => second.text = Some(v),
            Value::Bytes(v) => second.bytes = Some(v),
            Value::Fixed32(v) => second.fixed32 = Some(v),
            Value::Fixed64(v) => second.fixed64 = Some(v),
            Value::Bool(v) => second.bool = Some(v),
        }
        second
    });
    let (auth_mech, auth_value) = match &message.authentication {
        Some(Authentication::Mechanism {
            mechanism,
            name,
            password,
            other,
        }) => {
            let is_empty = name.is_empty() && password.is_empty() && other.is_empty();
            let value = SecondAuth {
                name: text(name),
                password: text(password),
                other: bytes(other),
            };
            (Some(*mechanism), (!is_empty).then_some(value))
        }
        Some(Authentication::Policy { .. }) | None => (None, None),
    };
    Second {
        abs_syntax: number(message.abstract_syntax),
        op_code: message.opcode.code().into(),
        invoke_id: number(message.invoke_id),
        flags: number(message.flags),
        obj_class: text(&message.object_class),
        obj_name: text(&message.object_name),
        obj_inst: long(message.object_instance),
        obj_value,
        result: number(message.result),
        scope: number(message.scope),
        filter: bytes(&message.filter),
        auth_mech,
        auth_value,
        dest_ae_inst: text(&message.destination.entity_instance),
        dest_ae_name: text(&message.destination.entity),
        dest_ap_inst: text(&message.destination.process_instance),
        dest_ap_name: text(&message.destination.process),
        src_ae_inst: text(&message.source.entity_instance),
        src_ae_name: text(&message.source.entity),
        src_ap_inst: text(&message.source.process_instance),
        src_ap_name: text(&message.source.process),
        result_reason: text(&message.result_reason),
        version: long(message.version),
    }
}

#[test]
fn a_connect_of_each_implementation() {
    let connect = |dialect: CdapDialect, authentication| Message {
        abstract_syntax: dialect.abstract_syntax(),
        invoke_id: 1,
        authentication: Some(authentication),
        destination: ApplicationName::process("b"),
        source: ApplicationName::process("a"),
        version: 1,
        ..Message::new(Opcode::Connect)
    };
    let none = Authentication::Mechanism {
        mechanism: 0,
        name: String::new(),
        password: String::new(),
        other: Vec::new(),
    };
    let rlite = connect(CdapDialect::Rlite, none);
    let bytes = hex("0849 1000 1801 880100 b2010162 d2010161 e00101");
    assert_eq!(rlite.encode(), bytes);
    assert_eq!(Message::decode(&bytes, CdapDialect::Rlite), Ok(rlite));

    let policy = Authentication::Policy {
        name: "PSOC_authentication-none".into(),
        versions: vec!["1".into()],
        options: Vec::new(),
    };
    let irati = connect(CdapDialect::Irati, policy);
    let mut bytes = hex("0873 1000 1801 92011d 0a18");
    bytes.extend(b"PSOC_authentication-none");
    bytes.extend(hex("120131 b2010162 d2010161 e00101"));
    assert_eq!(irati.encode(), bytes);
    assert_eq!(Message::decode(&bytes, CdapDialect::Irati), Ok(irati));
}

#[test]
fn opcodes_have_their_values_and_responses() {
    for (code, opcode) in Opcode::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(opcode.code()), code);
        assert_eq!(opcode.is_response(), code % 2 == 1);
        assert_eq!(
            opcode.response().map(Opcode::code),
            (code % 2 == 0).then_some(code as u8 + 1)
        );
    }
    assert_eq!(Opcode::from_code(18), None);
    let request = Message {
        invoke_id: 9,
        ..Message::about(Opcode::Read, "c", "/n", None)
    };
    let response = request.response(0, "").unwrap();
    assert_eq!((response.opcode, response.invoke_id), (Opcode::ReadR, 9));
    assert_eq!(response.response(0, ""), None);
}

#[test]
fn messages_that_are_none_are_refused_with_the_place() {
    let reason = |text: &str| Message::decode(&hex(text), CdapDialect::Rlite).unwrap_err().reason;
    assert_eq!(reason(""), Reason::Missing);
    assert_eq!(reason("1012"), Reason::Opcode);
    assert_eq!(reason("1000 2801"), Reason::WireType);
    assert_eq!(reason("1000 2a02 61ff"), Reason::Utf8);
    assert_eq!(reason("1000 420a 0801"), Reason::Truncated);
    let error = Message::decode(&hex("1000 4203 2a01ff"), CdapDialect::Rlite).unwrap_err();
    assert_eq!((error.field, error.offset), ("CDAP objValue.strval", 6));
}

#[test]
fn unknown_fields_and_other_authentication_are_ignored() {
    // Fields 29 (varint), 30 (group), 31 (bytes); objValue with a field 10.
    let bytes = hex("1008 e80105 f301 0801 f401 fa010178 4205 0807 520178");
    let message = Message::decode(&bytes, CdapDialect::Rlite).unwrap();
    let expected = Message {
        value: Some(Value::Int(7)),
        ..Message::new(Opcode::Read)
    };
    assert_eq!(message, expected);
    let with_mechanism = hex("1000 880101");
    let of = |dialect| Message::decode(&with_mechanism, dialect).unwrap().authentication;
    assert!(of(CdapDialect::Rlite).is_some());
    assert_eq!(of(CdapDialect::Irati), None);
}

#[test]
fn link_states_have_the_fields_of_each_implementation() {
    let mut state = LinkStateObject {
        origin: "a".into(),
        neighbour: "b".into(),
        cost: 1,
        sequence: 300,
        is_up: true,
        age: 10,
        ..LinkStateObject::default()
    };
    let rlite = hex("0a0f 0a0161 120162 1801 20ac02 2801 300a");
    assert_eq!(LinkStates(vec![state.clone()]).encode(CdapDialect::Rlite), rlite);
    state.origin_addresses = vec![17];
    state.neighbour_addresses = vec![18, 19];
    let states = LinkStates(vec![state]);
    let irati = hex("0a15 0a0161 1011 1a0162 2012 2013 2801 30ac02 3801 400a");
    assert_eq!(states.encode(CdapDialect::Irati), irati);
    assert_eq!(LinkStates::decode(&irati, CdapDialect::Irati), Ok(states.clone()));
    // Packed addresses are the same.
    let packed = hex("0a16 0a0161 120111 1a0162 22021213 2801 30ac02 3801 400a");
    assert_eq!(LinkStates::decode(&packed, CdapDialect::Irati), Ok(states));
}

#[test]
fn well_known_objects_have_names_of_their_own() {
    for dialect in DIALECTS {
        for object in WellKnown::ALL {
            let same = WellKnown::ALL
                .into_iter()
                .filter(|o| o.id(dialect) == object.id(dialect));
            assert_eq!(same.count(), 1);
        }
    }
    let id = WellKnown::LinkStates.id(CdapDialect::Irati);
    assert_eq!((id.class, id.name), ("FlowStateObjects", "/ra/fsos"));
}

fn name() -> impl Strategy<Value = ApplicationName> {
    ["[a-z.]{0,6}", "[0-9]{0,2}", "[a-z]{0,3}", "[0-9]{0,2}"].prop_map(
        |[process, process_instance, entity, entity_instance]| ApplicationName {
            process,
            process_instance,
            entity,
            entity_instance,
        },
    )
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..12)
}

fn value() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(prop_oneof![
        any::<i32>().prop_map(Value::Int),
        any::<i32>().prop_map(Value::Sint),
        any::<i64>().prop_map(Value::Int64),
        any::<i64>().prop_map(Value::Sint64),
        ".{0,8}".prop_map(Value::Text),
        bytes().prop_map(Value::Bytes),
        any::<u32>().prop_map(Value::Fixed32),
        any::<u64>().prop_map(Value::Fixed64),
        any::<bool>().prop_map(Value::Bool),
    ])
}

fn authentication(dialect: CdapDialect) -> BoxedStrategy<Option<Authentication>> {
    match dialect {
        CdapDialect::Rlite => (any::<i32>(), ".{0,4}", ".{0,4}", bytes())
            .prop_map(|(mechanism, name, password, other)| {
                Some(Authentication::Mechanism {
                    mechanism,
                    name,
                    password,
                    other,
                })
            })
            .boxed(),
        CdapDialect::Irati => (".{0,4}", prop::collection::vec(".{0,3}", 0..3), bytes())
            .prop_map(|(name, versions, options)| {
                Some(Authentication::Policy {
                    name,
                    versions,
                    options,
                })
            })
            .boxed(),
    }
}

fn message(dialect: CdapDialect) -> impl Strategy<Value = Message> {
    (
        (any::<i32>(), prop::sample::select(&Opcode::ALL[..]), any::<i32>(), 0..3),
        (".{0,6}", ".{0,6}", any::<i64>(), value()),
        (any::<i32>(), any::<i32>(), bytes()),
        prop_oneof![Just(None).boxed(), authentication(dialect)],
        (name(), name()),
        (".{0,6}", any::<i64>()),
    )
        .prop_map(|(first, object, result, authentication, names, last)| Message {
            abstract_syntax: first.0,
            opcode: first.1,
            invoke_id: first.2,
            flags: first.3,
            object_class: object.0,
            object_name: object.1,
            object_instance: object.2,
            value: object.3,
            result: result.0,
            scope: result.1,
            filter: result.2,
            authentication,
            destination: names.0,
            source: names.1,
            result_reason: last.0,
            version: last.1,
        })
}

fn message_of_either() -> impl Strategy<Value = (CdapDialect, Message)> {
    prop::sample::select(&DIALECTS[..]).prop_flat_map(|dialect| (Just(dialect), message(dialect)))
}

proptest! {
    #[test]
    fn decoding_is_the_inverse_of_encoding((dialect, message) in message_of_either()) {
        let bytes = message.encode();
        prop_assert_eq!(Message::decode(&bytes, dialect), Ok(message.clone()));
        for end in 0..bytes.len() {
            // A message that ends between two fields is a message.
            if let Ok(shorter) = Message::decode(&bytes[..end], dialect) {
                prop_assert_ne!(shorter, message.clone());
            }
        }
    }

    #[test]
    fn prost_writes_the_same_bytes(message in message(CdapDialect::Rlite)) {
        let second = second(&message);
        prop_assert_eq!(message.encode(), second.encode_to_vec());
    }

    #[test]
    fn prost_reads_what_we_read(
        message in message(CdapDialect::Rlite),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = message.encode();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let (ours, theirs) = (Message::decode(&bytes, CdapDialect::Rlite), Second::decode(&bytes[..]));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                prop_assert_eq!(i32::from(ours.opcode.code()), theirs.op_code);
                prop_assert_eq!(ours.invoke_id, theirs.invoke_id.unwrap_or_default());
                prop_assert_eq!(ours.object_name, theirs.obj_name.unwrap_or_default());
                prop_assert_eq!(ours.version, theirs.version.unwrap_or_default());
            }
            // prost knows neither required fields nor the values of the enumeration.
            (Err(error), Ok(_)) => prop_assert!(matches!(error.reason, Reason::Missing | Reason::Opcode)),
            (Ok(_), Err(error)) => prop_assert!(false, "only prost refuses: {}", error),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn bytes_make_no_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for dialect in DIALECTS {
            if let Ok(message) = Message::decode(&bytes, dialect) {
                prop_assert_eq!(Message::decode(&message.encode(), dialect), Ok(message));
            }
            every_object(&bytes, dialect);
        }
    }

    #[test]
    fn objects_are_read_as_they_were_written(
        dialect in prop::sample::select(&DIALECTS[..]),
        names in (name(), name()),
        texts in prop::collection::vec("[a-z]{0,5}", 3),
        n in any::<[u64; 6]>(),
        flag in any::<bool>(),
    ) {
        let node = |value: u64| match dialect {
            CdapDialect::Rlite => Node::Name(format!("n{value}")),
            CdapDialect::Irati => Node::Address(value),
        };
        let irati = dialect == CdapDialect::Irati;
        same(&Enrolment {
            address: n[0],
            lower_difs: texts.clone(),
            start_early: flag.then_some(n[1] % 2 == 0),
            token: if irati { n[2] } else { 0 },
        }, dialect)?;
        same(&AData { source: n[0] as u32, destination: n[1] as u32, message: texts[0].clone().into() }, dialect)?;
        let state = LinkStateObject {
            origin: texts[0].clone(),
            origin_addresses: if irati { n.to_vec() } else { Vec::new() },
            neighbour: texts[1].clone(),
            neighbour_addresses: if irati { n[1..].to_vec() } else { Vec::new() },
            cost: n[2] as u32,
            sequence: n[3] as u32,
            is_up: flag,
            age: n[4] as u32,
        };
        same(&LinkStates(vec![state.clone(), state]), dialect)?;
        let entry = DirectoryEntry { application: names.0.clone(), node: node(n[0]), sequence: n[1] };
        same(&Directory(vec![entry.clone(), entry]), dialect)?;
        let neighbour = Neighbour {
            process: texts[0].clone(),
            process_instance: texts[1].clone(),
            address: n[0],
            lower_difs: texts.clone(),
        };
        same(&Neighbours(vec![neighbour; 2]), dialect)?;
        same(&AddressClaim { requestor: texts[2].clone(), address: n[5] }, dialect)?;
        let connection = ConnectionId { qos: n[0] as u32, source_cep: n[1] as u32, destination_cep: n[2] as u32 };
        let qos = QosRequest {
            qos: n[0] as u32,
            average_bandwidth: n[1],
            in_order: flag,
            max_gap: n[2] as i32,
            delay: n[3] as u32,
        };
        same(&FlowRequest {
            source_application: names.0,
            destination_application: names.1,
            source_port: n[0],
            destination_port: n[1],
            source: node(n[2]),
            destination: flag.then(|| node(n[3])),
            connections: vec![connection; 2],
            current_connection: n[4] as u32,
            state: n[5] as u32,
            qos: flag.then_some(qos),
        }, dialect)?;
    }
}

fn same<T: Object + PartialEq + std::fmt::Debug>(object: &T, dialect: CdapDialect) -> Result<(), TestCaseError> {
    let bytes = object.encode(dialect);
    let decoded = T::decode(&bytes, dialect);
    prop_assert_eq!(decoded.as_ref(), Ok(object));
    for end in 0..bytes.len() {
        let _ = T::decode(&bytes[..end], dialect);
    }
    Ok(())
}

fn every_object(bytes: &[u8], dialect: CdapDialect) {
    let _ = Enrolment::decode(bytes, dialect);
    let _ = AData::decode(bytes, dialect);
    let _ = LinkStates::decode(bytes, dialect);
    let _ = Directory::decode(bytes, dialect);
    let _ = Neighbours::decode(bytes, dialect);
    let _ = AddressClaim::decode(bytes, dialect);
    let _ = FlowRequest::decode(bytes, dialect);
}
