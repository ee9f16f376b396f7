//! Values and places while a program is lowered: trees of scalars.

use num_bigint::BigInt;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use weir_ir::{ExternId, HeaderId, Operand, TableId, ValueSetId, VarId};
use weir_syntax::ast::Name;

use crate::types::DefId;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Val {
    /// A scalar of known width: `bit<W>`, `int<W>`, `bool`, `error`, an enum, a varbit.
    Scalar(Operand),
    /// An `int`.
    Int(BigInt),
    /// A string.
    String(Name),
    /// A struct; a tuple or list with empty names.
    Struct(Rc<Vec<(Name, Val)>>),
    /// A header. `source` is the instance it was read from, where it still has this value.
    Header {
        valid: Operand,
        fields: Rc<Vec<(Name, Val)>>,
        source: Option<HeaderId>,
    },
    /// A stack; header stacks have the index of the next element.
    Stack {
        elements: Rc<Vec<Val>>,
        next: Option<Operand>,
    },
    /// A header union.
    Union(Rc<Vec<(Name, Val)>>),
    /// `{#}`
    InvalidHeader,
    /// `...`
    Dots,
    /// Something that is known completely at compile time.
    Object(Object),
    /// No value.
    Void,
}

/// Something that has no representation at run time.
#[derive(Debug, Clone)]
pub(super) enum Object {
    /// An extern instance.
    Extern(ExternId),
    /// A parser or control.
    Block(Rc<BlockInstance>),
    /// A package: its arguments by parameter name.
    Package(Rc<PackageInstance>),
    /// `packet_in` or `packet_out`.
    Packet,
    /// A table.
    Table(Rc<TableState>),
    /// A value set.
    ValueSet(ValueSetId),
    /// An array of instances.
    Array(Rc<Vec<Val>>),
}

/// Where a value is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// A scalar.
    Var(VarId),
    /// A struct or tuple.
    Struct(Rc<Vec<(Name, Place)>>),
    /// A header.
    Header {
        id: HeaderId,
        fields: Rc<Vec<(Name, Place)>>,
    },
    /// A stack.
    Stack {
        elements: Rc<Vec<Place>>,
        next: Option<VarId>,
    },
    /// A header union.
    Union(Rc<Vec<(Name, Place)>>),
    /// Bits of a scalar.
    Slice { base: Box<Place>, hi: u32, lo: u32 },
    /// Bits of a scalar from a position known at run time.
    MovingSlice { base: Box<Place>, lo: Operand, width: u32 },
    /// One of several places of the same shape; none where the index is too large.
    Dynamic { elements: Rc<Vec<Place>>, index: Operand },
    /// Takes anything and keeps nothing; reads as this value.
    Nowhere(Box<Val>),
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entity {
    /// A variable or parameter.
    Place(Place),
    /// A constant, an instance.
    Value(Val),
}

/// Instances are equal if they are the same instance.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Object::Extern(a), Object::Extern(b)) => a == b,
            (Object::Block(a), Object::Block(b)) => Rc::ptr_eq(a, b),
            (Object::Package(a), Object::Package(b)) => Rc::ptr_eq(a, b),
            (Object::Packet, Object::Packet) => true,
            (Object::Table(a), Object::Table(b)) => Rc::ptr_eq(a, b),
            (Object::ValueSet(a), Object::ValueSet(b)) => a == b,
            (Object::Array(a), Object::Array(b)) => a == b,
            (
                Object::Extern(_)
                | Object::Block(_)
                | Object::Package(_)
                | Object::Packet
                | Object::Table(_)
                | Object::ValueSet(_)
                | Object::Array(_),
                _,
            ) => false,
        }
    }
}

/// A package with its arguments.
#[derive(Debug)]
pub(super) struct PackageInstance {
    /// Its name; empty where it is made in place.
    pub name: String,
    /// What its parameters are.
    pub arguments: Vec<(Name, Val)>,
}

