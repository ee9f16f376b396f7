//! Packets that wait on stacks of their own: a coroutine per packet, by crate corosensei.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use std::hint::black_box;
use std::io;

/// Bytes of a stack.
const STACK: usize = 16 * 1024;
/// Words of a packet's context that live on the stack: a cache line.
const CONTEXT: usize = 8;

/// A packet that waits.
pub type Waiting = Coroutine<u64, u64, u64, DefaultStack>;

/// Runs a coroutine per packet, on stacks that are made once.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let mut coroutines = weir_baseline::coroutine::Coroutines::new(2)?;
/// let (waiting, key) = coroutines.start(7).expect("two stacks are free");
/// assert_eq!((key, coroutines.finish(waiting, 100)), (7, 107));
/// # Ok(())
/// # }
/// ```
pub struct Coroutines {
    stacks: Vec<DefaultStack>,
}

impl std::fmt::Debug for Coroutines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coroutines")
            .field("free", &self.stacks.len())
            .finish_non_exhaustive()
    }
}

impl Coroutines {
    /// With this many stacks.
    ///
    /// # Errors
    /// The system has no memory for a stack.
    pub fn new(count: usize) -> io::Result<Self> {
        let stacks = (0..count)
            .map(|_| DefaultStack::new(STACK))
            .collect::<io::Result<_>>()?;
        Ok(Coroutines { stacks })
    }

    /// Starts the handler of a packet and runs it to its extern call. Gives what it hands over;
    /// `None` if no stack is free.
    #[inline]
    pub fn start(&mut self, packet: u64) -> Option<(Waiting, u64)> {
        let stack = self.stacks.pop()?;
        let mut handler = Waiting::with_stack(stack, |yielder, packet: u64| {
            let context = black_box([packet; CONTEXT]);
            let outcome = yielder.suspend(packet);
            black_box(context)[CONTEXT - 1] + outcome
        });
        match handler.resume(packet) {
            CoroutineResult::Yield(call) => Some((handler, call)),
            CoroutineResult::Return(result) => Some((handler, result)),
        }
    }

    /// Continues a packet with what the extern gave, to the end of its handler. Gives the result.
    #[inline]
    pub fn finish(&mut self, mut waiting: Waiting, outcome: u64) -> u64 {
        let (CoroutineResult::Yield(result) | CoroutineResult::Return(result)) = waiting.resume(outcome);
        if waiting.done() {
            self.stacks.push(waiting.into_stack());
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_side_by_side_and_stacks_come_back() {
        let mut coroutines = Coroutines::new(3).expect("stacks");
        for _ in 0..2 {
            let waiting: Vec<_> = (0..3).filter_map(|packet| coroutines.start(packet)).collect();
            assert!(coroutines.start(9).is_none(), "all stacks are in use");
            let results: Vec<u64> = waiting
                .into_iter()
                .map(|(waiting, call)| coroutines.finish(waiting, 10 * call))
                .collect();
            assert_eq!(results, [0, 11, 22]);
        }
    }
}
