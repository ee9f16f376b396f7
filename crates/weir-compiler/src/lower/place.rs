//! Making, reading, writing, converting and comparing values and places.

use super::value::{Place, Val};
use super::{Lowerer, boolean, constant};
use crate::types::{Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use weir_ir::{BinaryOp, Bits, HeaderId, Operand, Rvalue, SharedLeaf, Type, Var, VarId, VarKind};
use weir_syntax::ast::{Name, StructKind};

impl Lowerer<'_, '_> {
    // -------------------------------------------------------------------------------- making

    pub(super) fn new_var(&mut self, name: &str, ty: Ty, kind: VarKind) -> VarId {
        let var_type = match self.kind(ty) {
            TyKind::Varbit(w) => Type::Varbit(w),
            _ => Type::Bits(self.scalar_width(ty).unwrap_or(0)),
        };
        let display = self.display(ty);
        self.program.vars.push(Var {
            name: name.to_string(),
            ty: var_type,
            display,
            kind,
        })
    }

    /// Variables for a value of a type.
    pub(super) fn allocate(&mut self, name: &str, ty: Ty, kind: VarKind) -> Place {
        if self.program.vars.len() > super::MAX_VARIABLES {
            self.exhausted = true;
            let zero = self.zero(ty);
            return Place::Nowhere(Box::new(zero));
        }
        match self.kind(ty) {
            TyKind::Struct(def, arguments) => {
                if self.checked.struct_kind(ty) == Some(StructKind::Header) {
                    return self.new_header(name, ty);
                }
                let union = self.checked.struct_kind(ty) == Some(StructKind::HeaderUnion);
                let fields = self.checked.fields_of(def, &arguments);
                let fields: Vec<(Name, Place)> = fields
                    .into_iter()
                    .map(|(n, t)| {
                        let place = self.allocate(&format!("{name}.{n}"), t, kind);
                        (n, place)
                    })
                    .collect();
                if union {
                    let members: Vec<HeaderId> = fields
                        .iter()
                        .filter_map(|(_, p)| {
                            if let Place::Header { id, .. } = p {
                                Some(*id)
                            } else {
                                None
                            }
                        })
                        .collect();
                    let members = Rc::new(members);
                    for &member in members.iter() {
                        self.union_members.insert(member, members.clone());
                    }
                    return Place::Union(Rc::new(fields));
                }
                Place::Struct(Rc::new(fields))
            }
            TyKind::Tuple(parts) | TyKind::Listed(parts) => {
                let parts = parts
                    .iter()
                    .enumerate()
                    .map(|(i, &t)| ("".into(), self.allocate(&format!("{name}.{i}"), t, kind)))
                    .collect();
                Place::Struct(Rc::new(parts))
            }
            TyKind::Stack(element, n) => {
                let elements: Vec<Place> = (0..n)
                    .map(|i| self.allocate(&format!("{name}[{i}]"), element, kind))
                    .collect();
                let next = self.is_header_like(element).then(|| {
                    self.program.vars.push(Var {
                        name: format!("{name}.$next$"),
                        ty: Type::Bits(32),
                        display: weir_ir::Display::Unsigned,
                        kind,
                    })
                });
                Place::Stack {
                    elements: Rc::new(elements),
                    next,
                }
            }
            TyKind::Void | TyKind::String | TyKind::Integer => Place::Nowhere(Box::new(Val::Void)),
            _ => Place::Var(self.new_var(name, ty, kind)),
        }
    }

    pub(super) fn is_header_like(&self, ty: Ty) -> bool {
        matches!(
            self.checked.struct_kind(ty),
            Some(StructKind::Header | StructKind::HeaderUnion)
        )
    }

    /// The value that weir gives what P4 leaves undefined: zeros, invalid headers.
    pub(super) fn zero(&mut self, ty: Ty) -> Val {
        match self.kind(ty) {
            TyKind::Struct(def, arguments) => {
                let fields = self.checked.fields_of(def, &arguments);
                let fields = fields
                    .into_iter()
                    .map(|(n, t)| {
                        let zero = self.zero(t);
                        (n, zero)
                    })
                    .collect();
                let fields = Rc::new(fields);
                match self.checked.struct_kind(ty) {
                    Some(StructKind::Header) => Val::Header {
                        valid: boolean(false),
                        fields,
                        source: None,
                    },
                    Some(StructKind::HeaderUnion) => Val::Union(fields),
                    _ => Val::Struct(fields),
                }
            }
            TyKind::Tuple(parts) | TyKind::Listed(parts) => Val::tuple(parts.iter().map(|&t| self.zero(t)).collect()),
            TyKind::Stack(element, n) => {
                let zero = self.zero(element);
                let next = self.is_header_like(element).then(|| constant(32, 0));
                Val::Stack {
                    elements: Rc::new(vec![zero; n as usize]),
                    next,
                }
            }
            TyKind::Varbit(_) => Val::Scalar(constant(0, 0)),
            TyKind::Void => Val::Void,
            TyKind::Integer => Val::Int(0.into()),
            TyKind::String => Val::String("".into()),
            _ => Val::Scalar(constant(self.scalar_width(ty).unwrap_or(0), 0)),
        }
    }

    /// What the architecture shares with the program: every scalar with its path.
    pub(super) fn shared_leaves(&mut self, place: &Place, ty: Ty) -> (Vec<SharedLeaf>, Vec<HeaderId>) {
        let mut leaves = Vec::new();
        let mut headers = Vec::new();
        self.collect_leaves("", place, ty, &[], &mut leaves, &mut headers);
        (leaves, headers)
    }

    fn collect_leaves(
        &mut self,
        path: &str,
        place: &Place,
        ty: Ty,
        inherited: &[weir_ir::Annotation],
        leaves: &mut Vec<SharedLeaf>,
        headers: &mut Vec<HeaderId>,
    ) {
        let join = |name: &str| {
            if path.is_empty() {
                name.to_string()
            } else {
                format!("{path}.{name}")
            }
        };
        if let Place::Header { id, .. } = place {
            let valid = self.program.headers[*id].valid;
            leaves.push(SharedLeaf {
                path: join("$valid$"),
                var: valid,
                annotations: inherited.to_vec(),
            });
            headers.push(*id);
        }
        match (place, self.kind(ty)) {
            (Place::Var(var), _) => leaves.push(SharedLeaf {
                path: path.to_string(),
                var: *var,
                annotations: inherited.to_vec(),
            }),
            (
                Place::Struct(parts) | Place::Union(parts) | Place::Header { fields: parts, .. },
                TyKind::Struct(def, arguments),
            ) => {
                let types = self.checked.fields_of(def, &arguments);
                for (index, ((name, part), (_, ty))) in parts.iter().zip(types).enumerate() {
                    let mut annotations = inherited.to_vec();
                    annotations.extend(self.field_annotations(def, index));
                    self.collect_leaves(&join(name), part, ty, &annotations, leaves, headers);
                }
            }
            (Place::Struct(parts), TyKind::Tuple(types)) => {
                for (i, ((_, part), &ty)) in parts.iter().zip(types.iter()).enumerate() {
                    self.collect_leaves(&join(&i.to_string()), part, ty, inherited, leaves, headers);
                }
            }
            (Place::Stack { elements, next }, TyKind::Stack(element, _)) => {
                for (i, part) in elements.iter().enumerate() {
                    self.collect_leaves(&format!("{path}[{i}]"), part, element, inherited, leaves, headers);
                }
                if let Some(next) = next {
                    leaves.push(SharedLeaf {
                        path: join("$next$"),
                        var: *next,
                        annotations: Vec::new(),
                    });
                }
            }
            _ => {}
        }
    }

    // ------------------------------------------------------------------------------- reading

    pub(super) fn read(&mut self, place: &Place) -> Val {
        match place {
            Place::Var(v) => Val::Scalar(Operand::Var(*v)),
            Place::Struct(fields) => Val::Struct(Rc::new(self.read_fields(fields))),
            Place::Union(fields) => Val::Union(Rc::new(self.read_fields(fields))),
            Place::Header { id, fields } => Val::Header {
                valid: Operand::Var(self.program.headers[*id].valid),
                fields: Rc::new(self.read_fields(fields)),
                source: Some(*id),
            },
            Place::Stack { elements, next } => Val::Stack {
                elements: Rc::new(elements.iter().map(|e| self.read(e)).collect()),
                next: next.map(Operand::Var),
            },
            Place::Slice { base, hi, lo } => match self.read(base) {
                Val::Scalar(value) => Val::Scalar(self.compute(
                    Rvalue::Slice {
                        value,
                        hi: *hi,
                        lo: *lo,
                    },
                    hi - lo + 1,
                )),
                other => other,
            },
            Place::MovingSlice { base, lo, width } => match self.read(base) {
                Val::Scalar(value) => {
                    let total = self.width_of(&value);
                    let shifted = self.binary(BinaryOp::Shr, value, lo.clone(), total);
                    Val::Scalar(self.compute(
                        Rvalue::Slice {
                            value: shifted,
                            hi: width - 1,
                            lo: 0,
                        },
                        *width,
                    ))
                }
                other => other,
            },
            Place::Dynamic { elements, index } => {
                let Some(first) = elements.first() else {
                    return Val::Void;
                };
                let first = self.read(first);
                let mut result = self.zeroed(&first);
                for (i, element) in elements.iter().enumerate().rev() {
                    let value = self.read(element);
                    let chosen = self.index_is(index, i);
                    result = self.choose(&chosen, &value, &result);
                }
                result
            }
            Place::Nowhere(value) => (**value).clone(),
        }
    }

    fn read_fields(&mut self, fields: &Rc<Vec<(Name, Place)>>) -> Vec<(Name, Val)> {
        fields.iter().map(|(n, p)| (n.clone(), self.read(p))).collect()
    }

    pub(super) fn index_is(&mut self, index: &Operand, i: usize) -> Operand {
        let width = self.width_of(index);
        if width < 64 && (i as u64) >> width != 0 {
            return boolean(false);
        }
        self.binary(BinaryOp::Eq, index.clone(), constant(width, i as u128), 1)
    }

    /// The same shape with zeros in it.
    pub(super) fn zeroed(&mut self, value: &Val) -> Val {
        let mut leaves = Vec::new();
        value.leaves(&mut leaves);
        let zeros: Vec<Operand> = leaves
            .iter()
            .map(|l| {
                if self.is_varbit(l) {
                    constant(0, 0)
                } else {
                    constant(self.width_of(l), 0)
                }
            })
            .collect();
        value.with_leaves(&mut zeros.into_iter())
    }

    /// `a` where the condition holds, else `b`, scalar by scalar.
    pub(super) fn choose(&mut self, condition: &Operand, a: &Val, b: &Val) -> Val {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        a.leaves(&mut x);
        b.leaves(&mut y);
        let chosen: Vec<Operand> = x
            .into_iter()
            .zip(y)
            .map(|(x, y)| if x == y { x } else { self.mux(condition.clone(), x, y) })
            .collect();
        a.with_leaves(&mut chosen.into_iter())
    }

    /// A copy of the value that later assignments do not change.
    pub(super) fn snapshot(&mut self, value: &Val) -> Val {
        let mut leaves = Vec::new();
        value.leaves(&mut leaves);
        if leaves.iter().all(|l| matches!(l, Operand::Const(_))) {
            return value.clone();
        }
        let copies: Vec<Operand> = leaves.into_iter().map(|l| self.copy(l)).collect();
        value.with_leaves(&mut copies.into_iter())
    }

    pub(super) fn copy(&mut self, operand: Operand) -> Operand {
        let Operand::Var(v) = operand else { return operand };
        if self.program.vars[v].kind == VarKind::Temporary {
            return operand;
        }
        let dst = self.temporary(self.program.vars[v].ty.width());
        self.program.vars[dst].ty = self.program.vars[v].ty;
        self.set(dst, operand);
        Operand::Var(dst)
    }

    // ------------------------------------------------------------------------------- writing

    /// Assigns a value of the place's own shape.
    pub(super) fn write(&mut self, place: &Place, value: &Val) {
        match (place, value) {
            (Place::Var(v), Val::Scalar(operand)) => self.set(*v, operand.clone()),
            (
                Place::Header { id, fields },
                Val::Header {
                    valid, fields: values, ..
                },
            ) => {
                self.invalidate_others(*id, valid);
                let target = self.program.headers[*id].valid;
                self.set(target, valid.clone());
                for ((_, place), (_, value)) in fields.iter().zip(values.iter()) {
                    self.write(place, value);
                }
            }
            (Place::Header { id, .. }, Val::InvalidHeader) => {
                let target = self.program.headers[*id].valid;
                self.set(target, boolean(false));
            }
            (Place::Struct(fields), Val::Struct(values)) => {
                for ((_, place), (_, value)) in fields.iter().zip(values.iter()) {
                    self.write(place, value);
                }
            }
            (Place::Union(fields), Val::Union(values)) => {
                for ((_, place), (_, value)) in fields.iter().zip(values.iter()) {
                    // Member by member: at most one of the values is valid.
                    if let (
                        Place::Header { id, fields },
                        Val::Header {
                            valid, fields: values, ..
                        },
                    ) = (place, value)
                    {
                        let target = self.program.headers[*id].valid;
                        self.set(target, valid.clone());
                        for ((_, place), (_, value)) in fields.iter().zip(values.iter()) {
                            self.write(place, value);
                        }
                    }
                }
            }
            (Place::Union(fields), Val::InvalidHeader) => {
                for (_, member) in fields.iter() {
                    self.write(member, &Val::InvalidHeader);
                }
            }
            (
                Place::Stack { elements, next },
                Val::Stack {
                    elements: values,
                    next: value,
                },
            ) => {
                for (place, value) in elements.iter().zip(values.iter()) {
                    self.write(place, value);
                }
                if let (Some(next), Some(value)) = (next, value) {
                    self.set(*next, value.clone());
                }
            }
            (Place::Slice { base, hi, lo }, Val::Scalar(bits)) => {
                if let Val::Scalar(old) = self.read(base) {
                    let width = self.width_of(&old);
                    let new = self.compute(
                        Rvalue::Insert {
                            base: old,
                            hi: *hi,
                            lo: *lo,
                            value: bits.clone(),
                        },
                        width,
                    );
                    self.write(base, &Val::Scalar(new));
                }
            }
            (Place::MovingSlice { base, lo, width }, Val::Scalar(bits)) => {
                if let Val::Scalar(old) = self.read(base) {
                    let total = self.width_of(&old);
                    let ones = Operand::Const(Bits::ones(*width).zero_extend(total));
                    let hole = self.binary(BinaryOp::Shl, ones, lo.clone(), total);
                    let keep = self.not_wide(hole, total);
                    let kept = self.binary(BinaryOp::And, old, keep, total);
                    let wide = self.compute(Rvalue::ZeroExtend(bits.clone()), total);
                    let moved = self.binary(BinaryOp::Shl, wide, lo.clone(), total);
                    let new = self.binary(BinaryOp::Or, kept, moved, total);
                    self.write(base, &Val::Scalar(new));
                }
            }
            (Place::Dynamic { elements, index }, value) => {
                let value = self.snapshot(value);
                for (i, element) in elements.iter().enumerate() {
                    let chosen = self.index_is(index, i);
                    let old = self.read(element);
                    let value = match &value {
                        Val::InvalidHeader => self.zeroed(&old),
                        other => other.clone(),
                    };
                    let new = self.choose(&chosen, &value, &old);
                    self.write(element, &new);
                }
            }
            _ => {}
        }
    }

    fn not_wide(&mut self, a: Operand, width: u32) -> Operand {
        self.compute(Rvalue::Unary(weir_ir::UnaryOp::Not, a), width)
    }

    /// A member of a union that becomes valid makes the others invalid.
    pub(super) fn invalidate_others(&mut self, header: HeaderId, valid: &Operand) {
        let Some(members) = self.union_members.get(&header).cloned() else {
            return;
        };
        if matches!(valid, Operand::Const(c) if c.is_zero()) {
            return;
        }
        let none = self.not(valid.clone());
        for &other in members.iter().filter(|&&m| m != header) {
            let target = self.program.headers[other].valid;
            let kept = self.binary(BinaryOp::And, Operand::Var(target), none.clone(), 1);
            self.set(target, kept);
        }
    }

    /// Assigns where the value may have been computed from the place itself.
    pub(super) fn write_safely(&mut self, place: &Place, value: &Val) {
        let mut sources = Vec::new();
        value.leaves(&mut sources);
        let mut targets = Vec::new();
        let headers = &self.program.headers;
        let simple = place.leaves(&mut targets, &|h| headers[h].valid);
        let written: FxHashSet<VarId> = targets.iter().copied().collect();
        let overlaps = sources.len() > 1
            && (!simple
                || sources.iter().zip(&targets).any(|(s, t)| *s != Operand::Var(*t))
                    && sources
                        .iter()
                        .any(|s| matches!(s, Operand::Var(v) if written.contains(v))));
        if overlaps {
            let value = self.snapshot(value);
            self.write(place, &value);
        } else {
            self.write(place, value);
        }
    }

    // ---------------------------------------------------------------------------- converting

    /// A value of type `from` as one of type `to`: implicit conversions, and the shape of lists.
    pub(super) fn convert(&mut self, value: Val, from: Ty, to: Ty) -> Val {
        let to_kind = self.kind(to);
        match (value, &to_kind) {
            (Val::Int(v), _) => match self.scalar_width(to) {
                Some(w) => Val::Scalar(Operand::Const(Bits::from_bigint(w, &v))),
                None => Val::Int(v),
            },
            // An `int` of run time is cut to the width.
            (Val::Scalar(x), TyKind::Bit(_) | TyKind::Int(_)) if self.kind(from) == TyKind::Integer => {
                self.cast(Val::Scalar(x), from, to)
            }
            (Val::Dots, _) => self.zero(to),
            (Val::InvalidHeader, _) => {
                if self.is_header_like(to) {
                    self.zero(to)
                } else {
                    Val::InvalidHeader
                }
            }
            (Val::Struct(values), TyKind::Struct(def, arguments)) if !matches!(self.kind(from), TyKind::Struct(..)) => {
                let fields = self.checked.fields_of(*def, arguments);
                let given = self.component_types(from);
                let named = matches!(self.kind(from), TyKind::Fields(..));
                let mut converted = Vec::new();
                let positions = values.iter().enumerate().rev();
                let positions: FxHashMap<&str, usize> = positions.map(|(i, (n, _))| (&**n, i)).collect();
                for (i, (name, ty)) in fields.into_iter().enumerate() {
                    let position = if named {
                        positions.get(&*name).copied()
                    } else {
                        (i < values.len()).then_some(i)
                    };
                    let value = match position.map(|p| (values[p].1.clone(), given.get(p).copied().unwrap_or(ty))) {
                        Some((Val::Dots, _)) | None => self.zero(ty),
                        Some((value, from)) => self.convert(value, from, ty),
                    };
                    converted.push((name, value));
                }
                let fields = Rc::new(converted);
                match self.checked.struct_kind(to) {
                    Some(StructKind::Header) => Val::Header {
                        valid: boolean(true),
                        fields,
                        source: None,
                    },
                    Some(StructKind::HeaderUnion) => Val::Union(fields),
                    _ => Val::Struct(fields),
                }
            }
            (Val::Struct(values), TyKind::Tuple(parts) | TyKind::Listed(parts)) => {
                let given = self.component_types(from);
                let converted = parts
                    .iter()
                    .enumerate()
                    .map(|(i, &ty)| match values.get(i).map(|(_, v)| v.clone()) {
                        Some(Val::Dots) | None => self.zero(ty),
                        Some(value) => self.convert(value, given.get(i).copied().unwrap_or(ty), ty),
                    })
                    .collect();
                Val::tuple(converted)
            }
            (Val::Struct(values), TyKind::Stack(element, n)) => {
                let given = self.component_types(from);
                let converted: Vec<Val> = (0..*n as usize)
                    .map(|i| match values.get(i).map(|(_, v)| v.clone()) {
                        Some(Val::Dots) | None => self.zero(*element),
                        Some(value) => self.convert(value, given.get(i).copied().unwrap_or(*element), *element),
                    })
                    .collect();
                let count = values.iter().filter(|(_, v)| !matches!(v, Val::Dots)).count() as u128;
                let next = self.is_header_like(*element).then(|| constant(32, count));
                Val::Stack {
                    elements: Rc::new(converted),
                    next,
                }
            }
            (Val::Struct(values), TyKind::List(element)) => {
                let given = self.component_types(from);
                let converted = values
                    .iter()
                    .enumerate()
                    .map(|(i, (_, v))| self.convert(v.clone(), given.get(i).copied().unwrap_or(*element), *element))
                    .collect();
                Val::tuple(converted)
            }
            (value, _) => value,
        }
    }

    /// Types of the parts of a tuple, struct or list value.
    pub(super) fn component_types(&mut self, ty: Ty) -> Vec<Ty> {
        match self.kind(ty) {
            TyKind::Tuple(parts) | TyKind::Listed(parts) => parts.to_vec(),
            TyKind::Fields(fields, _) => fields.iter().map(|(_, t)| *t).collect(),
            TyKind::Struct(def, arguments) => self
                .checked
                .fields_of(def, &arguments)
                .into_iter()
                .map(|(_, t)| t)
                .collect(),
            TyKind::Set(inner) => self.component_types(inner),
            _ => Vec::new(),
        }
    }

    // ----------------------------------------------------------------------------- comparing

    /// `a == b` for values of one shape.
    pub(super) fn equal(&mut self, a: &Val, b: &Val) -> Operand {
        match (a, b) {
            (Val::Scalar(x), Val::Scalar(y)) => {
                if self.is_varbit(x) || self.is_varbit(y) {
                    return self.compute(Rvalue::VarbitEq(x.clone(), y.clone()), 1);
                }
                self.binary(BinaryOp::Eq, x.clone(), y.clone(), 1)
            }
            (Val::Int(x), Val::Int(y)) => boolean(x == y),
            (Val::String(x), Val::String(y)) => boolean(x == y),
            (Val::Struct(x), Val::Struct(y)) => self.all_equal(x.iter().map(|(_, v)| v), y.iter().map(|(_, v)| v)),
            (Val::Union(x), Val::Union(y)) => self.all_equal(x.iter().map(|(_, v)| v), y.iter().map(|(_, v)| v)),
            (Val::Stack { elements: x, .. }, Val::Stack { elements: y, .. }) => self.all_equal(x.iter(), y.iter()),
            (
                Val::Header {
                    valid: v, fields: x, ..
                },
                Val::Header {
                    valid: w, fields: y, ..
                },
            ) => {
                let fields = self.all_equal(x.iter().map(|(_, v)| v), y.iter().map(|(_, v)| v));
                let both = self.binary(BinaryOp::And, v.clone(), w.clone(), 1);
                let both = self.binary(BinaryOp::And, both, fields, 1);
                let any = self.binary(BinaryOp::Or, v.clone(), w.clone(), 1);
                let none = self.not(any);
                self.binary(BinaryOp::Or, both, none, 1)
            }
            _ => boolean(false),
        }
    }

    fn all_equal<'v>(&mut self, x: impl Iterator<Item = &'v Val>, y: impl Iterator<Item = &'v Val>) -> Operand {
        let mut result = boolean(true);
        for (x, y) in x.zip(y) {
            let equal = self.equal(x, y);
            result = self.binary(BinaryOp::And, result, equal, 1);
        }
        result
    }

    /// Whether a header or any member of a union is valid.
    pub(super) fn validity(&mut self, value: &Val) -> Operand {
        match value {
            Val::Header { valid, .. } => valid.clone(),
            Val::Union(members) => {
                let mut any = boolean(false);
                for (_, member) in members.iter() {
                    let valid = self.validity(member);
                    any = self.binary(BinaryOp::Or, any, valid, 1);
                }
                any
            }
            _ => boolean(false),
        }
    }
}