impl PackageInstance {
    /// What a parameter is.
    pub fn argument(&self, name: &str) -> Option<&Val> {
        self.arguments.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }
}

/// A parser or control with its constructor arguments.
#[derive(Debug)]
pub(super) struct BlockInstance {
    /// Its declaration.
    pub def: DefId,
    /// What its type parameters stand for.
    pub types: Vec<(crate::types::Ty, crate::types::Ty)>,
    /// Its constructor arguments.
    pub arguments: Vec<(DefId, Val)>,
    /// The prefix of the control-plane names of what is in it.
    pub path: String,
    /// What its local declarations stand for, once it has been applied.
    pub locals: RefCell<Option<FxHashMap<DefId, Entity>>>,
}

/// A table that has been applied.
#[derive(Debug)]
pub(super) struct TableState {
    /// Its declaration.
    pub def: DefId,
    /// The table.
    pub id: TableId,
    /// Whether it hit.
    pub hit: VarId,
    /// Which action ran.
    pub action: VarId,
    /// The entry that matched.
    pub entry: VarId,
    /// The actions in the order of the table.
    pub actions: Vec<DefId>,
}

impl Val {
    /// A tuple.
    pub fn tuple(values: Vec<Val>) -> Val {
        let empty: Name = "".into();
        Val::Struct(Rc::new(values.into_iter().map(|v| (empty.clone(), v)).collect()))
    }

    /// Every scalar in order; a header's validity comes before its fields, a stack's next index
    /// after its elements.
    pub fn leaves(&self, to: &mut Vec<Operand>) {
        match self {
            Val::Scalar(operand) => to.push(operand.clone()),
            Val::Struct(fields) | Val::Union(fields) => fields.iter().for_each(|(_, v)| v.leaves(to)),
            Val::Header { valid, fields, .. } => {
                to.push(valid.clone());
                fields.iter().for_each(|(_, v)| v.leaves(to));
            }
            Val::Stack { elements, next } => {
                elements.iter().for_each(|v| v.leaves(to));
                to.extend(next.clone());
            }
            Val::Int(_) | Val::String(_) | Val::InvalidHeader | Val::Dots | Val::Object(_) | Val::Void => {}
        }
    }

    /// The same shape with other scalars, taken in the order of [`Self::leaves`].
    pub fn with_leaves(&self, leaves: &mut impl Iterator<Item = Operand>) -> Val {
        let list = |fields: &Rc<Vec<(Name, Val)>>, leaves: &mut dyn FnMut(&Val) -> Val| -> Rc<Vec<(Name, Val)>> {
            Rc::new(fields.iter().map(|(n, v)| (n.clone(), leaves(v))).collect())
        };
        match self {
            Val::Scalar(old) => Val::Scalar(leaves.next().unwrap_or_else(|| old.clone())),
            Val::Struct(fields) => Val::Struct(list(fields, &mut |v| v.with_leaves(leaves))),
            Val::Union(fields) => Val::Union(list(fields, &mut |v| v.with_leaves(leaves))),
            Val::Header { valid, fields, .. } => {
                let valid = leaves.next().unwrap_or_else(|| valid.clone());
                Val::Header {
                    valid,
                    fields: list(fields, &mut |v| v.with_leaves(leaves)),
                    source: None,
                }
            }
            Val::Stack { elements, next } => {
                let elements = Rc::new(elements.iter().map(|v| v.with_leaves(leaves)).collect());
                let next = next.as_ref().map(|old| leaves.next().unwrap_or_else(|| old.clone()));
                Val::Stack { elements, next }
            }
            other => other.clone(),
        }
    }
}

