//! Back-pressure of a stream: which messages are dropped when its client reads slowly.
//!
//! Packets, notifications and digest lists may be dropped; answers of arbitration may not.

use tokio::sync::mpsc::Sender;

/// Places of a stream's queue that are reserved for messages that must not be dropped.
pub(crate) const RESERVED: usize = 16;
/// Beyond this many queued messages no digest list is added: each may take a megabyte.
pub(crate) const LISTS: usize = 16;

/// The size class of a message that may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// A packet or a notification.
    Small,
    /// A list of thousands of digests.
    List,
}

/// Whether a message that may be dropped is added to a stream's queue.
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
