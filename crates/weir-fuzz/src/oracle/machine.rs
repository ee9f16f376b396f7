//! What is evaluated: a checked program, its instances, and the values that names have now.

use super::control::ValueSet;
use super::externs::Extern;
use super::marks::Marks;
use super::packet::{Packet, Written};
use super::stop::{Eval, Stop, unknown};
use super::table::Table;
use super::value::Value;
use num_bigint::{BigInt, BigUint};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use weir_compiler::tools::{Checked, Const, DefId, DefKind, Ty, TyKind};
use weir_syntax::ast::{self, Expr, Name, StructKind};

/// An instance of a parser or control.
#[derive(Debug)]
pub(super) struct Block {
    /// Its type.
    pub def: DefId,
    /// What the control plane calls it.
    pub path: String,
    /// Constructor parameters and instances that it has, by declaration.
    pub known: HashMap<DefId, Value>,
    /// Instances that `C.apply()` makes, by the type's declaration.
    pub direct: HashMap<DefId, usize>,
}

/// A program and everything that it has now.
pub(super) struct Machine<'a> {
    /// What the checker found out.
    pub checked: Checked<'a>,
    /// What names mean now that are variables or parameters. P4 has no recursion, so that a
    /// declaration has one value at a time.
    pub variables: HashMap<DefId, Value>,
    /// What type parameters are now.
    pub types: FxHashMap<Ty, Ty>,
    /// Instances of parsers and controls.
    pub blocks: Vec<Block>,
    /// The one whose code is evaluated.
    pub block: usize,
    /// Instances of externs.
    pub externs: Vec<Extern<'a>>,
    /// Tables of all instances.
    pub tables: Vec<Table<'a>>,
    /// Value sets of all instances.
    pub value_sets: Vec<ValueSet>,
    /// Instances declared at the top level.
    pub globals: HashMap<DefId, Value>,
    /// The packet that is parsed.
    pub packet: Packet,
    /// What the deparser has written.
    pub written: Written,
    /// What externs were called for.
    pub marks: Marks,
    /// The table whose action is run, and the entry that was hit.
    pub entry: Option<(usize, Option<usize>)>,
    /// The instance whose abstract method is evaluated.
    pub this: Option<usize>,
    zeros: HashMap<Ty, Value>,
}

impl<'a> Machine<'a> {
    /// A machine without instances.
    pub fn new(checked: Checked<'a>) -> Self {
        Machine {
            checked,
            variables: HashMap::new(),
            types: FxHashMap::default(),
            blocks: Vec::new(),
            block: 0,
            externs: Vec::new(),
            tables: Vec::new(),
            value_sets: Vec::new(),
            globals: HashMap::new(),
            packet: Packet::default(),
            written: Written::default(),
            marks: Marks::default(),
            entry: None,
            this: None,
            zeros: HashMap::new(),
        }
    }

