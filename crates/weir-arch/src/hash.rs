//! Hash and checksum algorithms: those of v1model as bmv2 computes them, and those that other
//! architectures have besides.

use serde::{Deserialize, Serialize};

/// Parameters of a CRC, in the notation of the usual catalogues (polynomial without its top bit,
/// not reflected).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CrcParameters {
    /// Width of the CRC in bits, 1 to 64.
    pub width: u32,
    /// The polynomial.
    pub polynomial: u64,
    /// The register's initial value.
    pub initial: u64,
    /// Input bytes are taken least significant bit first.
    pub reflect_in: bool,
    /// The register is reflected before the final exclusive or.
    pub reflect_out: bool,
    /// The final exclusive or.
    pub xor_out: u64,
}

impl CrcParameters {
    /// CRC-16/ARC.
    pub const CRC16: CrcParameters = CrcParameters {
        width: 16,
        polynomial: 0x8005,
        initial: 0,
        reflect_in: true,
        reflect_out: true,
        xor_out: 0,
    };
    /// CRC-32/ISO-HDLC, that of zlib and Ethernet.
    pub const CRC32: CrcParameters = CrcParameters {
        width: 32,
        polynomial: 0x04c1_1db7,
        initial: 0xffff_ffff,
        reflect_in: true,
        reflect_out: true,
        xor_out: 0xffff_ffff,
    };

    /// The CRC of bytes. A width outside 1..=64 counts as 64.
    #[must_use]
    pub fn compute(&self, data: &[u8]) -> u64 {
        match *self {
            Self::CRC32 => reflected(&CRC32_SLICES, 0xffff_ffff, data) ^ 0xffff_ffff,
            Self::CRC16 => reflected(&CRC16_SLICES, 0, data),
            _ => self.bit_by_bit(data),
        }
    }

    fn bit_by_bit(&self, data: &[u8]) -> u64 {
        let width = if (1..=64).contains(&self.width) { self.width } else { 64 };
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        let mut register = self.initial & mask;
        for &byte in data {
            for i in 0..8 {
                let bit = if self.reflect_in { byte >> i } else { byte >> (7 - i) } & 1;
                let top = (register >> (width - 1)) & 1;
                register = (register << 1) & mask;
                if top ^ u64::from(bit) == 1 {
                    register ^= self.polynomial & mask;
                }
            }
        }
        if self.reflect_out {
            register = register.reverse_bits() >> (64 - width);
        }
        (register ^ self.xor_out) & mask
    }
}

/// The parameters by which [`Algorithm::Crc32Custom`] and [`Algorithm::Crc16Custom`] hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomPair {
    /// Those of 32 bits.
    pub crc32: CrcParameters,
    /// Those of 16 bits.
    pub crc16: CrcParameters,
}

impl CustomPair {
    /// Before control planes set any.
    pub const DEFAULT: CustomPair = CustomPair {
        crc32: CrcParameters::CRC32,
        crc16: CrcParameters::CRC16,
    };

    /// Those of 16 bits, or of 32.
    pub(crate) fn of(&self, width: u32) -> CrcParameters {
        if width == 16 { self.crc16 } else { self.crc32 }
    }

    pub(crate) fn set(&mut self, width: u32, parameters: CrcParameters) {
        let place = if width == 16 { &mut self.crc16 } else { &mut self.crc32 };
        *place = parameters;
    }
}

/// `HashAlgorithm` of v1model.p4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// CRC-32 of zlib.
    Crc32,
    /// CRC-32 with parameters set at run time.
    Crc32Custom,
    /// CRC-16/ARC.
    Crc16,
    /// CRC-16 with parameters set at run time.
    Crc16Custom,
    /// Any value.
    Random,
    /// The first 8 bytes as a number.
    Identity,
    /// The Internet checksum (RFC 1071).
    Csum16,
    /// Exclusive or of the 16-bit words.
    Xor16,
    /// Exclusive or of the bytes.
    Xor8,
    /// Exclusive or of the 32-bit words.
    Xor32,
    /// A CRC of the program's own.
    Crc(CrcParameters),
    /// A function that spreads its input, and has no other meaning.
    Spread,
}

/// The lookup table of a reflected CRC of up to 32 bits, by byte.
const fn table(polynomial: u32, width: u32) -> [u32; 256] {
    let polynomial = polynomial.reverse_bits() >> (32 - width);
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut register = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            register = (register >> 1) ^ (polynomial * (register & 1));
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
}

/// The lookup tables for eight bytes at once (slicing-by-8): table `k` is for a byte that `k` more
/// follow.
type Slices = [[u32; 256]; 8];

