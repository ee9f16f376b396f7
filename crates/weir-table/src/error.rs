//! What can be wrong with a control request.

use thiserror::Error;

/// What sort of failure it is; maps one to one to the codes of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is malformed whatever the state is.
    InvalidArgument,
    /// It is there already.
    AlreadyExists,
    /// It is not there.
    NotFound,
    /// There is no room.
    ResourceExhausted,
    /// The program forbids it.
    PermissionDenied,
    /// It cannot be done in this state.
    FailedPrecondition,
}

/// Why a control request was refused. Nothing has changed when one is returned.
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
        /// Which entry was looked for.
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
        /// The request's.
        found: &'static str,
    },
    /// A value has the wrong width.
    #[error("table `{table}`, {what}: expected {expected} bits, found {found}")]
    Width {
        /// The table (or action profile).
        table: String,
        /// The key or parameter.
        what: String,
        /// Bits it has.
        expected: u32,
        /// Bits given.
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
        /// What was asked for.
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
        /// What is const.
        what: &'static str,
    },
    /// Action data where the table wants a member or group, or the other way round.
    #[error("table `{table}`: its entries take {expected}, found {found}")]
    ActionForm {
        /// The table.
        table: String,
        /// What the table's implementation takes.
        expected: &'static str,
        /// What the request gave.
        found: &'static str,
    },
    /// Something is wrong with a one-shot action set or a group's members.
    #[error("`{name}`: {problem}")]
    Selector {
        /// The table or profile.
        name: String,
        /// What is wrong and what to do.
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
        /// The id asked for.
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
        /// Who uses it.
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
    /// The sort of failure.
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
