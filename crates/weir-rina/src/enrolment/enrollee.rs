//! The side that joins.

use super::authentication::{Fields, Role, Transcript};
use super::exchange::{Due, Exchange};
use super::{Authenticator, CHALLENGE, Enrolled, Event, Failure, Nonce, Parameter, Retries, Step};
use crate::cdap::objects::{Enrolment, Object, WellKnown};
use crate::cdap::{CdapDialect, Message, Opcode, Value, result};
use crate::efcp::Address;
use crate::name::ApplicationName;
use crate::time::Time;

/// How an IPC process enrols.
#[derive(Debug, Clone)]
pub struct EnrolleeConfig {
    /// The name of this IPC process.
    pub name: String,
    /// The name of the DIF.
    pub dif: String,
    /// The address that it proposes; 0 for none.
    pub proposed: Address,
    /// The names of the DIFs below.
    pub lower_difs: Vec<String>,
    /// Authentication.
    pub authenticator: Authenticator,
    /// The dialect of messages and objects.
    pub dialect: CdapDialect,
    /// Repetition of requests.
    pub retries: Retries,
    /// The most parameters that are kept.
    pub max_parameters: usize,
}

#[derive(Debug, Clone)]
enum State {
    /// M_CONNECT sent; the challenge, once it was there.
    Connecting {
        challenge: Option<Nonce>,
    },
    /// M_START sent.
    Starting {
        enroller: String,
    },
    /// The enroller writes parameters.
    Configuring(Enrolled),
    /// The enroller has stopped the enrolment, and will start operation.
    Stopped(Enrolled),
    /// Enrolled; repeated requests are still answered.
    Operational,
    Failed,
}

/// The enrolment of this IPC process through a neighbour.
#[derive(Debug, Clone)]
pub struct Enrollee {
    config: EnrolleeConfig,
    nonce: Nonce,
    exchange: Exchange,
    state: State,
}

impl Enrollee {
    /// Starts an enrolment. The nonce must be random.
    #[must_use]
    pub fn new(config: EnrolleeConfig, nonce: Nonce, now: Time) -> (Self, Step) {
        let mut exchange = Exchange::new(config.retries, now);
        let authentication = match &config.authenticator {
            Authenticator::None => Fields::none(),
            Authenticator::Password(_) => Fields::challenge(nonce.to_vec()),
        };
        let connect = Message {
            abstract_syntax: config.dialect.abstract_syntax(),
            authentication: Some(authentication),
            destination: ApplicationName::process(config.dif.clone()),
            source: ApplicationName::process(config.name.clone()),
            version: 1,
            ..Message::new(Opcode::Connect)
        };
        let connect = exchange.request(connect, now);
        let enrollee = Enrollee {
            config,
            nonce,
            exchange,
            state: State::Connecting { challenge: None },
        };
        (enrollee, Step::send(connect))
    }

