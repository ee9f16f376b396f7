//! Longest-prefix match of 32-bit addresses by multi-level arrays: 16 or 24 bits first, then 8 at a
//! time.
//!
//! Each prefix has a cell for the caller's data. With many prefixes, cells are interleaved with the
//! first array, so that a lookup and the access to its cell mostly share a cache line.

use weir_table::memory::{huge_vec, prefetch};

/// Set in an entry that names a block of the next level.
const BLOCK: u32 = 1 << 31;
/// Up to this number of prefixes the first level has 16 bits: it stays in the cache, and so do the
/// blocks. With more prefixes it has 24, which is one access for nearly all addresses.
const FEW_PREFIXES: usize = 16_384;

/// log2 of the slots that share a cache line with a cell.
const LINE_SLOTS_LOG2: u32 = 3;
/// log2 of the cache lines of a 4 KB page.
const PAGE_LINES_LOG2: u32 = 6;

/// The caller's data for a prefix. As large as the slots that share its cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub struct Cell(pub [u64; 4]);

/// Slots that fit in the memory of a cell.
const SLOTS: usize = size_of::<Cell>() / size_of::<u32>();

/// The table. With few prefixes, slots and cells are separate arrays. With many, the first level is
/// interleaved with the cells, each in half of every cache line. A prefix's cell is placed beside
/// one of its own slots, which the lookup has just loaded, or else in the same page, whose
/// translation is then in the TLB.
#[derive(Clone)]
pub struct Lpm {
    /// The first level by 16 bits, if there are few prefixes.
    few: Vec<u32>,
    cells: Vec<Cell>,
    /// The further levels: blocks of 256 slots, by 8 more bits each.
    blocks: Vec<u32>,
    next_block: u32,
    /// By prefix: the number of its cell.
    numbers: Vec<u32>,
}

impl Lpm {
    /// A table of prefixes (address, length). No prefix has cell 0.
    ///
    /// # Panics
    /// A prefix is longer than 32 bits.
    #[must_use]
    pub fn new(prefixes: &[(u32, u32)]) -> Self {
        let mut order: Vec<usize> = (0..prefixes.len()).collect();
        order.sort_by_key(|i| prefixes[*i].1);
        let (few, numbers) = match prefixes.len() {
            ..=FEW_PREFIXES => (vec![0; 1 << 16], (1..).take(prefixes.len()).collect()),
            _ => (Vec::new(), place_cells(prefixes)),
        };
        let least = if few.is_empty() { (2 << 24) / SLOTS } else { 0 };
        let last = numbers.iter().max().map_or(0, |number| *number as usize);
        let mut lpm = Lpm {
            few,
            cells: huge_vec(least.max(last + 1), Cell::default()),
            blocks: Vec::new(),
            next_block: 0,
            numbers,
        };
        for i in order {
            let (address, length) = prefixes[i];
            assert!(length <= 32, "addresses have 32 bits");
            lpm.put(address, length, lpm.numbers[i]);
        }
        lpm
    }

    /// The address bits that index the first level, and the bits of that index to add to it, which
    /// skips the cells in between.
    #[inline(always)]
    fn slot_addressing(&self) -> (u32, usize) {
        if self.few.is_empty() {
            (24, !0 << LINE_SLOTS_LOG2)
        } else {
            (16, 0)
        }
    }

    /// Inserts a prefix. Longer prefixes come later.
    fn put(&mut self, address: u32, length: u32, number: u32) {
        // The level of the current step, and the address bits consumed so far.
        let (mut seen, mut skip_mask) = self.slot_addressing();
        let mut at = (u64::from(address) >> (32 - seen)) as usize;
        let mut table = match self.few.is_empty() {
            false => self.few.as_mut_slice(),
            true => slots_of_mut(&mut self.cells),
        };
        while length > seen {
            let slot = &mut table[at + (at & skip_mask)];
            let old = *slot;
            let block = if old & BLOCK == 0 {
                self.next_block
            } else {
                old & !BLOCK
            };
            *slot = BLOCK | block;
            if old & BLOCK == 0 {
                self.next_block += 1;
                self.blocks.extend([old; 256]);
            }
            seen += 8;
            at = block as usize * 256 + (address >> (32 - seen) & 0xff) as usize;
            (table, skip_mask) = (&mut self.blocks, 0);
        }
        // Blocks begin at multiples of 256.
        let count = 1 << (seen - length);
        let first = at & !(count - 1);
        for at in first..first + count {
            table[at + (at & skip_mask)] = number;
        }
    }

    /// A view for lookups in a loop.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        let (bits, skip_mask) = self.slot_addressing();
        View {
            slots: if self.few.is_empty() {
                slots_of(&self.cells)
            } else {
                &self.few
            },
            shift: 32 - bits,
            skip_mask,
            blocks: &self.blocks,
            cells: &self.cells,
        }
    }

    /// The cells by number.
    #[inline(always)]
    pub(crate) fn cells_mut(&mut self) -> &mut [Cell] {
        &mut self.cells
    }

    /// The cell of a prefix.
    pub(crate) fn cell_mut(&mut self, prefix: usize) -> &mut Cell {
        &mut self.cells[self.numbers[prefix] as usize]
    }

    /// The cell of a prefix, read-only.
    #[must_use]
    pub fn cell(&self, prefix: usize) -> &Cell {
        &self.cells[self.numbers[prefix] as usize]
    }

    /// The number of the cell of the longest prefix of an address; 0: none.
    #[must_use]
    pub fn get(&self, address: u32) -> u32 {
        self.view().get(address)
    }
}

