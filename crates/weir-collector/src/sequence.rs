//! Sequence numbers: what is lost, late, or there twice.

/// Numbers behind the highest one that are remembered.
const WINDOW: u64 = 1024;
/// Numbers in a word of the window.
const WORD: u64 = u64::BITS as u64;

/// This many old numbers, each a little higher than the one before, are a restart of the sender.
const RESTART: u32 = 3;

/// What a sequence number says about its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The next number, or the first one.
    InOrder,
    /// Numbers before it are missing.
    AfterGap {
        /// How many.
        missing: u64,
    },
    /// A number that was missing: it had been overtaken.
    Late,
    /// A number that has been there, or is too old to tell.
    Duplicate,
    /// The sender began anew.
    Restart,
}

/// Totals over a stream of sequence numbers. All are exact as long as nothing arrives more than
/// 1024 numbers late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SequenceCounts {
    /// Messages that came, duplicates left out.
    pub received: u64,
    /// Numbers that have not come. Negative in an interval in which more of the numbers came late
    /// that were missing before it than are missing now.
    pub lost: i64,
    /// Messages that came after one with a higher number.
    pub reordered: u64,
    /// Messages that came twice, or before the first number that is known.
    pub duplicates: u64,
    /// Restarts of the sender.
    pub restarts: u64,
}

impl SequenceCounts {
    /// What came since an earlier state of the same stream.
    #[must_use]
    pub fn since(self, earlier: SequenceCounts) -> SequenceCounts {
        SequenceCounts {
            received: self.received - earlier.received,
            lost: self.lost - earlier.lost,
            reordered: self.reordered - earlier.reordered,
            duplicates: self.duplicates - earlier.duplicates,
            restarts: self.restarts - earlier.restarts,
        }
    }

    /// Adds those of another stream, or of another time.
    pub fn add(&mut self, other: SequenceCounts) {
        self.received += other.received;
        self.lost += other.lost;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.restarts += other.restarts;
    }
}

/// Follows the sequence numbers of one sender.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// A number with all bits set; numbers wrap after it.
    mask: u64,
    /// The highest number, extended over wraps; `None` before the first one.
    highest: Option<u64>,
    /// A bit for each of the last [`WINDOW`] numbers: it has come. Bit `n % WINDOW` is that of `n`.
    window: [u64; (WINDOW / WORD) as usize],
    /// The last number older than the window, and how many came in order up to it.
    old: Option<(u64, u32)>,
    counts: SequenceCounts,
}

