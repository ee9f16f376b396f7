//! Types, variables and headers, and the groups of them that blocks share.

use super::*;
use crate::bits::Bits;

/// The type of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// `W` bits; also booleans (1 bit), enums and errors (32 bits, the member's index). Signedness
    /// is in the operators.
    Bits(u32),
    /// At most `W` bits; the value knows its length.
    Varbit(u32),
}

impl Type {
    /// Largest width in bits.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Type::Bits(w) | Type::Varbit(w) => w,
        }
    }
}

/// The display format of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Display {
    /// An unsigned number.
    #[default]
    Unsigned,
    /// A two's complement number.
    Signed,
    /// `true` or `false`.
    Bool,
    /// A member of [`Program::errors`].
    Error,
    /// A member of an enum.
    Enum(EnumId),
}

/// The purpose of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VarKind {
    /// Belongs to a [`Shared`] group and is not part of a header.
    Shared,
    /// Declared in a block, or a parameter of an inlined body.
    Local,
    /// Made by the compiler; people are not shown it.
    Temporary,
    /// The same, in place of a field of a header, or of a part of one, that a call writes: it is
    /// copied back after the call.
    FieldCopy {
        /// `bits<1>`: whether the field's header is valid.
        valid: VarId,
    },
    /// A field of a header.
    Field {
        /// The header.
        header: HeaderId,
        /// Index into [`HeaderType::fields`].
        index: u32,
    },
    /// The validity of a header.
    Valid {
        /// The header.
        header: HeaderId,
    },
    /// Control-plane data of an action at one table.
    ActionParameter,
}

impl VarKind {
    /// Whether the compiler has made it, so that people are not shown it.
    #[must_use]
    pub fn is_hidden(self) -> bool {
        matches!(self, VarKind::Temporary | VarKind::FieldCopy { .. })
    }
}

/// A scalar variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Var {
    /// Unique for people, e.g. `hdr.ipv4.ttl`; not necessarily unique.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How it is shown.
    pub display: Display,
    /// Its purpose.
    pub kind: VarKind,
}

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumType {
    /// Its name.
    pub name: String,
    /// Member names. Without `values` a member's value is its index.
    pub members: Vec<String>,
    /// Values of a serializable enum, one per member.
    pub values: Option<Vec<Bits>>,
}

/// A header type: fields in wire order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderType {
    /// Its name.
    pub name: String,
    /// Fields in wire order; nested structs are taken apart (`a.b`).
    pub fields: Vec<HeaderField>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
}

/// The name of the field that fills up a header with `@flexible` fields to whole bytes. No program
/// names it, and it is in no group of shared variables.
pub const FLEXIBLE_PADDING: &str = "$flexible_padding$";

/// A field of a header type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How it is shown.
    pub display: Display,
    /// How the control plane names its type.
    pub control: ControlType,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
}

impl HeaderType {
    /// Bits of all fixed-size fields.
    #[must_use]
    pub fn fixed_width(&self) -> u32 {
        self.fields
            .iter()
            .map(|f| if let Type::Bits(w) = f.ty { w } else { 0 })
            .sum()
    }

    /// Index of the varbit field, if there is one.
    #[must_use]
    pub fn varbit_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| matches!(f.ty, Type::Varbit(_)))
    }
}

/// A header instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Name as people write it: `hdr.vlan[1]`.
    pub name: String,
    /// Its type.
    pub ty: HeaderTypeId,
    /// Its validity, `bits<1>`.
    pub valid: VarId,
    /// Its fields, in the order of [`HeaderType::fields`].
    pub fields: Vec<VarId>,
}

/// Variables that several blocks, or a block and the architecture, have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// The target description's name for it, e.g. `headers`.
    pub role: String,
    /// The name the program's first block gives it, e.g. `hdr`.
    pub name: String,
    /// Every scalar in declaration order, fields and validities of headers included.
    pub leaves: Vec<SharedLeaf>,
    /// Every header in declaration order.
    pub headers: Vec<HeaderId>,
    /// Its type.
    pub ty: TypeSpec,
}

/// One scalar of a [`Shared`] group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLeaf {
    /// Path below the group: `ethernet.dst_addr`, `ethernet.$valid$`, `stack.$next$`.
    pub path: String,
    /// The variable.
    pub var: VarId,
    /// Annotations of the struct field and of those around it (`@field_list`, …).
    pub annotations: Vec<Annotation>,
}
