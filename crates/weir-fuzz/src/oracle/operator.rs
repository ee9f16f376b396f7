//! Operators on values.

use super::value::{Value, equal, ones, signed};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, ToPrimitive, Zero};
use weir_syntax::ast::{BinaryOp, UnaryOp};

/// Longest shift of an `int`.
const LONGEST_SHIFT: u64 = 1 << 16;

/// `op a`; `None`: there is no such operator.
pub(super) fn unary(op: UnaryOp, a: &Value) -> Option<Value> {
    Some(match (op, a) {
        (UnaryOp::Not, Value::Bool(b)) => Value::Bool(!b),
        (UnaryOp::Plus, a) => a.clone(),
        (UnaryOp::Negate, Value::Integer(v)) => Value::Integer(-v),
        (UnaryOp::Negate, Value::Int { width, value }) => Value::int(*width, &-value),
        (UnaryOp::Negate, Value::Bit { width, value }) => like(a, *width, &-BigInt::from(value.clone())),
        (UnaryOp::Complement, Value::Integer(v)) => Value::Integer(-v - 1),
        (UnaryOp::Complement, Value::Int { width, value }) => Value::int(*width, &(-value - 1)),
        (UnaryOp::Complement, Value::Bit { width, value }) => Value::bit(*width, ones(*width) ^ value),
        _ => return None,
    })
}

/// A number of the same kind and width as `model`.
fn like(model: &Value, width: u32, number: &BigInt) -> Value {
    match model {
        Value::Int { .. } => Value::int(width, number),
        _ => Value::bit(width, super::value::unsigned(number, width)),
    }
}

/// An `int` beside a number of known width is one of that type.
fn alike(a: Value, b: Value) -> (Value, Value) {
    match (&a, &b) {
        (Value::Integer(v), Value::Bit { width, .. } | Value::Int { width, .. }) => (like(&b, *width, v), b),
        (Value::Bit { width, .. } | Value::Int { width, .. }, Value::Integer(v)) => {
            let b = like(&a, *width, v);
            (a, b)
        }
        _ => (a, b),
    }
}

/// `a op b` but for `&&` and `||`, which do not evaluate `b` always; `None`: there is no such
/// operator.
pub(super) fn binary(op: BinaryOp, a: Value, b: Value) -> Option<Value> {
    if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
        return shift(op, &a, &b);
    }
    if op == BinaryOp::Concat {
        return concat(&a, &b);
    }
    let (a, b) = alike(a, b);
    match op {
        BinaryOp::Eq => return Some(Value::Bool(equal(&a, &b))),
        BinaryOp::Ne => return Some(Value::Bool(!equal(&a, &b))),
        _ => {}
    }
    let (x, y) = (a.number()?, b.number()?);
    if let Some(truth) = compare(op, &x, &y) {
        return Some(Value::Bool(truth));
    }
    let result = arithmetic(op, &a, &x, &y)?;
    Some(match a {
        Value::Integer(_) => Value::Integer(result),
        Value::Bit { width, .. } | Value::Int { width, .. } => like(&a, width, &result),
        _ => return None,
    })
}

fn compare(op: BinaryOp, x: &BigInt, y: &BigInt) -> Option<bool> {
    Some(match op {
        BinaryOp::Lt => x < y,
        BinaryOp::Le => x <= y,
        BinaryOp::Gt => x > y,
        BinaryOp::Ge => x >= y,
        _ => return None,
    })
}

/// The exact result, which is then brought into the range of the type; saturating operators do it
/// here.
fn arithmetic(op: BinaryOp, a: &Value, x: &BigInt, y: &BigInt) -> Option<BigInt> {
    Some(match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::AddSat => saturate(a, x + y)?,
        BinaryOp::SubSat => saturate(a, x - y)?,
        BinaryOp::BitAnd => x & y,
        BinaryOp::BitOr => x | y,
        BinaryOp::BitXor => x ^ y,
        BinaryOp::Div if y.is_positive() && !x.is_negative() => x / y,
        BinaryOp::Mod if y.is_positive() && !x.is_negative() => x % y,
        _ => return None,
    })
}

/// The number of the type that is nearest.
fn saturate(a: &Value, result: BigInt) -> Option<BigInt> {
    let (low, high) = match a {
        Value::Bit { width, .. } => (BigInt::zero(), BigInt::from(ones(*width))),
        Value::Int { width, .. } => {
            let half = BigInt::one() << width.checked_sub(1)?;
            (-half.clone(), half - 1)
        }
        _ => return None,
    };
    Some(result.clamp(low, high))
}

/// Shifts of signed numbers are arithmetic; the distance is a number without sign.
fn shift(op: BinaryOp, a: &Value, b: &Value) -> Option<Value> {
    let distance = b.number()?;
    let (width, x) = match a {
        Value::Integer(v) => {
            let distance = distance.to_u64()?.min(LONGEST_SHIFT);
            return Some(Value::Integer(if op == BinaryOp::Shl {
                v << distance
            } else {
                v >> distance
            }));
        }
        Value::Bit { width, .. } | Value::Int { width, .. } => (*width, a.number()?),
        _ => return None,
    };
    // By its width or more nothing is left but the sign.
    let distance = distance.to_u64().unwrap_or(u64::MAX).min(u64::from(width));
    let shifted = if op == BinaryOp::Shl {
        x << distance
    } else {
        x >> distance
    };
    Some(like(a, width, &shifted))
}

/// `a ++ b`: of bits, or of strings.
fn concat(a: &Value, b: &Value) -> Option<Value> {
    if let (Value::String(x), Value::String(y)) = (a, b) {
        return Some(Value::String(format!("{x}{y}").into()));
    }
    let ((v, x), (w, y)) = (a.bits()?, b.bits()?);
    let joined: BigUint = (x << w) | y;
    Some(match a {
        Value::Int { .. } => Value::int(v + w, &signed(&joined.into(), v + w)),
        _ => Value::bit(v + w, joined),
    })
}

/// `a[hi:lo]`
pub(super) fn slice(a: &Value, hi: u32, lo: u32) -> Option<Value> {
    let (_, bits) = a.bits()?;
    Some(Value::bit(hi.checked_sub(lo)? + 1, bits >> lo))
}

/// `a` with other bits from `hi` down to `lo`; bits that it does not have are not written.
pub(super) fn with_slice(a: &Value, hi: u32, lo: u32, bits: &Value) -> Option<Value> {
    let (width, old) = a.bits()?;
    let (_, new) = bits.bits()?;
    let mask = ones(hi.checked_sub(lo)? + 1) << lo;
    let kept = &old ^ (&old & &mask);
    let result = (kept | ((new << lo) & mask)) & ones(width);
    Some(match a {
        Value::Int { .. } => Value::int(width, &signed(&result.into(), width)),
        _ => Value::bit(width, result),
    })
}