impl Place {
    /// Every variable in the order of [`Val::leaves`]; `None` where the place is not simply
    /// variables.
    pub fn leaves(&self, to: &mut Vec<VarId>, header: &dyn Fn(HeaderId) -> VarId) -> bool {
        match self {
            Place::Var(v) => {
                to.push(*v);
                true
            }
            Place::Struct(fields) | Place::Union(fields) => fields.iter().all(|(_, p)| p.leaves(to, header)),
            Place::Header { id, fields } => {
                to.push(header(*id));
                fields.iter().all(|(_, p)| p.leaves(to, header))
            }
            Place::Stack { elements, next } => {
                let good = elements.iter().all(|p| p.leaves(to, header));
                to.extend(*next);
                good
            }
            Place::Slice { .. } | Place::MovingSlice { .. } | Place::Dynamic { .. } | Place::Nowhere(_) => false,
        }
    }

    /// Every variable of a value as externs know it, which are its scalars without validity and
    /// next indices, and
    /// the headers in it. `None` where the place is not simply variables.
    pub fn scalars(&self) -> Option<(Vec<VarId>, Vec<HeaderId>)> {
        fn add(place: &Place, vars: &mut Vec<VarId>, headers: &mut Vec<HeaderId>) -> bool {
            match place {
                Place::Var(v) => {
                    vars.push(*v);
                    true
                }
                Place::Struct(fields) | Place::Union(fields) => fields.iter().all(|(_, p)| add(p, vars, headers)),
                Place::Header { id, fields } => {
                    headers.push(*id);
                    fields.iter().all(|(_, p)| add(p, vars, headers))
                }
                Place::Stack { elements, .. } => elements.iter().all(|p| add(p, vars, headers)),
                Place::Slice { .. } | Place::MovingSlice { .. } | Place::Dynamic { .. } | Place::Nowhere(_) => false,
            }
        }
        let (mut vars, mut headers) = (Vec::new(), Vec::new());
        add(self, &mut vars, &mut headers).then_some((vars, headers))
    }

    /// Every variable that a write to the place may change.
    pub fn touches(&self, to: &mut Vec<VarId>, header: &dyn Fn(HeaderId) -> VarId) {
        match self {
            Place::Var(v) => to.push(*v),
            Place::Struct(fields) | Place::Union(fields) => fields.iter().for_each(|(_, p)| p.touches(to, header)),
            Place::Header { id, fields } => {
                to.push(header(*id));
                fields.iter().for_each(|(_, p)| p.touches(to, header));
            }
            Place::Stack { elements, next } => {
                elements.iter().for_each(|p| p.touches(to, header));
                to.extend(*next);
            }
            Place::Slice { base, .. } | Place::MovingSlice { base, .. } => base.touches(to, header),
            Place::Dynamic { elements, .. } => elements.iter().for_each(|p| p.touches(to, header)),
            Place::Nowhere(_) => {}
        }
    }

    /// The part of a struct, header or union; of each element where the place is dynamic. It is
    /// sought first where it is said to stand.
    pub fn member(&self, name: &str, position: Option<usize>) -> Option<Place> {
        match self {
            Place::Struct(fields) | Place::Union(fields) | Place::Header { fields, .. } => {
                named(fields, name, position).cloned()
            }
            Place::Dynamic { elements, index } => {
                let elements = elements
                    .iter()
                    .map(|e| e.member(name, position))
                    .collect::<Option<Vec<_>>>()?;
                Some(Place::Dynamic {
                    elements: Rc::new(elements),
                    index: index.clone(),
                })
            }
            Place::Nowhere(value) => match &**value {
                Val::Struct(fields) | Val::Union(fields) | Val::Header { fields, .. } => {
                    named(fields, name, position).map(|v| Place::Nowhere(Box::new(v.clone())))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The part of a name, which is sought first where it is said to stand.
pub(super) fn named<'v, T>(parts: &'v [(Name, T)], name: &str, position: Option<usize>) -> Option<&'v T> {
    let is_it = |part: &&(Name, T)| *part.0 == *name;
    let there = position.and_then(|p| parts.get(p)).filter(is_it);
    there.or_else(|| parts.iter().find(is_it)).map(|(_, part)| part)
}