static CRC32_SLICES: Slices = slices(0x04c1_1db7, 32);
static CRC16_SLICES: Slices = slices(0x8005, 16);

const fn slices(polynomial: u32, width: u32) -> Slices {
    let first = table(polynomial, width);
    let mut all = [first; 8];
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = all[k - 1][byte];
            all[k][byte] = before >> 8 ^ first[(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    all
}

fn reflected(slices: &Slices, initial: u32, data: &[u8]) -> u64 {
    let (eights, rest) = data.as_chunks::<8>();
    let by_eights = eights.iter().fold(initial, |register, eight| {
        let bytes = (u64::from_le_bytes(*eight) ^ u64::from(register)).to_le_bytes();
        let parts = bytes.iter().zip(slices.iter().rev());
        parts.fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
    });
    let register = rest.iter().fold(by_eights, |register, byte| {
        slices[0][((register ^ u32::from(*byte)) & 0xff) as usize] ^ register >> 8
    });
    register.into()
}

/// Bits of an algorithm in [`Algorithm::number`]; those above are the calculation.
const ALGORITHM_BITS: u32 = 4;

impl Algorithm {
    /// Those of v1model.p4, in its order.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::Crc32,
        Algorithm::Crc32Custom,
        Algorithm::Crc16,
        Algorithm::Crc16Custom,
        Algorithm::Random,
        Algorithm::Identity,
        Algorithm::Csum16,
        Algorithm::Xor16,
    ];

    /// A number for it and for the calculation that hashes by it, for [`Algorithm::from_number`].
    /// Only custom CRCs have parameters: for other algorithms the calculation is left out. `None`
    /// for algorithms that v1model does not have, and for numbers of calculations that no compiled
    /// program has.
    pub(crate) fn number(self, calculation: Option<u32>) -> Option<u32> {
        let algorithm = Self::ALL.iter().position(|a| *a == self)? as u32;
        let is_custom = matches!(self, Algorithm::Crc32Custom | Algorithm::Crc16Custom);
        let calculation = match calculation.filter(|_| is_custom) {
            None => 0,
            Some(number) => number.checked_add(1).filter(|n| n.leading_zeros() >= ALGORITHM_BITS)?,
        };
        Some(calculation << ALGORITHM_BITS | algorithm)
    }

    /// The algorithm and the calculation of a number.
    pub(crate) fn from_number(number: u32) -> Option<(Self, Option<u32>)> {
        let algorithm = number & ((1 << ALGORITHM_BITS) - 1);
        let calculation = (number >> ALGORITHM_BITS).checked_sub(1);
        Some((*Self::ALL.get(algorithm as usize)?, calculation))
    }

    /// The member of `HashAlgorithm` that names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Crc32 => "crc32",
            Algorithm::Crc32Custom => "crc32_custom",
            Algorithm::Crc16 => "crc16",
            Algorithm::Crc16Custom => "crc16_custom",
            Algorithm::Random => "random",
            Algorithm::Identity => "identity",
            Algorithm::Csum16 => "csum16",
            Algorithm::Xor16 => "xor16",
            Algorithm::Xor8 => "xor8",
            Algorithm::Xor32 => "xor32",
            Algorithm::Crc(_) => "crc",
            Algorithm::Spread => "spread",
        }
    }

    /// The algorithm that a member of `HashAlgorithm` names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }
}

/// The 16-bit big-endian words of bytes; an odd last byte is the high half of a word.
pub(crate) fn words(data: &[u8]) -> impl Iterator<Item = u16> {
    data.chunks(2)
        .map(|c| u16::from_be_bytes([c[0], c.get(1).copied().unwrap_or(0)]))
}

