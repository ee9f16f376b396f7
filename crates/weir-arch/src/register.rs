//! The cells of register arrays: words, one after the other, so that compiled code reads and writes
//! them itself.

use crate::cells::Cells;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_ir::pipeline::FlatCells;
use weir_ir::{Bits, TableId};
use weir_table::memory::zeroed_words;

/// Arrays of no more words than this lie in memory as a whole once code works on them: 1 GiB, of
/// which the system allocates the touched pages. Compiled code accesses larger ones, which no
/// device has, by calls.
const FLAT_WORDS: u64 = 1 << 27;
/// Arrays of no more words than this do so once they are written.
const SMALL_WORDS: u64 = 1 << 20;

/// A register array.
#[derive(Debug, Clone)]
pub struct RegisterArray {
    /// Widths in bits of the scalars of one cell.
    pub widths: Vec<u32>,
    /// Its cells.
    pub cells: WordCells,
    /// Where it is as a log and as a queue, where the program uses it so.
    pub progress: Progress,
    /// Tables whose entries the cells belong to, by their handles.
    pub tables: Vec<TableId>,
}

/// How far a register array is filled that is used as a log, a queue or a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The cell that is written to a log next.
    pub log: u64,
    /// The first cell of the queue.
    pub first: u64,
    /// Cells in the queue or on the stack.
    pub length: u64,
}

impl RegisterArray {
    /// An array of `size` cells, each of scalars with these widths, that start as `initial` says or
    /// as zeros.
    #[must_use]
    pub fn new(widths: Vec<u32>, size: u64, initial: &[Bits]) -> Self {
        let stride = widths.iter().map(|&w| Bits::words_of(w)).sum();
        let mut array = RegisterArray {
            widths,
            cells: WordCells::new(size, stride),
            progress: Progress::default(),
            tables: Vec::new(),
        };
        array.cells.base = array.packed(initial);
        array.cells.initial.clone_from(&array.cells.base);
        array
    }

    /// The same with a cell for each handle that an entry of a table may have: in memory lie those
    /// that entries have had.
    #[must_use]
    pub fn of_entries(widths: Vec<u32>, initial: &[Bits]) -> Self {
        let mut array = RegisterArray::new(widths, crate::load::HANDLES, initial);
        array.cells.grows = true;
        array
    }

    /// The place of a scalar in the flat array of cells, for accesses by compiled code. `None`: the
    /// cells are not flat, and code calls the host.
    #[must_use]
    pub fn flat(&self, scalar: usize) -> Option<FlatCells> {
        let cells = &self.cells;
        let offset = self
            .widths
            .iter()
            .take(scalar)
            .map(|&w| Bits::words_of(w))
            .sum::<usize>();
        (cells.grows || cells.is_flat()).then(|| FlatCells {
            cells: if cells.grows { 0 } else { cells.size },
            grows: cells.grows,
            stride: cells.stride as u32,
            offset: offset as u32,
            base: cells.base.get(offset).copied().unwrap_or(0),
        })
    }

    /// The words of a cell with these scalars, truncated or extended to their widths.
    fn packed(&self, values: &[Bits]) -> Vec<u64> {
        let zero = Bits::zero(0);
        let scalars = self.widths.iter().enumerate();
        let packed = scalars.flat_map(|(i, &width)| {
            let value = values.get(i).unwrap_or(&zero).zero_extend(width);
            (0..Bits::words_of(width)).map(move |w| value.shr(w as u64 * 64).zero_extend(64).to_u64_saturating())
        });
        packed.collect()
    }

    /// A cell's scalars; `None` beyond the end.
    #[must_use]
    pub fn read(&self, index: u64) -> Option<Vec<Bits>> {
        let cell = self.cells.get(index)?;
        Some(self.scalars(&cell))
    }

    /// The scalars that the program gives every cell.
    #[must_use]
    pub fn declared(&self) -> Vec<Bits> {
        self.scalars(&self.cells.base)
    }

    /// The scalars of a cell with these words.
    fn scalars(&self, cell: &[u64]) -> Vec<Bits> {
        let mut cell = cell.iter();
        let scalars = self.widths.iter().map(|&width| {
            let words: Vec<u64> = cell.by_ref().take(Bits::words_of(width)).copied().collect();
            let bytes: Vec<u8> = words.iter().rev().flat_map(|word| word.to_be_bytes()).collect();
            Bits::from_bytes(words.len() as u32 * 64, &bytes).zero_extend(width)
        });
        scalars.collect()
    }

