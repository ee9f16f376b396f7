//! The layout of keys and action data in words. Control plane, fast tables and compiled code agree
//! on it here.
//!
//! Fields lie in order, packed from bit 0 of word 0 upwards. A field of at most 64 bits never
//! straddles words: where it does not fit it starts the next word. A wider field starts a new word
//! and takes whole words, least significant first; the field after it starts a new word. Width 0
//! takes nothing.

use crate::entry::EntryAction;
use crate::fast::head;
use crate::spec::TableSpec;
use weir_ir::{ActionCall, Bits, MatchKind};

/// The position of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSlot {
    /// Its first word.
    pub word: u16,
    /// Its lowest bit in that word; 0 for fields wider than 64 bits.
    pub shift: u8,
    /// Its width in bits.
    pub width: u32,
}

impl FieldSlot {
    /// Words it occupies, whole or in part.
    #[must_use]
    pub fn words(&self) -> usize {
        self.width.div_ceil(64) as usize
    }

    /// Writes a value of this width into words that are 0 at its position. Bits beyond the width
    /// are cut off: compiled code relies on their absence.
    pub fn write(&self, words: &mut [u64], value: &Bits) {
        let first = usize::from(self.word);
        match self.words() {
            0 => {}
            1 => {
                let mut word = [0];
                value.to_words(&mut word);
                words[first] |= (word[0] & prefix_mask(self.width, self.width)) << self.shift;
            }
            n => {
                let words = &mut words[first..first + n];
                value.to_words(words);
                if let (Some(last), rest @ 1..) = (words.last_mut(), self.width % u64::BITS) {
                    *last &= prefix_mask(rest, rest);
                }
            }
        }
    }

    /// Sets the upper `length` bits of its position.
    pub(crate) fn write_prefix_mask(&self, words: &mut [u64], length: u32) {
        if self.width == 0 || length == 0 {
            return;
        }
        if self.width <= 64 {
            words[usize::from(self.word)] |= prefix_mask(self.width, length) << self.shift;
        } else {
            self.write(words, &Bits::prefix_mask(self.width, length));
        }
    }
}

/// A mask of a field of up to 64 bits: ones in the upper `length` of `width` bits, 1 <= both.
pub(crate) fn prefix_mask(width: u32, length: u32) -> u64 {
    let length = length.min(width);
    let ones = u64::MAX >> (64 - width);
    if length == 0 {
        0
    } else {
        ones & (ones << (width - length))
    }
}

/// Packs fields from a word on.
struct Packer {
    /// The word of the next field.
    word: usize,
    /// The lowest free bit of that word.
    bit: u32,
}

impl Packer {
    /// The position of the next field, of `width` bits. Fields of up to 64 bits do not straddle
    /// words.
    fn next_slot(&mut self, width: u32) -> FieldSlot {
        if width > 0 && self.bit + width > 64 && self.bit > 0 {
            self.word += 1;
            self.bit = 0;
        }
        let slot = FieldSlot {
            word: u16::try_from(self.word).unwrap_or(u16::MAX),
            shift: self.bit as u8 & 63,
            width,
        };
        if width > 64 {
            self.word += width.div_ceil(64) as usize;
        } else {
            self.bit += width;
        }
        if self.bit == 64 {
            self.word += 1;
            self.bit = 0;
        }
        slot
    }

    /// Words used so far.
    fn words(&self) -> usize {
        self.word + usize::from(self.bit > 0)
    }
}

/// The layout of a table's keys. Bits of no field must be 0 in lookups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLayout {
    /// Words of a key, at least 1.
    pub words: usize,
    /// One per key of the table in order; `None` for selector keys, which are not matched.
    pub fields: Vec<Option<FieldSlot>>,
}

impl KeyLayout {
    /// The layout for the keys of this table.
    #[must_use]
    pub fn new(spec: &TableSpec) -> Self {
        let mut packer = Packer { word: 0, bit: 0 };
        let fields = spec
            .keys
            .iter()
            .map(|k| (k.kind != MatchKind::Selector).then(|| packer.next_slot(k.width)))
            .collect();
        KeyLayout {
            words: packer.words().max(1),
            fields,
        }
    }

    /// Packs one value per key of the table, selector keys included, into key words.
    #[must_use]
    pub fn pack(&self, values: &[Bits]) -> Vec<u64> {
        let mut words = vec![0; self.words];
        for (field, value) in self.fields.iter().zip(values) {
            if let Some(field) = field {
                field.write(&mut words, value);
            }
        }
        words
    }
}

/// The layout of a lookup's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLayout {
    /// Words of the longest result, the head word included.
    pub words: usize,
    /// Per action of the table, per parameter. Word 0 is the head. Data begins at word 1, or lies
    /// in the head above the action if the data of every action fits there.
    pub actions: Vec<Vec<FieldSlot>>,
    /// Bits of the action's index in the head word, from [`head::ACTION_SHIFT`] on.
    pub action_width: u32,
}

impl ResultLayout {
    /// The layout for the actions of this table.
    #[must_use]
    pub fn new(spec: &TableSpec) -> Self {
        let pack_all = |first: Packer| -> (usize, Vec<Vec<FieldSlot>>) {
            let mut words = 1;
            let actions = spec.actions.iter().map(|a| {
                let mut packer = Packer { ..first };
                let slots = a.parameters.iter().map(|(_, width)| packer.next_slot(*width)).collect();
                words = words.max(packer.words());
                slots
            });
            let actions = actions.collect();
            (words, actions)
        };
        // Data of a few bits (a port, a class) beside the action saves a second result word.
        let action_width = usize::BITS - spec.actions.len().saturating_sub(1).leading_zeros();
        let bits = |a: &crate::spec::ActionSpec| a.parameters.iter().map(|(_, width)| *width).sum::<u32>();
        let most = spec.actions.iter().map(bits).max().unwrap_or(0);
        let in_head = action_width + most <= head::DATA_END - head::ACTION_SHIFT;
        let (first, action_width) = match in_head {
            true => (
                Packer {
                    word: 0,
                    bit: head::ACTION_SHIFT + action_width,
                },
                action_width,
            ),
            false => (Packer { word: 1, bit: 0 }, head::DATA_END - head::ACTION_SHIFT),
        };
        let (words, actions) = pack_all(first);
        ResultLayout {
            words,
            actions,
            action_width,
        }
    }

