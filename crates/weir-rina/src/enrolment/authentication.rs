//! Proofs that both sides of an enrolment know a password.

use crate::cdap::Authentication;
use ring::hmac;
use std::fmt;

/// A random number that is used once.
pub type Nonce = [u8; 16];

/// `authMech` without authentication.
const NONE: i32 = 0;
/// `authMech` of the challenge below, from the range that CDAP reserves for private use.
const CHALLENGE: i32 = 100;

/// A password that all members of a DIF share.
///
/// Each side proves that it knows the password by HMAC-SHA-256 of both nonces, the names and its
/// role. An observer can try passwords offline, so that it should have 128 bits of entropy.
/// IRATI's password mechanism ([`irati_challenge_reply`]) shows the password to any observer.
#[derive(Clone)]
pub struct Password(hmac::Key);

impl Password {
    /// A password.
    #[must_use]
    pub fn new(password: &[u8]) -> Self {
        Password(hmac::Key::new(hmac::HMAC_SHA256, password))
    }

    pub(super) fn proof(&self, role: Role, transcript: &Transcript<'_>) -> Vec<u8> {
        hmac::sign(&self.0, &transcript.bytes(role)).as_ref().to_vec()
    }

    /// Takes the same time for every wrong proof of the right length.
    pub(super) fn verify(&self, role: Role, transcript: &Transcript<'_>, proof: &[u8]) -> bool {
        hmac::verify(&self.0, &transcript.bytes(role), proof).is_ok()
    }
}

impl fmt::Debug for Password {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// The side that proves; a proof of one side is none of the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Enrollee,
    Enroller,
}

/// What both sides have said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transcript<'a> {
    pub(super) dif: &'a str,
    pub(super) enrollee: &'a str,
    pub(super) enroller: &'a str,
    pub(super) enrollee_nonce: &'a Nonce,
    pub(super) enroller_nonce: &'a Nonce,
}

impl Transcript<'_> {
    /// Each part follows its length, so that different parts give different bytes.
    fn bytes(&self, role: Role) -> Vec<u8> {
        let role = match role {
            Role::Enrollee => "weir enrollee",
            Role::Enroller => "weir enroller",
        };
        let mut bytes = Vec::new();
        for part in [
            role.as_bytes(),
            self.dif.as_bytes(),
            self.enrollee.as_bytes(),
            self.enroller.as_bytes(),
            self.enrollee_nonce,
            self.enroller_nonce,
        ] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }
}

/// The authentication fields of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fields {
    None,
    Challenge(Vec<u8>),
    Unknown,
}

impl Fields {
    pub(super) fn read(authentication: Option<&Authentication>) -> Self {
        match authentication {
            None => Fields::None,
            Some(Authentication::Mechanism { mechanism, other, .. }) => match *mechanism {
                NONE => Fields::None,
                CHALLENGE => Fields::Challenge(other.clone()),
                _ => Fields::Unknown,
            },
            Some(Authentication::Policy { name, .. }) if name == "PSOC_authentication-none" => Fields::None,
            Some(Authentication::Policy { .. }) => Fields::Unknown,
        }
    }

    pub(super) fn none() -> Authentication {
        mechanism(NONE, Vec::new())
    }

    pub(super) fn challenge(contents: Vec<u8>) -> Authentication {
        mechanism(CHALLENGE, contents)
    }
}

fn mechanism(mechanism: i32, other: Vec<u8>) -> Authentication {
    Authentication::Mechanism {
        mechanism,
        name: String::new(),
        password: String::new(),
        other,
    }
}

/// The reply to a challenge of IRATI's password mechanism: challenge XOR repeated password.
///
/// For interoperation only: challenge and reply give the password away. An empty password returns
/// the challenge.
#[must_use]
pub fn irati_challenge_reply(challenge: &[u8], password: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return challenge.to_vec();
    }
    challenge
        .iter()
        .zip(password.iter().cycle())
        .map(|(c, p)| c ^ p)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Password, Role, Transcript, irati_challenge_reply};

    #[test]
    fn the_reply_of_irati() {
        let reply = irati_challenge_reply(b"AbC123", b"kf05j2");
        assert_eq!(reply, [0x2a, 0x04, 0x73, 0x04, 0x58, 0x01]);
        assert_eq!(irati_challenge_reply(b"abc", b""), b"abc");
    }

    #[test]
    fn a_proof_is_of_one_side_and_one_transcript() {
        let password = Password::new(b"secret");
        let transcript = Transcript {
            dif: "fabric",
            enrollee: "a",
            enroller: "bc",
            enrollee_nonce: &[1; 16],
            enroller_nonce: &[2; 16],
        };
        let proof = password.proof(Role::Enrollee, &transcript);
        assert!(password.verify(Role::Enrollee, &transcript, &proof));
        assert!(!password.verify(Role::Enroller, &transcript, &proof));
        assert!(!Password::new(b"other").verify(Role::Enrollee, &transcript, &proof));
        let shifted = Transcript {
            enrollee: "ab",
            enroller: "c",
            ..transcript
        };
        assert!(!password.verify(Role::Enrollee, &shifted, &proof));
        assert!(!password.verify(Role::Enrollee, &transcript, &proof[..31]));
        assert_eq!(format!("{password:?}"), "Password");
    }
}
