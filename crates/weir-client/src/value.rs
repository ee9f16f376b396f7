//! Values of keys and data, and matches of keys.

use crate::keys::KeyMaterial;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A value of a field.
///
/// Numbers have no width of their own: the width is that of the field, and a value that does not
/// fit is an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number of up to 128 bits.
    Bits(u128),
    /// A number of more bits: its bytes, big-endian.
    Wide(Vec<u8>),
    /// True or false.
    Bool(bool),
    /// A floating-point number, as the filters of a Tofino have.
    Float(f32),
    /// A text: a choice such as `BF_SPEED_100G`, or a value of a translated type.
    Text(String),
    /// Several values.
    List(Vec<Value>),
    /// Fields with names.
    Record(Vec<(String, Value)>),
    /// The key of an extern, which is not shown.
    Key(KeyMaterial),
}

impl Value {
    /// A number from its bytes, big-endian.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Value {
        let significant = trim(bytes);
        if significant.len() > 16 {
            return Value::Wide(significant.to_vec());
        }
        Value::Bits(number(significant))
    }

    /// The number, if it is one of at most 128 bits.
    #[must_use]
    pub fn as_u128(&self) -> Option<u128> {
        match self {
            Value::Bits(value) => Some(*value),
            Value::Bool(value) => Some(u128::from(*value)),
            _ => None,
        }
    }

    /// The number, if it is one of at most 64 bits.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_u128().and_then(|v| u64::try_from(v).ok())
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// True or false; numbers are true unless they are 0.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            Value::Bits(value) => Some(*value != 0),
            _ => None,
        }
    }

    /// The values of a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    /// A field of a record.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Record(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Significant bits of a number; `None` if it is not one.
    #[must_use]
    pub fn bit_length(&self) -> Option<u32> {
        match self {
            Value::Bits(value) => Some(128 - value.leading_zeros()),
            Value::Bool(value) => Some(u32::from(*value)),
            Value::Wide(bytes) => {
                let bytes = trim(bytes);
                let first = bytes.first()?;
                let rest = u32::try_from(bytes.len() - 1).unwrap_or(u32::MAX / 8);
                Some(rest * 8 + 8 - first.leading_zeros())
            }
            _ => None,
        }
    }

    /// Appends a number as big-endian bytes, with leading zeros up to `length`. Returns `None` and
    /// appends nothing if it is not a number, or has more than `width` bits.
    pub(crate) fn put_fixed(&self, width: u32, out: &mut Vec<u8>) -> Option<()> {
        let length = width.div_ceil(8) as usize;
        match self {
            Value::Bits(value) => put_number(*value, width, out),
            Value::Bool(value) => put_number(u128::from(*value), width, out),
            Value::Wide(bytes) => {
                let bytes = trim(bytes);
                if self.bit_length().unwrap_or(0) > width {
                    return None;
                }
                out.resize(out.len() + length - bytes.len(), 0);
                out.extend_from_slice(bytes);
                Some(())
            }
            _ => None,
        }
    }

    /// A number as `length` bytes big-endian: what [`Value::put_fixed`] appends.
    pub(crate) fn fixed(&self, width: u32) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(width.div_ceil(8) as usize);
        self.put_fixed(width, &mut out).map(|()| out)
    }

    /// A number in as few bytes as hold it, at least one.
    pub(crate) fn shortest(&self, width: u32) -> Option<Vec<u8>> {
        let bytes = self.fixed(width)?;
        let significant = trim(&bytes);
        Some(if significant.is_empty() {
            vec![0]
        } else {
            significant.to_vec()
        })
    }
}

/// Appends a number of `width` bits as big-endian bytes.
pub(crate) fn put_number(value: u128, width: u32, out: &mut Vec<u8>) -> Option<()> {
    if width < 128 && value >> width != 0 {
        return None;
    }
    let length = width.div_ceil(8) as usize;
    if length > 16 {
        out.resize(out.len() + length - 16, 0);
    }
    let bytes = value.to_be_bytes();
    out.extend_from_slice(&bytes[16 - length.min(16)..]);
    Some(())
}

/// Removes leading zeros.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    &bytes[zeros..]
}

/// The big-endian number of at most 16 bytes; of more bytes, the last 16.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Self {
                Value::Bits(u128::from(value))
            }
        }
        impl From<$ty> for Match {
            fn from(value: $ty) -> Self {
                Match::Exact(value.into())
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, u128);

macro_rules! addresses {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Self {
                Value::Bits(value.to_bits().into())
            }
        }
        impl From<$ty> for Match {
            fn from(value: $ty) -> Self {
                Match::Exact(value.into())
            }
        }
    )*};
}
addresses!(Ipv4Addr, Ipv6Addr);