    /// A declaration.
    pub fn def(&self, id: DefId) -> &DefKind<'a> {
        &self.checked.def(id).kind
    }

    /// The declaration that an identifier makes.
    pub fn declared(&self, name: &ast::Ident) -> Eval<DefId> {
        match self.checked.declared.get(&std::ptr::from_ref(name)) {
            Some(&def) => Ok(def),
            None => unknown("a name that declares nothing"),
        }
    }

    /// The declaration that an expression names.
    pub fn named(&self, expr: &Expr) -> Option<DefId> {
        self.checked.names.get(expr.id.0 as usize).copied().flatten()
    }

    // ------------------------------------------------------------------------------------- types

    /// A type with its type parameters put in.
    pub fn concrete(&mut self, ty: Ty) -> Ty {
        let ty = self.checked.types.substitute(ty, &self.types);
        self.checked.types.resolve(ty)
    }

    /// The structure of a type; of an enum with representation and of a `type` that of what they
    /// stand for.
    pub fn kind(&mut self, ty: Ty) -> TyKind {
        let ty = self.concrete(ty);
        let ty = self.checked.representation(ty);
        self.checked.types.get(ty).clone()
    }

    /// The structure of an expression's type.
    pub fn kind_of(&mut self, expr: &Expr) -> TyKind {
        let ty = self.checked.ty(expr);
        self.kind(ty)
    }

    /// The type that a written type means.
    pub fn written_type(&mut self, ty: &ast::Type) -> Eval<Ty> {
        match self.checked.written_types.get(&std::ptr::from_ref(ty)) {
            Some(&ty) => Ok(self.concrete(ty)),
            None => unknown("a written type without meaning"),
        }
    }

    /// Fields of a struct, header or union type.
    pub fn fields(&mut self, ty: Ty) -> Vec<(Name, Ty)> {
        let ty = self.concrete(ty);
        match self.checked.types.get(ty).clone() {
            TyKind::Struct(def, arguments) => self.checked.fields_of(def, &arguments),
            _ => Vec::new(),
        }
    }

    /// The value that everything of a type has before it gets one: zero, no header valid,
    /// `NoError`, the first member of an enum.
    pub fn zero(&mut self, ty: Ty) -> Eval<Value> {
        let ty = self.concrete(ty);
        if let Some(known) = self.zeros.get(&ty) {
            return Ok(known.clone());
        }
        let value = self.new_zero(ty)?;
        self.zeros.insert(ty, value.clone());
        Ok(value)
    }

    fn new_zero(&mut self, ty: Ty) -> Eval<Value> {
        Ok(match self.kind(ty) {
            TyKind::Void => Value::Void,
            TyKind::Bool => Value::Bool(false),
            TyKind::String => Value::String("".into()),
            TyKind::Integer => Value::Integer(BigInt::default()),
            TyKind::Error => Value::Error("NoError".into()),
            TyKind::Bit(width) => Value::bit(width, 0u8),
            TyKind::Int(width) => Value::int(width, &BigInt::default()),
            TyKind::Varbit(_) => Value::Varbit {
                width: 0,
                value: BigUint::default(),
            },
            TyKind::Tuple(parts) => Value::Tuple(parts.iter().map(|&t| self.zero(t)).collect::<Eval<_>>()?),
            TyKind::Stack(element, size) => Value::Stack {
                next: 0,
                elements: vec![self.zero(element)?; size as usize],
            },
            TyKind::Struct(..) => {
                let kind = self.checked.struct_kind(ty);
                let fields = self.fields(ty);
                let fields = fields.into_iter().map(|(n, t)| Ok((n, self.zero(t)?)));
                let fields = fields.collect::<Eval<_>>()?;
                match kind {
                    Some(StructKind::Header) => Value::Header { valid: false, fields },
                    Some(StructKind::HeaderUnion) => Value::Union(fields),
                    Some(StructKind::Struct) | None => Value::Struct(fields),
                }
            }
            TyKind::Enum(def) => match self.def(def) {
                DefKind::Enum { members, .. } if !members.is_empty() => Value::Member(members[0].0.name.clone()),
                _ => return unknown("an enum without members"),
            },
            other => {
                return unknown(
                    format!("a variable of type {other:?}")
                        .split('(')
                        .next()
                        .unwrap_or_default(),
                );
            }
        })
    }

    /// The value as one of this type: an `int` gets a width, a list becomes what it is a list for.
    pub fn convert(&mut self, value: Value, ty: Ty) -> Eval<Value> {
        let is_plain = matches!(
            value,
            Value::Bit { .. } | Value::Bool(_) | Value::Header { .. } | Value::Struct(_) | Value::Object(_)
        );
        if is_plain {
            return Ok(value);
        }
        let kind = self.kind(ty);
        Ok(match (value, kind) {
            (Value::Integer(v), TyKind::Bit(width)) => Value::bit(width, super::value::unsigned(&v, width)),
            (Value::Integer(v), TyKind::Int(width)) => Value::int(width, &v),
            (Value::Dots, _) => self.zero(ty)?,
            (Value::InvalidHeader, TyKind::Struct(..)) => self.zero(ty)?,
            (Value::Tuple(parts), TyKind::Struct(..)) => {
                let fields = self.fields(ty);
                let mut parts = parts.into_iter();
                self.made_of(ty, fields.into_iter().map(|(n, t)| (n, t, parts.next())).collect())?
            }
            (Value::Fields(given), TyKind::Struct(..)) => {
                let fields = self.fields(ty).into_iter();
                let value_of = |n: &Name| given.iter().find(|(m, _)| m == n).map(|(_, v)| v.clone());
                self.made_of(ty, fields.map(|(n, t)| (n.clone(), t, value_of(&n))).collect())?
            }
            (Value::Tuple(parts), TyKind::Tuple(types) | TyKind::Listed(types)) => {
                let mut given = parts.into_iter();
                let parts = types.iter().map(|&t| self.convert_or_zero(given.next(), t));
                Value::Tuple(parts.collect::<Eval<_>>()?)
            }
            (Value::Tuple(parts), TyKind::List(element)) => Value::Tuple(
                parts
                    .into_iter()
                    .map(|p| self.convert(p, element))
                    .collect::<Eval<_>>()?,
            ),
            (Value::Tuple(parts), TyKind::Stack(element, size)) => {
                let next = parts.iter().filter(|p| **p != Value::Dots).count();
                let mut given = parts.into_iter();
                let elements = (0..size).map(|_| self.convert_or_zero(given.next(), element));
                let elements = elements.collect::<Eval<_>>()?;
                Value::Stack { next, elements }
            }
            (value, _) => value,
        })
    }

    fn convert_or_zero(&mut self, value: Option<Value>, ty: Ty) -> Eval<Value> {
        match value {
            Some(value) => self.convert(value, ty),
            None => self.zero(ty),
        }
    }

    /// A struct, or a header that is valid, of these fields.
    fn made_of(&mut self, ty: Ty, given: Vec<(Name, Ty, Option<Value>)>) -> Eval<Value> {
        let mut fields = Vec::new();
        for (name, field_type, value) in given {
            fields.push((name, self.convert_or_zero(value, field_type)?));
        }
        let ty = self.concrete(ty);
        match self.checked.struct_kind(ty) {
            Some(StructKind::Header) => Ok(Value::Header { valid: true, fields }),
            Some(StructKind::Struct) | None => Ok(Value::Struct(fields)),
            Some(StructKind::HeaderUnion) => unknown("a list as a header union"),
        }
    }

    // ------------------------------------------------------------------------------------- names

    /// What a declaration stands for here.
    pub fn meaning(&mut self, def: DefId) -> Eval<Value> {
        if let Some(value) = self.variables.get(&def) {
            return Ok(value.clone());
        }
        if let Some(value) = self.blocks.get(self.block).and_then(|b| b.known.get(&def)) {
            return Ok(value.clone());
        }
        if let Some(value) = self.globals.get(&def) {
            return Ok(value.clone());
        }
        match self.def(def) {
            DefKind::Constant { ty, expr, .. } => {
                let (ty, expr) = (*ty, *expr);
                let value = self.expr(expr)?;
                self.convert(value, ty)
            }
            _ => unknown("a name that stands for nothing here"),
        }
    }

    /// A member of an enum with representation, as that.
    pub fn represented(&mut self, ty: Ty, member: &str) -> Eval<Option<Value>> {
        let ty = self.concrete(ty);
        let TyKind::Enum(def) = self.checked.types.get(ty).clone() else {
            return Ok(None);
        };
        let DefKind::Enum {
            underlying: Some(underlying),
            members,
        } = self.def(def)
        else {
            return Ok(None);
        };
        let (underlying, value) = (*underlying, members.iter().find(|(n, _)| &*n.name == member));
        match value.and_then(|(_, v)| v.clone()) {
            Some(Const::Int(number)) => self.convert(Value::Integer(number), underlying).map(Some),
            _ => unknown("a member of an enum without a number"),
        }
    }

    /// Evaluates with the code of another instance in force.
    pub fn within<R>(&mut self, block: usize, f: impl FnOnce(&mut Self) -> Eval<R>) -> Eval<R> {
        let outer = std::mem::replace(&mut self.block, block);
        let result = f(self);
        self.block = outer;
        result
    }

    /// Gives declarations values while something is evaluated; gives what they are afterwards.
    pub fn with_variables(
        &mut self,
        bound: Vec<(DefId, Value)>,
        f: impl FnOnce(&mut Self) -> Eval<Value>,
    ) -> (Eval<Value>, Vec<Value>) {
        let defs: Vec<DefId> = bound.iter().map(|b| b.0).collect();
        let before: Vec<Option<Value>> = bound.into_iter().map(|(d, v)| self.variables.insert(d, v)).collect();
        let result = f(self);
        let mut after = Vec::new();
        for (def, before) in defs.into_iter().zip(before) {
            after.push(self.variables.remove(&def).unwrap_or(Value::Void));
            if let Some(before) = before {
                self.variables.insert(def, before);
            }
        }
        (result, after)
    }
}

/// The stop of a parser with this error.
pub(super) fn reject(error: &str) -> Stop {
    Stop::Reject(error.into())
}
