//! The search for room in tables where a key has two buckets.

/// A slot: bucket and position.
pub(super) type Place = (usize, usize);

/// How many buckets the search looks at.
const SEARCH: usize = 64;

/// A free place in one of a key's buckets, in the first if there is one.
#[inline]
pub(super) fn free(homes: [usize; 2], slots: usize, is_free: impl Fn(Place) -> bool) -> Option<Place> {
    let places = homes.into_iter().flat_map(|b| (0..slots).map(move |s| (b, s)));
    places.into_iter().find(|p| is_free(*p))
}

/// Where keys have to move so that there is room in one of a new key's buckets: what is in each place goes to the place
/// before, the first is free, and the last is the new key's. `other` is the other bucket of what is in a place. `None`: the table is
/// too full.
pub(super) fn path(
    homes: [usize; 2],
    slots: usize,
    is_free: impl Fn(Place) -> bool,
    other: impl Fn(Place) -> usize,
) -> Option<Vec<Place>> {
    // Breadth first: buckets, and the node and the slot there whose occupant can go to it.
    let mut nodes: Vec<(usize, Option<(usize, usize)>)> = homes.iter().map(|b| (*b, None)).collect();
    let mut at = 0;
    while at < nodes.len() && nodes.len() < SEARCH {
        for slot in 0..slots {
            let bucket = other((nodes[at].0, slot));
            if nodes.iter().any(|(b, _)| *b == bucket) {
                continue;
            }
            if let Some(free) = free([bucket; 2], slots, &is_free) {
                let mut path = vec![free];
                let mut next = Some((at, slot));
                while let Some((node, slot)) = next {
                    path.push((nodes[node].0, slot));
                    next = nodes[node].1;
                }
                return Some(path);
            }
            nodes.push((bucket, Some((at, slot))));
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_a_free_place_to_a_bucket_of_the_key() {
        // Bucket `b`'s keys can go to the next one; the fifth has room.
        let is_free = |(bucket, slot): Place| bucket == 5 && slot == 1;
        let other = |(bucket, _): Place| bucket + 1;
        assert_eq!(free([0, 5], 2, is_free), Some((5, 1)));
        assert_eq!(free([0, 1], 2, is_free), None);
        let found = path([1, 2], 2, is_free, other).expect("there is room");
        assert_eq!(found, [(5, 1), (4, 0), (3, 0), (2, 0)]);
        assert_eq!(path([7, 8], 2, is_free, |(b, _)| 15 - b), None);
    }
}
