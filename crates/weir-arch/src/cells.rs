//! Arrays as large as a program likes, that take memory only where they were written.

use rustc_hash::FxHashMap;

const PAGE: u64 = 64;

/// An array of `size` cells that all start as `T::default()`.
#[derive(Debug, Clone, Default)]
pub struct Cells<T> {
    size: u64,
    /// What a cell never written holds.
    initial: T,
    pages: FxHashMap<u64, Vec<T>>,
}

impl<T: Clone + Default> Cells<T> {
    /// An array of `size` cells.
    #[must_use]
    pub fn new(size: u64) -> Self {
        Cells {
            size,
            initial: T::default(),
            pages: FxHashMap::default(),
        }
    }

    /// Number of cells.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The cell; `None` beyond the end.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<T> {
        if index >= self.size {
            return None;
        }
        let page = self.pages.get(&(index / PAGE));
        let cell = page.and_then(|p| p.get((index % PAGE) as usize));
        Some(cell.unwrap_or(&self.initial).clone())
    }

    /// The cell, to be changed; `None` beyond the end.
    pub fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        if index >= self.size {
            return None;
        }
        let initial = &self.initial;
        let page = self.pages.entry(index / PAGE);
        let page = page.or_insert_with(|| vec![initial.clone(); PAGE as usize]);
        page.get_mut((index % PAGE) as usize)
    }

    /// Sets all cells, at a cost that does not depend on their number.
    pub fn fill(&mut self, value: T) {
        self.initial = value;
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_end_where_they_end() {
        let mut cells = Cells::<u8>::new(u64::from(u32::MAX));
        assert_eq!(cells.get(u64::from(u32::MAX) - 1), Some(0));
        assert_eq!(cells.get(u64::from(u32::MAX)), None);
        *cells.get_mut(5).expect("inside") = 7;
        assert_eq!(cells.get(5), Some(7));
        assert!(cells.get_mut(u64::MAX).is_none());
        cells.fill(9);
        assert_eq!(cells.get(5), Some(9));
        *cells.get_mut(6).expect("inside") += 1;
        assert_eq!((cells.get(6), cells.get(7)), (Some(10), Some(9)));
    }
}
