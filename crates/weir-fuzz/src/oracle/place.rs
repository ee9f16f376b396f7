//! L-values: which are worked out once, before a call, and stay the same whatever the call does.

use super::machine::{Machine, reject};
use super::operator;
use super::stop::{Eval, unknown};
use super::value::Value;
use weir_compiler::tools::{DefId, TyKind};
use weir_syntax::ast::{Expr, ExprKind, Name};

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// A field.
    Field(Name),
    /// An element of a stack or tuple, which may not have it.
    Element(usize),
    /// Bits of a number, from the higher to the lower.
    Bits(u32, u32),
    /// This many bits of a number from a position on, which it may not have.
    BitsFrom(usize, u32),
}

/// Where a value is kept.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// A part of a variable.
    Part(DefId, Vec<Step>),
    /// `_`: takes anything.
    Nowhere,
}

impl Place {
    /// A variable as a whole.
    pub fn of(def: DefId) -> Self {
        Place::Part(def, Vec::new())
    }

    fn then(mut self, step: Step) -> Self {
        if let Place::Part(_, steps) = &mut self {
            steps.push(step);
        }
        self
    }
}

impl Machine<'_> {
    /// Whether an expression is an l-value, by its form and what its first name is.
    pub fn is_place(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name { .. } => self.named(expr).is_some_and(|d| self.variables.contains_key(&d)),
            ExprKind::Member(base, _)
            | ExprKind::Index(base, _)
            | ExprKind::Slice(base, ..)
            | ExprKind::PlusSlice(base, ..) => self.is_place(base),
            _ => false,
        }
    }

    /// The place that an expression means now. `next` and `last` of a stack are the elements they
    /// are now; a parser that has none of them rejects.
    pub fn place(&mut self, expr: &Expr) -> Eval<Place> {
        match &expr.kind {
            ExprKind::DontCare => Ok(Place::Nowhere),
            ExprKind::Name { .. } => match self.named(expr) {
                Some(def) => Ok(Place::of(def)),
                None => unknown("an l-value without a declaration"),
            },
            ExprKind::Member(base, member) => {
                let place = self.place(base)?;
                if matches!(self.kind_of(base), TyKind::Stack(..)) {
                    let element = self.cursor(&place, &member.name)?;
                    return Ok(place.then(Step::Element(element)));
                }
                Ok(place.then(Step::Field(member.name.clone())))
            }
            ExprKind::Index(base, index) => {
                let place = self.place(base)?;
                match self.expr(index)?.index() {
                    Some(index) => Ok(place.then(Step::Element(index))),
                    None => unknown("an index that is no number"),
                }
            }
            ExprKind::Slice(base, hi, lo) => {
                let place = self.place(base)?;
                let (hi, lo) = (self.constant(hi)?, self.constant(lo)?);
                Ok(place.then(Step::Bits(hi as u32, lo as u32)))
            }
            ExprKind::PlusSlice(base, lo, width) => {
                let place = self.place(base)?;
                let lo = self.constant(lo)?;
                let width = self.constant(width)?;
                Ok(place.then(Step::BitsFrom(lo, width as u32)))
            }
            _ => unknown("an l-value of another form"),
        }
    }

    /// A number that an expression gives.
    pub fn constant(&mut self, expr: &Expr) -> Eval<usize> {
        match self.expr(expr)?.index() {
            Some(number) => Ok(number),
            None => unknown("something else than a number"),
        }
    }

    /// The element that `next` or `last` of a stack is.
    fn cursor(&mut self, stack: &Place, member: &str) -> Eval<usize> {
        let Value::Stack { next, elements } = self.load(stack)? else {
            return unknown("a stack that is none");
        };
        let element = match member {
            "next" => Some(next).filter(|n| *n < elements.len()),
            "last" => next.checked_sub(1).filter(|n| *n < elements.len()),
            _ => return unknown("another member of a stack"),
        };
        element.ok_or_else(|| reject("StackOutOfBounds"))
    }

    /// The value that a place has.
    pub fn load(&mut self, place: &Place) -> Eval<Value> {
        let Place::Part(def, steps) = place else {
            return unknown("the value of `_`");
        };
        let Some(whole) = self.variables.get(def) else {
            // A constant or instance is no variable, but can be read.
            let whole = self.meaning(*def)?;
            return part(&whole, steps);
        };
        part(whole, steps)
    }

    /// Gives a place a value.
    pub fn store(&mut self, place: &Place, value: Value) -> Eval<()> {
        let Place::Part(def, steps) = place else { return Ok(()) };
        match self.variables.get_mut(def) {
            Some(whole) => put(whole, steps, value),
            None => unknown("an assignment to what is no variable"),
        }
    }
}

