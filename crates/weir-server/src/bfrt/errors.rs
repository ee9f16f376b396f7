//! Encodes refusals as gRPC statuses and `Error` messages.
//!
//! The status of a batch has an `Error` per update in its details, up to the last one that failed;
//! successful updates have an all-zero one. The status of a Read is the same, with an `Error` per
//! entity.

use super::change::Step;
use super::schema::Schema;
use crate::p4rt::refusal::cut;
use crate::refusal::{Cause, Refusal};
use prost::Message;
use prost::bytes::Bytes;
use tonic::{Code, Status};
use weir_proto::bfrt_proto as pb;
use weir_proto::google::rpc;
use weir_proto::prost_types::Any;

/// Type URL of details in a `google.protobuf.Any`.
const ERROR_URL: &str = "type.googleapis.com/bfrt_proto.Error";
/// Failures of one request with weir's own reason; further ones have the driver's message only.
const MAX_REASONS: usize = 64;
/// Failures of one request that have a message at all: no trailer has space for more.
const MAX_MESSAGES: usize = 1 << 17;
/// Longest reason, in bytes.
const MAX_REASON_BYTES: usize = 400;

/// The gRPC code of a cause.
pub(crate) fn code(cause: Cause) -> Code {
    match cause {
        Cause::Malformed | Cause::OutOfRange | Cause::Forbidden | Cause::Precondition => Code::InvalidArgument,
        Cause::NotFound => Code::NotFound,
        Cause::Exists | Cause::InUse => Code::AlreadyExists,
        Cause::Exhausted | Cause::TooSlow => Code::ResourceExhausted,
        Cause::Unsupported => Code::Unimplemented,
        Cause::RolledBack => Code::Aborted,
        Cause::Unavailable => Code::Unavailable,
    }
}

/// The message of the hardware driver for a cause.
fn driver_message(cause: Cause) -> &'static str {
    match cause {
        Cause::Malformed | Cause::OutOfRange | Cause::Forbidden | Cause::Precondition => "Invalid arguments",
        Cause::NotFound => "Object not found",
        Cause::Exists => "Already exists",
        Cause::InUse => "Action data entry is being referenced by match entries",
        Cause::Exhausted | Cause::TooSlow => "Not enough space",
        Cause::Unsupported => "Operation not supported",
        Cause::RolledBack => "Not supported in transaction",
        Cause::Unavailable => "Not ready",
    }
}

/// The status of an RPC that was refused as a whole.
pub(crate) fn status(refusal: &Refusal) -> Status {
    Status::new(code(refusal.cause), refusal.message.clone())
}

/// Encodes the errors of one request, with fewer details the more there are.
pub(crate) struct Reporter {
    reported: usize,
}

impl Reporter {
    pub fn new() -> Self {
        Reporter { reported: 0 }
    }

    /// `<what> table:<name> <driver's message>`, and weir's own reason in parentheses for the first
    /// [`MAX_REASONS`].
    pub fn error(&mut self, what: &str, table: &str, refusal: &Refusal) -> pb::Error {
        let canonical_code = code(refusal.cause) as i32;
        if self.reported >= MAX_MESSAGES {
            return pb::Error {
                canonical_code,
                ..pb::Error::default()
            };
        }
        let mut message = String::with_capacity(what.len() + table.len() + 40);
        message.push_str(what);
        if !table.is_empty() {
            message.push_str(" table:");
            message.push_str(table);
        }
        message.push(' ');
        message.push_str(driver_message(refusal.cause));
        if self.reported < MAX_REASONS {
            message.push_str(" (");
            message.push_str(cut(&refusal.message, MAX_REASON_BYTES));
            message.push(')');
        }
        self.reported += 1;
        pb::Error {
            canonical_code,
            message,
            ..pb::Error::default()
        }
    }

    /// The error of a refused step.
    pub fn for_step(&mut self, schema: &Schema, step: &Step, refusal: &Refusal) -> pb::Error {
        let table = step.table.map_or("", |at| schema.tables[at].name.as_str());
        self.error(step.verb, table, refusal)
    }
}

