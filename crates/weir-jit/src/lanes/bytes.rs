//! Words as bytes of other words.
//!
//! Programs mostly move bytes of headers: fields in network byte order, parts of words, adjacent
//! fields written together. So a word is represented by the origin of each of its bytes, and is
//! materialised only where it is needed, by as few instructions as possible ([`recipe`]).

use super::op::{Shuffle, V};

/// A byte of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Byte {
    Zero,
    /// The byte with this number of a vector's words, the lowest first.
    Of(V, u8),
}

/// A word, its lowest byte first.
pub(super) type Bytes = [Byte; 8];

/// The bytes of a vector's words, all 0 from number `count` on.
pub(super) fn of_vector(v: V, count: u32) -> Bytes {
    std::array::from_fn(|i| match (i as u32) < count {
        true => Byte::Of(v, i as u8),
        false => Byte::Zero,
    })
}

/// Shifted up by bytes, or down if the number is negative.
pub(super) fn shift_bytes(bytes: &Bytes, by: i32) -> Bytes {
    std::array::from_fn(|i| {
        let from = usize::try_from(i as i32 - by).ok();
        from.and_then(|from| bytes.get(from)).copied().unwrap_or(Byte::Zero)
    })
}

/// The lowest bytes; the others are 0.
pub(super) fn low_bytes(bytes: &Bytes, count: u32) -> Bytes {
    std::array::from_fn(|i| if (i as u32) < count { bytes[i] } else { Byte::Zero })
}

/// The lowest bytes in reverse order; the others are 0.
pub(super) fn reversed(bytes: &Bytes, count: u32) -> Bytes {
    let count = count as usize;
    std::array::from_fn(|i| if i < count { bytes[count - 1 - i] } else { Byte::Zero })
}

/// The bytes that a mask keeps; `None` if it cuts through a byte.
pub(super) fn masked(bytes: &Bytes, mask: u64) -> Option<Bytes> {
    let mut masked = *bytes;
    for (byte, of) in masked.iter_mut().zip(mask.to_le_bytes()) {
        match of {
            0 => *byte = Byte::Zero,
            0xff => {}
            // A zero byte stays zero.
            _ if *byte == Byte::Zero => {}
            _ => return None,
        }
    }
    Some(masked)
}

/// The union of two words, if at most one of them has each byte.
pub(super) fn merge(a: &Bytes, b: &Bytes) -> Option<Bytes> {
    let mut both = *a;
    for (byte, other) in both.iter_mut().zip(b) {
        match (*byte, *other) {
            (_, Byte::Zero) => {}
            (Byte::Zero, of) => *byte = of,
            _ => return None,
        }
    }
    Some(both)
}

/// How to materialise a word from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recipe {
    Zero,
    /// It is this vector.
    Same(V),
    And(V, u64),
    /// By a number of bits.
    ShiftLeft(V, u8),
    ShiftRight(V, u8),
    Shuffle(V, Shuffle),
    /// Two words, the lower one first, shifted right by this number of bits; then these bytes of
    /// the low word of the result.
    Pair(V, V, u8, Bytes),
    /// The union of these words.
    Or(Vec<Bytes>),
}

/// Stands for the shifted pair in the bytes of [`Recipe::Pair`].
pub(super) const RESULT: V = V(u32::MAX);

/// The cheapest way to materialise a word.
pub(super) fn recipe(bytes: &Bytes) -> Recipe {
    let mut sources: Vec<V> = Vec::new();
    for byte in bytes {
        if let Byte::Of(v, _) = byte
            && !sources.contains(v)
        {
            sources.push(*v);
        }
    }
    match sources.as_slice() {
        [] => Recipe::Zero,
        &[v] => of_one(bytes, v),
        &[a, b] => of_pair(bytes, a, b)
            .or_else(|| of_pair(bytes, b, a))
            .unwrap_or_else(|| parts(bytes, &sources)),
        _ => parts(bytes, &sources),
    }
}

