//! The side of the member.

use super::authentication::{Fields, Role, Transcript};
use super::exchange::{Due, Exchange};
use super::{Authenticator, CHALLENGE, Enrolled, Event, Failure, Nonce, Parameter, Retries, Step};
use crate::address::Addresses;
use crate::cdap::objects::{Enrolment, Object, WellKnown};
use crate::cdap::{Authentication, CdapDialect, Message, Opcode, Value, result};
use crate::efcp::Address;
use crate::name::ApplicationName;
use crate::time::Time;

/// How a member enrols others.
#[derive(Debug, Clone)]
pub struct EnrollerConfig {
    /// The name of this IPC process.
    pub name: String,
    /// The name of the DIF.
    pub dif: String,
    /// The names of the DIFs below.
    pub lower_difs: Vec<String>,
    /// Authentication.
    pub authenticator: Authenticator,
    /// The dialect of messages and objects.
    pub dialect: CdapDialect,
    /// Repetition of requests.
    pub retries: Retries,
    /// The parameters of the DIF, in the order in which they are written.
    pub parameters: Vec<Parameter>,
}

#[derive(Debug, Clone)]
enum State {
    /// Nothing received yet.
    Idle,
    /// The challenge is sent; the M_CONNECT waits for its response.
    Challenging {
        connect: Box<Message>,
        nonce: Nonce,
    },
    /// The enrollee is connected.
    Connected {
        enrollee: String,
    },
    /// Parameters are written; the number of those that are done.
    Configuring {
        enrolled: Enrolled,
        done: usize,
    },
    /// M_STOP sent.
    Stopping(Enrolled),
    /// M_START of the operation sent.
    Activating(Enrolled),
    /// Enrolled; repeated requests are still answered.
    Operational,
    Failed,
}

/// The enrolment of a neighbour through this IPC process, which is a member of the DIF.
#[derive(Debug, Clone)]
pub struct Enroller {
    config: EnrollerConfig,
    nonce: Nonce,
    exchange: Exchange,
    state: State,
}

impl Enroller {
    /// An enroller that waits for an M_CONNECT. The nonce must be random, and used for one enroller
    /// only.
    #[must_use]
    pub fn new(config: EnrollerConfig, nonce: Nonce, now: Time) -> Self {
        let exchange = Exchange::new(config.retries, now);
        Enroller {
            config,
            nonce,
            exchange,
            state: State::Idle,
        }
    }

