//! Both sides of the enrolment, over flows that lose messages, and against attackers.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_rina::address::Addresses;
use weir_rina::cdap::objects::{Enrolment, Object, WellKnown};
use weir_rina::cdap::{CdapDialect, Message, Opcode, Value, result};
use weir_rina::efcp::Address;
use weir_rina::enrolment::{
    Authenticator, Enrollee, EnrolleeConfig, Enroller, EnrollerConfig, Event, Failure, Parameter, Password, Retries,
    Step,
};
use weir_rina::{ApplicationName, Time};

const DIALECT: CdapDialect = CdapDialect::Rlite;

fn password(text: &str) -> Authenticator {
    Authenticator::Password(Password::new(text.as_bytes()))
}

fn enrollee(authenticator: Authenticator, dialect: CdapDialect) -> EnrolleeConfig {
    EnrolleeConfig {
        name: "leaf1".into(),
        dif: "fabric".into(),
        proposed: Address(0),
        lower_difs: vec!["shim.300".into()],
        authenticator,
        dialect,
        retries: Retries::default(),
        max_parameters: 4,
    }
}

fn enroller(authenticator: Authenticator, dialect: CdapDialect) -> EnrollerConfig {
    let parameter = |number| {
        let id = WellKnown::Neighbours.id(dialect);
        Parameter::new(id, Value::Int(number))
    };
    EnrollerConfig {
        name: "spine1".into(),
        dif: "fabric".into(),
        lower_difs: vec!["shim.300".into(), "shim.301".into()],
        authenticator,
        dialect,
        retries: Retries::default(),
        parameters: vec![parameter(1), parameter(2)],
    }
}

fn addresses() -> Addresses {
    Addresses::new(BTreeMap::new(), Some((16, 31)))
}

/// What both sides have reported, in order.
#[derive(Debug, Default)]
struct Outcome {
    enrollee: Vec<Event>,
    enroller: Vec<Event>,
    messages: usize,
}

/// Runs both sides; `is_lost` decides on each message by its number. Messages are bytes in between.
fn run(left: EnrolleeConfig, right: EnrollerConfig, mut is_lost: impl FnMut(usize) -> bool) -> Outcome {
    let mut outcome = Outcome::default();
    let mut addresses = addresses();
    let mut now = Time::ZERO;
    let (mut enroller, dialect) = (Enroller::new(right, [2; 16], now), left.dialect);
    let (mut enrollee, first) = Enrollee::new(left, [1; 16], now);
    let (mut to_enroller, mut to_enrollee) = (first.messages, Vec::new());
    loop {
        while !(to_enroller.is_empty() && to_enrollee.is_empty()) {
            for message in std::mem::take(&mut to_enroller) {
                outcome.messages += 1;
                if !is_lost(outcome.messages) {
                    let message = Message::decode(&message.encode(), dialect).unwrap();
                    let step = enroller.receive(&message, &mut addresses, now);
                    to_enrollee.extend(step.messages);
                    outcome.enroller.extend(step.event);
                }
            }
            for message in std::mem::take(&mut to_enrollee) {
                outcome.messages += 1;
                if !is_lost(outcome.messages) {
                    let message = Message::decode(&message.encode(), dialect).unwrap();
                    let step = enrollee.receive(&message, now);
                    to_enroller.extend(step.messages);
                    outcome.enrollee.extend(step.event);
                }
            }
            assert!(outcome.messages < 1000, "messages without end");
        }
        let Some(next) = enrollee.deadline().into_iter().chain(enroller.deadline()).min() else {
            return outcome;
        };
        now = next;
        let step = enrollee.tick(now);
        to_enroller.extend(step.messages);
        outcome.enrollee.extend(step.event);
        let step = enroller.tick(now);
        to_enrollee.extend(step.messages);
        outcome.enroller.extend(step.event);
    }
}

#[track_caller]
fn assert_enrolled(outcome: &Outcome) {
    let [Event::Enrolled(left)] = &outcome.enrollee[..] else {
        panic!("{outcome:?}");
    };
    let [Event::Enrolled(right)] = &outcome.enroller[..] else {
        panic!("{outcome:?}");
    };
    assert_eq!((left.neighbour.as_str(), right.neighbour.as_str()), ("spine1", "leaf1"));
    assert_eq!((left.address, right.address), (Address(16), Address(16)));
    assert_eq!(left.lower_difs, ["shim.300", "shim.301"]);
    assert_eq!(right.lower_difs, ["shim.300"]);
    let values: Vec<_> = left.parameters.iter().map(|p| p.value.clone()).collect();
    assert_eq!(values, [Some(Value::Int(1)), Some(Value::Int(2))]);
}