/// The Internet checksum: the complement of the one's complement sum of the 16-bit words.
#[must_use]
pub fn csum16(data: &[u8]) -> u16 {
    let mut sum: u64 = words(data).map(u64::from).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Exclusive or of the 16-bit words.
#[must_use]
pub fn xor16(data: &[u8]) -> u16 {
    words(data).fold(0, |a, w| a ^ w)
}

/// The first 8 bytes or fewer as a big-endian number.
#[must_use]
pub fn identity(data: &[u8]) -> u64 {
    data.iter().take(8).fold(0, |a, &b| (a << 8) | u64::from(b))
}

/// The hash of bytes. `custom` are the parameters of the custom CRCs. For
/// [`Algorithm::Random`] it is 0: the caller uses its [`Choices`](crate::Choices).
#[must_use]
pub fn compute(algorithm: Algorithm, data: &[u8], custom: &CustomPair) -> u64 {
    match algorithm {
        Algorithm::Crc32 => CrcParameters::CRC32.compute(data),
        Algorithm::Crc32Custom => custom.crc32.compute(data),
        Algorithm::Crc16 => CrcParameters::CRC16.compute(data),
        Algorithm::Crc16Custom => custom.crc16.compute(data),
        Algorithm::Random => 0,
        Algorithm::Identity => identity(data),
        Algorithm::Csum16 => csum16(data).into(),
        Algorithm::Xor16 => xor16(data).into(),
        Algorithm::Xor8 => data.iter().fold(0, |a, b| a ^ u64::from(*b)),
        Algorithm::Xor32 => xor32(data).into(),
        Algorithm::Crc(parameters) => parameters.compute(data),
        Algorithm::Spread => spread(data),
    }
}

/// Exclusive or of the 32-bit words; the last one is filled up with zeros.
#[must_use]
pub fn xor32(data: &[u8]) -> u32 {
    let word = |c: &[u8]| {
        let mut bytes = [0; 4];
        bytes[..c.len()].copy_from_slice(c);
        u32::from_be_bytes(bytes)
    };
    data.chunks(4).fold(0, |a, c| a ^ word(c))
}

/// Every bit of the input changes about half of those of the result: FNV-1a, and the finish of
/// SplitMix64.
fn spread(data: &[u8]) -> u64 {
    let sum = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |a, b| {
        (a ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    });
    let z = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A one's complement sum of 16-bit words with those of bytes added to it, or taken away from it.
#[must_use]
pub(crate) fn ones_sum(sum: u16, data: &[u8], subtract: bool) -> u16 {
    words(data).fold(sum, |sum, word| {
        let word = if subtract { !word } else { word };
        let (total, carry) = sum.overflowing_add(word);
        total + u16::from(carry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    #[test]
    fn tables_give_what_the_bits_give() {
        for crc in [CrcParameters::CRC16, CrcParameters::CRC32] {
            let bytes: Vec<u8> = (0..40_u32).map(|i| (i * i * 7 + 11) as u8).collect();
            for length in 0..bytes.len() {
                assert_eq!(crc.compute(&bytes[..length]), crc.bit_by_bit(&bytes[..length]));
            }
        }
    }

    #[test]
    fn crcs_give_the_catalogue_check_values() {
        assert_eq!(CrcParameters::CRC16.compute(CHECK), 0xbb3d);
        assert_eq!(CrcParameters::CRC32.compute(CHECK), 0xcbf4_3926);
        let ccitt = CrcParameters {
            polynomial: 0x1021,
            initial: 0xffff,
            reflect_in: false,
            reflect_out: false,
            ..CrcParameters::CRC16
        };
        assert_eq!(ccitt.compute(CHECK), 0x29b1);
        let xz = CrcParameters {
            width: 64,
            polynomial: 0x42f0_e1eb_a9ea_3693,
            initial: u64::MAX,
            reflect_in: true,
            reflect_out: true,
            xor_out: u64::MAX,
        };
        assert_eq!(xz.compute(CHECK), 0x995d_c9bb_df19_39fa);
    }

    #[test]
    fn numbers_hold_the_algorithm_and_the_calculation() {
        for algorithm in [Algorithm::Crc32Custom, Algorithm::Crc16Custom] {
            for calculation in [None, Some(0), Some(7), Some((1 << 28) - 2)] {
                let number = algorithm.number(calculation).expect("fits");
                assert_eq!(Algorithm::from_number(number), Some((algorithm, calculation)));
            }
        }
        assert_eq!(Algorithm::Crc32Custom.number(Some((1 << 28) - 1)), None);
        assert_eq!(Algorithm::Crc32Custom.number(Some(u32::MAX)), None);
        for algorithm in Algorithm::ALL {
            let number = algorithm.number(None).expect("is of v1model");
            assert_eq!(Algorithm::from_number(number), Some((algorithm, None)));
        }
        assert_eq!(Algorithm::Crc32.number(Some(5)), Algorithm::Crc32.number(None));
        assert_eq!(Algorithm::Xor8.number(None), None);
    }

    #[test]
    fn csum16_is_that_of_rfc_1071() {
        let ipv4 = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7,
        ];
        assert_eq!(csum16(&ipv4), 0xb861);
        assert_eq!(csum16(&[0x12]), !0x1200);
        assert_eq!(csum16(&[]), 0xffff);
    }

    #[test]
    fn xor16_and_identity_take_bytes_from_the_front() {
        assert_eq!(xor16(&[0x12, 0x34, 0xff]), 0x1234 ^ 0xff00);
        assert_eq!(identity(&[1, 2]), 0x102);
        assert_eq!(identity(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), 0x0102_0304_0506_0708);
    }
}
