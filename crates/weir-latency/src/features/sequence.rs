//! The sequences of lookups and statements that packets may go through in a control.

use super::operations::Operations;
use super::tables::TableFeatures;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// How packets get through a control.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Pieces of it; packets begin with the first.
    pub pieces: Vec<Piece>,
}

/// Statements, and the lookup that they end with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// What the statements do, those of actions included.
    pub operations: Operations,
    /// Headers of which they write a field.
    pub rewritten: Vec<String>,
    /// The table that is looked up: an index into [`super::Features::tables`].
    pub table: Option<usize>,
    /// Pieces that may be the next; none: the control ends. All are later than this one, but for
    /// loops of the control, which are counted once.
    pub next: Vec<usize>,
}

impl Piece {
    /// Adds code.
    pub(super) fn add(&mut self, operations: &Operations, rewritten: &[String]) {
        self.operations.merge(operations);
        for name in rewritten {
            if !self.rewritten.contains(name) {
                self.rewritten.push(name.clone());
            }
        }
    }

    /// Whether it does nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_none() && self.operations == Operations::default() && self.rewritten.is_empty()
    }
}

/// What a packet goes through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Tables that are looked up, in order.
    pub tables: Vec<usize>,
    /// What statements and actions do.
    pub operations: Operations,
    /// Headers of which they write a field.
    pub rewritten: Vec<String>,
}

/// A cost, and one that decides among equals.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost(pub f64, pub f64);

impl Cost {
    fn plus(self, other: Cost) -> Cost {
        Cost(self.0 + other.0, self.1 + other.1)
    }

    /// Compares them.
    #[must_use]
    pub fn total_cmp(&self, other: &Cost) -> Ordering {
        self.0.total_cmp(&other.0).then_with(|| self.1.total_cmp(&other.1))
    }
}

/// The rest of a sequence from some piece on.
#[derive(Clone)]
struct Rest {
    cost: Cost,
    /// Of the tables in order.
    hash: u64,
    operations: Operations,
    /// Headers that the pieces rewrite, repetitions included.
    headers: usize,
    /// The next piece, and which of its rests.
    follow: Option<(usize, usize)>,
}

impl Rest {
    /// Whether no model can tell them apart, short of chance.
    fn is_like(&self, other: &Rest) -> bool {
        (self.hash, self.headers, self.operations) == (other.hash, other.headers, other.operations)
    }
}

impl Control {
    /// Tables that are looked up on some path, each once, in order.
    #[must_use]
    pub fn tables(&self) -> Vec<usize> {
        let mut tables = Vec::new();
        for table in self.pieces.iter().filter_map(|piece| piece.table) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        tables
    }

    /// The costliest sequences by the sum of the costs of their pieces, which are given by number:
    /// at most this many, costliest first. Of sequences with equal tables and operations one is
    /// given.
    #[must_use]
    pub fn sequences(&self, most: usize, cost: &dyn Fn(usize) -> Cost) -> Vec<Sequence> {
        let mut rests: Vec<Vec<Rest>> = vec![Vec::new(); self.pieces.len()];
        for at in (0..self.pieces.len()).rev() {
            rests[at] = self.rests(at, most.max(1), cost(at), &rests);
        }
        let first = rests.first().map_or(0, Vec::len);
        (0..first).map(|rank| self.sequence(rank, &rests)).collect()
    }

    fn rests(&self, at: usize, most: usize, cost: Cost, rests: &[Vec<Rest>]) -> Vec<Rest> {
        let piece = &self.pieces[at];
        let own = Rest {
            cost,
            hash: piece.table.map_or(0, |table| mixed(0, table)),
            operations: piece.operations,
            headers: piece.rewritten.len(),
            follow: None,
        };
        let mut all: Vec<Rest> = Vec::new();
        for next in piece.next.iter().filter(|next| **next > at) {
            for (rank, rest) in rests[*next].iter().enumerate() {
                let mut operations = rest.operations;
                operations.merge(&piece.operations);
                all.push(Rest {
                    cost: cost.plus(rest.cost),
                    hash: piece.table.map_or(rest.hash, |table| mixed(rest.hash, table)),
                    operations,
                    headers: rest.headers + piece.rewritten.len(),
                    follow: Some((*next, rank)),
                });
            }
        }
        all.sort_by(|a, b| b.cost.total_cmp(&a.cost));
        let mut kept: Vec<Rest> = Vec::new();
        for rest in all {
            if kept.len() == most {
                break;
            }
            if !kept.iter().any(|known| known.is_like(&rest)) {
                kept.push(rest);
            }
        }
        if kept.is_empty() {
            kept.push(own);
        }
        kept
    }

    fn sequence(&self, rank: usize, rests: &[Vec<Rest>]) -> Sequence {
        let mut whole = Piece::default();
        let mut tables = Vec::new();
        let mut at = Some((0, rank));
        while let Some((piece, rank)) = at {
            whole.add(&self.pieces[piece].operations, &self.pieces[piece].rewritten);
            tables.extend(self.pieces[piece].table);
            at = rests[piece][rank].follow;
        }
        Sequence {
            tables,
            operations: whole.operations,
            rewritten: whole.rewritten,
        }
    }

    /// The costliest sequence of lookups: the sum of the tables' costs, and the tables.
    #[must_use]
    pub fn costliest(&self, cost: &dyn Fn(usize) -> f64) -> (f64, Vec<usize>) {
        let of_piece = |at: usize| Cost(self.pieces[at].table.map_or(0.0, cost), 0.0);
        let found = self.sequences(1, &of_piece).into_iter().next().unwrap_or_default();
        (found.tables.iter().map(|at| cost(*at)).sum(), found.tables)
    }

    /// The sequence that looks up most tables with keys; of several the one that does most.
    #[must_use]
    pub fn longest(&self, tables: &[TableFeatures]) -> Sequence {
        let found = self.sequences(1, &|at| length(&self.pieces[at], tables));
        found.into_iter().next().unwrap_or_default()
    }
}

/// What a piece adds to the length of a sequence.
#[must_use]
pub fn length(piece: &Piece, tables: &[TableFeatures]) -> Cost {
    let has_keys = piece.table.is_some_and(|at| !tables[at].keys.is_empty());
    Cost(f64::from(u8::from(has_keys)), f64::from(piece.operations.total()))
}

/// A hash of a table before others (FNV-1a).
fn mixed(hash: u64, table: usize) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    (hash ^ (table as u64 + 1)).wrapping_mul(PRIME)
}
