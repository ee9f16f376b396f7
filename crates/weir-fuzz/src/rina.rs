//! RINA: EFCP PDUs, CDAP messages, ARP of shim DIFs and link states made bad.

use std::time::Duration;
use weir_ipcp::PortId;
use weir_ipcp::sim::Simulation;
use weir_rina::arp::{ArpPacket, MacAddress, Operation, ShimDialect};
use weir_rina::cdap::objects::{
    AData, AddressClaim, Directory, DirectoryEntry, Enrolment, FlowRequest, LinkStateObject, LinkStates, Neighbours,
    Node, Object, WellKnown,
};
use weir_rina::cdap::{CdapDialect, Message, Opcode};
use weir_rina::efcp::delimiting::{self, Reassembler};
use weir_rina::efcp::protection::Protection;
use weir_rina::efcp::{
    Address, CepId, Control, ControlFields, ControlType, Dialect, Flags, Irati, Kind, Paper, Pci, PduType, QosId,
    Rlite, RliteChecksum, Widths,
};
use weir_rina::link_state::{Config, Database, LinkState};
use weir_rina::routing::Graph;
use weir_rina::transport::{Connection, ConnectionConfig, Endpoint, Policies};
use weir_rina::{ApplicationName, ByteOrder, Time, Width};

const CDAP: [CdapDialect; 2] = [CdapDialect::Rlite, CdapDialect::Irati];
/// The longest SDU that is put together.
const SDU: usize = 64;

fn dialects() -> [Box<dyn Dialect>; 5] {
    let wide = Widths {
        address: Width::Four,
        cep: Width::One,
        sequence: Width::Two,
        ..Widths::default()
    };
    let order = ByteOrder::Big;
    let sum = Rlite {
        checksum: RliteChecksum::Internet,
        ..Rlite::default()
    };
    [
        Box::new(Paper),
        Box::new(Irati::default()),
        Box::new(Irati { widths: wide, order }),
        Box::new(Rlite::default()),
        Box::new(sum),
    ]
}

/// The bytes as a PDU, as a CDAP message, as ARP, as fragments, and as events of a database.
pub(crate) fn run(data: &[u8]) {
    for dialect in dialects() {
        check_pdu(&*dialect, data);
    }
    check_message(data);
    check_arp(data);
    check_protection(data);
    check_fragments(data);
    check_database(data);
    check_connection(data);
    check_process(data);
    check_socket(data);
}

/// Data and control PDUs for a connection, whatever their numbers: it holds no more than its
/// window.
fn check_connection(data: &[u8]) {
    const CREDIT: u32 = 16;
    let end = |address| Endpoint {
        address: Address(address),
        cep: CepId(address),
    };
    let policies = Policies {
        credit: Some(CREDIT),
        ..Policies::reliable(QosId(1))
    };
    let config = ConnectionConfig {
        local: end(1),
        remote: end(2),
        policies,
        max_pdu: 100,
        pci_bytes: Paper::BYTES,
        max_sdu: 500,
        queue: 8,
        initial_sequence: u32::MAX - 2,
    };
    let mut now = Time::ZERO;
    let mut connection = Connection::new(config, now);
    for chunk in data.chunks(12) {
        let byte = |at: usize| chunk.get(at).copied().unwrap_or(0);
        let word = |at: usize| u32::from_be_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
        let fields = ControlFields {
            acknowledged: word(4),
            new_right: word(8),
            ..ControlFields::default()
        };
        let kind = match ControlType::ALL.get(usize::from(byte(1) >> 4)) {
            Some(kind) => Kind::Control(Control { kind: *kind, fields }),
            None => Kind::Data,
        };
        let pci = Pci {
            source_cep: CepId(2),
            destination_cep: CepId(1),
            kind,
            flags: Flags(byte(1).into()),
            sequence: word(2),
            ..Pci::management(Address(2), Address(1))
        };
        let _ = connection.receive(&pci, chunk.get(4..).unwrap_or_default(), now);
        let _ = connection.send(chunk, now);
        while connection.poll_transmit(now).is_some() {}
        connection.tick(now);
        assert!(connection.buffered() <= CREDIT as usize, "more than the window");
        assert!(connection.readable() <= CREDIT as usize, "more than the window");
        if byte(0) & 1 == 1 {
            connection.read(now);
        }
        now = now + Duration::from_millis(byte(0).into());
    }
}

