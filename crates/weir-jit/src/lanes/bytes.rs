//! Represents words symbolically, as bytes of other words.
//!
//! Programs mostly move bytes of headers: fields in network byte order, parts of words, adjacent
//! fields written together. So a word is represented by the origin of each of its bytes. It is
//! materialised only where it is used, by as few instructions as possible ([`recipe`]).
//!
//! This module only computes with origins. [`super::lower`] emits the operations.

use super::op::{Shuffle, VectorReg};

/// The origin of a byte of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Byte {
    Zero,
    /// The byte with this number of each word of a vector, the lowest first.
    OfVector(VectorReg, u8),
}

/// A word, its lowest byte first.
pub(super) type Bytes = [Byte; 8];

/// A vector's words, whose bytes from number `count` on are 0.
pub(super) fn of_vector(v: VectorReg, count: u32) -> Bytes {
    std::array::from_fn(|i| match (i as u32) < count {
        true => Byte::OfVector(v, i as u8),
        false => Byte::Zero,
    })
}

/// A word shifted left by bytes, or right if the number is negative.
pub(super) fn shift(bytes: &Bytes, by: i32) -> Bytes {
    std::array::from_fn(|i| {
        let from = usize::try_from(i as i32 - by).ok();
        from.and_then(|from| bytes.get(from)).copied().unwrap_or(Byte::Zero)
    })
}

/// The lowest `count` bytes; the others are 0.
pub(super) fn lowest(bytes: &Bytes, count: u32) -> Bytes {
    std::array::from_fn(|i| if (i as u32) < count { bytes[i] } else { Byte::Zero })
}

/// The lowest `count` bytes in reverse order; the others are 0.
pub(super) fn reverse(bytes: &Bytes, count: u32) -> Bytes {
    let count = count as usize;
    std::array::from_fn(|i| if i < count { bytes[count - 1 - i] } else { Byte::Zero })
}

/// `word & mask`. `None`: the mask keeps a part of a byte.
pub(super) fn and_bytes(bytes: &Bytes, mask: u64) -> Option<Bytes> {
    let mut masked = *bytes;
    for (byte, byte_mask) in masked.iter_mut().zip(mask.to_le_bytes()) {
        match byte_mask {
            0 => *byte = Byte::Zero,
            0xff => {}
            // A zero byte stays zero.
            _ if *byte == Byte::Zero => {}
            _ => return None,
        }
    }
    Some(masked)
}

/// `a | b`. `None`: both may have bits in the same byte.
pub(super) fn union(a: &Bytes, b: &Bytes) -> Option<Bytes> {
    let mut both = *a;
    for (byte, other) in both.iter_mut().zip(b) {
        match (*byte, *other) {
            (_, Byte::Zero) => {}
            (Byte::Zero, origin) => *byte = origin,
            _ => return None,
        }
    }
    Some(both)
}

/// The operation that materialises a word from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recipe {
    Zero,
    /// No operation: the word is this vector.
    Vector(VectorReg),
    And(VectorReg, u64),
    /// Shifts by a number of bits.
    ShiftLeft(VectorReg, u8),
    ShiftRight(VectorReg, u8),
    Shuffle(VectorReg, Shuffle),
    /// A funnel shift, then a choice of bytes. The vectors are the low and the high word of a
    /// 128-bit number, which is shifted right by a number of bits. The last field says which bytes
    /// of the low word of the result the word consists of: there [`FUNNEL_SHIFT`] stands for it.
    FunnelShiftRight(VectorReg, VectorReg, u8, Bytes),
    /// The union of these words, each to be materialised.
    Or(Vec<Bytes>),
}

/// Stands for the result of the shift, which has no register yet, in the bytes of
/// [`Recipe::FunnelShiftRight`].
pub(super) const FUNNEL_SHIFT: VectorReg = VectorReg(u32::MAX);

/// The cheapest way to materialise a word.
pub(super) fn recipe(bytes: &Bytes) -> Recipe {
    let mut sources: Vec<VectorReg> = Vec::new();
    for byte in bytes {
        if let Byte::OfVector(v, _) = byte
            && !sources.contains(v)
        {
            sources.push(*v);
        }
    }
    match sources.as_slice() {
        [] => Recipe::Zero,
        &[v] => recipe_of_one(bytes, v),
        &[a, b] => recipe_of_pair(bytes, a, b)
            .or_else(|| recipe_of_pair(bytes, b, a))
            .unwrap_or_else(|| recipe_of_parts(bytes, &sources)),
        _ => recipe_of_parts(bytes, &sources),
    }
}

