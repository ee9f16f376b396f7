//! Sets of variables.

use crate::program::VarId;
use std::sync::Arc;

/// Words of a chunk.
const WORDS: usize = 32;
/// Variables of a chunk.
const BITS: usize = WORDS * 64;

type Chunk = [u64; WORDS];

/// A set of variables.
///
/// It is held in chunks that copies and unions share until they are changed. A set per block is
/// therefore small also where both blocks and variables are very many: sets of neighbouring blocks
/// differ in few chunks.
#[derive(Debug, Clone, Default)]
pub struct VarSet {
    /// `None`: no variable of that chunk.
    chunks: Vec<Option<Arc<Chunk>>>,
}

impl VarSet {
    /// An empty set for a program with `count` variables.
    #[must_use]
    pub fn new(count: usize) -> Self {
        VarSet {
            chunks: vec![None; count.div_ceil(BITS)],
        }
    }

    /// Adds a variable.
    pub fn insert(&mut self, var: VarId) {
        let (chunk, word, bit) = place(var);
        match &mut self.chunks[chunk] {
            Some(words) if words[word] & bit != 0 => {}
            Some(words) => Arc::make_mut(words)[word] |= bit,
            none => {
                let mut words = [0; WORDS];
                words[word] = bit;
                *none = Some(Arc::new(words));
            }
        }
    }

    /// Takes a variable out.
    pub fn remove(&mut self, var: VarId) {
        let (chunk, word, bit) = place(var);
        if let Some(words) = &mut self.chunks[chunk]
            && words[word] & bit != 0
        {
            Arc::make_mut(words)[word] &= !bit;
        }
    }

    /// Whether the variable is in it.
    #[must_use]
    pub fn contains(&self, var: VarId) -> bool {
        let (chunk, word, bit) = place(var);
        self.chunks[chunk].as_ref().is_some_and(|words| words[word] & bit != 0)
    }

    /// Adds everything of another set; whether that changed anything.
    pub fn union(&mut self, other: &VarSet) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.chunks.iter_mut().zip(&other.chunks) {
            if let Some(theirs) = theirs {
                changed |= unite(mine, theirs);
            }
        }
        changed
    }

    /// The variables in order.
    pub fn iter(&self) -> impl Iterator<Item = VarId> + '_ {
        let chunks = self.chunks.iter().enumerate();
        let words = chunks.flat_map(|(i, chunk)| chunk.iter().map(move |words| (i, words)));
        let words = words.flat_map(|(i, words)| words.iter().enumerate().map(move |(j, &w)| (i * WORDS + j, w)));
        words.filter(|&(_, word)| word != 0).flat_map(|(i, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| VarId::new(i * 64 + bit))
        })
    }
}

impl PartialEq for VarSet {
    fn eq(&self, other: &VarSet) -> bool {
        self.chunks.len() == other.chunks.len() && self.iter().eq(other.iter())
    }
}

impl Eq for VarSet {}

fn place(var: VarId) -> (usize, usize, u64) {
    let index = var.index();
    (index / BITS, index % BITS / 64, 1 << (index % 64))
}

/// Adds a chunk to a chunk, and shares it where the two are equal then; whether that changed
/// anything.
fn unite(mine: &mut Option<Arc<Chunk>>, theirs: &Arc<Chunk>) -> bool {
    let Some(words) = mine else {
        *mine = Some(Arc::clone(theirs));
        return theirs.iter().any(|&word| word != 0);
    };
    if Arc::ptr_eq(words, theirs) {
        return false;
    }
    let adds = |a: &Chunk, b: &Chunk| a.iter().zip(b).any(|(a, b)| b & !a != 0);
    let changed = adds(words, theirs);
    if !adds(theirs, words) {
        *words = Arc::clone(theirs);
    } else if changed {
        let words = Arc::make_mut(words);
        words.iter_mut().zip(theirs.iter()).for_each(|(a, b)| *a |= b);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(vars: &[usize]) -> VarSet {
        let mut set = VarSet::new(3 * BITS + 1);
        vars.iter().for_each(|&v| set.insert(VarId::new(v)));
        set
    }

    fn all(set: &VarSet) -> Vec<usize> {
        set.iter().map(VarId::index).collect()
    }

    #[test]
    fn copies_share_chunks_and_not_changes() {
        let first = set(&[0, 63, 64, BITS - 1, BITS, 3 * BITS]);
        let mut second = first.clone();
        second.remove(VarId::new(64));
        second.insert(VarId::new(1));
        assert_eq!(all(&first), [0, 63, 64, BITS - 1, BITS, 3 * BITS]);
        assert_eq!(all(&second), [0, 1, 63, BITS - 1, BITS, 3 * BITS]);
        assert!(second.contains(VarId::new(BITS)) && !second.contains(VarId::new(2 * BITS)));
    }

    #[test]
    fn a_union_says_whether_it_added_anything() {
        let mut united = set(&[5]);
        assert!(united.union(&set(&[5, BITS])));
        assert!(!united.union(&set(&[BITS])));
        assert!(!united.union(&set(&[])));
        assert!(united.union(&set(&[6])));
        assert_eq!(all(&united), [5, 6, BITS]);
    }

    #[test]
    fn sets_are_equal_by_what_is_in_them() {
        let mut emptied = set(&[7]);
        emptied.remove(VarId::new(7));
        assert_eq!(emptied, set(&[]));
        assert!(!set(&[]).union(&emptied));
        assert_ne!(set(&[7]), emptied);
        assert_ne!(VarSet::new(1), VarSet::new(BITS + 1));
    }
}
