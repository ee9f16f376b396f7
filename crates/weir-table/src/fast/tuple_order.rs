//! The tuples of a tuple space, sorted by the highest rank of their rules. Lookups search them in
//! this order.
//!
//! A tuple moves when its best rule changes, and readers may be using the old order. The list is
//! therefore persistent: it consists of chunks, and a new version shares all but one or two of them
//! with the old one. A version costs a pointer per chunk.

use crate::fast::cuckoo_index::CuckooIndex;
use crate::fast::rule::RankWords;
use std::sync::Arc;

/// Tuples per chunk. A chunk of twice as many is split. Neighbours that together have no more are
/// merged.
const TUPLES_PER_CHUNK: usize = 64;

/// Readers' view of a tuple.
#[derive(Debug, Clone)]
pub(super) struct TupleView {
    /// The highest rank of its rules.
    pub best_rank: RankWords,
    /// Its hash table.
    pub buckets: Arc<CuckooIndex>,
}

/// Consecutive tuples.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    /// Never empty.
    views: Vec<TupleView>,
    /// The tuples' masks, concatenated.
    masks: Vec<u64>,
}

/// Tuples with their masks, by falling rank. A clone shares all chunks; a chunk is copied when it
/// is changed (copy on write).
#[derive(Debug, Clone, Default)]
pub(super) struct TupleOrder {
    /// Never empty chunks, by falling rank.
    chunks: Vec<Arc<Chunk>>,
}

impl Chunk {
    /// Its tuples with their masks, of `key_words` words each.
    #[inline(always)]
    pub fn tuples(&self, key_words: usize) -> impl Iterator<Item = (&TupleView, &[u64])> {
        self.views.iter().zip(self.masks.chunks_exact(key_words))
    }

    /// The best rank of its last tuple.
    fn lowest_rank(&self) -> RankWords {
        self.views.last().map_or((0, 0), |v| v.best_rank)
    }

    /// The index of the first tuple whose best rank is not above this.
    fn position(&self, best_rank: RankWords) -> usize {
        self.views.partition_point(|v| v.best_rank > best_rank)
    }
}

