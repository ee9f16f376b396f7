//! Arrays as large as a program likes, that take memory only where they were written.

use rustc_hash::FxHashMap;

/// Cells of a page.
const PAGE: u64 = 1024;
/// Pages that are found by position; those of higher cells are found by hashing, so that a lone cell at the end of
/// a huge array costs no more than a page.
const NEAR: u64 = 1 << 14;

/// An array of `size` cells that all start as `T::default()`.
#[derive(Debug, Clone, Default)]
pub struct Cells<T> {
    size: u64,
    /// What a cell never written holds.
    initial: T,
    /// By number; as many as were needed so far, some of them perhaps empty.
    pages: Vec<Vec<T>>,
    far: FxHashMap<u64, Vec<T>>,
}

impl<T: Clone + Default> Cells<T> {
    /// An array of `size` cells.
    #[must_use]
    pub fn new(size: u64) -> Self {
        Cells {
            size,
            initial: T::default(),
            pages: Vec::new(),
            far: FxHashMap::default(),
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
        let number = index / PAGE;
        let page = match number < NEAR {
            true => self.pages.get(number as usize),
            false => self.far.get(&number),
        };
        let cell = page.and_then(|p| p.get((index % PAGE) as usize));
        Some(cell.unwrap_or(&self.initial).clone())
    }

    /// The cell, to be changed; `None` beyond the end.
    pub fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        if index >= self.size {
            return None;
        }
        let number = index / PAGE;
        let fresh = || vec![self.initial.clone(); PAGE.min(self.size - number * PAGE) as usize];
        let page = if number < NEAR {
            let number = number as usize;
            if self.pages.get(number).is_none_or(Vec::is_empty) {
                let page = fresh();
                if self.pages.len() <= number {
                    self.pages.resize_with(number + 1, Vec::new);
                }
                self.pages[number] = page;
            }
            &mut self.pages[number]
        } else {
            self.far.entry(number).or_insert_with(fresh)
        };
        page.get_mut((index % PAGE) as usize)
    }

    /// Sets all cells, at a cost that does not depend on their number.
    pub fn fill(&mut self, value: T) {
        self.initial = value;
        self.pages.clear();
        self.far.clear();
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
