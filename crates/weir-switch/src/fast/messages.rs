//! Digests and log messages of a vector, in the order in which its packets came.
//!
//! Packets that need room after them leave their vector, and continue after all others have left
//! it. Their messages still belong before those of later packets.

use crate::switch::Switch;
use weir_arch::{Digest, LogMessage, Messages};

/// The messages of earlier vectors, and by message of this one: the packet that it is of.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageOrder {
    earlier: Option<(Messages<Digest>, Messages<LogMessage>)>,
    digests: Vec<usize>,
    log: Vec<usize>,
}

impl Switch {
    /// Begins a vector whose packets may leave it to continue later.
    pub(super) fn hold_messages(&mut self) {
        if self.async_calls.may_wait() {
            let state = &mut self.state;
            self.messages.earlier = Some((std::mem::take(&mut state.digests), std::mem::take(&mut state.log)));
        }
    }

    /// Notes that the messages since the last time are of this packet.
    pub(super) fn messages_of(&mut self, of: usize) {
        if self.messages.earlier.is_some() {
            self.messages.digests.resize(self.state.digests.len(), of);
            self.messages.log.resize(self.state.log.len(), of);
        }
    }

    /// Ends the vector.
    pub(super) fn release_messages(&mut self) {
        // There are none that were not noted; they would be the last.
        self.messages_of(usize::MAX);
        let Some((digests, log)) = self.messages.earlier.take() else {
            return;
        };
        in_order(&mut self.state.digests, digests, &mut self.messages.digests);
        in_order(&mut self.state.log, log, &mut self.messages.log);
    }
}

/// Puts the messages after earlier ones, sorted by their packets.
fn in_order<T>(messages: &mut Messages<T>, earlier: Messages<T>, of: &mut Vec<usize>) {
    let new = std::mem::replace(messages, earlier);
    // Those that were forgotten are the oldest.
    let first = of.len().saturating_sub(new.len());
    let mut new: Vec<(usize, T)> = of.drain(..).skip(first).zip(new).collect();
    new.sort_by_key(|(of, _)| *of);
    new.into_iter().for_each(|(_, message)| messages.push(message));
}
