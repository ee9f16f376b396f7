//! Sequence numbers of security associations, and the anti-replay window.

use crate::Status;
use crate::key_table::no_such_key;
use crate::object::{Members, Type};
use crate::shape::{Expected, Method, Shape};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_extern_api::{Call, KeyError, Keys};

static CHECK: Shape = Shape {
    name: "check",
    parameters: &[
        ("association", Expected::In(32)),
        ("sequence", Expected::In(32)),
        ("status", Expected::Status),
    ],
};
static COMMIT: Shape = Shape {
    name: "commit",
    parameters: CHECK.parameters,
};
static NEXT: Shape = Shape {
    name: "next",
    parameters: &[
        ("association", Expected::In(32)),
        ("number", Expected::Out(32)),
        ("status", Expected::Status),
    ],
};

/// `replay_window`
pub(crate) const REPLAY_WINDOW: Type = Type {
    name: "replay_window",
    count: "associations",
    make: |count| {
        let windows = Arc::new(Associations::<Mutex<Window>>::new(count));
        let (checks, commits) = (Arc::clone(&windows), Arc::clone(&windows));
        let check = Method::declared(&CHECK, move |call| on_window(&checks, call, |w, n| w.check(n)));
        let commit = Method::declared(&COMMIT, move |call| on_window(&commits, call, Window::commit));
        Members::new(windows).with(check).with(commit)
    },
};

/// `sequence`
pub(crate) const SEQUENCE: Type = Type {
    name: "sequence",
    count: "associations",
    make: |count| {
        let numbers = Arc::new(Associations::<AtomicU32>::new(count));
        let of_next = Arc::clone(&numbers);
        Members::new(numbers).with(Method::declared(&NEXT, move |call| next(&of_next, call)))
    },
};

fn on_window(
    windows: &Associations<Mutex<Window>>,
    call: &mut Call<'_>,
    run: impl FnOnce(&mut Window, u32) -> Status,
) -> Status {
    match windows.get(call.get(0)) {
        Some(window) => run(&mut locked(window), call.get(1) as u32),
        None => Status::OutOfRange,
    }
}

fn next(numbers: &Associations<AtomicU32>, call: &mut Call<'_>) -> Status {
    call.set(1, 0);
    let Some(last) = numbers.get(call.get(0)) else {
        return Status::OutOfRange;
    };
    // Relaxed: no other memory depends on the number.
    let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| last.checked_add(1));
    match before {
        Ok(before) => {
            call.set(1, u64::from(before) + 1);
            Status::Ok
        }
        Err(_) => Status::Exhausted,
    }
}

/// The state of one association.
trait State: Default + Send + Sync {
    /// Makes it that of a new association.
    fn reset(&self);
    /// Whether it differs from that of a new association.
    fn is_used(&self) -> bool;
}

impl State for AtomicU32 {
    fn reset(&self) {
        self.store(0, Ordering::Relaxed);
    }

    fn is_used(&self) -> bool {
        self.load(Ordering::Relaxed) != 0
    }
}

impl State for Mutex<Window> {
    fn reset(&self) {
        *locked(self) = Window::default();
    }

    fn is_used(&self) -> bool {
        *locked(self) != Window::default()
    }
}

/// A window is valid after each statement that changes it, so a panic elsewhere does not matter.
fn locked(window: &Mutex<Window>) -> MutexGuard<'_, Window> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The states of associations by number. To a control plane they are keys without content: removing
/// the key of an association resets it.
struct Associations<S>(Box<[S]>);

impl<S: State> Associations<S> {
    fn new(count: usize) -> Self {
        Associations((0..count).map(|_| S::default()).collect())
    }

    fn get(&self, index: u64) -> Option<&S> {
        self.0.get(usize::try_from(index).ok()?)
    }

    fn state(&self, index: u64) -> Result<&S, KeyError> {
        self.get(index).ok_or_else(|| no_such_key(index, self.0.len()))
    }
}