/// The recipe for a word with bytes of one vector only.
fn recipe_of_one(bytes: &Bytes, v: VectorReg) -> Recipe {
    let whole = of_vector(v, 8);
    if *bytes == whole {
        return Recipe::Vector(v);
    }
    for by in 1..8 {
        if *bytes == shift(&whole, by) {
            return Recipe::ShiftLeft(v, by as u8 * 8);
        }
        if *bytes == shift(&whole, -by) {
            return Recipe::ShiftRight(v, by as u8 * 8);
        }
    }
    let mut mask = [0; 8];
    let mut are_in_place = true;
    for (i, byte) in bytes.iter().enumerate() {
        if let Byte::OfVector(_, from) = byte {
            mask[i] = 0xff;
            are_in_place &= usize::from(*from) == i;
        }
    }
    if are_in_place {
        return Recipe::And(v, u64::from_le_bytes(mask));
    }
    Recipe::Shuffle(
        v,
        bytes.map(|byte| match byte {
            Byte::Zero => None,
            Byte::OfVector(_, from) => Some(from),
        }),
    )
}

/// The recipe for eight or fewer consecutive bytes of the 128-bit number `high:low`, in any order.
fn recipe_of_pair(bytes: &Bytes, low: VectorReg, high: VectorReg) -> Option<Recipe> {
    let numbers = bytes.iter().filter_map(|byte| match byte {
        Byte::Zero => None,
        Byte::OfVector(v, from) if *v == low => Some(*from),
        Byte::OfVector(_, from) => Some(from + 8),
    });
    let (first, last) = (numbers.clone().min()?, numbers.max()?);
    if last >= first + 8 {
        return None;
    }
    // Shifted so that the first byte is the lowest.
    let first = first.min(7);
    let result = bytes.map(|byte| match byte {
        Byte::Zero => Byte::Zero,
        Byte::OfVector(v, from) if v == low => Byte::OfVector(FUNNEL_SHIFT, from - first),
        Byte::OfVector(_, from) => Byte::OfVector(FUNNEL_SHIFT, from + 8 - first),
    });
    Some(Recipe::FunnelShiftRight(low, high, first * 8, result))
}

/// The recipe for the union of one part per source.
fn recipe_of_parts(bytes: &Bytes, sources: &[VectorReg]) -> Recipe {
    let part = |source: &VectorReg| {
        bytes.map(|byte| match byte {
            Byte::OfVector(v, _) if v == *source => byte,
            _ => Byte::Zero,
        })
    };
    Recipe::Or(sources.iter().map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: VectorReg = VectorReg(0);
    const B: VectorReg = VectorReg(1);

    #[test]
    fn single_instructions_are_recognised() {
        let whole = of_vector(A, 8);
        assert_eq!(recipe(&whole), Recipe::Vector(A));
        assert_eq!(recipe(&[Byte::Zero; 8]), Recipe::Zero);
        assert_eq!(recipe(&shift(&whole, 2)), Recipe::ShiftLeft(A, 16));
        assert_eq!(recipe(&shift(&whole, -7)), Recipe::ShiftRight(A, 56));
        assert_eq!(recipe(&lowest(&whole, 3)), Recipe::And(A, 0xff_ffff));
        let swapped = reverse(&whole, 2);
        let [no, one, zero] = [None, Some(1), Some(0)];
        assert_eq!(
            recipe(&swapped),
            Recipe::Shuffle(A, [one, zero, no, no, no, no, no, no])
        );
    }

    #[test]
    fn bytes_across_a_word_boundary_are_a_pair() {
        let (low, high) = (of_vector(A, 8), of_vector(B, 8));
        let both = union(&shift(&low, -6), &shift(&high, 2)).expect("they do not overlap");
        assert_eq!(
            recipe(&both),
            Recipe::FunnelShiftRight(A, B, 48, of_vector(FUNNEL_SHIFT, 8))
        );
        let four = lowest(&both, 4);
        assert_eq!(
            recipe(&four),
            Recipe::FunnelShiftRight(A, B, 48, of_vector(FUNNEL_SHIFT, 4))
        );
        assert_eq!(
            recipe(&reverse(&both, 4)),
            Recipe::FunnelShiftRight(A, B, 48, reverse(&of_vector(FUNNEL_SHIFT, 8), 4))
        );
        // Too far apart for one shift.
        let third = |bytes: &Bytes| lowest(&shift(bytes, -3), 1);
        let apart = union(&third(&low), &shift(&third(&high), 1)).expect("they do not overlap");
        assert!(matches!(recipe(&apart), Recipe::Or(parts) if parts.len() == 2));
    }

    #[test]
    fn only_masks_of_whole_bytes_apply() {
        let whole = of_vector(A, 4);
        assert_eq!(and_bytes(&whole, 0xffff), Some(lowest(&whole, 2)));
        assert_eq!(and_bytes(&whole, 0xff), Some(lowest(&whole, 1)));
        assert_eq!(and_bytes(&whole, 0x0f), None);
        // Cuts through bytes that are zero.
        assert_eq!(and_bytes(&whole, 0x0f_ffff_ffff), Some(whole));
        assert_eq!(union(&whole, &whole), None);
    }
}
