//! Longest prefixes of 32-bit addresses, as tables of tables.

use weir_table::memory::{huge_vec, prefetch};

/// Set where an entry names a block of the next table.
const BLOCK: u32 = 1 << 31;
/// Up to so many prefixes the first table has 16 bits: it stays near, and so do the blocks. Beyond them 24, which
/// is one access for nearly all addresses.
const FEW: usize = 16_384;

/// The routes' numbers by address.
#[derive(Clone)]
pub struct Lpm {
    /// By the first `bits` bits.
    first: Vec<u32>,
    bits: u32,
    /// By eight more, all blocks behind each other.
    blocks: Vec<u32>,
    next_block: u32,
}

impl Lpm {
    /// Prefixes (address, length) with numbers from 1; 0 is the miss.
    ///
    /// # Panics
    /// A prefix is longer than 32 bits.
    #[must_use]
    pub fn new(prefixes: &[(u32, u32)]) -> Self {
        let mut order: Vec<usize> = (0..prefixes.len()).collect();
        order.sort_by_key(|i| prefixes[*i].1);
        let bits = if prefixes.len() <= FEW { 16 } else { 24 };
        let mut lpm = Lpm {
            first: huge_vec(1 << bits, 0),
            bits,
            blocks: Vec::new(),
            next_block: 0,
        };
        for i in order {
            let (address, length) = prefixes[i];
            assert!(length <= 32, "addresses have 32 bits");
            lpm.put(address, length, i as u32 + 1);
        }
        lpm
    }

    /// Longer prefixes come later.
    fn put(&mut self, address: u32, length: u32, number: u32) {
        // The part of the table that is looked at, and the bits of the address looked at so far.
        let mut seen = self.bits;
        let mut at = (u64::from(address) >> (32 - seen)) as usize;
        let mut table = &mut self.first;
        while length > seen {
            let old = table[at];
            let block = if old & BLOCK == 0 {
                self.next_block
            } else {
                old & !BLOCK
            };
            table[at] = BLOCK | block;
            if old & BLOCK == 0 {
                self.next_block += 1;
                self.blocks.extend([old; 256]);
            }
            seen += 8;
            at = block as usize * 256 + (address >> (32 - seen) & 0xff) as usize;
            table = &mut self.blocks;
        }
        // Tables begin at multiples of 256.
        let count = 1 << (seen - length);
        let at = at & !(count - 1);
        table[at..at + count].fill(number);
    }

    /// For lookups in a loop: what they need at hand.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            first: &self.first,
            shift: 32 - self.bits,
            blocks: &self.blocks,
        }
    }

    /// The number of the longest prefix of an address; 0: none.
    #[must_use]
    pub fn get(&self, address: u32) -> u32 {
        self.view().get(address)
    }
}

/// Routes that are looked up.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    first: &'a [u32],
    shift: u32,
    blocks: &'a [u32],
}

impl View<'_> {
    /// Fetches the first table's entry.
    #[inline(always)]
    pub(crate) fn prefetch(self, address: u32) {
        prefetch(self.at(address));
    }

    #[inline(always)]
    fn at(&self, address: u32) -> &u32 {
        // SAFETY: `first` has an element for every number of `32 - shift` bits.
        unsafe { self.first.get_unchecked((address >> self.shift) as usize) }
    }

    /// The number of the longest prefix of an address; 0: none.
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
        let of = |a| lpm.get(a);
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
        check(&Lpm::new(&many));
        assert_eq!(Lpm::new(&[(0, 0)]).get(0xffff_ffff), 1);
    }
}
