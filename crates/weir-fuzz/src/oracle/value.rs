//! Values as the language specification has them.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Zero};
use weir_compiler::tools::DefId;
use weir_syntax::ast::Name;

/// A value of a P4 type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// No value: what a call of a `void` function gives.
    Void,
    /// `bool`
    Bool(bool),
    /// `int`
    Integer(BigInt),
    /// `bit<W>`
    Bit { width: u32, value: BigUint },
    /// `int<W>`
    Int { width: u32, value: BigInt },
    /// `varbit<W>` with the number of bits that it has now.
    Varbit { width: u32, value: BigUint },
    /// `error`, by name.
    Error(Name),
    /// A member of an enum without representation, by name.
    Member(Name),
    /// `string`
    String(Name),
    /// A struct.
    Struct(Vec<(Name, Value)>),
    /// A header.
    Header { valid: bool, fields: Vec<(Name, Value)> },
    /// A header union.
    Union(Vec<(Name, Value)>),
    /// A stack with the index of its next element.
    Stack { next: usize, elements: Vec<Value> },
    /// A tuple, or a list that has not met its type yet.
    Tuple(Vec<Value>),
    /// `{ f = a, … }` that has not met its type yet.
    Fields(Vec<(Name, Value)>),
    /// `{#}` that has not met its type yet.
    InvalidHeader,
    /// `...` that has not met its type yet.
    Dots,
    /// What `t.apply()` gives.
    Applied { hit: bool, action: DefId },
    /// Something that is made before any packet comes.
    Object(Object),
}

/// Something that is made before any packet comes; the numbers are positions in the machine's
/// lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Object {
    /// `packet_in` or `packet_out`.
    Packet,
    /// An instance of an extern.
    Extern(usize),
    /// An instance of a parser or control.
    Block(usize),
    /// A value set.
    ValueSet(usize),
}

/// All ones in this many bits.
pub(super) fn ones(width: u32) -> BigUint {
    (BigUint::one() << width) - BigUint::one()
}

/// The number modulo two to the width, as `int<W>` has it.
pub(super) fn signed(value: &BigInt, width: u32) -> BigInt {
    let low = unsigned(value, width);
    if width > 0 && low.bit(u64::from(width) - 1) {
        BigInt::from(low) - (BigInt::one() << width)
    } else {
        low.into()
    }
}

/// The number modulo two to the width, as `bit<W>` has it.
pub(super) fn unsigned(value: &BigInt, width: u32) -> BigUint {
    let modulus = BigInt::one() << width;
    let rest = value % &modulus;
    let rest = if rest.sign() == Sign::Minus {
        rest + modulus
    } else {
        rest
    };
    rest.to_biguint().unwrap_or_default()
}

impl Value {
    /// A `bit<W>`; the number is cut to the width.
    pub fn bit(width: u32, value: impl Into<BigUint>) -> Value {
        let value = value.into() & ones(width);
        Value::Bit { width, value }
    }

    /// An `int<W>`; the number is brought into its range.
    pub fn int(width: u32, value: &BigInt) -> Value {
        let value = signed(value, width);
        Value::Int { width, value }
    }

    /// Width and bits of what has some: of numbers of known width, truth values and varbits.
    pub fn bits(&self) -> Option<(u32, BigUint)> {
        match self {
            Value::Bit { width, value } | Value::Varbit { width, value } => Some((*width, value.clone())),
            Value::Int { width, value } => Some((*width, unsigned(value, *width))),
            Value::Bool(truth) => Some((1, BigUint::from(u8::from(*truth)))),
            Value::Void
            | Value::Integer(_)
            | Value::Error(_)
            | Value::Member(_)
            | Value::String(_)
            | Value::Struct(_)
            | Value::Header { .. }
            | Value::Union(_)
            | Value::Stack { .. }
            | Value::Tuple(_)
            | Value::Fields(_)
            | Value::InvalidHeader
            | Value::Dots
            | Value::Applied { .. }
            | Value::Object(_) => None,
        }
    }