    /// Writes a cell's scalars, truncated or extended to their widths. Whether there is such a
    /// cell.
    pub fn write(&mut self, index: u64, values: &[Bits]) -> bool {
        let cell = self.packed(values);
        self.cells.set(index, &cell)
    }

    /// Sets all cells.
    pub fn fill(&mut self, values: &[Bits]) {
        let cell = self.packed(values);
        self.cells.fill(cell);
    }

    /// The scalars that a cell holds that was never written, or what all were set to last.
    #[must_use]
    pub fn initial(&self) -> Vec<Bits> {
        self.scalars(&self.cells.initial)
    }

    /// Positions of the cells that differ from [`RegisterArray::initial`], in no particular order.
    #[must_use]
    pub fn written(&self) -> Vec<u64> {
        let all: Vec<u64> = match &self.cells.flat {
            Some(_) => (0..self.cells.size).collect(),
            None => self.cells.far.written().map(|(index, _)| index).collect(),
        };
        let is_new = |index: &u64| self.cells.get(*index).is_some_and(|c| c != self.cells.initial);
        all.into_iter().filter(is_new).collect()
    }

    /// A scalar of a cell, the last 64 bits of it; 0 beyond the end.
    #[must_use]
    pub fn scalar(&self, scalar: usize, index: u64) -> u64 {
        let word_index = self.widths.iter().take(scalar).map(|&w| Bits::words_of(w)).sum();
        self.cells.word(index, word_index).unwrap_or(0)
    }

    /// Sets a scalar of at most 64 bits of a cell, modulo its width; nothing beyond the end.
    pub fn set_scalar(&mut self, scalar: usize, index: u64, value: u64) {
        let Some(&width) = self.widths.get(scalar) else { return };
        let word_index = self.widths.iter().take(scalar).map(|&w| Bits::words_of(w)).sum();
        let ones = if width < 64 { (1 << width) - 1 } else { u64::MAX };
        self.cells.set_word(index, word_index, value & ones);
    }
}

/// Cells of words.
#[derive(Debug)]
pub struct WordCells {
    size: u64,
    stride: usize,
    /// The value of all cells at creation. Memory holds the XOR with it, so that untouched (zero)
    /// memory is right.
    base: Vec<u64>,
    /// The value of a cell that was never written.
    initial: Vec<u64>,
    /// Only the cells requested so far are contiguous.
    grows: bool,
    /// The contiguous cells, from the first on, and [`FlatCells::SPARE`] after them, once compiled
    /// code needs them.
    flat: Option<Arc<[AtomicU64]>>,
    /// The other cells that were written; an empty one was not.
    far: Cells<Vec<u64>>,
}

impl Clone for WordCells {
    /// Cells of its own: who has hold of these does not see the clone's.
    fn clone(&self) -> Self {
        WordCells {
            size: self.size,
            stride: self.stride,
            base: self.base.clone(),
            initial: self.initial.clone(),
            grows: self.grows,
            flat: self.flat.as_ref().map(|cells| copied(cells, cells.len())),
            far: self.far.clone(),
        }
    }
}

/// As many words, of which the first are these. Zeros are not written, so that their pages
/// are not allocated.
fn copied(words: &[AtomicU64], length: usize) -> Arc<[AtomicU64]> {
    let copy = zeroed_words(length);
    for (to, from) in copy.iter().zip(words) {
        let word = from.load(Relaxed);
        if word != 0 {
            to.store(word, Relaxed);
        }
    }
    copy
}

impl WordCells {
    fn new(size: u64, stride: usize) -> Self {
        WordCells {
            size,
            stride,
            base: vec![0; stride],
            initial: vec![0; stride],
            grows: false,
            flat: None,
            far: Cells::new(size),
        }
    }

    /// Whether there are no more words than this.
    fn is_within(&self, words: u64) -> bool {
        let all = self.size.checked_mul(self.stride as u64);
        all.is_some_and(|all| all <= words)
    }

    fn is_flat(&self) -> bool {
        self.is_within(FLAT_WORDS)
    }

