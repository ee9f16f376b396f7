//! Enrolment: an IPC process joins a DIF through a member, over an N-1 flow.
//!
//! The order of messages is that of rlite, with a challenge if a password is configured:
//!
//! ```text
//! enrollee                                  enroller (member)
//!   M_CONNECT (nonce)                  ->
//!                                      <-   M_WRITE challenge (nonce)      password only
//!   M_WRITE_R (proof)                  ->                                  password only
//!                                      <-   M_CONNECT_R (proof)
//!   M_START enrolment (address, DIFs)  ->
//!                                      <-   M_START_R (assigned address)
//!                                      <-   M_WRITE, for each parameter of the DIF
//!   M_WRITE_R                          ->
//!                                      <-   M_STOP enrolment
//!   M_STOP_R                           ->
//!                                      <-   M_START operational status
//!   M_START_R                          ->
//! ```
//!
//! N-1 flows may lose messages: each side repeats a request until it is answered, and answers a
//! repeated request as before. Both state machines get the time as a
//! parameter, and return messages.

mod authentication;
mod enrollee;
mod enroller;
mod exchange;

pub use authentication::{Nonce, Password, irati_challenge_reply};
pub use enrollee::{Enrollee, EnrolleeConfig};
pub use enroller::{Enroller, EnrollerConfig};

use crate::cdap::objects::ObjectId;
use crate::cdap::{Message, Value};
use crate::efcp::Address;
use std::fmt;
use std::time::Duration;

/// Repetition of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The time until a request is repeated.
    pub timeout: Duration,
    /// How often a request is sent before the enrolment fails; 0 counts as 1.
    pub attempts: u32,
}

impl Default for Retries {
    /// IRATI's limits: 10 s, of which weir makes 10 attempts of 1 s.
    fn default() -> Self {
        Retries {
            timeout: Duration::from_secs(1),
            attempts: 10,
        }
    }
}

/// Authentication of both sides.
#[derive(Debug, Clone, Default)]
pub enum Authenticator {
    /// Every enrollee is accepted.
    #[default]
    None,
    /// Both sides prove that they know a password.
    Password(Password),
}

/// A parameter of the DIF that the enroller writes to the enrollee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The object's class.
    pub class: String,
    /// The object's name.
    pub name: String,
    /// The value.
    pub value: Option<Value>,
}

impl Parameter {
    /// A parameter that is a well-known object.
    #[must_use]
    pub fn new(id: ObjectId, value: Value) -> Self {
        Parameter {
            class: id.class.to_owned(),
            name: id.name.to_owned(),
            value: Some(value),
        }
    }
}

/// Why an enrolment fails; metrics count each kind on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The other side did not answer in time.
    Timeout,
    /// A message that the state does not allow.
    UnexpectedMessage,
    /// The enrollee names neither the DIF nor the member, or does not name itself.
    WrongName,
    /// The other side uses another mechanism of authentication.
    WrongMechanism,
    /// The proof of the password is wrong.
    WrongProof,
    /// A value is missing or cannot be decoded.
    Malformed,
    /// There is no address for the enrollee.
    NoAddress,
    /// The other side refuses.
    Refused,
    /// The enroller sends more parameters than the limit.
    TooManyParameters,
}

impl Failure {
    /// All kinds, in the order of [`Failure::index`].
    pub const ALL: [Failure; 9] = [
        Failure::Timeout,
        Failure::UnexpectedMessage,
        Failure::WrongName,
        Failure::WrongMechanism,
        Failure::WrongProof,
        Failure::Malformed,
        Failure::NoAddress,
        Failure::Refused,
        Failure::TooManyParameters,
    ];

    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// The index of a kind, below [`Failure::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A name for metrics: lower case, words separated by `_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Failure::Timeout => "timeout",
            Failure::UnexpectedMessage => "unexpected_message",
            Failure::WrongName => "wrong_name",
            Failure::WrongMechanism => "wrong_mechanism",
            Failure::WrongProof => "wrong_proof",
            Failure::Malformed => "malformed",
            Failure::NoAddress => "no_address",
            Failure::Refused => "refused",
            Failure::TooManyParameters => "too_many_parameters",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Failure {}

/// A change that an enrolment has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The enrolment is complete. Each side returns this once.
    Enrolled(Enrolled),
    /// The enrolment has failed; the state machine takes no more messages.
    Failed(Failure),
}

/// The result of an enrolment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolled {
    /// The name of the other IPC process.
    pub neighbour: String,
    /// The address of the enrollee.
    pub address: Address,
    /// The names of the DIFs below that the other IPC process has given.
    pub lower_difs: Vec<String>,
    /// Enrollee: the parameters of the DIF, in order.
    pub parameters: Vec<Parameter>,
}

/// Messages to send, in order, and what has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Messages for the other side.
    pub messages: Vec<Message>,
    /// A change.
    pub event: Option<Event>,
}

impl Step {
    fn send(message: Message) -> Self {
        Step {
            messages: vec![message],
            event: None,
        }
    }

    fn with(mut self, event: Event) -> Self {
        self.event = Some(event);
        self
    }
}

/// The object of the challenge.
const CHALLENGE: ObjectId = ObjectId {
    class: "challenge",
    name: "/auth/challenge",
};
