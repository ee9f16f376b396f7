//! The search for free slots in cuckoo hash tables, where a key has two possible buckets. It only
//! plans the moves; the tables carry them out.

/// A slot: bucket and position in it.
pub(super) type SlotIndex = (usize, usize);

/// Most buckets that the search visits.
const MAX_NODES: usize = 64;

/// A free slot in one of a key's buckets, preferably in the first.
#[inline]
pub(super) fn free(homes: [usize; 2], slots: usize, is_free: impl Fn(SlotIndex) -> bool) -> Option<SlotIndex> {
    let slots_of_key = homes.into_iter().flat_map(|b| (0..slots).map(move |s| (b, s)));
    slots_of_key.into_iter().find(|p| is_free(*p))
}

/// The moves that free a slot in one of a new key's buckets. The key in each slot of the path moves
/// to the slot before it; the first slot is free, and the last receives the new key. `other` gives
/// the other bucket of a slot's key. `None`: the table is too full.
pub(super) fn path(
    homes: [usize; 2],
    slots: usize,
    is_free: impl Fn(SlotIndex) -> bool,
    other: impl Fn(SlotIndex) -> usize,
) -> Option<Vec<SlotIndex>> {
    // Breadth first. A node is a bucket, with the node and slot whose occupant can move to it.
    let mut nodes: Vec<(usize, Option<(usize, usize)>)> = homes.iter().map(|b| (*b, None)).collect();
    let mut node = 0;
    while node < nodes.len() && nodes.len() < MAX_NODES {
        for slot in 0..slots {
            let bucket = other((nodes[node].0, slot));
            if nodes.iter().any(|(b, _)| *b == bucket) {
                continue;
            }
            if let Some(free) = free([bucket; 2], slots, &is_free) {
                let mut path = vec![free];
                let mut next = Some((node, slot));
                while let Some((node, slot)) = next {
                    path.push((nodes[node].0, slot));
                    next = nodes[node].1;
                }
                return Some(path);
            }
            nodes.push((bucket, Some((node, slot))));
        }
        node += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_a_free_place_to_a_bucket_of_the_key() {
        // Keys of bucket `b` can move to bucket `b + 1`; bucket 5 has a free slot.
        let is_free = |(bucket, slot): SlotIndex| bucket == 5 && slot == 1;
        let other = |(bucket, _): SlotIndex| bucket + 1;
        assert_eq!(free([0, 5], 2, is_free), Some((5, 1)));
        assert_eq!(free([0, 1], 2, is_free), None);
        let found = path([1, 2], 2, is_free, other).expect("there is room");
        assert_eq!(found, [(5, 1), (4, 0), (3, 0), (2, 0)]);
        assert_eq!(path([7, 8], 2, is_free, |(b, _)| 15 - b), None);
    }
}
