//! Sheds outgoing stream messages while their client reads slowly: decides which are dropped.
//!
//! A stream's messages wait in a queue of bounded length. Packets, notifications and digest lists
//! may be dropped. Answers of arbitration may not: they have reserved capacity, and the caller ends
//! the stream when that is used up. Unlike the budgets of [`crate::admission`], this limits
//! messages that the server sends of its own accord.

use tokio::sync::mpsc::Sender;

/// The part of a stream's queue, in messages, for those that must not be dropped.
pub(crate) const RESERVED_CAPACITY: usize = 16;
/// A digest list is dropped if this many messages are queued: each may take a megabyte.
pub(crate) const MAX_QUEUED_FOR_LIST: usize = 16;

/// The kind of a message that may be dropped, by its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Droppable {
    /// A packet or a notification.
    Small,
    /// A list of thousands of digests.
    DigestList,
}

/// Whether a stream's queue has room for a message that may be dropped.
pub(crate) fn has_room<T>(queue: &Sender<T>, kind: Droppable) -> bool {
    let free_capacity = queue.capacity();
    let queued = queue.max_capacity() - free_capacity;
    free_capacity > RESERVED_CAPACITY && (kind == Droppable::Small || queued < MAX_QUEUED_FOR_LIST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lists_wait_for_a_slow_client_and_more_small_messages() {
        let (queue, _taken) = tokio::sync::mpsc::channel(100 + RESERVED_CAPACITY);
        let add = |kind| {
            let has_room = has_room(&queue, kind);
            if has_room {
                queue.try_send(()).unwrap();
            }
            has_room
        };
        assert_eq!(
            (0..100).filter(|_| add(Droppable::DigestList)).count(),
            MAX_QUEUED_FOR_LIST
        );
        assert_eq!(
            (0..200).filter(|_| add(Droppable::Small)).count(),
            100 - MAX_QUEUED_FOR_LIST
        );
        assert!(!add(Droppable::DigestList) && queue.capacity() == RESERVED_CAPACITY);
    }
}
