//! The cells of register arrays: words, one after the other, so that compiled code reads and writes them itself.

use crate::cells::Cells;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_ir::Bits;
use weir_ir::pipeline::FlatCells;

/// Arrays of no more words than this lie in memory as a whole, once something touches them. Larger ones take memory only where
/// they are written, and code asks for their cells.
const FLAT_WORDS: u64 = 1 << 20;

/// Words of a scalar.
fn words(width: u32) -> usize {
    width.div_ceil(64).max(1) as usize
}

/// A register array.
#[derive(Debug, Clone)]
pub struct RegisterArray {
    /// Widths in bits of the scalars of one cell.
    pub widths: Vec<u32>,
    /// Its cells.
    pub cells: WordCells,
    /// Where it is as a log and as a queue, where the program uses it so.
    pub progress: Progress,
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
    /// An array of `size` cells, each of scalars with these widths, that start as `initial` says or as zeros.
    #[must_use]
    pub fn new(widths: Vec<u32>, size: u64, initial: &[Bits]) -> Self {
        let stride = widths.iter().map(|&w| words(w)).sum();
        let mut array = RegisterArray {
            widths,
            cells: WordCells::new(size, stride),
            progress: Progress::default(),
        };
        array.cells.initial = array.packed(initial);
        array
    }

    /// Where code finds a scalar of the cells of such an array, if it may look itself.
    #[must_use]
    pub fn flat(widths: &[u32], size: u64, scalar: usize) -> Option<FlatCells> {
        let stride: usize = widths.iter().map(|&w| words(w)).sum();
        WordCells::is_flat(size, stride).then(|| FlatCells {
            cells: size,
            stride: stride as u32,
            offset: widths.iter().take(scalar).map(|&w| words(w)).sum::<usize>() as u32,
        })
    }

    /// The words of a cell with these scalars, truncated or extended to their widths.
    fn packed(&self, values: &[Bits]) -> Vec<u64> {
        let zero = Bits::zero(0);
        let scalars = self.widths.iter().enumerate();
        let packed = scalars.flat_map(|(i, &width)| {
            let value = values.get(i).unwrap_or(&zero).zero_extend(width);
            (0..words(width)).map(move |w| value.shr(w as u64 * 64).zero_extend(64).to_u64_saturating())
        });
        packed.collect()
    }

    /// A cell's scalars; `None` beyond the end.
    #[must_use]
    pub fn read(&self, index: u64) -> Option<Vec<Bits>> {
        let cell = self.cells.get(index)?;
        Some(self.scalars(&cell))
    }

    /// The scalars of a cell with these words.
    fn scalars(&self, cell: &[u64]) -> Vec<Bits> {
        let mut cell = cell.iter();
        let scalars = self.widths.iter().map(|&width| {
            let words: Vec<u64> = cell.by_ref().take(words(width)).copied().collect();
            let bytes: Vec<u8> = words.iter().rev().flat_map(|word| word.to_be_bytes()).collect();
            Bits::from_bytes(words.len() as u32 * 64, &bytes).zero_extend(width)
        });
        scalars.collect()
    }

    /// Writes a cell's scalars, truncated or extended to their widths. Whether there is such a cell.
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
        let at = self.widths.iter().take(scalar).map(|&w| words(w)).sum();
        self.cells.word(index, at).unwrap_or(0)
    }

    /// Sets a scalar of at most 64 bits of a cell, modulo its width; nothing beyond the end.
    pub fn set_scalar(&mut self, scalar: usize, index: u64, value: u64) {
        let Some(&width) = self.widths.get(scalar) else { return };
        let at = self.widths.iter().take(scalar).map(|&w| words(w)).sum();
        let ones = if width < 64 { (1 << width) - 1 } else { u64::MAX };
        self.cells.set_word(index, at, value & ones);
    }
}

/// Cells of words.
#[derive(Debug)]
pub struct WordCells {
    size: u64,
    stride: usize,
    /// What a cell never written holds.
    initial: Vec<u64>,
    /// Of small arrays all cells, and [`FlatCells::SPARE`] behind them, once one was touched.
    flat: Option<Arc<[AtomicU64]>>,
    /// Of large arrays the cells that were written; an empty one was not.
    far: Cells<Vec<u64>>,
}

