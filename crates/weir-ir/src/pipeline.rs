//! Several programmable blocks in sequence as one body, which a compiling engine compiles as a
//! whole.
//!
//! With an interpreter, the architecture chooses the next programmable block after each one. For
//! compiled code it must be known at compile time: an architecture that supports that makes one
//! body of its blocks and its own processing between them, with the [`Exit`]s by which packets
//! leave. Constants are then propagated from parser to deparser, and a packet's variables stay in
//! registers across blocks.
//!
//! The body may have parser and deparser instructions. Its paths end in
//! [`Terminator::Exit`], never in `accept`, `reject` or `return`.

use crate::passes::VarSet;
use crate::program::{Body, Program, TableId, Terminator, VarId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A body to compile.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// The program whose variables, headers, tables and externs the body names. Its own blocks are
    /// ignored.
    pub program: Arc<Program>,
    /// The code.
    pub body: Body,
    /// Variables that the caller sets before the pipeline starts; all others start as zero.
    pub inputs: Vec<VarId>,
    /// The exits; [`Terminator::Exit`] indexes them.
    pub exits: Vec<Exit>,
    /// The kind of each extern call of the body, in the order of the body's blocks and
    /// instructions.
    pub calls: Vec<CallKind>,
    /// The exit of a packet that compiled code cannot process, such as one whose cursor is not at a
    /// whole byte. Only taken before any call: the driver runs the packet from the start.
    pub punt_from_start: u32,
    /// The most that [`Mark::ParserBlocks`](crate::Mark::ParserBlocks) of a packet may add up to at
    /// the header of a parser's loop, so that the interpreter certainly does not time out. A packet
    /// that exceeds it leaves by `punt_from_start`, and the interpreter decides.
    pub parser_block_limit: u32,
    /// The exit of a packet that exceeds its instruction budget.
    pub instruction_budget_drop: u32,
    /// By table index: whether lookups must keep the order of packets, because of direct meters.
    pub ordered_tables: Vec<bool>,
    /// The state that a lookup of a table reads, by the numbers in [`CallKind::Host`], where calls
    /// may write it; by index. Tables that are not named read none.
    pub table_states: Vec<Option<u32>>,
}

/// An exit of a pipeline.
#[derive(Debug, Clone)]
pub struct Exit {
    /// Its name, for people.
    pub name: &'static str,
    /// Variables that the receiver of the packet reads.
    pub live: Vec<VarId>,
    /// The packet is deparsed: emitted headers, then the payload. Otherwise its bytes are as they
    /// were received.
    pub deparsed: bool,
    /// The tables and state that the packet may access outside the pipeline. `None`: it ends here.
    pub touches: Option<Touched>,
}

/// Tables and state that packets must access in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// Tables that are looked up.
    pub tables: BTreeSet<TableId>,
    /// State, by the numbers in [`CallKind::Host`].
    pub states: BTreeSet<u32>,
}

/// The semantics of an extern call for engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallKind {
    /// The internet checksum (RFC 1071) over the first argument's scalars, one after the other; the
    /// scalars of invalid headers are left out. Into the first result.
    InternetChecksum,
    /// A number that is that sum, not complemented, modulo 65535; 0 only where the sum is. For
    /// sums over headers that may be invalid: the first scalar may be the sum so far.
    InternetSum,
    /// Adds the packet (1, and its length as received) to counter number `0` of the host, at the
    /// index in the first argument. Order does not matter.
    Count(usize),
    /// `base + hash % max`, where the host hashes the scalars of an argument, one after the other,
    /// the last byte filled up with zeros.
    Hash {
        /// Where it goes; at most 64 bits.
        result: VarId,
        /// Number of the argument; its scalars are no varbits and no headers.
        data: usize,
        /// The host's number of the algorithm.
        algorithm: u32,
        /// Is added.
        base: u64,
        /// At least 1.
        max: u64,
    },
    /// A function of the first argument, a number of at most 64 bits, that depends on its highest
    /// bit and the three after it only: the value with number [`magnitude`]. Into the first result,
    /// which has as many bits.
    ByMagnitude(Arc<[u64; MAGNITUDES]>),
    /// Has no effect.
    Nothing,
    /// One scalar, of at most 64 bits, of a cell of array number `array` of the host's, at the
    /// index in the first argument. Into the first result; 0 beyond the end.
    ReadCell {
        /// The array.
        array: usize,
        /// Which of the cell's scalars.
        scalar: u32,
        /// Its place in memory, for accesses by compiled code; `None`: code calls the host.
        flat: Option<FlatCells>,
        /// The state that this is, if packets must access it in order: as for [`CallKind::Host`].
        state: Option<u32>,
    },
    /// The same, set to the second argument; nothing beyond the end.
    WriteCell {
        /// The array.
        array: usize,
        /// Which of the cell's scalars.
        scalar: u32,
        /// Its place in memory, for accesses by compiled code; `None`: code calls the host.
        flat: Option<FlatCells>,
        /// The state that this is, if packets must access it in order.
        state: Option<u32>,
    },
    /// The host executes it, with the call's arguments and results.
    Host {
        /// Shared variables it reads besides its arguments.
        reads: Vec<VarId>,
        /// Shared variables it writes besides its arguments.
        writes: Vec<VarId>,
        /// The state it accesses, if packets must do that in order: equal numbers, same state.
        state: Option<u32>,
        /// The number of the exit by which the packet leaves if the call aborts it.
        abort: Option<u32>,
    },
    /// An extern that is not the architecture's. It accesses nothing but its arguments and the
    /// payload: the bytes after the parser's position. The host receives its scalars as words.
    Extern {
        /// Its access to the payload.
        payload: PayloadUse,
        /// The exit of packets that it drops.
        abort: u32,
    },
    /// The first part of a call of such an extern for which packets may wait
    /// ([`Execution::Begin`](crate::Execution::Begin)). The host receives the words of the
    /// arguments as they are before the call. The result is 1 if the packet must wait.
    ExternBegin,
    /// The second part ([`Execution::Finish`](crate::Execution::Finish)): the outputs.
    ExternFinish {
        /// The exit of packets that the extern dropped.
        abort: u32,
    },
}

