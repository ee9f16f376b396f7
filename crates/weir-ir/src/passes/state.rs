//! The facts known at one point of a body: values of variables, and what the validity of headers
//! says of each other.
//!
//! A test of one header's validity often decides others: a parser has extracted both or neither, or
//! one of two.

/// Values of the tracked variables at one point.
#[derive(Debug, Clone)]
pub(super) struct State {
    values: Vec<u64>,
    known: Vec<u64>,
    /// Variables that are not zero, whatever they are.
    nonzero: Vec<u64>,
    /// What the validity of headers says of each other. The first variables that are tracked are
    /// theirs.
    implied: Vec<Implied>,
}

/// Headers whose validity is tracked against each other: as many as a word has bits.
pub(super) const RELATED: usize = 64;

/// The facts that hold wherever a header is valid: a bit per header.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Implied {
    valid: u64,
    invalid: u64,
}

impl Implied {
    /// Of a header that is not valid.
    const ANYTHING: Self = Implied {
        valid: u64::MAX,
        invalid: u64::MAX,
    };
}

impl State {
    /// A state in which the given number of variables are unknown. Relations are tracked among the
    /// first `related`.
    pub fn unknown(variables: usize, related: usize) -> Self {
        State {
            values: vec![0; variables],
            known: vec![0; variables.div_ceil(64)],
            nonzero: vec![0; variables.div_ceil(64)],
            implied: vec![Implied::default(); related],
        }
    }

    /// Headers that are known to be valid, and those that are known not to be.
    fn validity(&self) -> Implied {
        let headers = u64::MAX.checked_shr((RELATED - self.implied.len()) as u32);
        let (Some(headers), Some(known), Some(nonzero)) = (headers, self.known.first(), self.nonzero.first()) else {
            return Implied::default();
        };
        let known = known & headers;
        Implied {
            valid: known & nonzero,
            invalid: known & !nonzero,
        }
    }

    /// What follows from each header's validity, with what is so anyway.
    fn all_implied(&self) -> impl Iterator<Item = Implied> {
        let now = self.validity();
        let implied = self.implied.iter().enumerate();
        implied.map(move |(n, implied)| match now.invalid >> n & 1 {
            1 => Implied::ANYTHING,
            _ => Implied {
                valid: implied.valid | now.valid,
                invalid: implied.invalid | now.invalid,
            },
        })
    }

    /// A variable turns out to have a value.
    pub fn learn(&mut self, index: usize, value: u64) {
        self.set_value(index, Some(value));
        if index >= self.implied.len() {
            return;
        }
        loop {
            let now = self.validity();
            let mut more = now;
            for (n, implied) in self.implied.iter().enumerate() {
                if now.valid >> n & 1 == 1 {
                    more.valid |= implied.valid;
                    more.invalid |= implied.invalid;
                } else if implied.valid & now.invalid | implied.invalid & now.valid != 0 {
                    more.invalid |= 1 << n;
                }
            }
            // Where both are said of a header, no packet gets here.
            if more == now || more.valid & more.invalid != 0 {
                return;
            }
            for n in 0..self.implied.len() {
                if more.valid >> n & 1 == 1 {
                    self.set_value(n, Some(1));
                } else if more.invalid >> n & 1 == 1 {
                    self.set_value(n, Some(0));
                }
            }
        }
    }

    pub fn get(&self, index: usize) -> Option<u64> {
        (self.known[index / 64] >> (index % 64) & 1 == 1).then(|| self.values[index])
    }

    pub fn is_nonzero(&self, index: usize) -> bool {
        self.nonzero[index / 64] >> (index % 64) & 1 == 1
    }

    pub fn set_nonzero(&mut self, index: usize) {
        self.nonzero[index / 64] |= 1 << (index % 64);
    }

    /// A variable is written.
    pub fn set(&mut self, index: usize, value: Option<u64>) {
        self.set_value(index, value);
        if index < self.implied.len() {
            for implied in &mut self.implied {
                implied.valid &= !(1 << index);
                implied.invalid &= !(1 << index);
            }
            self.implied[index] = Implied::default();
        }
    }

    fn set_value(&mut self, index: usize, value: Option<u64>) {
        let bit = 1 << (index % 64);
        self.nonzero[index / 64] &= !bit;
        match value {
            Some(v) => {
                self.values[index] = v;
                self.known[index / 64] |= bit;
                if v != 0 {
                    self.set_nonzero(index);
                }
            }
            None => self.known[index / 64] &= !bit,
        }
    }

    /// Keeps what both agree on; whether that is less than before.
    pub fn meet(&mut self, other: &State) -> bool {
        let mut changed = false;
        let implied = self.all_implied().zip(other.all_implied());
        let implied = implied.map(|(mine, theirs)| {
            let both = Implied {
                valid: mine.valid & theirs.valid,
                invalid: mine.invalid & theirs.invalid,
            };
            changed |= both != mine;
            both
        });
        self.implied = implied.collect();
        for (word, (mine, theirs)) in self.known.iter_mut().zip(&other.known).enumerate() {
            let mut keep = *mine & *theirs;
            let mut bits = keep;
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let index = word * 64 + bit;
                if self.values[index] != other.values[index] {
                    keep &= !(1 << bit);
                }
            }
            changed |= keep != *mine;
            *mine = keep;
        }
        for (mine, theirs) in self.nonzero.iter_mut().zip(&other.nonzero) {
            changed |= *mine & !theirs != 0;
            *mine &= theirs;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers 0 and 1 come together, 2 without them.
    fn parsed() -> State {
        let mut nothing = State::unknown(4, 3);
        (0..3).for_each(|header| nothing.set(header, Some(0)));
        let (mut both, mut other) = (nothing.clone(), nothing.clone());
        [0, 1].into_iter().for_each(|header| both.set(header, Some(1)));
        other.set(2, Some(1));
        assert!(nothing.meet(&both) && nothing.meet(&other));
        assert!(!nothing.meet(&both) && !nothing.meet(&other));
        nothing
    }

    fn known(state: &State) -> [Option<u64>; 3] {
        [0, 1, 2].map(|header| state.get(header))
    }

    #[test]
    fn a_header_says_of_others_what_was_so_on_every_way_that_has_it() {
        let learnt = |header, value| {
            let mut state = parsed();
            assert_eq!(known(&state), [None; 3]);
            state.learn(header, value);
            known(&state)
        };
        assert_eq!(learnt(0, 1), [Some(1), Some(1), Some(0)]);
        assert_eq!(learnt(1, 0), [Some(0), Some(0), None]);
        assert_eq!(learnt(2, 1), [Some(0), Some(0), Some(1)]);
        assert_eq!(learnt(2, 0), [None, None, Some(0)]);
    }

    #[test]
    fn a_header_that_is_written_says_nothing_any_more() {
        let mut state = parsed();
        state.set(1, None);
        let mut first = state.clone();
        first.learn(0, 1);
        assert_eq!(known(&first), [Some(1), None, Some(0)]);
        state.learn(1, 1);
        assert_eq!(known(&state), [None, Some(1), None]);
    }

    #[test]
    fn what_no_packet_can_be_changes_nothing_else() {
        let mut state = parsed();
        state.learn(0, 1);
        state.learn(2, 1);
        assert_eq!((state.get(0), state.get(1)), (Some(1), Some(1)));
    }
}