    /// The number that it is.
    pub fn number(&self) -> Option<BigInt> {
        match self {
            Value::Integer(value) | Value::Int { value, .. } => Some(value.clone()),
            _ => self.bits().map(|(_, value)| value.into()),
        }
    }

    /// The number that it is, cut to 64 bits.
    pub fn small(&self) -> Option<u64> {
        let number = self.number()?;
        unsigned(&number, 64).iter_u64_digits().next().or(Some(0))
    }

    /// What it is as an index; too large a number is one that nothing has.
    pub fn index(&self) -> Option<usize> {
        self.number().map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    }

    /// Whether it is `true`.
    pub fn is_true(&self) -> bool {
        *self == Value::Bool(true)
    }

    /// Whether a header, or any member of a union, is valid.
    pub fn is_valid(&self) -> bool {
        match self {
            Value::Header { valid, .. } => *valid,
            Value::Union(members) => members.iter().any(|(_, m)| m.is_valid()),
            _ => false,
        }
    }

    /// The same with this field instead, if it has one of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        let (Value::Struct(fields) | Value::Header { fields, .. } | Value::Union(fields) | Value::Fields(fields)) =
            self
        else {
            return None;
        };
        fields.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }

    /// A field to be changed.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut Value> {
        let (Value::Struct(fields) | Value::Header { fields, .. } | Value::Union(fields)) = self else {
            return None;
        };
        fields.iter_mut().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }

    /// The value of this shape in which everything is zero and no header is valid.
    pub fn zeroed(&self) -> Value {
        let all = |fields: &[(Name, Value)]| fields.iter().map(|(n, v)| (n.clone(), v.zeroed())).collect();
        match self {
            Value::Bool(_) => Value::Bool(false),
            Value::Integer(_) => Value::Integer(BigInt::zero()),
            Value::Bit { width, .. } => Value::bit(*width, 0u8),
            Value::Int { width, .. } => Value::int(*width, &BigInt::zero()),
            Value::Varbit { .. } => Value::Varbit {
                width: 0,
                value: BigUint::zero(),
            },
            Value::Error(_) => Value::Error("NoError".into()),
            Value::Struct(fields) => Value::Struct(all(fields)),
            Value::Union(fields) => Value::Union(all(fields)),
            Value::Header { fields, .. } => Value::Header {
                valid: false,
                fields: all(fields),
            },
            Value::Stack { elements, .. } => Value::Stack {
                next: 0,
                elements: elements.iter().map(Value::zeroed).collect(),
            },
            Value::Tuple(parts) => Value::Tuple(parts.iter().map(Value::zeroed).collect()),
            // Those of enums depend on the type; nothing makes one from its shape.
            Value::Member(_)
            | Value::Void
            | Value::String(_)
            | Value::Fields(_)
            | Value::InvalidHeader
            | Value::Dots
            | Value::Applied { .. }
            | Value::Object(_) => self.clone(),
        }
    }
}

/// `a == b` for values of one type: headers are equal if both are invalid, or both valid with equal
/// fields; of stacks the elements are compared.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    let fields = |x: &[(Name, Value)], y: &[(Name, Value)]| x.iter().zip(y).all(|(x, y)| equal(&x.1, &y.1));
    let parts = |x: &[Value], y: &[Value]| x.iter().zip(y).all(|(x, y)| equal(x, y));
    match (a, b) {
        (Value::Struct(x), Value::Struct(y)) | (Value::Union(x), Value::Union(y)) => fields(x, y),
        (Value::Tuple(x), Value::Tuple(y)) => parts(x, y),
        (Value::Stack { elements: x, .. }, Value::Stack { elements: y, .. }) => parts(x, y),
        (Value::Header { valid: v, fields: x }, Value::Header { valid: w, fields: y }) => {
            (!v && !w) || (*v && *w && fields(x, y))
        }
        _ => a == b,
    }
}
