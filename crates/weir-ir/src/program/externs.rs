//! Extern instances, and the values and types they are made with.

use super::*;
use crate::bits::Bits;

/// An extern instance.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternInstance {
    /// Control-plane name, e.g. `MyIngress.counts`.
    pub name: String,
    /// Name of the extern type, e.g. `register`.
    pub type_name: String,
    /// Concrete types of its type parameters.
    pub type_arguments: Vec<TypeSpec>,
    /// Constructor arguments in order of the declaration, defaults filled in.
    pub arguments: Vec<(String, ConstValue)>,
    /// Bodies of abstract methods. A method has one body for each closure in which it is called.
    pub methods: Vec<Method>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}

impl ExternInstance {
    /// Index in [`Self::methods`] of the body that a method has in a closure ([`Call::closure`]).
    #[must_use]
    pub fn method(&self, name: &str, closure: u32) -> Option<usize> {
        self.methods.iter().position(|m| m.name == name && m.closure == closure)
    }

    /// How many keys control planes can set, numbered from 0; `None`: they see no keys.
    ///
    /// The extern type's declaration says so: `@keys("PARAMETER")` names the constructor parameter
    /// that is the number.
    #[must_use]
    pub fn key_count(&self) -> Option<u64> {
        let annotation = self.annotations.iter().find(|a| a.name == KEYS_ANNOTATION)?;
        let parameter = match &annotation.body {
            AnnotationBody::Text { tokens, .. } => match tokens.as_slice() {
                [token] => token,
                _ => return None,
            },
            _ => return None,
        };
        let (_, value) = self.arguments.iter().find(|(name, _)| name == parameter)?;
        match value {
            ConstValue::Bits(bits) => bits.to_u64(),
            ConstValue::Int(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }
}

/// The annotation of extern types whose instances have keys ([`ExternInstance::key_count`]).
pub const KEYS_ANNOTATION: &str = "keys";

/// The body that an instance gives an abstract method, in one closure.
///
/// A body may name parameters of the control around it. These are other variables in each
/// application of
/// the control, so the body is lowered for each; [`Call::closure`] says which one a call runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// What the body's free names stand for, as a number from 0 within the instance.
    pub closure: u32,
    /// One group of scalars per parameter.
    pub parameters: Vec<(String, Vec<VarId>)>,
    /// Scalars of the result.
    pub results: Vec<VarId>,
    /// Its code.
    pub body: Body,
}

/// A compile-time value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConstValue {
    /// A number with a width.
    Bits(Bits),
    /// An `int`.
    Int(num_bigint::BigInt),
    /// A boolean.
    Bool(bool),
    /// A string.
    String(String),
    /// A member of an enum or of `error`.
    Enum {
        /// Name of the enum.
        enum_name: String,
        /// Name of the member.
        member: String,
    },
    /// An extern instance.
    Extern(ExternId),
    /// A list, tuple or struct.
    List(Vec<ConstValue>),
}

/// A type, for whoever must describe it to a control plane.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum TypeSpec {
    /// Not representable on the control plane; its name.
    Opaque(String),
    /// `void`
    #[default]
    Void,
    /// `bool`
    Bool,
    /// `bit<W>`
    Bit(u32),
    /// `int<W>`
    Int(u32),
    /// `varbit<W>`
    Varbit(u32),
    /// `error`
    Error,
    /// `string`
    String,
    /// A tuple.
    Tuple(Vec<TypeSpec>),
    /// A struct and its fields.
    Struct(String, Vec<(String, TypeSpec)>),
    /// A header and its fields.
    Header(String, Vec<(String, TypeSpec)>),
    /// A header union and its members.
    HeaderUnion(String, Vec<(String, TypeSpec)>),
    /// A stack.
    Stack(Box<TypeSpec>, u32),
    /// An enum without representation: name and members.
    Enum(String, Vec<String>),
    /// A serializable enum: name, width, members with values.
    SerializableEnum(String, u32, Vec<(String, Bits)>),
    /// A `type`: name, what it stands for, its translation.
    New(String, Box<TypeSpec>, Option<(String, Option<u32>)>),
}

impl TypeSpec {
    /// The type behind its names: that of a `type` is what it stands for.
    #[must_use]
    pub fn plain(&self) -> &TypeSpec {
        let mut ty = self;
        while let TypeSpec::New(_, inner, _) = ty {
            ty = inner;
        }
        ty
    }

    /// Bits of all scalars, each with at least one, and one for each part, saturating: how much
    /// whoever takes the type apart has to do with.
    #[must_use]
    pub fn widest_size(&self) -> u64 {
        let sum = |fields: &mut dyn Iterator<Item = u64>| fields.fold(1, u64::saturating_add);
        match self {
            TypeSpec::Opaque(_) | TypeSpec::Void | TypeSpec::Bool | TypeSpec::String => 1,
            TypeSpec::Bit(w) | TypeSpec::Int(w) | TypeSpec::Varbit(w) | TypeSpec::SerializableEnum(_, w, _) => {
                u64::from(*w).max(1)
            }
            TypeSpec::Error | TypeSpec::Enum(..) => 32,
            TypeSpec::Tuple(fields) => sum(&mut fields.iter().map(TypeSpec::widest_size)),
            TypeSpec::Struct(_, fields) | TypeSpec::Header(_, fields) | TypeSpec::HeaderUnion(_, fields) => {
                sum(&mut fields.iter().map(|(_, t)| t.widest_size()))
            }
            TypeSpec::Stack(element, n) => element.widest_size().saturating_mul((*n).into()),
            TypeSpec::New(_, inner, _) => inner.widest_size(),
        }
    }

    /// The scalars of a header's fields in order, with their paths. A field may be a struct (P4_16,
    /// section "Header types"), which control planes know only as its own fields: field `b` of the
    /// struct `a` is `a.b`.
    ///
    /// ```
    /// use weir_ir::TypeSpec;
    /// let inner = TypeSpec::Struct("pair".into(), vec![("b".into(), TypeSpec::Bit(4)),
    /// ("c".into(), TypeSpec::Bit(12))]); let fields = [("a".to_owned(), inner), ("d".to_owned(),
    /// TypeSpec::Bool)]; let paths: Vec<String> =
    /// TypeSpec::header_scalars(&fields).into_iter().map(|(path, _)| path).collect();
    /// assert_eq!(paths, ["a.b", "a.c", "d"]);
    /// ```
    #[must_use]
    pub fn header_scalars(fields: &[(String, TypeSpec)]) -> Vec<(String, &TypeSpec)> {
        fn add<'a>(path: String, ty: &'a TypeSpec, found: &mut Vec<(String, &'a TypeSpec)>) {
            match ty.plain() {
                TypeSpec::Struct(_, fields) => {
                    for (name, ty) in fields {
                        add(format!("{path}.{name}"), ty, found);
                    }
                }
                scalar => found.push((path, scalar)),
            }
        }
        let mut found = Vec::new();
        for (name, ty) in fields {
            add(name.clone(), ty, &mut found);
        }
        found
    }
}