/// Frames from strangers, and from an enrolled neighbour, for an IPC process. It keeps running.
fn check_process(data: &[u8]) {
    let mut sim = Simulation::new(1);
    let (a, b) = (sim.router("a"), sim.router("b"));
    sim.link(a, b);
    sim.start();
    sim.run_until(Time::from_secs(1));
    let own = sim.config(a).ports.first().map(|port| port.mac).unwrap_or_default();
    let neighbour = sim.config(b).ports.first().map(|port| port.mac).unwrap_or_default();
    let address = sim
        .process(a)
        .and_then(|process| process.address())
        .unwrap_or(Address(0));
    for chunk in data.chunks(64) {
        let Some((&choice, rest)) = chunk.split_first() else {
            continue;
        };
        let from = if choice & 1 == 1 { neighbour } else { MacAddress([6; 6]) };
        let mut frame = [&own.0[..], &from.0].concat();
        match choice >> 1 & 3 {
            0 => frame.extend(rest),
            1 => {
                frame.extend(ShimDialect::Rlite.ether_type().to_be_bytes());
                frame.extend(rest);
            }
            // With a good checksum, so that the message is read.
            choice_of_address => {
                frame.extend([0xd1, 0xf0]);
                let to = if choice_of_address == 2 { Address(0) } else { address };
                let kind = if choice & 8 == 0 { Kind::Management } else { Kind::Data };
                let pci = Pci {
                    kind,
                    destination_cep: CepId(u32::from(choice)),
                    ..Pci::management(Address(9), to)
                };
                let _ = Paper.encode(&pci, rest, &mut frame);
            }
        }
        sim.inject(a, PortId(1), frame);
    }
    sim.run_until(Time::from_secs(20));
    assert!(
        sim.process(a).is_some_and(|process| process.members().len() < 100),
        "members are invented"
    );
}

/// Bytes at the socket for applications.
fn check_socket(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((_, size))) = weir_rina_host::protocol::read_frame::<weir_rina_host::protocol::Request>(rest) {
        rest = rest.get(size..).unwrap_or_default();
    }
    let _ = weir_rina_host::protocol::read_frame::<weir_rina_host::protocol::Reply>(data);
}

/// A PDU that is decoded is encoded to one that is decoded to the same; its payload is read as a
/// message, too, so that mutations of PDUs reach the decoder of messages.
fn check_pdu(dialect: &dyn Dialect, data: &[u8]) {
    match dialect.decode(data) {
        Ok(pdu) => {
            assert!(pdu.payload.len() <= data.len(), "more payload than bytes");
            let mut bytes = Vec::new();
            dialect
                .encode(&pdu.pci, pdu.payload, &mut bytes)
                .expect("what was decoded can be encoded");
            let again = dialect.decode(&bytes).expect("what was encoded can be decoded");
            assert_eq!((again.pci, again.payload), (pdu.pci, pdu.payload));
            check_message(pdu.payload);
        }
        Err(error) => assert!(error.offset <= data.len(), "{error}: behind the end"),
    }
}

fn check_message(data: &[u8]) {
    for dialect in CDAP {
        match Message::decode(data, dialect) {
            Ok(message) => {
                let again = Message::decode(&message.encode(), dialect);
                assert_eq!(again.as_ref(), Ok(&message));
                if let Some(bytes) = message.value.as_ref().and_then(|value| value.as_bytes()) {
                    check_objects(bytes, dialect);
                }
            }
            Err(error) => assert!(error.offset <= data.len(), "{error}: behind the end"),
        }
        check_objects(data, dialect);
    }
}