impl Value {
    const fn of_array(array: &[u8]) -> u128 {
        let mut value = 0;
        let mut i = 0;
        while i < array.len() {
            value = value << 8 | array[i] as u128;
            i += 1;
        }
        value
    }
}

impl From<IpAddr> for Value {
    fn from(value: IpAddr) -> Self {
        match value {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => address.into(),
        }
    }
}

/// A MAC address, or any other bytes: the first is the most significant.
impl<const N: usize> From<[u8; N]> for Value {
    fn from(value: [u8; N]) -> Self {
        if N <= 16 {
            Value::Bits(Value::of_array(&value))
        } else {
            Value::Wide(value.to_vec())
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

/// Numbers are hexadecimal from 2^16 on.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bits(value) if *value < 1 << 16 => write!(f, "{value}"),
            Value::Bits(value) => write!(f, "{value:#x}"),
            Value::Wide(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Bool(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(text) => f.write_str(text),
            Value::Key(key) => write!(f, "{key}"),
            Value::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Record(fields) => {
                f.write_str("{")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}={value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The match of a key in an entry.
///
/// A single value is valid for any kind of key: as a prefix of full length, with a mask of ones, or
/// as a range of one.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Match {
    /// Anything. Invalid for exact keys.
    #[default]
    Any,
    /// This value.
    Exact(Value),
    /// The first bits of this value.
    Lpm {
        /// The value; bits after the prefix are ignored.
        value: Value,
        /// Length of the prefix in bits.
        prefix_len: u32,
    },
    /// This value under a mask.
    Ternary {
        /// The value; bits outside of the mask are ignored.
        value: Value,
        /// Bits that are compared.
        mask: Value,
    },
    /// From one value to another, both included.
    Range {
        /// The smallest.
        low: Value,
        /// The largest.
        high: Value,
    },
}

impl Match {
    /// The first bits of a value.
    pub fn lpm(value: impl Into<Value>, prefix_len: u32) -> Match {
        Match::Lpm {
            value: value.into(),
            prefix_len,
        }
    }

    /// A value under a mask.
    pub fn ternary(value: impl Into<Value>, mask: impl Into<Value>) -> Match {
        Match::Ternary {
            value: value.into(),
            mask: mask.into(),
        }
    }

    /// From one value to another, both included.
    pub fn range(low: impl Into<Value>, high: impl Into<Value>) -> Match {
        Match::Range {
            low: low.into(),
            high: high.into(),
        }
    }

    /// The value of an exact match.
    #[must_use]
    pub fn exact(&self) -> Option<&Value> {
        match self {
            Match::Exact(value) => Some(value),
            _ => None,
        }
    }
}

impl From<Value> for Match {
    fn from(value: Value) -> Self {
        Match::Exact(value)
    }
}

impl From<&str> for Match {
    fn from(value: &str) -> Self {
        Match::Exact(value.into())
    }
}

impl<const N: usize> From<[u8; N]> for Match {
    fn from(value: [u8; N]) -> Self {
        Match::Exact(value.into())
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Match::Any => f.write_str("*"),
            Match::Exact(value) => value.fmt(f),
            Match::Lpm { value, prefix_len } => write!(f, "{value}/{prefix_len}"),
            Match::Ternary { value, mask } => write!(f, "{value}&&&{mask}"),
            Match::Range { low, high } => write!(f, "{low}..{high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_as_wide_as_its_field_and_no_wider() {
        assert_eq!(Value::from(0x1ff_u32).fixed(9), Some(vec![1, 0xff]));
        assert_eq!(Value::from(0x200_u32).fixed(9), None);
        assert_eq!(Value::from(7_u8).fixed(136), Some([vec![0; 16], vec![7]].concat()));
        assert_eq!(Value::Wide(vec![0, 0, 5]).fixed(8), Some(vec![5]));
        assert_eq!(Value::Wide(vec![1; 17]).fixed(136), Some(vec![1; 17]));
        assert_eq!(Value::Wide(vec![2; 17]).fixed(129), None);
        assert_eq!(Value::from("x").fixed(8), None);
    }

    #[test]
    fn the_shortest_form_of_zero_is_one_byte() {
        assert_eq!(Value::from(0_u8).shortest(32), Some(vec![0]));
        assert_eq!(Value::from(0x100_u32).shortest(32), Some(vec![1, 0]));
    }

    #[test]
    fn bytes_and_numbers_are_the_same_value() {
        assert_eq!(Value::from_bytes(&[0, 0, 1, 2]), Value::from(0x102_u16));
        assert_eq!(Value::from([0x0a, 0, 0, 1]), Value::from(Ipv4Addr::new(10, 0, 0, 1)));
    }
}