impl Sequence {
    /// Follows numbers of this many bits (1 to 64).
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Sequence {
            mask: u64::MAX >> (u64::BITS - bits.clamp(1, u64::BITS)),
            highest: None,
            window: [0; (WINDOW / WORD) as usize],
            old: None,
            counts: SequenceCounts::default(),
        }
    }

    /// What has come so far.
    #[must_use]
    pub fn counts(&self) -> SequenceCounts {
        self.counts
    }

    /// Takes a number.
    pub fn arrive(&mut self, number: u64) -> Arrival {
        let number = number & self.mask;
        let Some(highest) = self.highest else {
            return self.begin(number, Arrival::InOrder);
        };
        // The distance modulo the width, as a signed number.
        let ahead = number.wrapping_sub(highest) & self.mask;
        let behind = highest.wrapping_sub(number) & self.mask;
        if ahead != 0 && ahead <= behind {
            self.advance(highest, ahead)
        } else {
            self.look_back(highest, behind)
        }
    }

    fn begin(&mut self, number: u64, arrival: Arrival) -> Arrival {
        // Space below, so that numbers behind the first one do not wrap below 0.
        let number = number | ((1 << (u64::BITS - 1)) & !self.mask);
        self.highest = Some(number);
        self.old = None;
        // Numbers before the first one count as having come: nothing says that they were sent.
        self.window = [u64::MAX; (WINDOW / WORD) as usize];
        self.counts.received += 1;
        arrival
    }

    fn advance(&mut self, highest: u64, ahead: u64) -> Arrival {
        let new = highest.wrapping_add(ahead);
        if ahead >= WINDOW {
            self.window = [0; (WINDOW / WORD) as usize];
        } else {
            (1..=ahead).for_each(|step| self.clear(highest.wrapping_add(step)));
        }
        self.set(new);
        self.highest = Some(new);
        self.counts.received += 1;
        self.counts.lost += ahead as i64 - 1;
        match ahead {
            1 => Arrival::InOrder,
            _ => Arrival::AfterGap { missing: ahead - 1 },
        }
    }

    fn look_back(&mut self, highest: u64, behind: u64) -> Arrival {
        let number = highest.wrapping_sub(behind);
        if behind >= WINDOW {
            return self.look_far_back(number);
        }
        if self.has(number) {
            self.counts.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.set(number);
        self.counts.received += 1;
        self.counts.reordered += 1;
        self.counts.lost -= 1;
        Arrival::Late
    }

    /// An old number is a duplicate, until several have come in order. Those before stay counted as
    /// duplicates: counts never decrease, so that differences between two times are not negative.
    fn look_far_back(&mut self, number: u64) -> Arrival {
        let follows = |last: u64| (1..WINDOW).contains(&(number.wrapping_sub(last) & self.mask));
        let run = match self.old {
            Some((last, run)) if follows(last) => run + 1,
            Some(_) | None => 1,
        };
        self.old = Some((number, run));
        if run < RESTART {
            self.counts.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.counts.restarts += 1;
        self.begin(number & self.mask, Arrival::Restart)
    }

    fn place(number: u64) -> (usize, u64) {
        let at = number % WINDOW;
        ((at / WORD) as usize, 1 << (at % WORD))
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.window[word] & bit != 0
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        self.window[word] |= bit;
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        self.window[word] &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Sequence, WINDOW};
    use proptest::prelude::*;

    #[test]
    fn gaps_are_lost_until_the_late_arrive() {
        let mut sequence = Sequence::new(22);
        let arrivals: Vec<Arrival> = [5, 6, 9, 7, 7, 10].map(|n| sequence.arrive(n)).into();
        let expected = [
            Arrival::InOrder,
            Arrival::InOrder,
            Arrival::AfterGap { missing: 2 },
            Arrival::Late,
            Arrival::Duplicate,
            Arrival::InOrder,
        ];
        assert_eq!(arrivals, expected);
        let counts = sequence.counts();
        assert_eq!(
            (counts.received, counts.lost, counts.reordered, counts.duplicates),
            (5, 1, 1, 1)
        );
    }

    #[test]
    fn numbers_wrap_at_their_width() {
        for bits in [8, 22, 32, 64] {
            let last = u64::MAX >> (64 - bits);
            let mut sequence = Sequence::new(bits);
            for number in [last - 1, last, 0, 2] {
                sequence.arrive(number);
            }
            assert_eq!(sequence.arrive(1), Arrival::Late, "{bits}");
            assert_eq!((sequence.counts().lost, sequence.counts().restarts), (0, 0), "{bits}");
        }
    }

    #[test]
    fn old_numbers_in_order_are_a_restart() {
        let mut sequence = Sequence::new(22);
        (0..40_000).for_each(|n| {
            sequence.arrive(n);
        });
        assert_eq!([0, 1].map(|n| sequence.arrive(n)), [Arrival::Duplicate; 2]);
        assert_eq!(sequence.arrive(2), Arrival::Restart);
        assert_eq!(sequence.arrive(5), Arrival::AfterGap { missing: 2 });
        let counts = sequence.counts();
        assert_eq!((counts.received, counts.lost, counts.restarts), (40_002, 2, 1));
    }

    #[test]
    fn counts_since_an_earlier_time_are_right_across_a_restart() {
        let mut sequence = Sequence::new(32);
        sequence.arrive(100_000);
        sequence.arrive(0);
        sequence.arrive(1);
        let before = sequence.counts();
        sequence.arrive(2);
        let since = sequence.counts().since(before);
        assert_eq!((since.received, since.duplicates, since.restarts), (1, 0, 1));
    }

    #[test]
    fn a_long_outage_is_loss() {
        let mut sequence = Sequence::new(22);
        sequence.arrive(10);
        assert_eq!(sequence.arrive(70_011), Arrival::AfterGap { missing: 70_000 });
        assert_eq!((sequence.counts().lost, sequence.counts().restarts), (70_000, 0));
    }

    #[test]
    fn numbers_older_than_the_window_count_as_duplicates() {
        let mut sequence = Sequence::new(32);
        sequence.arrive(10);
        sequence.arrive(10 + WINDOW + 5);
        assert_eq!(sequence.arrive(11), Arrival::Duplicate);
    }

    proptest! {
        #[test]
        fn shuffled_within_the_window_everything_is_counted_exactly(
            keep in prop::collection::vec(prop::bool::weighted(0.9), 2..2000),
            displacement in 1_usize..200,
            start in any::<u32>(),
        ) {
            let mut sent: Vec<u64> = (0..keep.len() as u64).filter(|n| keep[*n as usize]).collect();
            prop_assume!(!sent.is_empty());
            let (first, last) = (sent[0], sent[sent.len() - 1]);
            // The first number fixes where counting starts: it stays in front.
            sent[1..].chunks_mut(displacement).for_each(<[u64]>::reverse);
            let mut sequence = Sequence::new(32);
            sent.iter().for_each(|n| { sequence.arrive(n + u64::from(start)); });
            let counts = sequence.counts();
            prop_assert_eq!(counts.received, sent.len() as u64);
            prop_assert_eq!(counts.lost, (last - first + 1) as i64 - sent.len() as i64);
            prop_assert_eq!(counts.duplicates, 0);
        }
    }
}