    /// When [`Enroller::tick`] has something to do; `None` after the end of the enrolment.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Operational | State::Failed => None,
            State::Idle
            | State::Challenging { .. }
            | State::Connected { .. }
            | State::Configuring { .. }
            | State::Stopping(_)
            | State::Activating(_) => Some(self.exchange.deadline()),
        }
    }

    /// Whether the enrollee has proved that it knows the password; false without one.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        let is_beyond = match self.state {
            State::Idle | State::Challenging { .. } | State::Failed => false,
            State::Connected { .. }
            | State::Configuring { .. }
            | State::Stopping(_)
            | State::Activating(_)
            | State::Operational => true,
        };
        is_beyond && matches!(self.config.authenticator, Authenticator::Password(_))
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

    /// Takes a message of the enrollee; addresses are assigned from `addresses`.
    pub fn receive(&mut self, message: &Message, addresses: &mut Addresses, now: Time) -> Step {
        if matches!(self.state, State::Failed) {
            return Step::default();
        }
        if let Some(response) = self.exchange.answer_again(message) {
            return Step::send(response);
        }
        if self.exchange.is_late(message) {
            return Step::default();
        }
        match self.advance(message, addresses, now) {
            Ok(step) => step,
            Err(failure) => self.refuse(message, failure),
        }
    }

    fn fail(&mut self, failure: Failure) -> Step {
        self.state = State::Failed;
        self.exchange.stop();
        Step::default().with(Event::Failed(failure))
    }

    /// Fails, and answers requests. A wrong proof is answered as any refusal of the M_CONNECT is:
    /// the answer does not show how far an attacker has come.
    fn refuse(&mut self, message: &Message, failure: Failure) -> Step {
        let request = match &self.state {
            State::Challenging { connect, .. } => Some(Message::clone(connect)),
            State::Idle
            | State::Connected { .. }
            | State::Configuring { .. }
            | State::Stopping(_)
            | State::Activating(_)
            | State::Operational
            | State::Failed => (message.invoke_id != 0).then(|| message.clone()),
        };
        let mut step = self.fail(failure);
        step.messages
            .extend(request.and_then(|request| request.response(result::REFUSED, "refused")));
        step
    }

    fn advance(&mut self, message: &Message, addresses: &mut Addresses, now: Time) -> Result<Step, Failure> {
        match self.state.clone() {
            State::Idle if message.opcode == Opcode::Connect => self.connect(message, now),
            State::Challenging { connect, .. } if *message == *connect => Ok(Step::default()),
            State::Challenging { connect, nonce }
                if message.opcode.is_response() && self.exchange.awaits() == message.opcode.request() =>
            {
                self.proved(message, &connect, &nonce, now)
            }
            State::Connected { enrollee } if message.opcode == Opcode::Start => {
                self.start(message, enrollee, addresses, now)
            }
            State::Configuring { enrolled, done } if self.exchange.take_response(message, now) => {
                succeeded(message)?;
                Ok(self.configure(enrolled, done + 1, now))
            }
            State::Stopping(enrolled) if self.exchange.take_response(message, now) => {
                succeeded(message)?;
                let id = WellKnown::OperationalStatus.id(self.config.dialect);
                self.state = State::Activating(enrolled);
                let start = Message::about(Opcode::Start, id.class, id.name, None);
                Ok(Step::send(self.exchange.request(start, now)))
            }
            State::Activating(enrolled) if self.exchange.take_response(message, now) => {
                succeeded(message)?;
                self.state = State::Operational;
                Ok(Step::default().with(Event::Enrolled(enrolled)))
            }
            State::Operational => Ok(Step::default()),
            State::Idle
            | State::Challenging { .. }
            | State::Connected { .. }
            | State::Configuring { .. }
            | State::Stopping(_)
            | State::Activating(_)
            | State::Failed => {
                if self.exchange.is_stale(message) {
                    return Ok(Step::default());
                }
                Err(Failure::UnexpectedMessage)
            }
        }
    }

    fn connect(&mut self, message: &Message, now: Time) -> Result<Step, Failure> {
        let to = &message.destination.process;
        let enrollee = message.source.process.clone();
        if (*to != self.config.dif && *to != self.config.name) || enrollee.is_empty() || enrollee == self.config.name {
            return Err(Failure::WrongName);
        }
        if message.invoke_id == 0 {
            return Err(Failure::Malformed);
        }
        let fields = Fields::read(message.authentication.as_ref());
        match (&self.config.authenticator, fields) {
            (Authenticator::None, Fields::None) => {
                let response = self.connect_response(message, Fields::none())?;
                self.state = State::Connected { enrollee };
                Ok(Step::send(self.exchange.answer(message, response, now)))
            }
            (Authenticator::Password(_), Fields::Challenge(nonce)) => {
                let nonce: Nonce = nonce.try_into().map_err(|_| Failure::Malformed)?;
                let value = Value::Bytes(self.nonce.to_vec());
                let challenge = Message {
                    source: ApplicationName::process(self.config.name.clone()),
                    ..Message::about(Opcode::Write, CHALLENGE.class, CHALLENGE.name, Some(value))
                };
                self.state = State::Challenging {
                    connect: Box::new(message.clone()),
                    nonce,
                };
                Ok(Step::send(self.exchange.request(challenge, now)))
            }
            (Authenticator::None | Authenticator::Password(_), _) => Err(Failure::WrongMechanism),
        }
    }

    fn connect_response(&self, connect: &Message, authentication: Authentication) -> Result<Message, Failure> {
        let response = connect
            .response(result::SUCCESS, "")
            .ok_or(Failure::UnexpectedMessage)?;
        Ok(Message {
            abstract_syntax: self.config.dialect.abstract_syntax(),
            authentication: Some(authentication),
            destination: connect.source.clone(),
            source: ApplicationName::process(self.config.name.clone()),
            version: 1,
            ..response
        })
    }

    fn proved(&mut self, message: &Message, connect: &Message, nonce: &Nonce, now: Time) -> Result<Step, Failure> {
        if !self.exchange.take_response(message, now) {
            return Ok(Step::default());
        }
        let Authenticator::Password(password) = &self.config.authenticator else {
            return Err(Failure::WrongMechanism);
        };
        let enrollee = connect.source.process.clone();
        let transcript = Transcript {
            dif: &self.config.dif,
            enrollee: &enrollee,
            enroller: &self.config.name,
            enrollee_nonce: nonce,
            enroller_nonce: &self.nonce,
        };
        let proof = message.value.as_ref().and_then(Value::as_bytes).unwrap_or_default();
        if !password.verify(Role::Enrollee, &transcript, proof) {
            return Err(Failure::WrongProof);
        }
        let own = password.proof(Role::Enroller, &transcript);
        let response = self.connect_response(connect, Fields::challenge(own))?;
        self.state = State::Connected { enrollee };
        Ok(Step::send(self.exchange.answer(connect, response, now)))
    }

    fn start(
        &mut self,
        message: &Message,
        enrollee: String,
        addresses: &mut Addresses,
        now: Time,
    ) -> Result<Step, Failure> {
        let dialect = self.config.dialect;
        if message.object_name != WellKnown::Enrolment.id(dialect).name || message.invoke_id == 0 {
            return Err(Failure::UnexpectedMessage);
        }
        let bytes = message.value.as_ref().and_then(Value::as_bytes).unwrap_or_default();
        let request = Enrolment::decode(bytes, dialect).map_err(|_| Failure::Malformed)?;
        let proposed = Address(u32::try_from(request.address).unwrap_or(0));
        let address = addresses.assign(&enrollee, proposed).map_err(|_| Failure::NoAddress)?;
        let assigned = Enrolment {
            address: address.0.into(),
            lower_difs: self.config.lower_difs.clone(),
            ..Enrolment::default()
        };
        let mut response = message
            .response(result::SUCCESS, "")
            .ok_or(Failure::UnexpectedMessage)?;
        response.value = Some(assigned.to_value(dialect));
        let response = self.exchange.answer(message, response, now);
        let enrolled = Enrolled {
            neighbour: enrollee,
            address,
            lower_difs: request.lower_difs,
            parameters: Vec::new(),
        };
        let mut step = self.configure(enrolled, 0, now);
        step.messages.insert(0, response);
        Ok(step)
    }

    /// Writes the next parameter, or stops the enrolment.
    fn configure(&mut self, enrolled: Enrolled, done: usize, now: Time) -> Step {
        let request = if let Some(parameter) = self.config.parameters.get(done) {
            self.state = State::Configuring { enrolled, done };
            let value = parameter.value.clone();
            Message::about(Opcode::Write, &parameter.class, &parameter.name, value)
        } else {
            let id = WellKnown::Enrolment.id(self.config.dialect);
            let stop = Enrolment {
                address: enrolled.address.0.into(),
                start_early: Some(true),
                ..Enrolment::default()
            };
            self.state = State::Stopping(enrolled);
            let value = stop.to_value(self.config.dialect);
            Message::about(Opcode::Stop, id.class, id.name, Some(value))
        };
        Step::send(self.exchange.request(request, now))
    }
}

fn succeeded(message: &Message) -> Result<(), Failure> {
    if message.result == result::SUCCESS {
        Ok(())
    } else {
        Err(Failure::Refused)
    }
}