/// A part of a value. An element that a stack does not have is zero and invalid.
fn part(value: &Value, steps: &[Step]) -> Eval<Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(value.clone());
    };
    match (value, step) {
        (_, Step::Field(name)) => match value.field(name) {
            Some(field) => part(field, rest),
            None => unknown("a field that is not there"),
        },
        (Value::Stack { elements, .. } | Value::Tuple(elements), Step::Element(index)) => match elements.get(*index) {
            Some(element) => part(element, rest),
            None => match elements.first() {
                Some(like) => part(&like.zeroed(), rest),
                None => unknown("an element of an empty stack"),
            },
        },
        (_, Step::Bits(hi, lo)) => match operator::slice(value, *hi, *lo) {
            Some(bits) => part(&bits, rest),
            None => unknown("a slice of what has no bits"),
        },
        (_, Step::BitsFrom(lo, width)) => {
            let Some((all, bits)) = value.bits() else {
                return unknown("a slice of what has no bits");
            };
            let lo = (*lo).min(all as usize);
            part(&Value::bit(*width, bits >> lo), rest)
        }
        (_, Step::Element(_)) => unknown("an element of what is no stack"),
    }
}

/// Writes a part of a value. What is not there is not written; a member of a union that becomes
/// valid makes the others invalid.
fn put(value: &mut Value, steps: &[Step], new: Value) -> Eval<()> {
    let Some((step, rest)) = steps.split_first() else {
        *value = new;
        return Ok(());
    };
    match (&mut *value, step) {
        (Value::Union(members), Step::Field(name)) => put_member(members, name, rest, new),
        (_, Step::Field(name)) => match value.field_mut(name) {
            Some(field) => put(field, rest, new),
            None => unknown("a field that is not there"),
        },
        (Value::Stack { elements, .. } | Value::Tuple(elements), Step::Element(index)) => elements
            .get_mut(*index)
            .map_or(Ok(()), |element| put(element, rest, new)),
        (_, Step::Bits(..) | Step::BitsFrom(..)) => {
            // The bits of bits are bits: what is written is put into them first.
            let mut inner = part(value, std::slice::from_ref(step))?;
            put(&mut inner, rest, new)?;
            let (hi, lo) = match *step {
                Step::BitsFrom(lo, width) => {
                    let all = value.bits().map_or(0, |b| b.0);
                    let lo = lo.min(all as usize) as u32;
                    (lo + width - 1, lo)
                }
                Step::Bits(hi, lo) => (hi, lo),
                Step::Field(_) | Step::Element(_) => return unknown("a slice that is none"),
            };
            match operator::with_slice(value, hi, lo, &inner) {
                Some(whole) => *value = whole,
                None => return unknown("a slice of what has no bits"),
            }
            Ok(())
        }
        (_, Step::Element(_)) => unknown("an element of what is no stack"),
    }
}

fn put_member(members: &mut [(Name, Value)], name: &Name, rest: &[Step], new: Value) -> Eval<()> {
    let becomes_valid = rest.is_empty() && new.is_valid();
    for (other, member) in members.iter_mut() {
        if other == name {
            put(member, rest, new.clone())?;
        } else if becomes_valid && let Value::Header { valid, .. } = member {
            *valid = false;
        }
    }
    Ok(())
}
