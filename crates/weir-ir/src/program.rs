//! The data types of the IR. See the crate's root for what they mean.

mod code;
mod externs;
mod tables;
mod types;

pub use code::*;
pub use externs::*;
pub use tables::*;
pub use types::*;

use crate::arena::{Arena, Id};

/// Index of a [`Var`].
pub type VarId = Id<Var>;
/// Index of a [`Header`].
pub type HeaderId = Id<Header>;
/// Index of a [`HeaderType`].
pub type HeaderTypeId = Id<HeaderType>;
/// Index of an [`EnumType`].
pub type EnumId = Id<EnumType>;
/// Index of an [`Action`].
pub type ActionId = Id<Action>;
/// Index of a [`Table`].
pub type TableId = Id<Table>;
/// Index of an [`ExternInstance`].
pub type ExternId = Id<ExternInstance>;
/// Index of a [`ValueSet`].
pub type ValueSetId = Id<ValueSet>;
/// Index of a [`BasicBlock`] within its [`Body`].
pub type BlockId = Id<BasicBlock>;

/// A whole program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// Name of the target description the program was compiled for. For people and for whoever
    /// picks the architecture; nothing in this crate looks at it.
    pub target: String,
    /// Where a switch has several pipelines: what the names of their objects begin with, but for
    /// actions, which they share.
    pub pipelines: Vec<String>,
    /// Source files that [`Loc::file`] indexes.
    pub files: Vec<String>,
    /// Members of `error`; their index is their value. `NoError` is 0, the others are in
    /// declaration order.
    pub errors: Vec<String>,
    /// Enums, for display and for externs that take them.
    pub enums: Arena<EnumType>,
    /// Header types.
    pub header_types: Arena<HeaderType>,
    /// Every scalar variable.
    pub vars: Arena<Var>,
    /// Every header instance: shared, local and temporary.
    pub headers: Arena<Header>,
    /// Groups of variables that blocks share with each other and the architecture.
    pub shared: Vec<Shared>,
    /// Extern instances.
    pub externs: Arena<ExternInstance>,
    /// Actions that tables or P4Info name.
    pub actions: Arena<Action>,
    /// Tables.
    pub tables: Arena<Table>,
    /// Parser value sets.
    pub value_sets: Arena<ValueSet>,
    /// The programmable blocks in the order of the package's parameters.
    pub blocks: Vec<Block>,
    /// Types named on the control plane (`type`, translated types, serializable enums), by name.
    pub type_info: Vec<NamedType>,
    /// Annotations of `main` and of the whole program (`@pkginfo`, …).
    pub annotations: Vec<Annotation>,
}

/// A type that control planes know by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedType {
    /// Its name.
    pub name: String,
    /// Its type.
    pub spec: TypeSpec,
    /// Annotations of its declaration.
    pub annotations: Vec<Annotation>,
}

impl Program {
    /// The shared group of a role.
    #[must_use]
    pub fn shared_group(&self, role: &str) -> Option<&Shared> {
        self.shared.iter().find(|s| s.role == role)
    }

    /// The variable at a path of a shared group.
    #[must_use]
    pub fn shared_var(&self, role: &str, path: &str) -> Option<VarId> {
        self.shared_group(role)?
            .leaves
            .iter()
            .find(|l| l.path == path)
            .map(|l| l.var)
    }

    /// Value of a member of `error`, if the program has it.
    #[must_use]
    pub fn error_code(&self, name: &str) -> Option<u32> {
        self.errors.iter().position(|e| e == name).map(|i| i as u32)
    }
}

/// A place in the source: 1-based line and column of `Program::files[file]`. Line 0: no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Loc {
    /// Index into [`Program::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// An annotation, as P4Info has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The name after `@`.
    pub name: String,
    /// The body.
    pub body: AnnotationBody,
    /// Where it stands.
    pub loc: Loc,
}

/// The body of an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationBody {
    /// None.
    Empty,
    /// `(…)`: the tokens' text.
    Text {
        /// Source text between the parentheses, as the reference compiler prints it in P4Info.
        text: String,
        /// The tokens one by one; string literals without their quotes.
        tokens: Vec<String>,
    },
    /// `[e, …]`
    Expressions(Vec<AnnotationValue>),
    /// `[k=e, …]`
    KeyValues(Vec<(String, AnnotationValue)>),
}

/// A constant in a structured annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationValue {
    /// A string.
    String(String),
    /// An integer; fits in 64 bits.
    Int(i64),
    /// A boolean.
    Bool(bool),
}