#[test]
fn an_enrolment_takes_a_known_number_of_messages() {
    for dialect in [CdapDialect::Rlite, CdapDialect::Irati] {
        let none = run(
            enrollee(Authenticator::None, dialect),
            enroller(Authenticator::None, dialect),
            |_| false,
        );
        assert_enrolled(&none);
        assert_eq!(none.messages, 12);
    }
    let with = run(
        enrollee(password("secret"), DIALECT),
        enroller(password("secret"), DIALECT),
        |_| false,
    );
    assert_enrolled(&with);
    assert_eq!(with.messages, 14);
}

#[test]
fn each_message_may_be_lost_once() {
    for lost in 1..=14 {
        let outcome = run(
            enrollee(password("secret"), DIALECT),
            enroller(password("secret"), DIALECT),
            |number| number == lost,
        );
        assert_enrolled(&outcome);
    }
}

#[test]
fn without_answers_both_sides_give_up() {
    let (left, right) = (
        enrollee(Authenticator::None, DIALECT),
        enroller(Authenticator::None, DIALECT),
    );
    let outcome = run(left, right, |_| true);
    assert_eq!(outcome.messages, 10, "attempts");
    assert_eq!(outcome.enrollee, [Event::Failed(Failure::Timeout)]);
    assert_eq!(outcome.enroller, [Event::Failed(Failure::Timeout)]);
}

#[track_caller]
fn assert_failed(left: Authenticator, right: Authenticator, enrollee_says: Failure, enroller_says: Failure) {
    let outcome = run(enrollee(left, DIALECT), enroller(right, DIALECT), |_| false);
    assert_eq!(outcome.enrollee, [Event::Failed(enrollee_says)]);
    assert_eq!(outcome.enroller, [Event::Failed(enroller_says)]);
}

#[test]
fn wrong_passwords_and_mechanisms_are_refused() {
    assert_failed(
        password("guess"),
        password("secret"),
        Failure::Refused,
        Failure::WrongProof,
    );
    assert_failed(
        Authenticator::None,
        password("secret"),
        Failure::Refused,
        Failure::WrongMechanism,
    );
    assert_failed(
        password("secret"),
        Authenticator::None,
        Failure::Refused,
        Failure::WrongMechanism,
    );
}

/// Has the enroller take messages; returns its last step.
fn feed(config: EnrollerConfig, messages: &[Message]) -> Step {
    let mut enroller = Enroller::new(config, [2; 16], Time::ZERO);
    let mut addresses = addresses();
    let mut last = Step::default();
    for message in messages {
        last = enroller.receive(message, &mut addresses, Time::ZERO);
    }
    last
}

fn connect() -> Message {
    let (_, step) = Enrollee::new(enrollee(Authenticator::None, DIALECT), [1; 16], Time::ZERO);
    step.messages[0].clone()
}

fn start(address: u64) -> Message {
    let id = WellKnown::Enrolment.id(DIALECT);
    let enrolment = Enrolment {
        address,
        ..Enrolment::default()
    };
    Message {
        invoke_id: 2,
        ..Message::about(Opcode::Start, id.class, id.name, Some(enrolment.to_value(DIALECT)))
    }
}

#[track_caller]
fn assert_refused(config: EnrollerConfig, messages: &[Message], failure: Failure) {
    let step = feed(config, messages);
    assert_eq!(step.event, Some(Event::Failed(failure)));
    assert!(step.messages.iter().all(|m| m.result == result::REFUSED));
    assert!(step.messages.len() <= 1);
}

#[test]
fn hostile_enrollees_are_refused() {
    let open = || enroller(Authenticator::None, DIALECT);
    let other_dif = Message {
        destination: ApplicationName::process("other"),
        ..connect()
    };
    assert_refused(open(), &[other_dif], Failure::WrongName);
    let nameless = Message {
        source: ApplicationName::default(),
        ..connect()
    };
    assert_refused(open(), &[nameless], Failure::WrongName);
    let own_name = Message {
        source: ApplicationName::process("spine1"),
        ..connect()
    };
    assert_refused(open(), &[own_name], Failure::WrongName);
    assert_refused(open(), &[start(0)], Failure::UnexpectedMessage);
    let not_enrolment = Message {
        object_name: "/other".into(),
        ..start(0)
    };
    assert_refused(open(), &[connect(), not_enrolment], Failure::UnexpectedMessage);
    let malformed = Message {
        value: Some(Value::Bytes(vec![0x0a])),
        ..start(0)
    };
    assert_refused(open(), &[connect(), malformed], Failure::Malformed);
    // M_START in place of the proof, and a proof that is replayed from another enrolment.
    let closed = || enroller(password("secret"), DIALECT);
    let (mut honest, first) = Enrollee::new(enrollee(password("secret"), DIALECT), [1; 16], Time::ZERO);
    let connect = first.messages[0].clone();
    assert_refused(closed(), &[connect.clone(), start(0)], Failure::UnexpectedMessage);
    let mut other = Enroller::new(closed(), [9; 16], Time::ZERO);
    let challenge = other.receive(&connect, &mut addresses(), Time::ZERO).messages[0].clone();
    let proof = honest.receive(&challenge, Time::ZERO).messages[0].clone();
    assert_refused(closed(), &[connect.clone(), proof.clone()], Failure::WrongProof);
    // The enroller that has sent the challenge takes it.
    let accepted = other.receive(&proof, &mut addresses(), Time::ZERO);
    assert_eq!(accepted.messages[0].result, result::SUCCESS);
}