    /// Number of cells.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Cells that lie in one place.
    fn capacity(&self) -> u64 {
        let spare = FlatCells::SPARE as usize;
        let cells = |flat: &Arc<[AtomicU64]>| flat.len() / self.stride.max(1) - spare;
        self.flat.as_ref().map_or(0, cells) as u64
    }

    /// The cells as [`FlatCells`] says, at least this number if they grow; they stay where they are
    /// until the array grows or is replaced. `None`: the array is too large for that.
    pub fn flat(&mut self, cells: u64) -> Option<&Arc<[AtomicU64]>> {
        let required = match self.grows {
            true => cells.min(FLAT_WORDS / self.stride.max(1) as u64),
            false => self.size,
        };
        if (self.flat.is_none() || self.capacity() < required) && (self.grows || self.is_flat()) {
            let cells = if self.grows {
                required.next_power_of_two()
            } else {
                required
            };
            self.lay_out(cells);
        }
        self.flat.as_ref()
    }

    /// Puts the first cells into one place.
    #[cold]
    fn lay_out(&mut self, cells: u64) {
        let before = self.capacity();
        let words = |cells: u64| cells as usize * self.stride;
        let kept = self.flat.as_deref().unwrap_or_default();
        let flat = copied(&kept[..words(before)], words(cells + FlatCells::SPARE));
        // Who reads beyond the end reads zero.
        for (word, base) in flat[words(cells)..].iter().zip(&self.base) {
            word.store(*base, Relaxed);
        }
        self.flat = Some(flat);
        if self.initial != self.base {
            (before..cells).for_each(|index| self.store(index, &self.initial));
        }
        let written = self
            .far
            .written()
            .filter(|(index, cell)| *index < cells && !cell.is_empty());
        written.for_each(|(index, cell)| self.store(index, cell));
        if !self.grows {
            self.far.fill(Vec::new());
        }
    }

    /// Sets a cell that lies with the others.
    fn store(&self, index: u64, cell: &[u64]) {
        if let Some(flat) = &self.flat {
            let words = flat[self.range(index)].iter().zip(cell).zip(&self.base);
            words.for_each(|((to, from), base)| to.store(from ^ base, Relaxed));
        }
    }

    /// The words of a cell that lies with the others.
    fn range(&self, index: u64) -> std::ops::Range<usize> {
        let first = index as usize * self.stride;
        first..first + self.stride
    }

