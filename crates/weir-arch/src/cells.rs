//! Arrays as large as a program likes, that take memory only where they were written.

use rustc_hash::FxHashMap;

/// log2 of the most cells of [`Cells::first`]: most arrays have no others, and these are found
/// without asking where they are.
const FIRST: u32 = 14;
/// The fewest cells that lie first, if any.
const FEWEST: u64 = 1 << 10;
/// log2 of the cells of the pages that far cells come in.
const PAGE: u32 = 10;
/// Cells below this lie first or in chunks, each twice as large as the one before. Those of higher
/// cells are found by hashing, so that a lone cell at the end of a huge array costs no more than a
/// page.
const NEAR: u64 = 1 << 24;
/// Arrays of more bytes than this are fetched before they are added to.
const STAGED: usize = 128 << 10;

/// An array of `size` cells that all start as `T::default()`.
#[derive(Debug, Clone, Default)]
pub struct Cells<T> {
    size: u64,
    /// The value of a cell that was never written.
    initial: T,
    /// The first cells: as many as were needed so far.
    first: Vec<T>,
    /// Chunk `k` holds the cells from `1 << FIRST << k` on, up to twice that; all of them or, if
    /// none was needed so far, none.
    chunks: Vec<Vec<T>>,
    far: FxHashMap<u64, Vec<T>>,
}

/// The cell where chunk `k` begins.
const fn begin(chunk: usize) -> u64 {
    1 << FIRST << chunk
}

/// The chunk of a cell that does not lie first, and its position there.
#[inline]
fn near(index: u64) -> (usize, usize) {
    let highest = index.ilog2();
    // The position is the number without its highest bit: to take a bit out is one instruction.
    ((highest - FIRST) as usize, (index & !(1 << highest)) as usize)
}

impl<T: Clone + Default> Cells<T> {
    /// An array of `size` cells.
    #[must_use]
    pub fn new(size: u64) -> Self {
        Cells {
            size,
            initial: T::default(),
            first: Vec::new(),
            chunks: Vec::new(),
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
        self.peek(index).cloned()
    }

    /// The cell where it lies; `None` beyond the end.
    #[inline]
    #[must_use]
    pub fn peek(&self, index: u64) -> Option<&T> {
        if index >= self.size {
            return None;
        }
        let cell = self.near_cell(index).or_else(|| {
            let page = self.far.get(&(index >> PAGE))?;
            page.get((index % (1 << PAGE)) as usize)
        });
        Some(cell.unwrap_or(&self.initial))
    }

    /// The cell, to be changed; `None` beyond the end.
    #[inline]
    pub fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        if index < self.first.len() as u64 {
            return self.first.get_mut(index as usize);
        }
        if index >= begin(0) {
            let (chunk, offset) = near(index);
            if self.chunks.get(chunk).is_some_and(|cells| offset < cells.len()) {
                return self.chunks[chunk].get_mut(offset);
            }
        }
        self.get_new(index)
    }

    /// The cell, if it has memory and is not far.
    #[inline]
    fn near_cell(&self, index: u64) -> Option<&T> {
        if index < begin(0) {
            return self.first.get(index as usize);
        }
        let (chunk, offset) = near(index);
        self.chunks.get(chunk)?.get(offset)
    }

