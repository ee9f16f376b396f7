//! The groups of a tuple space in the order in which they are asked.
//!
//! A group whose best rule becomes another one changes its place among thousands, and readers may be looking at all of
//! them: so the order is cut into chunks that a new version shares with the old one, but for one or two. What is left of the
//! cost of a version is a pointer per chunk.

use crate::fast::buckets::Buckets;
use crate::fast::rule::RankWords;
use std::sync::Arc;

/// A chunk is cut in two where it has twice as many groups, and takes over a neighbour where the two have no more together.
const CHUNK: usize = 64;

/// A group as readers see it.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// None of its rules has a higher rank.
    pub best: RankWords,
    pub buckets: Arc<Buckets>,
}

/// Groups that are next to each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    /// Never none.
    views: Vec<View>,
    /// Their masks one after the other.
    masks: Vec<u64>,
}

/// Groups with their masks, the highest ranks first. A copy shares all chunks; whoever changes one of them then gets it for itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    chunks: Vec<Arc<Chunk>>,
}

impl Chunk {
    /// Its groups with their masks, which are of this many words.
    #[inline(always)]
    pub fn groups(&self, words: usize) -> impl Iterator<Item = (&View, &[u64])> {
        self.views.iter().zip(self.masks.chunks_exact(words))
    }

    fn lowest(&self) -> RankWords {
        self.views.last().map_or((0, 0), |v| v.best)
    }

    fn position(&self, best: RankWords) -> usize {
        self.views.partition_point(|v| v.best > best)
    }
}

impl Order {
    /// All groups.
    #[inline(always)]
    pub fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().map(|c| &**c)
    }

    /// Bytes of the chunks.
    pub fn bytes(&self) -> usize {
        let chunks = self.chunks.iter();
        chunks
            .map(|c| c.views.len() * size_of::<View>() + c.masks.len() * 8)
            .sum()
    }

    /// Adds a group.
    pub fn insert(&mut self, mask: &[u64], view: View) {
        let after = self.chunks.partition_point(|c| c.lowest() > view.best);
        let place = after.min(self.chunks.len().saturating_sub(1));
        if self.chunks.is_empty() {
            self.chunks.push(Arc::default());
        }
        let chunk = Arc::make_mut(&mut self.chunks[place]);
        let at = chunk.position(view.best);
        chunk.views.insert(at, view);
        let words = at * mask.len();
        chunk.masks.splice(words..words, mask.iter().copied());
        if chunk.views.len() >= 2 * CHUNK {
            let rest = Chunk {
                views: chunk.views.split_off(CHUNK),
                masks: chunk.masks.split_off(CHUNK * mask.len()),
            };
            self.chunks.insert(place + 1, Arc::new(rest));
        }
    }

    /// Takes the group with this mask and best rank out, if it is there.
    pub fn remove(&mut self, mask: &[u64], best: RankWords) {
        let Some((place, at)) = self.find(mask, best) else {
            return;
        };
        let chunk = Arc::make_mut(&mut self.chunks[place]);
        chunk.views.remove(at);
        chunk.masks.drain(at * mask.len()..(at + 1) * mask.len());
        let left = chunk.views.len();
        if left == 0 {
            self.chunks.remove(place);
            return;
        }
        let fits = |at: usize| self.chunks.get(at).is_some_and(|c| left + c.views.len() <= CHUNK);
        if fits(place + 1) {
            self.merge(place);
        } else if place > 0 && fits(place - 1) {
            self.merge(place - 1);
        }
    }

    /// Makes one of a chunk and the next.
    fn merge(&mut self, place: usize) {
        let next = self.chunks.remove(place + 1);
        let chunk = Arc::make_mut(&mut self.chunks[place]);
        chunk.views.extend(next.views.iter().cloned());
        chunk.masks.extend_from_slice(&next.masks);
    }

    /// The chunk and the place within it. Ranks are unique; the mask is compared to be safe.
    fn find(&self, mask: &[u64], best: RankWords) -> Option<(usize, usize)> {
        let first = self.chunks.partition_point(|c| c.lowest() > best);
        for (place, chunk) in self.chunks.iter().enumerate().skip(first) {
            for at in chunk.position(best)..chunk.views.len() {
                if chunk.views[at].best != best {
                    return None;
                }
                if chunk.masks[at * mask.len()..(at + 1) * mask.len()] == *mask {
                    return Some((place, at));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(best: u64) -> View {
        View {
            best: (best, 0),
            buckets: Arc::new(Buckets::new(0)),
        }
    }

    fn told(order: &Order) -> Vec<(u64, [u64; 2])> {
        let groups = order.chunks().flat_map(|c| c.groups(2));
        groups.map(|(v, m)| (v.best.0, [m[0], m[1]])).collect()
    }

    /// The same of a sorted list.
    fn sorted(model: &[(u64, [u64; 2])]) -> Vec<(u64, [u64; 2])> {
        let mut all = model.to_vec();
        all.sort_by_key(|(best, mask)| (std::cmp::Reverse(*best), *mask));
        all
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code only, and thousands of steps")]
    fn groups_come_and_go_in_order_and_old_versions_stay_as_they_are() {
        let (mut order, mut model) = (Order::default(), Vec::new());
        let mut versions = Vec::new();
        let mut random = 1_u64;
        for step in 0..4_000_u64 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // Many come first, then most go.
            if random >> 33 & 3 < if step < 2_000 { 3 } else { 1 } {
                // No two have the same rank.
                let group = ((random >> 40) << 16 | step, [step, random]);
                order.insert(&group.1, view(group.0));
                model.push(group);
            } else if !model.is_empty() {
                let (best, mask) = model.swap_remove((random >> 40) as usize % model.len());
                order.remove(&mask, (best, 0));
            }
            if step % 500 == 0 {
                versions.push((order.clone(), sorted(&model)));
            }
            let sizes: Vec<usize> = order.chunks.iter().map(|c| c.views.len()).collect();
            assert!(sizes.iter().all(|s| (1..2 * CHUNK).contains(s)), "{sizes:?}");
            assert!(sizes.windows(2).all(|pair| pair[0] + pair[1] > CHUNK), "{sizes:?}");
        }
        versions.push((order.clone(), sorted(&model)));
        for (order, model) in &versions {
            assert_eq!(told(order), *model);
        }
        for (best, mask) in model {
            order.remove(&mask, (best, 0));
        }
        assert!(order.chunks.is_empty());
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code only, and thousands of steps")]
    fn of_groups_with_the_same_rank_the_one_with_the_mask_is_meant() {
        let mut order = Order::default();
        for mask in 0..300 {
            order.insert(&[mask, 0], view(7));
        }
        for mask in (0..300).filter(|m| m % 3 != 0) {
            order.remove(&[mask, 0], (7, 0));
        }
        order.remove(&[1, 0], (7, 0));
        order.remove(&[3, 0], (8, 0));
        let mut left: Vec<u64> = told(&order).into_iter().map(|(_, mask)| mask[0]).collect();
        left.sort_unstable();
        assert_eq!(left, (0..300).step_by(3).collect::<Vec<_>>());
    }
}