    /// The index of the action that a head word names. Meaningless with [`head::INDIRECT`].
    #[must_use]
    pub fn action(&self, word: u64) -> usize {
        (word >> head::ACTION_SHIFT & ((1 << self.action_width) - 1)) as usize
    }

    /// The words of a hit whose action was resolved elsewhere: handle, action and data.
    #[must_use]
    pub fn pack_hit(&self, handle: u32, action: usize, data: &[Bits]) -> Vec<u64> {
        let mut words = vec![0; self.words];
        for (slot, value) in self.actions.get(action).into_iter().flatten().zip(data) {
            slot.write(&mut words, value);
        }
        words[0] |= u64::from(handle) | head::HIT | (action as u64) << head::ACTION_SHIFT;
        words
    }

    /// Writes the action and the data of a call into `result`, which is cleared first.
    pub(crate) fn pack_call(&self, call: &ActionCall, result: &mut [u64]) {
        result.fill(0);
        if let Some(slots) = self.actions.get(call.action) {
            for (slot, value) in slots.iter().zip(&call.arguments) {
                slot.write(result, value);
            }
        }
        result[0] |= (call.action as u64) << head::ACTION_SHIFT;
    }

    /// The whole result of an entry.
    pub(crate) fn pack_entry(&self, handle: u32, action: &EntryAction, result: &mut [u64]) {
        match action {
            EntryAction::Call(call) => self.pack_call(call, result),
            _ => {
                result.fill(0);
                result[0] = head::INDIRECT;
            }
        }
        result[0] |= u64::from(handle) | head::HIT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{ActionSpec, KeySpec};

    fn slots_of(widths: &[u32]) -> (Vec<(u16, u8)>, usize) {
        let spec = widths.iter().fold(TableSpec::new("t"), |s, w| {
            s.key(KeySpec::new("k", *w, MatchKind::Exact))
        });
        let layout = KeyLayout::new(&spec);
        (
            layout.fields.iter().flatten().map(|f| (f.word, f.shift)).collect(),
            layout.words,
        )
    }

    #[test]
    fn fields_are_packed_without_straddling() {
        assert_eq!(slots_of(&[]), (vec![], 1));
        assert_eq!(slots_of(&[0]), (vec![(0, 0)], 1));
        assert_eq!(slots_of(&[48, 16, 1]), (vec![(0, 0), (0, 48), (1, 0)], 2));
        assert_eq!(slots_of(&[48, 17]), (vec![(0, 0), (1, 0)], 2));
        assert_eq!(slots_of(&[1, 65, 1]), (vec![(0, 0), (1, 0), (3, 0)], 4));
        assert_eq!(slots_of(&[32, 32, 16, 16, 8]).1, 2);
        assert_eq!(slots_of(&[400]), (vec![(0, 0)], 7));
    }

    #[test]
    fn wide_values_are_split_into_words() {
        let value = Bits::from_bytes(136, &[9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
        let mut words = [7; 3];
        value.to_words(&mut words);
        assert_eq!(words, [1, 0x0102_0304_0506_0708, 9]);
        assert_eq!(prefix_mask(32, 8), 0xff00_0000);
        assert_eq!(prefix_mask(64, 64), u64::MAX);
        assert_eq!(prefix_mask(64, 0), 0);
    }

    #[test]
    fn action_data_begins_after_the_head() {
        let spec = TableSpec::new("t")
            .action(ActionSpec::new("a").parameter("p", 9).parameter("q", 48))
            .action(ActionSpec::new("b"));
        let layout = ResultLayout::new(&spec);
        assert_eq!(layout.words, 2);
        assert_eq!(
            layout.actions[0][1],
            FieldSlot {
                word: 1,
                shift: 9,
                width: 48
            }
        );
        let mut result = [1, 1];
        let action = EntryAction::call(0, vec![Bits::new(9, 3), Bits::new(48, 5)]);
        layout.pack_entry(7, &action, &mut result);
        assert_eq!(result, [7 | head::HIT, 3 | 5 << 9]);
    }

    #[test]
    fn little_data_lies_beside_the_action() {
        let spec = TableSpec::new("t")
            .action(ActionSpec::new("a").parameter("p", 9).parameter("q", 5))
            .action(ActionSpec::new("b"))
            .action(ActionSpec::new("c").parameter("p", 1));
        let layout = ResultLayout::new(&spec);
        assert_eq!((layout.words, layout.action_width), (1, 2));
        let mut result = [1];
        let action = EntryAction::call(0, vec![Bits::new(9, 0x155), Bits::new(5, 0x1f)]);
        layout.pack_entry(7, &action, &mut result);
        assert_eq!(result, [7 | head::HIT | 0x155 << 34 | 0x1f << 43]);
        layout.pack_entry(8, &EntryAction::call(2, vec![Bits::new(1, 1)]), &mut result);
        assert_eq!(result, [8 | head::HIT | 2 << 32 | 1 << 34]);
        assert_eq!(layout.action(result[0]), 2);
        assert_eq!(layout.pack_hit(8, 2, &[Bits::new(1, 1)]), result);
    }
}