impl Clone for WordCells {
    /// Cells of its own: who has hold of these does not see the clone's.
    fn clone(&self) -> Self {
        let copy = |cells: &Arc<[AtomicU64]>| cells.iter().map(|w| AtomicU64::new(w.load(Relaxed))).collect();
        WordCells {
            size: self.size,
            stride: self.stride,
            initial: self.initial.clone(),
            flat: self.flat.as_ref().map(copy),
            far: self.far.clone(),
        }
    }
}

impl WordCells {
    fn new(size: u64, stride: usize) -> Self {
        WordCells {
            size,
            stride,
            initial: vec![0; stride],
            flat: None,
            far: Cells::new(size),
        }
    }

    fn is_flat(size: u64, stride: usize) -> bool {
        size.checked_mul(stride as u64).is_some_and(|words| words <= FLAT_WORDS)
    }

    /// Number of cells.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// All cells of a small array, as [`FlatCells`] says; they stay where they are until the array is replaced. `None`: it is
    /// large.
    pub fn flat(&mut self) -> Option<&Arc<[AtomicU64]>> {
        if self.flat.is_none() && Self::is_flat(self.size, self.stride) {
            let cells = (0..self.size).flat_map(|_| &self.initial);
            let spare = std::iter::repeat_n(&0, FlatCells::SPARE as usize * self.stride);
            self.flat = Some(cells.chain(spare).map(|&word| AtomicU64::new(word)).collect());
        }
        self.flat.as_ref()
    }

    /// The words of a cell in the flat array.
    fn range(&self, index: u64) -> std::ops::Range<usize> {
        let first = index as usize * self.stride;
        first..first + self.stride
    }

    /// The words of a cell; `None` beyond the end.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<Vec<u64>> {
        if index >= self.size {
            return None;
        }
        Some(match &self.flat {
            Some(flat) => flat[self.range(index)].iter().map(|w| w.load(Relaxed)).collect(),
            None => match self.far.peek(index) {
                Some(cell) if !cell.is_empty() => cell.clone(),
                _ => self.initial.clone(),
            },
        })
    }

    /// A word of a cell; `None` beyond its end or that of the array.
    fn word(&self, index: u64, at: usize) -> Option<u64> {
        if index >= self.size || at >= self.stride {
            return None;
        }
        Some(match &self.flat {
            Some(flat) => flat[self.range(index).start + at].load(Relaxed),
            None => match self.far.peek(index) {
                Some(cell) if !cell.is_empty() => cell[at],
                _ => self.initial[at],
            },
        })
    }

    fn set_word(&mut self, index: u64, at: usize, value: u64) {
        if index >= self.size || at >= self.stride {
            return;
        }
        let place = self.range(index).start + at;
        if let Some(flat) = self.flat() {
            flat[place].store(value, Relaxed);
        } else if let Some(cell) = self.far.get_mut(index) {
            if cell.is_empty() {
                cell.clone_from(&self.initial);
            }
            cell[at] = value;
        }
    }

    /// Sets a cell. Whether there is such a one.
    fn set(&mut self, index: u64, words: &[u64]) -> bool {
        if index >= self.size {
            return false;
        }
        let range = self.range(index);
        if let Some(flat) = self.flat() {
            let cells = flat[range].iter().zip(words);
            cells.for_each(|(cell, word)| cell.store(*word, Relaxed));
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

    /// Sets all cells. Those of a small array stay where they are, as code may be at work on them.
    fn fill(&mut self, cell: Vec<u64>) {
        if let Some(flat) = &self.flat {
            let all = flat.chunks_exact(self.stride.max(1)).take(self.size as usize);
            for words in all {
                words.iter().zip(&cell).for_each(|(to, from)| to.store(*from, Relaxed));
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
    fn code_finds_the_scalars_of_small_arrays() {
        let mut array = RegisterArray::new(vec![32, 80, 1], 8, &[]);
        let place = RegisterArray::flat(&[32, 80, 1], 8, 2).unwrap();
        array.set_scalar(2, 5, 1);
        let at = 5 * place.stride + place.offset;
        let flat = array.cells.flat().unwrap();
        assert_eq!(flat[at as usize].load(Relaxed), 1);
        assert_eq!(flat.len() as u64, place.words());
        assert!(RegisterArray::flat(&[32], 1 << 32, 0).is_none());
    }
}