fn check_objects(data: &[u8], dialect: CdapDialect) {
    check_object::<Enrolment>(data, dialect);
    check_object::<AData>(data, dialect);
    check_object::<LinkStates>(data, dialect);
    check_object::<Directory>(data, dialect);
    check_object::<Neighbours>(data, dialect);
    check_object::<AddressClaim>(data, dialect);
    check_object::<FlowRequest>(data, dialect);
}

fn check_object<T: Object + PartialEq + std::fmt::Debug>(data: &[u8], dialect: CdapDialect) {
    if let Ok(object) = T::decode(data, dialect) {
        let again = T::decode(&object.encode(dialect), dialect);
        assert_eq!(again, Ok(object));
    }
}

fn check_arp(data: &[u8]) {
    let Ok(packet) = ArpPacket::decode(data) else { return };
    let mut bytes = Vec::new();
    packet.encode(&mut bytes).expect("what was decoded can be encoded");
    assert_eq!(ArpPacket::decode(&bytes), Ok(packet));
    for dialect in [ShimDialect::Rlite, ShimDialect::Irati] {
        let Ok((sender, _)) = packet.names(dialect) else {
            continue;
        };
        if let Ok(text) = sender.to_text(dialect.name_form()) {
            let again = ApplicationName::from_text(text.as_bytes(), dialect.name_form());
            assert_eq!(again, Ok(sender));
        }
    }
}

fn check_protection(data: &[u8]) {
    let crc = Some(ByteOrder::Little);
    for protection in [Protection { ttl: true, crc }, Protection { ttl: true, crc: None }] {
        let mut bytes = Vec::new();
        protection.protect(data, 2, &mut bytes);
        let unprotected = protection.unprotect(&bytes).expect("a protected PDU");
        assert_eq!((unprotected.pdu, unprotected.ttl), (data, Some(1)));
        if let Ok(unprotected) = protection.unprotect(data) {
            check_pdu(&Irati::default(), unprotected.pdu);
        }
    }
}

/// The bytes as fragments of 4 bytes each, the first of which is flags.
fn check_fragments(data: &[u8]) {
    let mut reassembler = Reassembler::new(SDU);
    for bytes in data.chunks(5) {
        let Ok((position, fragment)) = delimiting::split(bytes) else {
            reassembler.reset();
            continue;
        };
        let (sdu, _) = reassembler.push(position, fragment);
        assert!(sdu.is_none_or(|sdu| sdu.len() <= SDU), "an SDU beyond the limit");
        assert!(reassembler.buffered() <= SDU, "more buffered than the limit");
    }
}

/// Each 6 bytes are a state, a change of a neighbour, a message or a step of time.
fn check_database(data: &[u8]) {
    let config = Config {
        max_links: 12,
        max_links_of_origin: 4,
        batch: 3,
        window: 2,
        ..Config::default()
    };
    let mut database = Database::new(0_u8, config);
    let mut now = Time::ZERO;
    for event in data.as_chunks::<6>().0 {
        let [kind, a, b, c, d, e] = *event;
        match kind % 8 {
            0 => database.neighbour_up(a % 4, b.into(), now),
            1 => database.neighbour_down(&(a % 4), now),
            2 => {
                now = now + Duration::from_secs(u64::from(a) * 4);
                database.tick(now);
                assert!(database.deadline().is_none_or(|deadline| deadline > now), "late");
            }
            3 => {
                let batch = database.transmit(&(a % 4), now, |state| state.cost % 7 != 0);
                assert!(batch.is_none_or(|batch| (1..=3).contains(&batch.states.len())));
            }
            4 => {
                database.acknowledge(&(a % 4), b.into());
            }
            _ => {
                let state = LinkState {
                    origin: b % 8,
                    neighbour: c % 8,
                    cost: u32::from(d % 4),
                    sequence: u32::from_be_bytes([kind & 0x80, 0, d, e]),
                    is_up: d & 4 == 0,
                    age: Duration::from_secs(u64::from(e) * 8),
                };
                let _ = database.receive(&(a % 4), state, now);
            }
        }
        // Own states are beyond the limit: there are as many as neighbours.
        assert!(database.summary().states <= 12 + 4, "more states than the limit");
    }
    let links = database.links();
    let routes = Graph::new(&links).routes(&0);
    assert!(routes.values().all(|route| !route.next_hops.is_empty()));
}

