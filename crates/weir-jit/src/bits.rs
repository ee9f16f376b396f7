//! Sums of bytes that do not begin at a word.

/// Sums the 16-bit words of bytes that begin anywhere within a word.
pub(crate) struct Accumulator {
    /// Bits that do not yet fill a word, and how many.
    partial: u32,
    bits: u32,
    sum: u64,
}

impl Accumulator {
    /// `lead` bits (fewer than 16) of the first word are zero.
    pub fn new(lead: u32) -> Self {
        Accumulator {
            partial: 0,
            bits: lead,
            sum: 0,
        }
    }

    /// Adds a byte.
    pub fn push(&mut self, byte: u8) {
        self.partial = self.partial << 8 | u32::from(byte);
        self.bits += 8;
        if self.bits >= 16 {
            self.bits -= 16;
            self.sum += u64::from(self.partial >> self.bits) & 0xffff;
            self.partial &= (1 << self.bits) - 1;
        }
    }

    /// The sum, with the last word padded with zeros.
    pub fn sum(&self) -> u64 {
        self.sum + (u64::from(self.partial) << (16 - self.bits) & 0xffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_summed_wherever_they_begin() {
        let sum = |lead, bytes: &[u8]| {
            let mut a = Accumulator::new(lead);
            bytes.iter().for_each(|&b| a.push(b));
            a.sum()
        };
        assert_eq!(sum(0, &[0x12, 0x34, 0x56]), 0x1234 + 0x5600);
        assert_eq!(sum(8, &[0x12, 0x34, 0x56]), 0x12 + 0x3456);
        assert_eq!(sum(4, &[0x12, 0x34]), 0x123 + 0x4000);
        assert_eq!(sum(0, &[]), 0);
    }
}
