//! Bad input from good input.

/// Longest input that is made.
const MAX_LENGTH: usize = 64 * 1024;
/// Things that have broken parsers before.
const POISON: &[&[u8]] = &[
    b"\0",
    b"\xff\xff\xff\xff",
    b"((((((((((((((((",
    b"{{{{{{{{",
    b"<<<<<<<<",
    b"/*",
    b"*/",
    b"\"",
    b"\\\n",
    b"#if",
    b"#include <core.p4>\n",
    b"#define X X X\n",
    b"99999999999999999999",
    b"0x",
    b"8w",
    b"-1",
    b"65537",
    b"4294967296",
    b"bit<0>",
    b"int<1>",
    b"varbit<1024>",
    b"[4096]",
    b"...",
    b"{#}",
    b"@name(\"",
    b".apply()",
    b"default",
    b"_",
    b"this",
    b"error.",
    b"&&&",
    b"..",
    b"|+|",
    b"++",
    b">>",
    b"\xc3\xa9",
];

/// Makes inputs from seeds, the same ones for the same number.
pub struct Mutator {
    state: u64,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    /// A source of inputs. Without seeds it makes random bytes.
    #[must_use]
    pub fn new(number: u64, seeds: Vec<Vec<u8>>) -> Self {
        Mutator {
            state: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            seeds,
        }
    }

    /// xorshift64*: good enough to be surprising.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            0
        } else {
            (self.random() % limit as u64) as usize
        }
    }

    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.random()
    }

    /// One of the seeds as it is; nothing if there are none.
    pub fn next_seed(&mut self) -> &[u8] {
        let i = self.below(self.seeds.len());
        self.seeds.get(i).map_or(&[], Vec::as_slice)
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = if self.seeds.is_empty() || self.below(50) == 0 {
            let length = self.below(256);
            (0..length).map(|_| self.random() as u8).collect()
        } else {
            let i = self.below(self.seeds.len());
            self.seeds[i].clone()
        };
        for _ in 0..=self.below(6) {
            self.mutate(&mut input);
        }
        input.truncate(MAX_LENGTH);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(12) {
            0 if !input.is_empty() => {
                let i = self.below(input.len());
                input[i] ^= 1 << self.below(8);
            }
            1 => {
                let length = self.below(64);
                let end = (at + length).min(input.len());
                input.drain(at..end);
            }
            2 => {
                let poison = POISON[self.below(POISON.len())];
                input.splice(at..at, poison.iter().copied());
            }
            3 => input.truncate(at),
            4 => {
                let length = self.below(200).min(input.len() - at);
                let piece = input[at..at + length].to_vec();
                let times = 1 + self.below(8);
                for _ in 0..times {
                    input.splice(at..at, piece.iter().copied());
                }
            }
            5 if !self.seeds.is_empty() => self.splice_other(input, at),
            6 => self.swap_tokens(input),
            7 => self.replace_token(input),
            8 => self.delete_token(input),
            9 => self.change_number(input),
            10 => self.delete_line(input),
            _ => input.insert(at, self.random() as u8),
        }
    }

    fn splice_other(&mut self, input: &mut Vec<u8>, at: usize) {
        let i = self.below(self.seeds.len());
        let other = self.seeds[i].clone();
        let start = self.below(other.len());
        let end = (start + self.below(400)).min(other.len());
        input.splice(at..at, other[start..end].iter().copied());
    }

    /// Start and end of a token around a random place.
    fn token(&mut self, input: &[u8]) -> Option<(usize, usize)> {
        let at = self.below(input.len());
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let first = *input.get(at)?;
        if !is_word(first) {
            return Some((at, at + 1));
        }
        let start = input[..at].iter().rposition(|&b| !is_word(b)).map_or(0, |p| p + 1);
        let end = input[at..]
            .iter()
            .position(|&b| !is_word(b))
            .map_or(input.len(), |p| at + p);
        Some((start, end))
    }

    fn swap_tokens(&mut self, input: &mut Vec<u8>) {
        let (Some(a), Some(b)) = (self.token(input), self.token(input)) else {
            return;
        };
        let (a, b) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        if a.1 > b.0 {
            return;
        }
        let (first, second) = (input[a.0..a.1].to_vec(), input[b.0..b.1].to_vec());
        input.splice(b.0..b.1, first);
        input.splice(a.0..a.1, second);
    }

    fn replace_token(&mut self, input: &mut Vec<u8>) {
        let (Some(a), Some(b)) = (self.token(input), self.token(input)) else {
            return;
        };
        let replacement = input[b.0..b.1].to_vec();
        input.splice(a.0..a.1, replacement);
    }

    fn delete_token(&mut self, input: &mut Vec<u8>) {
        if let Some((start, end)) = self.token(input) {
            input.drain(start..end);
        }
    }

    fn change_number(&mut self, input: &mut Vec<u8>) {
        let from = self.below(input.len());
        let Some(start) = input[from..].iter().position(u8::is_ascii_digit).map(|p| p + from) else {
            return;
        };
        let end = input[start..]
            .iter()
            .position(|b| !b.is_ascii_digit())
            .map_or(input.len(), |p| start + p);
        let number = match self.below(5) {
            0 => 0,
            1 => self.random() % 10,
            2 => self.random() % 300,
            3 => 1 << self.below(40),
            _ => self.random(),
        };
        input.splice(start..end, number.to_string().into_bytes());
    }

    fn delete_line(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        let start = input[..at].iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1);
        let end = input[at..]
            .iter()
            .position(|&b| b == b'\n')
            .map_or(input.len(), |p| at + p + 1);
        input.drain(start..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_inputs() {
        let inputs = |n| {
            let mut m = Mutator::new(n, vec![b"header h { bit<8> a; }".to_vec()]);
            (0..20).map(|_| m.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }
}
