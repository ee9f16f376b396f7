//! A fixed number of objects that jobs are made of.

/// A fixed number of boxed objects, made at the start and recycled.
///
/// [`take`](Self::take) and [`put`](Self::put) neither allocate nor free.
#[derive(Debug)]
#[allow(clippy::vec_box, reason = "the boxes themselves are handed out")]
pub struct Pool<T> {
    free: Vec<Box<T>>,
    capacity: usize,
}

impl<T> Pool<T> {
    /// A pool with this many objects.
    pub fn new(capacity: usize, mut make: impl FnMut() -> T) -> Self {
        Pool {
            free: (0..capacity).map(|_| Box::new(make())).collect(),
            capacity,
        }
    }

    /// An object, unless all are in use. It is as its last user left it. The one that was put back
    /// last comes first, while it is still in the cache.
    #[inline]
    pub fn take(&mut self) -> Option<Box<T>> {
        self.free.pop()
    }

    /// Puts an object back. One too many is dropped, as after
    /// [`replace_lost`](Self::replace_lost) with too large a number.
    #[inline]
    pub fn put(&mut self, object: Box<T>) {
        if self.free.len() < self.capacity {
            self.free.push(object);
        }
    }

    /// Makes new objects for `count` that will not come back. Returns how many were made: never
    /// more than are in use.
    pub fn replace_lost(&mut self, count: usize, mut make: impl FnMut() -> T) -> usize {
        let made = count.min(self.capacity - self.free.len());
        self.free.extend((0..made).map(|_| Box::new(make())));
        made
    }

    /// Objects that are not in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.free.len()
    }

    /// Whether all objects are in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// Objects that there are, in use or not.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_full_again_when_lost_objects_are_replaced() {
        let mut pool = Pool::new(4, || 7u32);
        let mut taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((taken.len(), pool.is_empty()), (4, true));
        pool.put(taken.pop().expect("four were taken"));
        drop(taken);
        assert_eq!(pool.replace_lost(3, || 8), 3);
        assert_eq!((pool.len(), pool.capacity()), (4, 4));
    }

    #[test]
    fn a_pool_never_exceeds_its_capacity() {
        let mut pool = Pool::new(2, || 0u8);
        pool.put(Box::new(1));
        assert_eq!(pool.replace_lost(9, || 2), 0);
        assert_eq!(pool.len(), 2);
        let _ = pool.take();
        assert_eq!(pool.replace_lost(9, || 2), 1);
        assert_eq!(pool.len(), 2);
    }
}