/// The status of a request of which some parts failed. `errors` has one element per part, up to the
/// last that failed.
///
/// If they exceed `limit` bytes, the first messages are kept and later ones dropped. If that does
/// not suffice, only the first errors are kept. If none of these is a failure, only the first
/// failure is sent ([`with_number`]).
pub(crate) fn batch_status(message: &str, mut errors: Vec<pb::Error>, limit: usize) -> Status {
    let last = errors.iter().rposition(|e| e.canonical_code != 0);
    errors.truncate(last.map_or(0, |l| l + 1));
    // The trailer is base64.
    let limit = limit / 4 * 3;
    let whole = errors.iter().map(size).sum::<usize>() + message.len() + 16;
    if whole > limit {
        let failed = errors.iter().position(|e| e.canonical_code != 0);
        let first = failed.map(|at| (at, errors[at].clone()));
        let mut left = limit.saturating_sub(message.len() + 16);
        let bare = |e: &pb::Error| {
            size(&pb::Error {
                message: String::new(),
                ..e.clone()
            })
        };
        let bare_whole: usize = errors.iter().map(bare).sum();
        let mut spare = left.saturating_sub(bare_whole);
        for error in &mut errors {
            if error.message.len() + 8 <= spare {
                spare -= error.message.len() + 8;
            } else {
                error.message.clear();
            }
        }
        let fits = errors.iter().take_while(|e| {
            let size = size(e);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        });
        let fits = fits.count();
        match first.filter(|(at, _)| *at >= fits) {
            Some((at, error)) => errors = vec![with_number(at, error)],
            None => errors.truncate(fits),
        }
    }
    let details = errors.iter().map(|error| Any {
        type_url: ERROR_URL.to_owned(),
        value: error.encode_to_vec(),
    });
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.to_owned(),
        details: details.collect(),
    };
    Status::with_details(Code::Unknown, message, Bytes::from(status.encode_to_vec()))
}

/// An error that is sent without those of the parts before it, for which there is no space: its
/// message states the number of the part.
pub(crate) fn with_number(at: usize, error: pb::Error) -> pb::Error {
    let message = format!("number {at}: {}", error.message);
    pb::Error { message, ..error }
}

/// The most errors that fit into `limit` bytes, plus one.
pub(crate) fn max_encoded(limit: usize) -> usize {
    limit / size(&pb::Error::default()) + 1
}

/// Bytes of an error in a status.
fn size(error: &pb::Error) -> usize {
    error.encoded_len() + ERROR_URL.len() + 12
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(status: &Status) -> Vec<pb::Error> {
        let decoded = rpc::Status::decode(status.details()).expect("a status");
        let errors = decoded.details.iter().map(|d| pb::Error::decode(d.value.as_slice()));
        errors.collect::<Result<_, _>>().expect("errors")
    }

    #[test]
    fn details_end_at_the_last_failure_and_successes_are_zero() {
        let mut reporter = Reporter::new();
        let refused = reporter.error("Table Add failed", "pipe.X", &Refusal::exists("it is there"));
        assert_eq!(
            refused.message,
            "Table Add failed table:pipe.X Already exists (it is there)"
        );
        let errors = vec![pb::Error::default(), refused.clone(), pb::Error::default()];
        let status = batch_status("Write Error Status", errors, 1 << 20);
        assert_eq!((status.code(), status.message()), (Code::Unknown, "Write Error Status"));
        assert_eq!(details(&status), [pb::Error::default(), refused]);
    }

    #[test]
    fn long_trailers_lose_messages_and_then_the_last_errors() {
        let mut reporter = Reporter::new();
        let errors: Vec<_> = (0..100)
            .map(|_| reporter.error("Table Add failed", "pipe.X", &Refusal::exhausted("no room")))
            .collect();
        let cut = details(&batch_status("m", errors.clone(), 12 << 10));
        assert_eq!(cut.len(), 100);
        assert!(!cut[0].message.is_empty() && cut[99].message.is_empty());
        let mut last = vec![pb::Error::default(); 1000];
        last.push(errors[0].clone());
        let only = details(&batch_status("m", last, 2 << 10));
        let [only] = only.as_slice() else { panic!("{only:?}") };
        assert_eq!(only.canonical_code, 8);
        assert!(
            only.message.starts_with("number 1000: Table Add failed"),
            "{}",
            only.message
        );
        let fewer = details(&batch_status("m", errors, 2 << 10));
        assert!(!fewer.is_empty() && fewer.len() < 100 && fewer.iter().all(|e| e.canonical_code == 8));
    }
}
