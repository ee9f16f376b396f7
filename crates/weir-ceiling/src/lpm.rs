//! Longest prefixes of 32-bit addresses, as tables of tables.

use weir_table::memory::{huge_vec, prefetch};

/// Set where an entry names a block of the next table.
const BLOCK: u32 = 1 << 31;
/// Up to so many prefixes the first table has 16 bits: it stays near, and so do the blocks. Beyond them 24, which
/// is one access for nearly all addresses.
const FEW: usize = 16_384;

/// log2 of the slots that lie together in a line with a cell.
const TOGETHER: u32 = 3;
/// log2 of the lines of a page of 4 KB.
const LINES: u32 = 6;

/// What a prefix is looked up for: words of its owner's. As large as the slots that lie together.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub struct Cell(pub [u64; 4]);

/// Slots in the memory of a cell.
const SLOTS: usize = size_of::<Cell>() / size_of::<u32>();

/// A cell for each prefix, by address. Of few prefixes the table of cells' numbers is apart from them. Of many it is half of the cells' memory, in turns:
/// so a cell is mostly in the line that is looked at anyway, or else in the same page, whose address the processor knows by then.
#[derive(Clone)]
pub struct Lpm {
    /// By the first 16 bits, if prefixes are few.
    few: Vec<u32>,
    cells: Vec<Cell>,
    /// By eight more, all blocks behind each other.
    blocks: Vec<u32>,
    next_block: u32,
    /// The cell of each prefix.
    numbers: Vec<u32>,
}

impl Lpm {
    /// Prefixes (address, length). None has cell 0.
    ///
    /// # Panics
    /// A prefix is longer than 32 bits.
    #[must_use]
    pub fn new(prefixes: &[(u32, u32)]) -> Self {
        let mut order: Vec<usize> = (0..prefixes.len()).collect();
        order.sort_by_key(|i| prefixes[*i].1);
        let (few, numbers) = match prefixes.len() {
            ..=FEW => (vec![0; 1 << 16], (1..).take(prefixes.len()).collect()),
            _ => (Vec::new(), numbers_beside_slots(prefixes)),
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

    /// Bits of an address that choose a slot, and which of them are added once more to find it.
    #[inline(always)]
    fn places(&self) -> (u32, usize) {
        if self.few.is_empty() {
            (24, !0 << TOGETHER)
        } else {
            (16, 0)
        }
    }

    /// Longer prefixes come later.
    fn put(&mut self, address: u32, length: u32, number: u32) {
        // The part of the table that is looked at, and the bits of the address looked at so far.
        let (mut seen, mut gaps) = self.places();
        let mut at = (u64::from(address) >> (32 - seen)) as usize;
        let mut table = match self.few.is_empty() {
            false => self.few.as_mut_slice(),
            true => slots_of_mut(&mut self.cells),
        };
        while length > seen {
            let slot = &mut table[at + (at & gaps)];
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
            (table, gaps) = (&mut self.blocks, 0);
        }
        // Tables begin at multiples of 256.
        let count = 1 << (seen - length);
        let first = at & !(count - 1);
        for at in first..first + count {
            table[at + (at & gaps)] = number;
        }
    }

    /// For lookups in a loop: what they need at hand.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        let (bits, gaps) = self.places();
        View {
            slots: if self.few.is_empty() {
                slots_of(&self.cells)
            } else {
                &self.few
            },
            shift: 32 - bits,
            gaps,
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

    /// The same, to be read.
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

/// Cells for prefixes, beside slots of theirs if there is room, or else in the same page; what is left, behind all pages.
fn numbers_beside_slots(prefixes: &[(u32, u32)]) -> Vec<u32> {
    let lines = 1 << (24 - TOGETHER);
    let mut taken = vec![false; lines];
    let mut behind = 2 * lines as u32;
    let numbers = prefixes.iter().map(|(address, length)| {
        // Some line of the prefix's own: the first ones of short prefixes are so far from each other that they share few sets of the caches.
        let free = (24 - TOGETHER).saturating_sub(*length);
        let within = address.wrapping_mul(0x9e37_79b9).checked_shr(32 - free).unwrap_or(0);
        // Bits behind the prefix do not matter.
        let first = address >> (8 + TOGETHER) >> free << free;
        let line = (first + within) as usize;
        let page = line >> LINES << LINES;
        let mut near = (line..page + (1 << LINES)).chain(page..line);
        match near.find(|line| !taken[*line]) {
            Some(line) => {
                taken[line] = true;
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
    // SAFETY: it is borrowed memory of cells, any of whose bytes are a number.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len() * SLOTS) }
}

/// The same, to be written.
fn slots_of_mut(cells: &mut [Cell]) -> &mut [u32] {
    // SAFETY: it is memory of cells that is borrowed to be written, and any numbers are the words
    // of a cell.
    unsafe { std::slice::from_raw_parts_mut(cells.as_mut_ptr().cast(), cells.len() * SLOTS) }
}

/// Routes that are looked up.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    slots: &'a [u32],
    shift: u32,
    gaps: usize,
    blocks: &'a [u32],
    cells: &'a [Cell],
}

impl View<'_> {
    /// Fetches the first table's entry.
    #[inline(always)]
    pub(crate) fn prefetch(self, address: u32) {
        prefetch(self.at(address));
    }

    /// Fetches a cell.
    #[inline(always)]
    pub(crate) fn prefetch_cell(self, number: u32) {
        if let Some(cell) = self.cells.get(number as usize) {
            prefetch(cell);
        }
    }

    #[inline(always)]
    fn at(&self, address: u32) -> &u32 {
        let at = (address >> self.shift) as usize;
        // SAFETY: there is a slot for every number of `32 - shift` bits.
        unsafe { self.slots.get_unchecked(at + (at & self.gaps)) }
    }

    /// The number of the cell of the longest prefix of an address; 0: none.
    #[inline(always)]
    pub(crate) fn get(self, address: u32) -> u32 {
        let mut entry = *self.at(address);
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
        many.extend((0..FEW as u32).map(|i| (0x1400_0000 + (i << 4), 28)));
        // Bits behind a prefix may be any.
        many.extend([(0xffff_ffff, 12), (0xe0ff_ffff, 10)]);
        check(&Lpm::new(&many));
        let lpm = Lpm::new(&[(0, 0)]);
        assert_eq!(lpm.get(0xffff_ffff), lpm.numbers[0]);
    }
}