/// Places each prefix's cell: beside one of the prefix's slots if that is free, else in the same
/// page, else after all pages.
fn place_cells(prefixes: &[(u32, u32)]) -> Vec<u32> {
    let lines = 1 << (24 - LINE_SLOTS_LOG2);
    let mut in_use = vec![false; lines];
    let mut behind = 2 * lines as u32;
    let numbers = prefixes.iter().map(|(address, length)| {
        // A pseudo-random line of the prefix's own. The first lines of short prefixes are a large
        // power of two apart, and would compete for the same cache sets.
        let free = (24 - LINE_SLOTS_LOG2).saturating_sub(*length);
        let within = address.wrapping_mul(0x9e37_79b9).checked_shr(32 - free).unwrap_or(0);
        // Bits after the prefix are ignored.
        let first = address >> (8 + LINE_SLOTS_LOG2) >> free << free;
        let line = (first + within) as usize;
        let page = line >> PAGE_LINES_LOG2 << PAGE_LINES_LOG2;
        let mut near = (line..page + (1 << PAGE_LINES_LOG2)).chain(page..line);
        match near.find(|line| !in_use[*line]) {
            Some(line) => {
                in_use[line] = true;
                2 * line as u32 + 1
            }
            None => {
                behind += 1;
                behind - 1
            }
        }
    });
    numbers.collect()
}

/// The memory of cells as slots.
#[inline(always)]
fn slots_of(cells: &[Cell]) -> &[u32] {
    // SAFETY: it is borrowed memory of cells, and all bytes of a cell are valid as numbers.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len() * SLOTS) }
}

/// The same, mutable.
fn slots_of_mut(cells: &mut [Cell]) -> &mut [u32] {
    // SAFETY: it is exclusively borrowed memory of cells, and any numbers are valid words of a
    // cell.
    unsafe { std::slice::from_raw_parts_mut(cells.as_mut_ptr().cast(), cells.len() * SLOTS) }
}

/// A view of a table, with its fields in registers.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    slots: &'a [u32],
    shift: u32,
    skip_mask: usize,
    blocks: &'a [u32],
    cells: &'a [Cell],
}

impl View<'_> {
    /// Prefetches an address's slot in the first level.
    #[inline(always)]
    pub(crate) fn prefetch(self, address: u32) {
        prefetch(self.slot(address));
    }

    /// Prefetches a cell.
    #[inline(always)]
    pub(crate) fn prefetch_cell(self, number: u32) {
        if let Some(cell) = self.cells.get(number as usize) {
            prefetch(cell);
        }
    }

    #[inline(always)]
    fn slot(&self, address: u32) -> &u32 {
        let at = (address >> self.shift) as usize;
        // SAFETY: there is a slot for every number of `32 - shift` bits.
        unsafe { self.slots.get_unchecked(at + (at & self.skip_mask)) }
    }

    /// The number of the cell of the longest prefix of an address; 0: none.
    #[inline(always)]
    pub(crate) fn get(self, address: u32) -> u32 {
        let mut entry = *self.slot(address);
        let mut shift = self.shift;
        while entry & BLOCK != 0 {
            shift -= 8;
            entry = self.blocks[(entry & !BLOCK) as usize * 256 + (address >> shift & 0xff) as usize];
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIXES: &[(u32, u32)] = &[
        (0x0a01_0200, 24),
        (0x0a00_0000, 8),
        (0x0a01_0203, 32),
        (0x0a01_0000, 16),
        (0x0a01_0280, 25),
        (0x0a01_8000, 17),
    ];

    fn check(lpm: &Lpm) {
        let of = |a| {
            let number = lpm.get(a);
            lpm.numbers
                .iter()
                .position(|n| *n == number)
                .map_or(0, |prefix| prefix + 1)
        };
        assert_eq!(
            [
                of(0x0a02_0000),
                of(0x0a01_0300),
                of(0x0a01_0201),
                of(0x0a01_0203),
                of(0x0a01_02ff),
                of(0x0b00_0000),
                of(0x0a01_9000)
            ],
            [2, 4, 1, 3, 5, 0, 6]
        );
    }

    #[test]
    fn the_longest_prefix_wins() {
        check(&Lpm::new(PREFIXES));
        let mut many = PREFIXES.to_vec();
        many.extend((0..FEW_PREFIXES as u32).map(|i| (0x1400_0000 + (i << 4), 28)));
        // Bits after a prefix may have any value.
        many.extend([(0xffff_ffff, 12), (0xe0ff_ffff, 10)]);
        check(&Lpm::new(&many));
        let lpm = Lpm::new(&[(0, 0)]);
        assert_eq!(lpm.get(0xffff_ffff), lpm.numbers[0]);
    }
}