/// The access of an extern to the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadUse {
    /// It has no access.
    None,
    /// It reads the bytes.
    Read,
    /// It changes bytes, and keeps their number.
    Write,
}

/// The number of values of a function of [`CallKind::ByMagnitude`].
pub const MAGNITUDES: usize = 65 * 8;

/// The highest bit of a number and the three after it, as a number: 0 for zero, 8 and on for one,
/// 16 and on for two.
#[must_use]
pub fn magnitude(number: u64) -> usize {
    let zeros = number.leading_zeros();
    let behind = number.checked_shl(zeros).unwrap_or(0) >> 60 & 7;
    (64 - zeros as usize) * 8 + behind as usize
}

/// The place of a scalar in a contiguous array of cells, each of whole words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlatCells {
    /// The number of cells; the least number if the array grows.
    pub cells: u64,
    /// The array grows: the number of cells is known when a vector of packets begins.
    pub grows: bool,
    /// Words of each.
    pub stride: u32,
    /// The scalar's word in its cell; it has no other.
    pub offset: u32,
    /// The scalar is the word xor this.
    pub base: u64,
}

impl FlatCells {
    /// Spare cells after the last: one where the scalar is zero, for reads beyond the end, and one
    /// for writes beyond the end.
    pub const SPARE: u64 = 2;

    /// Words of all cells, with the spare ones.
    #[must_use]
    pub fn words(&self) -> u64 {
        (self.cells.saturating_add(Self::SPARE)).saturating_mul(self.stride.into())
    }
}

impl CallKind {
    /// The state that a call accesses, if packets must do that in order.
    #[must_use]
    pub fn state(&self) -> Option<u32> {
        match self {
            CallKind::Host { state, .. } | CallKind::ReadCell { state, .. } | CallKind::WriteCell { state, .. } => {
                *state
            }
            _ => None,
        }
    }
}

impl Pipeline {
    /// The inputs as a set.
    #[must_use]
    pub fn input_set(&self) -> VarSet {
        let mut set = VarSet::new(self.program.vars.len());
        self.inputs.iter().for_each(|&v| set.insert(v));
        set
    }

    /// Whether packets access tables or state in order.
    #[must_use]
    pub fn accesses_state(&self) -> bool {
        self.calls.iter().any(|call| call.state().is_some()) || self.ordered_tables.contains(&true)
    }

    /// Whether every path ends in an exit that exists.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.body.blocks.iter().all(|(_, block)| match block.terminator {
            Terminator::Exit(exit) => (exit as usize) < self.exits.len(),
            Terminator::Accept | Terminator::Reject | Terminator::Return => false,
            _ => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_are_in_the_order_of_numbers() {
        let numbers = [0, 1, 2, 3, 4, 5, 8, 9, 15, 16, 18, 1 << 62, 1 << 63, u64::MAX];
        let found: Vec<usize> = numbers.map(magnitude).to_vec();
        assert_eq!(found[..5], [0, 8, 16, 20, 24]);
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        assert_eq!(found.last(), Some(&(MAGNITUDES - 1)));
    }
}
