//! How ids and bit strings are written by serde: ids as their number, bit strings as their width
//! and value.

use crate::arena::Id;
use crate::bits::Bits;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Widest value that is written as a number; wider ones are bytes, the highest first.
const NUMBER: u32 = 128;

impl<T> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.index() as u32).serialize(to)
    }
}

impl<'de, T> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u32::deserialize(from).map(|index| Id::new(index as usize))
    }
}

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut parts = to.serialize_tuple(2)?;
        parts.serialize_element(&self.width())?;
        match self.to_u128() {
            Some(number) if self.width() <= NUMBER => parts.serialize_element(&number)?,
            _ => parts.serialize_element(&self.to_bytes())?,
        }
        parts.end()
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Bits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a width and a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Bits, A::Error> {
        let missing = |at| A::Error::invalid_length(at, &Parts);
        let width: u32 = parts.next_element()?.ok_or_else(|| missing(0))?;
        if width <= NUMBER {
            let number: u128 = parts.next_element()?.ok_or_else(|| missing(1))?;
            return Ok(Bits::new(width, number));
        }
        let bytes: Vec<u8> = parts.next_element()?.ok_or_else(|| missing(1))?;
        if bytes.len() != width.div_ceil(8) as usize {
            return Err(A::Error::invalid_length(bytes.len(), &Parts));
        }
        Ok(Bits::from_bytes(width, &bytes))
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_tuple(2, Parts)
    }
}