impl<S: State> Keys for Associations<S> {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn check(&self, index: u64, key: &[u8]) -> Result<(), KeyError> {
        self.state(index)?;
        match key.len() {
            0 => Ok(()),
            found => Err(KeyError::Length {
                found,
                expected: "0 (which resets the association)".to_owned(),
            }),
        }
    }

    fn set(&self, index: u64, key: &[u8]) -> Result<(), KeyError> {
        self.check(index, key)?;
        self.state(index)?.reset();
        Ok(())
    }

    fn only_resets(&self) -> bool {
        true
    }

    fn is_set(&self, index: u64) -> Result<bool, KeyError> {
        Ok(self.state(index)?.is_used())
    }
}

/// The anti-replay window (RFC 4303, 3.4.3): the highest number that was committed, and which of
/// the 64 numbers up to it were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Window {
    highest: u32,
    /// Bit i: `highest - i` was committed.
    seen: u64,
}

impl Window {
    /// Whether a packet with this number may still come. Numbers begin with 1.
    fn check(self, number: u32) -> Status {
        let is_seen = match self.highest.checked_sub(number) {
            None => false,
            Some(behind @ 0..64) => number == 0 || self.seen >> behind & 1 == 1,
            Some(64..) => true,
        };
        if is_seen { Status::Replayed } else { Status::Ok }
    }

    /// Marks this number as seen, unless it was or is too old.
    fn commit(&mut self, number: u32) -> Status {
        let status = self.check(number);
        if status != Status::Ok {
            return status;
        }
        if let Some(ahead) = number.checked_sub(self.highest) {
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = number;
        } else {
            self.seen |= 1 << (self.highest - number);
        }
        Status::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: &[u32]) -> Window {
        let mut window = Window::default();
        for number in numbers {
            assert_eq!(window.commit(*number), Status::Ok, "{number} of {numbers:?}");
        }
        window
    }

    #[test]
    fn the_window_is_64_numbers_and_slides_with_the_highest() {
        let window = after(&[1, 100]);
        let accepted: Vec<u32> = (0..200).filter(|n| window.check(*n) == Status::Ok).collect();
        let expected: Vec<u32> = (37..100).chain(101..200).collect();
        assert_eq!(accepted, expected);
    }

    #[test]
    fn no_number_is_committed_twice() {
        let mut window = after(&[5, 3, 4, 64, 63, 65, 1000, 937]);
        for number in [5, 3, 4, 64, 63, 65, 1000, 937, 936, 0] {
            assert_eq!(window.commit(number), Status::Replayed, "{number}");
        }
        assert_eq!(after(&[1]).check(1), Status::Replayed);
        assert_eq!(after(&[1, 65]).check(1), Status::Replayed);
        assert_eq!(after(&[1, 65]).check(2), Status::Ok);
        assert_eq!(after(&[1, 64]).check(1), Status::Replayed);
        assert_eq!(after(&[2, 64]).check(1), Status::Ok);
    }

    #[test]
    fn numbers_do_not_wrap() {
        let last = u32::MAX;
        let window = after(&[1, last, last - 63]);
        for number in [0, 1, 2, last, last - 63, last - 64] {
            assert_eq!(window.check(number), Status::Replayed, "{number}");
        }
        assert_eq!(window.check(last - 1), Status::Ok);
        assert_eq!(window.check(last - 62), Status::Ok);
        assert_eq!(Window::default().check(0), Status::Replayed);
        assert_eq!(after(&[last - 1]).check(last), Status::Ok);
    }

    #[test]
    fn numbers_end_and_a_reset_begins_anew() {
        let numbers = Associations::<AtomicU32>::new(2);
        numbers.0[1].store(u32::MAX, Ordering::Relaxed);
        assert_eq!((numbers.is_set(0), numbers.is_set(1)), (Ok(false), Ok(true)));
        assert!(numbers.set(1, &[1]).is_err() && numbers.set(2, &[]).is_err());
        numbers.set(1, &[]).expect("a reset");
        assert_eq!(numbers.is_set(1), Ok(false));
    }
}
