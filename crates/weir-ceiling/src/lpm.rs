//! Longest prefixes of 32-bit addresses: DIR-24-8.

use crate::simd::prefetch;

/// Set where an entry of the first table names a block of the second.
const BLOCK: u32 = 1 << 31;

/// The routes' numbers by address: one access for prefixes to /24, two beyond.
#[derive(Clone)]
pub struct Lpm {
    first: Vec<u32>,
    second: Vec<[u32; 256]>,
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
        let mut lpm = Lpm {
            first: crate::huge_vec(1 << 24, 0),
            second: Vec::new(),
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
        let at = (address >> 8) as usize;
        if length <= 24 {
            let count = 1 << (24 - length);
            let at = at & !(count - 1);
            self.first[at..at + count].fill(number);
            return;
        }
        let old = self.first[at];
        let block = if old & BLOCK == 0 {
            self.second.push([old; 256]);
            let block = self.second.len() - 1;
            self.first[at] = BLOCK | block as u32;
            block
        } else {
            (old & !BLOCK) as usize
        };
        let count = 1 << (32 - length);
        let low = (address & 0xff) as usize & !(count - 1);
        self.second[block][low..low + count].fill(number);
    }

    /// Fetches the first table's entry.
    #[inline(always)]
    pub fn prefetch(&self, address: u32) {
        prefetch(&self.first[(address >> 8) as usize]);
    }

    /// The number of the longest prefix of an address; 0: none.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, address: u32) -> u32 {
        let entry = self.first[(address >> 8) as usize];
        if entry & BLOCK == 0 {
            return entry;
        }
        self.second[(entry & !BLOCK) as usize][(address & 0xff) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let lpm = Lpm::new(&[
            (0x0a01_0200, 24),
            (0x0a00_0000, 8),
            (0x0a01_0203, 32),
            (0x0a01_0000, 16),
            (0x0a01_0280, 25),
        ]);
        let of = |a| lpm.get(a);
        assert_eq!(
            [
                of(0x0a02_0000),
                of(0x0a01_0300),
                of(0x0a01_0201),
                of(0x0a01_0203),
                of(0x0a01_02ff),
                of(0x0b00_0000)
            ],
            [2, 4, 1, 3, 5, 0]
        );
    }
}