#[test]
fn an_enrollee_notices_an_enroller_that_does_not_know_the_password() {
    let (mut honest, first) = Enrollee::new(enrollee(password("secret"), DIALECT), [1; 16], Time::ZERO);
    let mut impostor = Enroller::new(enroller(password("guess"), DIALECT), [3; 16], Time::ZERO);
    let challenge = impostor
        .receive(&first.messages[0], &mut addresses(), Time::ZERO)
        .messages[0]
        .clone();
    honest.receive(&challenge, Time::ZERO);
    // The impostor cannot check the proof, and sends back what it got.
    let mut forged = first.messages[0].response(result::SUCCESS, "").unwrap();
    forged.source = ApplicationName::process("spine1");
    forged.authentication = first.messages[0].authentication.clone();
    let step = honest.receive(&forged, Time::ZERO);
    assert_eq!(step.event, Some(Event::Failed(Failure::WrongProof)));
}

#[test]
fn addresses_are_assigned_as_proposed_if_they_are_free() {
    let config = || enroller(Authenticator::None, DIALECT);
    let assigned = |address| {
        let step = feed(config(), &[connect(), start(address)]);
        let bytes = step.messages[0]
            .value
            .as_ref()
            .and_then(Value::as_bytes)
            .unwrap()
            .to_vec();
        Enrolment::decode(&bytes, DIALECT).unwrap().address
    };
    assert_eq!(assigned(20), 20);
    assert_eq!(assigned(99), 16);
    let mut enroller = Enroller::new(config(), [2; 16], Time::ZERO);
    let mut none = Addresses::new(BTreeMap::new(), None);
    enroller.receive(&connect(), &mut none, Time::ZERO);
    let step = enroller.receive(&start(0), &mut none, Time::ZERO);
    assert_eq!(step.event, Some(Event::Failed(Failure::NoAddress)));
}

#[test]
fn an_enrollee_keeps_a_bounded_number_of_parameters() {
    let mut right = enroller(Authenticator::None, DIALECT);
    right.parameters = vec![right.parameters[0].clone(); 5];
    let outcome = run(enrollee(Authenticator::None, DIALECT), right, |_| false);
    assert_eq!(outcome.enrollee, [Event::Failed(Failure::TooManyParameters)]);
    assert_eq!(outcome.enroller, [Event::Failed(Failure::Timeout)]);
    for (index, failure) in Failure::ALL.into_iter().enumerate() {
        assert_eq!(failure.index(), index);
    }
}

prop_compose! {
    fn any_message()(
        opcode in prop::sample::select(&Opcode::ALL[..]),
        invoke_id in 0..4,
        object in prop::sample::select(&["/mgmt/enrollment", "/auth/challenge", "/mgmt/operational_status", ""][..]),
        bytes in prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
        result in prop_oneof![4 => Just(0), 1 => Just(-1)],
        source in prop::sample::select(&["leaf1", "spine1", ""][..]),
    ) -> Message {
        Message {
            invoke_id,
            result,
            source: ApplicationName::process(source),
            destination: ApplicationName::process("fabric"),
            ..Message::about(opcode, "", object, bytes.map(Value::Bytes))
        }
    }
}

proptest! {
    #[test]
    fn losses_only_delay_the_enrolment(seed in any::<u64>()) {
        let mut random = seed;
        let (mut left, mut right) = (enrollee(password("s"), DIALECT), enroller(password("s"), DIALECT));
        left.retries.attempts = 60;
        right.retries.attempts = 60;
        let outcome = run(left, right, |_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % 5 == 0
        });
        // The last response may be lost each time: then only the enrollee knows.
        prop_assert!(matches!(outcome.enrollee[..], [Event::Enrolled(_)]), "{:?}", outcome);
        prop_assert_eq!(outcome.enroller.len(), 1);
    }

    #[test]
    fn no_messages_enrol_without_the_password(messages in prop::collection::vec(any_message(), 0..20)) {
        let mut server = Enroller::new(enroller(password("secret"), DIALECT), [2; 16], Time::ZERO);
        let (mut client, _) = Enrollee::new(enrollee(password("secret"), DIALECT), [1; 16], Time::ZERO);
        let mut now = Time::ZERO;
        for message in messages {
            let steps = [server.receive(&message, &mut addresses(), now), client.receive(&message, now)];
            now = now + Duration::from_millis(700);
            for step in steps.into_iter().chain([server.tick(now), client.tick(now)]) {
                prop_assert!(!matches!(step.event, Some(Event::Enrolled(_))));
                prop_assert!(step.messages.len() <= 2);
            }
        }
    }
}