/// Valid PDUs of all types and formats, messages with each object, ARP of both shims.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for dialect in CDAP {
        for message in messages(dialect) {
            let bytes = message.encode();
            for efcp in dialects() {
                let mut pdu = Vec::new();
                efcp.encode(&Pci::management(Address(1), Address(2)), &bytes, &mut pdu)
                    .expect("a message fits");
                seeds.push(pdu);
            }
            seeds.push(bytes);
        }
    }
    for dialect in dialects() {
        seeds.extend(pdus(&*dialect));
    }
    seeds.extend([arp("leaf1|1", "spine1"), arp("leaf1/1//", "spine1///")]);
    seeds.push(vec![
        0x05, 1, 2, 3, 4, 0x04, 5, 6, 7, 8, 0x06, 9, 9, 9, 9, 0x07, 1, 2, 3, 4,
    ]);
    seeds.push((0..12).flat_map(|event| [event, 1, event, 0, 1, event]).collect());
    seeds
}

fn pdus(dialect: &dyn Dialect) -> Vec<Vec<u8>> {
    let fields = ControlFields {
        acknowledged: 7,
        new_right: 520,
        ..ControlFields::default()
    };
    let kinds = PduType::all().map(|kind| match kind {
        PduType::Management => Kind::Management,
        PduType::Data => Kind::Data,
        PduType::Control(kind) => Kind::Control(Control { kind, fields }),
    });
    let of = |kind| {
        let pci = Pci {
            destination_cep: CepId(7),
            flags: Flags::DRF,
            sequence: 1,
            kind,
            ..Pci::management(Address(1), Address(2))
        };
        let mut pdu = Vec::new();
        dialect.encode(&pci, b"payload", &mut pdu).ok().map(|()| pdu)
    };
    kinds.filter_map(of).collect()
}

fn messages(dialect: CdapDialect) -> Vec<Message> {
    let node = match dialect {
        CdapDialect::Rlite => Node::Name("leaf1".into()),
        CdapDialect::Irati => Node::Address(1),
    };
    let name = ApplicationName::process("server");
    let state = LinkStateObject {
        origin: "leaf1".into(),
        neighbour: "spine1".into(),
        cost: 1,
        sequence: 3,
        is_up: true,
        ..LinkStateObject::default()
    };
    let entry = DirectoryEntry {
        application: name.clone(),
        node: node.clone(),
        sequence: 1,
    };
    let flow = FlowRequest {
        source_application: ApplicationName::process("client"),
        destination_application: name,
        source_port: 1,
        destination_port: 0,
        source: node,
        destination: None,
        connections: Vec::new(),
        current_connection: 0,
        state: 0,
        qos: None,
    };
    let enrolment = Enrolment {
        address: 17,
        lower_difs: vec!["shim.300".into()],
        start_early: Some(true),
        token: 0,
    };
    let objects = [
        (Opcode::Start, WellKnown::Enrolment, enrolment.to_value(dialect)),
        (
            Opcode::Create,
            WellKnown::LinkStates,
            LinkStates(vec![state; 2]).to_value(dialect),
        ),
        (
            Opcode::Write,
            WellKnown::Directory,
            Directory(vec![entry]).to_value(dialect),
        ),
        (Opcode::Create, WellKnown::Flows, flow.to_value(dialect)),
    ];
    let about = |(opcode, object, value): (Opcode, WellKnown, _)| {
        let id = object.id(dialect);
        let invoke_id = 5;
        Message {
            invoke_id,
            ..Message::about(opcode, id.class, id.name, Some(value))
        }
    };
    objects.map(about).into()
}

fn arp(sender: &str, target: &str) -> Vec<u8> {
    let packet = ArpPacket {
        operation: Operation::Request,
        sender_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        sender: sender.as_bytes(),
        target_mac: MacAddress::default(),
        target: target.as_bytes(),
    };
    let mut bytes = Vec::new();
    packet.encode(&mut bytes).expect("short names");
    bytes
}
