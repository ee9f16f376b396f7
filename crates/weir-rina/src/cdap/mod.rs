//! CDAP: the application protocol on objects that layer management speaks.
//!
//! IRATI and rlite have the same message (protocol buffers, proto2) but for the abstract syntax and
//! authentication, [`CdapDialect`]. Their objects differ more: [`objects`].
//!
//! A field that is absent has its default: 0, an empty text, no value. Defaults are not sent,
//! except for the operation code, which is required. Unknown fields are ignored.

mod message;
pub mod objects;
pub(crate) mod proto;

pub use message::{Authentication, CdapDialect, Message, Opcode, Value, result};