    /// A cell that may lie where no memory has been taken yet.
    #[cold]
    fn get_new(&mut self, index: u64) -> Option<&mut T> {
        if index >= self.size {
            return None;
        }
        if index >= NEAR {
            return self.get_far(index);
        }
        if index < begin(0) {
            let many = (index + 1).next_power_of_two().max(FEWEST).min(self.size);
            self.first.resize(many as usize, self.initial.clone());
            return self.first.get_mut(index as usize);
        }
        let (chunk, offset) = near(index);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, Vec::new);
        }
        let count = begin(chunk).min(self.size - begin(chunk));
        self.chunks[chunk] = weir_table::memory::huge_vec(count as usize, self.initial.clone());
        self.chunks[chunk].get_mut(offset)
    }

    fn get_far(&mut self, index: u64) -> Option<&mut T> {
        let number = index >> PAGE;
        let count = (1 << PAGE).min(self.size - (number << PAGE)) as usize;
        let page = self.far.entry(number);
        let page = page.or_insert_with(|| vec![self.initial.clone(); count]);
        page.get_mut((index % (1 << PAGE)) as usize)
    }

    /// Prefetches cells that may not be in the cache.
    pub fn fetch(&self, indexes: impl Iterator<Item = u64>) {
        let largest = self.chunks.last().map_or(self.first.len(), Vec::len);
        if size_of::<T>() * largest * 2 > STAGED {
            for cell in indexes.filter_map(|index| self.near_cell(index)) {
                weir_table::memory::prefetch(cell);
            }
        }
    }

    /// Changes many cells; positions beyond the end are left out. [`Cells::fetch`] should come
    /// first.
    pub fn update<V>(&mut self, changes: impl Iterator<Item = (u64, V)> + Clone, change: impl Fn(&mut T, V)) {
        // Most arrays have no cells elsewhere; then no cell needs a search.
        let (first, mut elsewhere) = (&mut self.first[..], false);
        changes.clone().for_each(
            |(index, value)| match usize::try_from(index).ok().and_then(|i| first.get_mut(i)) {
                Some(cell) => change(cell, value),
                None => elsewhere = true,
            },
        );
        if elsewhere {
            let here = self.first.len() as u64;
            for (index, value) in changes.filter(|(index, _)| *index >= here) {
                if let Some(cell) = self.get_mut(index) {
                    change(cell, value);
                }
            }
        }
    }

    /// The value of a cell that was never written.
    #[must_use]
    pub fn initial(&self) -> &T {
        &self.initial
    }

    /// Cells that may differ from [`Cells::initial`], with their positions, in no particular order.
    pub fn written(&self) -> impl Iterator<Item = (u64, &T)> {
        let first = (0..).zip(&self.first);
        let chunks = self.chunks.iter().enumerate();
        let near = chunks.flat_map(|(chunk, cells)| (begin(chunk)..).zip(cells));
        let far = self.far.iter().flat_map(|(page, cells)| (page << PAGE..).zip(cells));
        first.chain(near).chain(far)
    }

    /// Makes a cell what it was at first, or what all were set to last.
    pub fn reset(&mut self, index: u64) {
        let initial = self.initial.clone();
        if let Some(cell) = self.get_mut(index) {
            *cell = initial;
        }
    }

    /// Sets all cells, at a cost that does not depend on their number.
    pub fn fill(&mut self, value: T) {
        self.initial = value;
        self.first.clear();
        self.chunks.clear();
        self.far.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_cells_are_told_wherever_they_are() {
        let mut cells: Cells<u8> = Cells::new(1 << 30);
        for index in [0, 5, 1023, 1024, 16_384, 70_000, NEAR - 1, NEAR, (1 << 30) - 1] {
            *cells.get_mut(index).unwrap() = 7;
        }
        let mut found: Vec<u64> = cells.written().filter(|(_, c)| **c == 7).map(|(i, _)| i).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 5, 1023, 1024, 16_384, 70_000, NEAR - 1, NEAR, (1 << 30) - 1]);
        assert!(cells.written().all(|(i, c)| cells.peek(i) == Some(c)));
    }

    #[test]
    fn the_first_cells_grow_and_keep_what_they_hold() {
        let mut cells = Cells::<u64>::new(20_000);
        let places = [0, 1023, 1024, 5000, 16_383, 16_384, 19_999];
        for (i, at) in places.into_iter().enumerate() {
            cells.update([(at, 1), (0, 1), (20_000, 1)].into_iter(), |cell, by| *cell += by);
            assert_eq!(cells.get(at), Some(if at == 0 { 2 } else { 1 }));
            assert_eq!(cells.get(0), Some(i as u64 + 2));
        }
        let written: u64 = cells.written().map(|(_, count)| *count).sum();
        assert_eq!(written, 2 * places.len() as u64);
        let mut small = Cells::<u64>::new(3);
        small.update([(2, 5), (3, 5)].into_iter(), |cell, by| *cell += by);
        assert_eq!(
            (small.get(2), small.get(3), small.written().count()),
            (Some(5), None, 3)
        );
    }

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

    #[test]
    fn every_cell_is_its_own() {
        let mut cells = Cells::<u64>::new((1 << 24) + 3000);
        let places = [
            0,
            1,
            1023,
            1024,
            3071,
            3072,
            70_000,
            (1 << 24) - 1,
            1 << 24,
            (1 << 24) + 2999,
        ];
        for at in places {
            *cells.get_mut(at).expect("inside") = at + 1;
        }
        cells.update(places.iter().chain(&[u64::MAX]).map(|at| (*at, 1)), |cell, by| {
            *cell += by
        });
        for at in places {
            assert_eq!(cells.get(at), Some(at + 2));
        }
        assert_eq!(cells.get(2), Some(0));
        assert_eq!(cells.get_mut((1 << 24) + 3000), None);
        let mut made: Vec<u64> = cells.written().filter(|(_, v)| **v != 0).map(|(at, _)| at).collect();
        made.sort_unstable();
        assert_eq!(made, places);
    }
}
