//! The mapping of refusals to gRPC statuses (specification, section "Error Reporting").

use prost::{Message, length_delimiter_len};
use tonic::{Code, Status};
use weir_proto::google::rpc;
use weir_proto::p4::v1 as pb;
use weir_proto::prost_types::Any;

pub use crate::refusal::{Cause, Refusal};

/// The code that stands for a sort of refusal.
#[must_use]
pub fn code(cause: Cause) -> Code {
    match cause {
        Cause::Malformed => Code::InvalidArgument,
        Cause::OutOfRange => Code::OutOfRange,
        Cause::NotFound => Code::NotFound,
        Cause::Exists => Code::AlreadyExists,
        Cause::Exhausted => Code::ResourceExhausted,
        Cause::Forbidden => Code::PermissionDenied,
        Cause::Precondition | Cause::InUse => Code::FailedPrecondition,
        Cause::Unsupported => Code::Unimplemented,
        Cause::RolledBack | Cause::TooSlow => Code::Aborted,
        Cause::Unavailable => Code::Unavailable,
    }
}

impl Refusal {
    /// As an error of a whole RPC.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::new(code(self.cause), self.message.clone())
    }
}

/// The space that error codes of weir belong to.
const SPACE: &str = "weir";
/// How details of errors are marked in a `google.protobuf.Any`.
const ERROR_URL: &str = "type.googleapis.com/p4.v1.Error";

/// The outcome of one update or query, as a detail; `message_bytes`: longer messages are cut.
fn detail(outcome: &Result<(), Refusal>, message_bytes: usize) -> pb::Error {
    match outcome {
        Ok(()) => pb::Error::default(),
        Err(refusal) => pb::Error {
            canonical_code: code(refusal.cause) as i32,
            message: cut(&refusal.message, message_bytes).to_string(),
            space: SPACE.to_string(),
            ..pb::Error::default()
        },
    }
}

/// The longest prefix of a text with at most `bytes` bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A detail for every part, if they take at most `limit` bytes; `message_bytes`: longer messages
/// are cut.
fn details(outcomes: &[Result<(), Refusal>], message_bytes: usize, limit: usize) -> Option<Vec<Any>> {
    let with_tag = |length: usize| 1 + length_delimiter_len(length) + length;
    // Nothing is made of what cannot fit.
    let mut left = limit;
    left.checked_sub(outcomes.len().checked_mul(with_tag(with_tag(ERROR_URL.len())))?)?;
    let one = |outcome| {
        let detail = Any {
            type_url: ERROR_URL.to_string(),
            value: detail(outcome, message_bytes).encode_to_vec(),
        };
        left = left.checked_sub(with_tag(detail.encoded_len()))?;
        Some(detail)
    };
    outcomes.iter().map(one).collect()
}

/// The status of a batch of which some parts failed, with a detail for every part in order
/// (specification, section "Error Reporting").
///
/// Details travel in a trailer, and clients refuse trailers that are too large without showing any
/// of it. So the whole is at most `small` bytes where that can be: first messages are cut, then
/// left out. Where even the codes take more, a client of such batches must have raised its limit,
/// as the specification advises ("gRPC Metadata Maximum Size"): then 8192 + 100 bytes per part are
/// used, at most `large`. If that is not enough either, there are no details, and the status's own
/// message says how many parts failed and why the first did.
#[must_use]
pub fn batch_status(outcomes: &[Result<(), Refusal>], what: &str, small: usize, large: usize) -> Status {
    let failed = outcomes.iter().filter(|o| o.is_err()).count();
    let first = outcomes
        .iter()
        .enumerate()
        .find_map(|(i, o)| Some((i, o.as_ref().err()?)));
    let mut message = format!("{failed} of {} {what} failed", outcomes.len());
    if let Some((index, refusal)) = first {
        message.push_str(&format!(
            "; the first is number {index}: {}",
            cut(&refusal.message, 1024)
        ));
    }
    let advised = (8192 + 100 * outcomes.len()).min(large).max(small);
    let cuts = [usize::MAX, 160, 40, 0];
    let tries = cuts
        .iter()
        .map(|c| (*c, small))
        .chain(cuts.iter().map(|c| (*c, advised)));
    let mut status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details: Vec::new(),
    };
    for (message_bytes, limit) in tries {
        // The trailer is base64.
        let limit = (limit / 4 * 3).saturating_sub(status.encoded_len());
        if let Some(details) = details(outcomes, message_bytes, limit) {
            status.details = details;
            return Status::with_details(Code::Unknown, message, status.encode_to_vec().into());
        }
    }
    message.push_str("; there are too many details for a trailer, send smaller batches to see them");
    Status::new(Code::Unknown, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(status: &Status) -> Vec<pb::Error> {
        let decoded = rpc::Status::decode(status.details()).expect("a status");
        assert_eq!((decoded.code, decoded.message.as_str()), (2, status.message()));
        let errors = decoded.details.iter().map(|d| pb::Error::decode(d.value.as_slice()));
        errors.collect::<Result<_, _>>().expect("errors")
    }

    #[test]
    fn a_status_has_a_detail_for_every_part_in_order() {
        let outcomes = [Ok(()), Err(Refusal::exhausted("no room")), Ok(())];
        let status = batch_status(&outcomes, "updates", 8192, 8192);
        assert_eq!(status.code(), Code::Unknown);
        let details = details(&status);
        let codes: Vec<i32> = details.iter().map(|d| d.canonical_code).collect();
        assert_eq!(codes, [0, 8, 0]);
        assert_eq!(details[0], pb::Error::default());
        assert_eq!(details[1].message, "no room");
    }

    #[test]
    fn an_oversized_trailer_loses_messages_first_and_then_the_details() {
        let outcomes = vec![Err(Refusal::exhausted("é".repeat(200))); 100];
        let cut = details(&batch_status(&outcomes, "updates", 32 << 10, 32 << 10));
        assert_eq!(cut.len(), 100);
        assert!(!cut[0].message.is_empty() && cut[0].message.len() <= 160);
        let bare = details(&batch_status(&outcomes, "updates", 10 << 10, 10 << 10));
        assert!(bare.iter().all(|d| d.message.is_empty() && d.canonical_code == 8));
        let advised = batch_status(&outcomes, "updates", 1000, 1 << 20);
        assert_eq!(details(&advised).len(), 100);
        let none = batch_status(&outcomes, "updates", 1000, 1000);
        assert!(none.details().is_empty() && none.message().starts_with("100 of 100 updates failed"));
    }
}
