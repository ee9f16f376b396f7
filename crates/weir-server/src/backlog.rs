//! How much may wait for a stream whose client reads slowly.

use tokio::sync::mpsc::Sender;

/// Places of a stream's queue that are kept for what must not be lost.
pub(crate) const RESERVED: usize = 16;
/// Messages in a stream's queue beyond which no list of digests is added: each may take a megabyte.
pub(crate) const LISTS: usize = 16;

/// What a message that may be lost is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// A packet or a notification.
    Small,
    /// A list of thousands of digests.
    List,
}

/// Whether a message that may be lost is added to a stream's queue.
pub(crate) fn has_room<T>(queue: &Sender<T>, size: Size) -> bool {
    let room = queue.capacity();
    let waiting = queue.max_capacity() - room;
    room > RESERVED && (size == Size::Small || waiting < LISTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lists_wait_for_a_slow_client_and_more_small_messages() {
        let (queue, _taken) = tokio::sync::mpsc::channel(100 + RESERVED);
        let add = |size| {
            let has_room = has_room(&queue, size);
            if has_room {
                queue.try_send(()).unwrap();
            }
            has_room
        };
        assert_eq!((0..100).filter(|_| add(Size::List)).count(), LISTS);
        assert_eq!((0..200).filter(|_| add(Size::Small)).count(), 100 - LISTS);
        assert!(!add(Size::List) && queue.capacity() == RESERVED);
    }
}