    /// The words of a cell; `None` beyond the end.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<Vec<u64>> {
        (index < self.size).then(|| {
            (0..self.stride)
                .map(|word_index| self.word_of(index, word_index))
                .collect()
        })
    }

    /// A word of a cell that there is.
    fn word_of(&self, index: u64, word_index: usize) -> u64 {
        match &self.flat {
            Some(flat) if index < self.capacity() => {
                flat[self.range(index).start + word_index].load(Relaxed) ^ self.base[word_index]
            }
            _ => match self.far.peek(index) {
                Some(cell) if !cell.is_empty() => cell[word_index],
                _ => self.initial[word_index],
            },
        }
    }

    /// A word of a cell; `None` beyond its end or that of the array.
    fn word(&self, index: u64, word_index: usize) -> Option<u64> {
        (index < self.size && word_index < self.stride).then(|| self.word_of(index, word_index))
    }

    fn set_word(&mut self, index: u64, word_index: usize, value: u64) {
        if let Some(mut cell) = self.get(index)
            && word_index < self.stride
        {
            cell[word_index] = value;
            self.set(index, &cell);
        }
    }

    /// Sets a cell. Whether there is such a one.
    fn set(&mut self, index: u64, words: &[u64]) -> bool {
        if index >= self.size {
            return false;
        }
        if !self.grows && self.is_within(SMALL_WORDS) {
            self.flat(0);
        }
        if index < self.capacity() {
            self.store(index, words);
        } else if let Some(cell) = self.far.get_mut(index) {
            *cell = words.to_vec();
        }
        true
    }

    /// Makes a cell what it was at first, or what all were set to last.
    pub fn reset(&mut self, index: u64) {
        let initial = self.initial.clone();
        self.set(index, &initial);
    }

    /// Sets all cells. Those that lie in one place stay there, as code may be at work on them.
    fn fill(&mut self, cell: Vec<u64>) {
        let all = self.capacity() as usize;
        if let Some(flat) = &self.flat {
            for words in flat.chunks_exact(self.stride.max(1)).take(all) {
                for ((to, from), base) in words.iter().zip(&cell).zip(&self.base) {
                    let word = from ^ base;
                    // Correct words are not written, so that their pages are not allocated.
                    if to.load(Relaxed) != word {
                        to.store(word, Relaxed);
                    }
                }
            }
        }
        self.far.fill(Vec::new());
        self.initial = cell;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(width: u32, value: u128) -> Bits {
        Bits::new(width, value)
    }

    #[test]
    fn cells_hold_scalars_of_any_width() {
        for size in [100, u64::from(u32::MAX)] {
            let initial = [number(7, 5), number(100, 1 << 99)];
            let mut array = RegisterArray::new(vec![7, 100], size, &initial);
            assert_eq!(array.read(3).unwrap(), initial);
            assert!(array.write(size - 1, &[number(8, 0x1ff), number(70, 9)]));
            assert_eq!(array.read(size - 1).unwrap(), [number(7, 0x7f), number(100, 9)]);
            assert!(array.read(size).is_none() && !array.write(size, &[]));
            array.set_scalar(0, 3, 0x81);
            assert_eq!((array.scalar(0, 3), array.scalar(1, size - 1)), (1, 9));
            array.fill(&[number(7, 2)]);
            assert_eq!(array.read(3).unwrap(), [number(7, 2), number(100, 0)]);
            array.set_scalar(0, 3, 9);
            array.cells.reset(3);
            assert_eq!(array.scalar(0, 3), 2);
        }
    }

    #[test]
    fn a_clone_has_cells_of_its_own() {
        let mut array = RegisterArray::new(vec![32], 8, &[]);
        array.set_scalar(0, 1, 7);
        let clone = array.clone();
        array.set_scalar(0, 1, 8);
        assert_eq!((clone.scalar(0, 1), array.scalar(0, 1)), (7, 8));
    }

    #[test]
    fn code_finds_the_scalars_of_arrays() {
        for size in [8, 3 << 20] {
            let initial = [number(32, 7), number(80, 3), number(1, 1)];
            let mut array = RegisterArray::new(vec![32, 80, 1], size, &initial);
            let place = array.flat(2).unwrap();
            array.set_scalar(2, 5, 0);
            let offset_of = |index: u64| (index * u64::from(place.stride) + u64::from(place.offset)) as usize;
            let flat = Arc::clone(array.cells.flat(0).unwrap());
            let read = |index| flat[offset_of(index)].load(Relaxed) ^ place.base;
            assert_eq!((read(4), read(5), read(size)), (1, 0, 0));
            assert_eq!(flat.len() as u64, place.words());
            flat[offset_of(6)].store(place.base, Relaxed);
            assert_eq!((array.scalar(2, 6), array.scalar(0, 6)), (0, 7));
            array.fill(&[number(32, 9), number(80, 0), number(1, 1)]);
            assert_eq!((read(5), read(6), read(size), array.scalar(0, 1)), (1, 1, 0, 9));
        }
        assert!(RegisterArray::new(vec![32], 1 << 32, &[]).flat(0).is_none());
    }

    #[test]
    fn cells_of_entries_lie_where_code_finds_them_as_far_as_there_are_entries() {
        let mut array = RegisterArray::of_entries(vec![16], &[number(16, 7)]);
        let place = array.flat(0).unwrap();
        array.set_scalar(0, 3, 1);
        array.set_scalar(0, 40, 2);
        for cells in [2, 5, 100] {
            let flat = Arc::clone(array.cells.flat(cells).unwrap());
            assert!(flat.len() as u64 >= cells + FlatCells::SPARE);
            for (index, expected) in [(1, 7), (3, 1), (40, 2), (41, 7)] {
                assert_eq!(array.scalar(0, index), expected, "{cells}");
                if index < cells {
                    assert_eq!(flat[index as usize].load(Relaxed) ^ place.base, expected, "{cells}");
                }
            }
            let last = flat.len() - FlatCells::SPARE as usize;
            assert_eq!(flat[last].load(Relaxed) ^ place.base, 0);
        }
        array.cells.reset(3);
        assert_eq!((array.scalar(0, 3), array.scalar(0, u64::from(u32::MAX))), (7, 7));
    }
}