fn of_one(bytes: &Bytes, v: V) -> Recipe {
    let is = |shape: &Bytes| shape == bytes;
    let whole = of_vector(v, 8);
    if is(&whole) {
        return Recipe::Same(v);
    }
    for by in 1..8 {
        if is(&shift_bytes(&whole, by)) {
            return Recipe::ShiftLeft(v, by as u8 * 8);
        }
        if is(&shift_bytes(&whole, -by)) {
            return Recipe::ShiftRight(v, by as u8 * 8);
        }
    }
    let mut mask = [0; 8];
    let mut in_place = true;
    for (i, byte) in bytes.iter().enumerate() {
        if let Byte::Of(_, from) = byte {
            mask[i] = 0xff;
            in_place &= usize::from(*from) == i;
        }
    }
    if in_place {
        return Recipe::And(v, u64::from_le_bytes(mask));
    }
    Recipe::Shuffle(
        v,
        bytes.map(|byte| match byte {
            Byte::Zero => None,
            Byte::Of(_, from) => Some(from),
        }),
    )
}

/// As consecutive bytes of the pair `low` and `high`.
fn of_pair(bytes: &Bytes, low: V, high: V) -> Option<Recipe> {
    let numbers = bytes.iter().filter_map(|byte| match byte {
        Byte::Zero => None,
        Byte::Of(v, from) if *v == low => Some(*from),
        Byte::Of(_, from) => Some(from + 8),
    });
    let (first, last) = (numbers.clone().min()?, numbers.max()?);
    if last >= first + 8 {
        return None;
    }
    // Shifted so that the first byte is the lowest.
    let first = first.min(7);
    let result = bytes.map(|byte| match byte {
        Byte::Zero => Byte::Zero,
        Byte::Of(v, from) if v == low => Byte::Of(RESULT, from - first),
        Byte::Of(_, from) => Byte::Of(RESULT, from + 8 - first),
    });
    Some(Recipe::Pair(low, high, first * 8, result))
}

fn parts(bytes: &Bytes, sources: &[V]) -> Recipe {
    let part = |source: &V| {
        bytes.map(|byte| match byte {
            Byte::Of(v, _) if v == *source => byte,
            _ => Byte::Zero,
        })
    };
    Recipe::Or(sources.iter().map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: V = V(0);
    const B: V = V(1);

    #[test]
    fn single_instructions_are_recognised() {
        let whole = of_vector(A, 8);
        assert_eq!(recipe(&whole), Recipe::Same(A));
        assert_eq!(recipe(&[Byte::Zero; 8]), Recipe::Zero);
        assert_eq!(recipe(&shift_bytes(&whole, 2)), Recipe::ShiftLeft(A, 16));
        assert_eq!(recipe(&shift_bytes(&whole, -7)), Recipe::ShiftRight(A, 56));
        assert_eq!(recipe(&low_bytes(&whole, 3)), Recipe::And(A, 0xff_ffff));
        let swapped = reversed(&whole, 2);
        let [no, one, zero] = [None, Some(1), Some(0)];
        assert_eq!(
            recipe(&swapped),
            Recipe::Shuffle(A, [one, zero, no, no, no, no, no, no])
        );
    }

    #[test]
    fn bytes_across_a_word_boundary_are_a_pair() {
        let (low, high) = (of_vector(A, 8), of_vector(B, 8));
        let both = merge(&shift_bytes(&low, -6), &shift_bytes(&high, 2)).expect("they do not overlap");
        assert_eq!(recipe(&both), Recipe::Pair(A, B, 48, of_vector(RESULT, 8)));
        let four = low_bytes(&both, 4);
        assert_eq!(recipe(&four), Recipe::Pair(A, B, 48, of_vector(RESULT, 4)));
        assert_eq!(
            recipe(&reversed(&both, 4)),
            Recipe::Pair(A, B, 48, reversed(&of_vector(RESULT, 8), 4))
        );
        // Too far apart for one shift.
        let third = |bytes: &Bytes| low_bytes(&shift_bytes(bytes, -3), 1);
        let apart = merge(&third(&low), &shift_bytes(&third(&high), 1)).expect("they do not overlap");
        assert!(matches!(recipe(&apart), Recipe::Or(parts) if parts.len() == 2));
    }

    #[test]
    fn only_masks_of_whole_bytes_apply() {
        let whole = of_vector(A, 4);
        assert_eq!(masked(&whole, 0xffff), Some(low_bytes(&whole, 2)));
        assert_eq!(masked(&whole, 0xff), Some(low_bytes(&whole, 1)));
        assert_eq!(masked(&whole, 0x0f), None);
        // Cuts through bytes that are zero.
        assert_eq!(masked(&whole, 0x0f_ffff_ffff), Some(whole));
        assert_eq!(merge(&whole, &whole), None);
    }
}
