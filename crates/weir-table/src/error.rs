//! The errors of control-plane requests.

use thiserror::Error;

/// The category of an error; it corresponds one to one to a gRPC status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is malformed, in any state of the table.
    InvalidArgument,
    /// The object exists already.
    AlreadyExists,
    /// The object does not exist.
    NotFound,
    /// A size limit was hit.
    ResourceExhausted,
    /// The program forbids it.
    PermissionDenied,
    /// The current state does not allow it.
    FailedPrecondition,
}

/// The cause for which a control-plane request was refused. A request that returns an error has
/// changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// An entry with this match and priority exists.
    #[error(
        "table `{table}`: an entry with this match and priority exists already (handle {handle}); modify it, or delete it first"
    )]
    AlreadyExists {
        /// The table.
        table: String,
        /// Handle of the entry that is there.
        handle: u32,
    },
    /// No entry with this match and priority, or no such handle.
    #[error("table `{table}`: no entry {what}; read the table to see what it holds")]
    NotFound {
        /// The table.
        table: String,
        /// The entry that was requested.
        what: String,
    },
    /// The table is full.
    #[error("table `{table}` is full: it holds {size} entries; delete some or give the table a larger `size`")]
    Full {
        /// The table.
        table: String,
        /// Its capacity in entries.
        size: u64,
    },
    /// The number of match fields is wrong.
    #[error("table `{table}` has {expected} match fields, the request gives {found}; give one per field, `{names}`")]
    KeyCount {
        /// The table.
        table: String,
        /// Fields of the table.
        expected: usize,
        /// Fields in the request.
        found: usize,
        /// Their names, separated by commas.
        names: String,
    },
    /// A match field has the wrong kind.
    #[error("table `{table}`, key `{key}`: the table matches it as {expected}, the request as {found}")]
    KeyKind {
        /// The table.
        table: String,
        /// The key.
        key: String,
        /// The table's match kind.
        expected: &'static str,
        /// The request's match kind.
        found: &'static str,
    },
    /// A value has the wrong width.
    #[error("table `{table}`, {what}: expected {expected} bits, found {found}")]
    Width {
        /// The table (or action profile).
        table: String,
        /// The key or parameter.
        what: String,
        /// The width that it has, in bits.
        expected: u32,
        /// The width that was given, in bits.
        found: u32,
    },
    /// A prefix is longer than the key.
    #[error("table `{table}`, key `{key}`: prefix length {found} exceeds the key's {width} bits")]
    PrefixLength {
        /// The table.
        table: String,
        /// The key.
        key: String,
        /// Width of the key in bits.
        width: u32,
        /// Prefix length in the request.
        found: u32,
    },
    /// The value has bits that are not matched.
    #[error(
        "table `{table}`, key `{key}`: value {value} has bits outside its mask {mask}; clear the bits that are not matched"
    )]
    NotCanonical {
        /// The table.
        table: String,
        /// The key.
        key: String,
        /// The value, hexadecimal.
        value: String,
        /// The mask or prefix as a mask, hexadecimal.
        mask: String,
    },
    /// The range is empty.
    #[error("table `{table}`, key `{key}`: range {low}..{high} is empty; the low end must not exceed the high end")]
    EmptyRange {
        /// The table.
        table: String,
        /// The key.
        key: String,
        /// Low end, hexadecimal.
        low: String,
        /// High end, hexadecimal.
        high: String,
    },
    /// A priority where the match is not ambiguous.
    #[error(
        "table `{table}` has no ternary, range or optional key, so its entries take no priority; found {found}, use 0"
    )]
    PriorityNotAllowed {
        /// The table.
        table: String,
        /// The priority in the request.
        found: u32,
    },
    /// The action is not one of the table's.
    #[error("table `{table}`: no action {found}; it has {names}")]
    UnknownAction {
        /// The table (or action profile).
        table: String,
        /// The action that was requested.
        found: String,
        /// Names of the actions it has.
        names: String,
    },
    /// The number of action parameters is wrong.
    #[error("table `{table}`, action `{action}`: expected {expected} parameters, found {found}")]
    ParameterCount {
        /// The table (or action profile).
        table: String,
        /// The action.
        action: String,
        /// Parameters of the action.
        expected: usize,
        /// Parameters given.
        found: usize,
    },
    /// `@defaultonly` in an entry, or `@tableonly` as default.
    #[error("table `{table}`: action `{action}` may only be used {allowed}")]
    ActionScope {
        /// The table.
        table: String,
        /// The action.
        action: String,
        /// Where it may be used.
        allowed: &'static str,
    },
    /// Entries, or this entry, are `const`.
    #[error("table `{table}`: {what} is const in the program and cannot be changed at run time")]
    Const {
        /// The table.
        table: String,
        /// The object that is const.
        what: &'static str,
    },
    /// Action data where the table expects a member or group, or vice versa.
    #[error("table `{table}`: its entries take {expected}, found {found}")]
    ActionForm {
        /// The table.
        table: String,
        /// The kind of action that the table expects.
        expected: &'static str,
        /// The kind of action in the request.
        found: &'static str,
    },
    /// An error in a one-shot action set or in a group's members.
    #[error("`{name}`: {problem}")]
    Selector {
        /// The table or profile.
        name: String,
        /// The problem and its remedy.
        problem: String,
    },
    /// A member or group exists.
    #[error("action profile `{profile}`: {what} {id} exists already; modify it instead")]
    MemberExists {
        /// The profile.
        profile: String,
        /// `member` or `group`.
        what: &'static str,
        /// Its id.
        id: u32,
    },
    /// A member or group does not exist.
    #[error("action profile `{profile}`: no {what} {id}; insert it first")]
    MemberNotFound {
        /// The profile.
        profile: String,
        /// `member` or `group`.
        what: &'static str,
        /// The id that was requested.
        id: u32,
    },
    /// A member is in a group or an entry, a group in an entry.
    #[error("action profile `{profile}`: {what} {id} is still used by {user}; remove that first")]
    InUse {
        /// The profile.
        profile: String,
        /// `member` or `group`.
        what: &'static str,
        /// Its id.
        id: u32,
        /// The object that refers to it.
        user: String,
    },
    /// The profile is full.
    #[error("action profile `{profile}` is full: at most {size} {what}")]
    ProfileFull {
        /// The profile.
        profile: String,
        /// `members`, or `members in one group`.
        what: &'static str,
        /// The limit.
        size: u64,
    },
}

impl TableError {
    /// The category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            TableError::AlreadyExists { .. } | TableError::MemberExists { .. } => ErrorKind::AlreadyExists,
            TableError::NotFound { .. } | TableError::MemberNotFound { .. } => ErrorKind::NotFound,
            TableError::Full { .. } | TableError::ProfileFull { .. } => ErrorKind::ResourceExhausted,
            TableError::Const { .. } => ErrorKind::PermissionDenied,
            TableError::InUse { .. } => ErrorKind::FailedPrecondition,
            TableError::KeyCount { .. }
            | TableError::KeyKind { .. }
            | TableError::Width { .. }
            | TableError::PrefixLength { .. }
            | TableError::NotCanonical { .. }
            | TableError::EmptyRange { .. }
            | TableError::PriorityNotAllowed { .. }
            | TableError::UnknownAction { .. }
            | TableError::ParameterCount { .. }
            | TableError::ActionScope { .. }
            | TableError::ActionForm { .. }
            | TableError::Selector { .. } => ErrorKind::InvalidArgument,
        }
    }
}