    /// When [`Enrollee::tick`] has something to do; `None` after the end of the enrolment.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Connecting { .. } | State::Starting { .. } | State::Configuring(_) | State::Stopped(_) => {
                Some(self.exchange.deadline())
            }
            State::Operational | State::Failed => None,
        }
    }

    /// Repeats requests, or gives up.
    pub fn tick(&mut self, now: Time) -> Step {
        if self.deadline().is_none() {
            return Step::default();
        }
        match self.exchange.tick(now) {
            Due::Nothing => Step::default(),
            Due::Repeat(message) => Step::send(*message),
            Due::TimedOut => self.fail(Failure::Timeout),
        }
    }

    /// Takes a message of the enroller.
    pub fn receive(&mut self, message: &Message, now: Time) -> Step {
        if matches!(self.state, State::Failed) {
            return Step::default();
        }
        if let Some(response) = self.exchange.answer_again(message) {
            return Step::send(response);
        }
        if self.exchange.is_late(message) {
            return Step::default();
        }
        match self.advance(message, now) {
            Ok(step) => step,
            Err(failure) => self.fail(failure),
        }
    }

    fn fail(&mut self, failure: Failure) -> Step {
        self.state = State::Failed;
        self.exchange.stop();
        Step::default().with(Event::Failed(failure))
    }

    fn advance(&mut self, message: &Message, now: Time) -> Result<Step, Failure> {
        match &self.state {
            State::Connecting { .. } if is_challenge(message) => self.challenged(message, now),
            State::Connecting { challenge } if message.opcode == Opcode::ConnectR => {
                let challenge = *challenge;
                self.connected(message, challenge, now)
            }
            State::Starting { enroller } if message.opcode == Opcode::StartR => {
                let enroller = enroller.clone();
                self.started(message, enroller, now)
            }
            State::Configuring(enrolled) => {
                let enrolled = enrolled.clone();
                self.configured(message, enrolled, now)
            }
            State::Stopped(enrolled) if message.opcode == Opcode::Start => {
                let enrolled = enrolled.clone();
                self.state = State::Operational;
                let response = self.respond(message, now)?;
                Ok(Step::send(response).with(Event::Enrolled(enrolled)))
            }
            State::Connecting { .. }
            | State::Starting { .. }
            | State::Stopped(_)
            | State::Operational
            | State::Failed => self.ignore(message),
        }
    }

    /// Late responses are ignored, and requests that overtake a response that was lost: both are
    /// repeated. In operation, other modules take other messages.
    fn ignore(&self, message: &Message) -> Result<Step, Failure> {
        let is_request = !message.opcode.is_response();
        if is_request || self.exchange.is_stale(message) || self.deadline().is_none() {
            return Ok(Step::default());
        }
        Err(Failure::UnexpectedMessage)
    }

    fn respond(&mut self, request: &Message, now: Time) -> Result<Message, Failure> {
        let response = request
            .response(result::SUCCESS, "")
            .ok_or(Failure::UnexpectedMessage)?;
        Ok(self.exchange.answer(request, response, now))
    }

    fn challenged(&mut self, message: &Message, now: Time) -> Result<Step, Failure> {
        let Authenticator::Password(password) = &self.config.authenticator else {
            return Err(Failure::WrongMechanism);
        };
        let bytes = message.value.as_ref().and_then(Value::as_bytes);
        let challenge: Nonce = bytes.and_then(|b| b.try_into().ok()).ok_or(Failure::Malformed)?;
        let enroller = &message.source.process;
        let proof = password.proof(Role::Enrollee, &self.transcript(enroller, &challenge));
        self.state = State::Connecting {
            challenge: Some(challenge),
        };
        let mut response = message
            .response(result::SUCCESS, "")
            .ok_or(Failure::UnexpectedMessage)?;
        response.value = Some(Value::Bytes(proof));
        Ok(Step::send(self.exchange.answer(message, response, now)))
    }

    fn transcript<'a>(&'a self, enroller: &'a str, challenge: &'a Nonce) -> Transcript<'a> {
        Transcript {
            dif: &self.config.dif,
            enrollee: &self.config.name,
            enroller,
            enrollee_nonce: &self.nonce,
            enroller_nonce: challenge,
        }
    }

    fn connected(&mut self, message: &Message, challenge: Option<Nonce>, now: Time) -> Result<Step, Failure> {
        if !self.exchange.take_response(message, now) {
            return self.ignore(message);
        }
        if message.result != result::SUCCESS {
            return Err(Failure::Refused);
        }
        let enroller = message.source.process.clone();
        let fields = Fields::read(message.authentication.as_ref());
        match (&self.config.authenticator, fields, challenge) {
            (Authenticator::None, Fields::None, None) => {}
            (Authenticator::Password(password), Fields::Challenge(proof), Some(challenge)) => {
                let transcript = self.transcript(&enroller, &challenge);
                if !password.verify(Role::Enroller, &transcript, &proof) {
                    return Err(Failure::WrongProof);
                }
            }
            (Authenticator::None | Authenticator::Password(_), _, _) => return Err(Failure::WrongMechanism),
        }
        if enroller.is_empty() {
            return Err(Failure::WrongName);
        }
        let id = WellKnown::Enrolment.id(self.config.dialect);
        let enrolment = Enrolment {
            address: self.config.proposed.0.into(),
            lower_difs: self.config.lower_difs.clone(),
            ..Enrolment::default()
        };
        let value = enrolment.to_value(self.config.dialect);
        let start = Message::about(Opcode::Start, id.class, id.name, Some(value));
        self.state = State::Starting { enroller };
        Ok(Step::send(self.exchange.request(start, now)))
    }

    fn started(&mut self, message: &Message, enroller: String, now: Time) -> Result<Step, Failure> {
        if !self.exchange.take_response(message, now) {
            return self.ignore(message);
        }
        if message.result != result::SUCCESS {
            return Err(Failure::Refused);
        }
        let bytes = message
            .value
            .as_ref()
            .and_then(Value::as_bytes)
            .ok_or(Failure::Malformed)?;
        let enrolment = Enrolment::decode(bytes, self.config.dialect).map_err(|_| Failure::Malformed)?;
        let address = u32::try_from(enrolment.address).ok().filter(|address| *address != 0);
        self.state = State::Configuring(Enrolled {
            neighbour: enroller,
            address: Address(address.ok_or(Failure::NoAddress)?),
            lower_difs: enrolment.lower_difs,
            parameters: Vec::new(),
        });
        Ok(Step::default())
    }

    fn configured(&mut self, message: &Message, mut enrolled: Enrolled, now: Time) -> Result<Step, Failure> {
        let id = WellKnown::Enrolment.id(self.config.dialect);
        match message.opcode {
            Opcode::Write => {
                if enrolled.parameters.len() >= self.config.max_parameters {
                    return Err(Failure::TooManyParameters);
                }
                enrolled.parameters.push(Parameter {
                    class: message.object_class.clone(),
                    name: message.object_name.clone(),
                    value: message.value.clone(),
                });
                self.state = State::Configuring(enrolled);
            }
            Opcode::Stop if message.object_name == id.name => self.state = State::Stopped(enrolled),
            _ => return self.ignore(message),
        }
        let response = self.respond(message, now)?;
        Ok(Step::send(response))
    }
}

fn is_challenge(message: &Message) -> bool {
    message.opcode == Opcode::Write && message.object_name == CHALLENGE.name
}