impl TupleOrder {
    /// All tuples.
    #[inline(always)]
    pub fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().map(|c| &**c)
    }

    /// Bytes of the chunks.
    pub fn bytes(&self) -> usize {
        let chunks = self.chunks.iter();
        chunks
            .map(|c| c.views.len() * size_of::<TupleView>() + c.masks.len() * 8)
            .sum()
    }

    /// Adds a tuple.
    pub fn insert(&mut self, mask: &[u64], view: TupleView) {
        let after = self.chunks.partition_point(|c| c.lowest_rank() > view.best_rank);
        let chunk_index = after.min(self.chunks.len().saturating_sub(1));
        if self.chunks.is_empty() {
            self.chunks.push(Arc::default());
        }
        let chunk = Arc::make_mut(&mut self.chunks[chunk_index]);
        let position = chunk.position(view.best_rank);
        chunk.views.insert(position, view);
        let first_word = position * mask.len();
        chunk.masks.splice(first_word..first_word, mask.iter().copied());
        if chunk.views.len() >= 2 * TUPLES_PER_CHUNK {
            let rest = Chunk {
                views: chunk.views.split_off(TUPLES_PER_CHUNK),
                masks: chunk.masks.split_off(TUPLES_PER_CHUNK * mask.len()),
            };
            self.chunks.insert(chunk_index + 1, Arc::new(rest));
        }
    }

    /// Removes the tuple with this mask and best rank, if it exists.
    pub fn remove(&mut self, mask: &[u64], best_rank: RankWords) {
        let Some((chunk_index, position)) = self.find(mask, best_rank) else {
            return;
        };
        let chunk = Arc::make_mut(&mut self.chunks[chunk_index]);
        chunk.views.remove(position);
        chunk.masks.drain(position * mask.len()..(position + 1) * mask.len());
        let left = chunk.views.len();
        if left == 0 {
            self.chunks.remove(chunk_index);
            return;
        }
        let fits = |position: usize| {
            self.chunks
                .get(position)
                .is_some_and(|c| left + c.views.len() <= TUPLES_PER_CHUNK)
        };
        if fits(chunk_index + 1) {
            self.merge(chunk_index);
        } else if chunk_index > 0 && fits(chunk_index - 1) {
            self.merge(chunk_index - 1);
        }
    }

    /// Merges a chunk with the next.
    fn merge(&mut self, chunk_index: usize) {
        let next = self.chunks.remove(chunk_index + 1);
        let chunk = Arc::make_mut(&mut self.chunks[chunk_index]);
        chunk.views.extend(next.views.iter().cloned());
        chunk.masks.extend_from_slice(&next.masks);
    }

    /// The tuple's chunk and its index there. Ranks are unique; the mask is compared as a
    /// safeguard.
    fn find(&self, mask: &[u64], best_rank: RankWords) -> Option<(usize, usize)> {
        let first = self.chunks.partition_point(|c| c.lowest_rank() > best_rank);
        for (chunk_index, chunk) in self.chunks.iter().enumerate().skip(first) {
            for position in chunk.position(best_rank)..chunk.views.len() {
                if chunk.views[position].best_rank != best_rank {
                    return None;
                }
                if chunk.masks[position * mask.len()..(position + 1) * mask.len()] == *mask {
                    return Some((chunk_index, position));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(best_rank: u64) -> TupleView {
        TupleView {
            best_rank: (best_rank, 0),
            buckets: Arc::new(CuckooIndex::new(0)),
        }
    }

    fn listed(order: &TupleOrder) -> Vec<(u64, [u64; 2])> {
        let tuples = order.chunks().flat_map(|c| c.tuples(2));
        tuples.map(|(v, m)| (v.best_rank.0, [m[0], m[1]])).collect()
    }

    /// The expected order of the model.
    fn sorted(model: &[(u64, [u64; 2])]) -> Vec<(u64, [u64; 2])> {
        let mut all = model.to_vec();
        all.sort_by_key(|(best_rank, mask)| (std::cmp::Reverse(*best_rank), *mask));
        all
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code only, and thousands of steps")]
    fn tuples_come_and_go_in_order_and_old_versions_stay_as_they_are() {
        let (mut order, mut model) = (TupleOrder::default(), Vec::new());
        let mut versions = Vec::new();
        let mut random = 1_u64;
        for step in 0..4_000_u64 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // First mostly insertions, then mostly removals.
            if random >> 33 & 3 < if step < 2_000 { 3 } else { 1 } {
                // The step makes ranks unique.
                let tuple = ((random >> 40) << 16 | step, [step, random]);
                order.insert(&tuple.1, view(tuple.0));
                model.push(tuple);
            } else if !model.is_empty() {
                let (best_rank, mask) = model.swap_remove((random >> 40) as usize % model.len());
                order.remove(&mask, (best_rank, 0));
            }
            if step % 500 == 0 {
                versions.push((order.clone(), sorted(&model)));
            }
            let sizes: Vec<usize> = order.chunks.iter().map(|c| c.views.len()).collect();
            assert!(sizes.iter().all(|s| (1..2 * TUPLES_PER_CHUNK).contains(s)), "{sizes:?}");
            assert!(
                sizes.windows(2).all(|pair| pair[0] + pair[1] > TUPLES_PER_CHUNK),
                "{sizes:?}"
            );
        }
        versions.push((order.clone(), sorted(&model)));
        for (order, model) in &versions {
            assert_eq!(listed(order), *model);
        }
        for (best_rank, mask) in model {
            order.remove(&mask, (best_rank, 0));
        }
        assert!(order.chunks.is_empty());
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code only, and thousands of steps")]
    fn among_tuples_of_one_rank_the_mask_decides() {
        let mut order = TupleOrder::default();
        for mask in 0..300 {
            order.insert(&[mask, 0], view(7));
        }
        for mask in (0..300).filter(|m| m % 3 != 0) {
            order.remove(&[mask, 0], (7, 0));
        }
        order.remove(&[1, 0], (7, 0));
        order.remove(&[3, 0], (8, 0));
        let mut left: Vec<u64> = listed(&order).into_iter().map(|(_, mask)| mask[0]).collect();
        left.sort_unstable();
        assert_eq!(left, (0..300).step_by(3).collect::<Vec<_>>());
    }
}
