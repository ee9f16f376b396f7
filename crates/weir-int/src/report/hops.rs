//! The hops of a report, from source to sink.

use crate::hop::Hop;
use crate::wire::Stack;

/// The hops of a report: those of the packet's stack, then the reporting node by its own metadata.
///
/// If the newest hop of the stack has the node id of the reporting node, both describe one visit of
/// the packet: they are one hop, whose values come from the stack first.
#[derive(Debug, Clone, Copy)]
pub struct Hops<'a> {
    stack: Stack<'a>,
    own: Option<Hop>,
    is_merged: bool,
}

impl<'a> Hops<'a> {
    #[inline]
    pub(super) fn new(stack: Stack<'a>, own: Option<Hop>) -> Self {
        let newest = own.and_then(|_| stack.get(0)).and_then(|view| view.hop().node_id);
        let is_merged = newest.is_some() && newest == own.and_then(|o| o.node_id);
        Hops { stack, own, is_merged }
    }

    /// The number of hops.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stack.len() + usize::from(self.own.is_some() && !self.is_merged)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of hops at the source's side that the report's packet was truncated by.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.stack.announced() - self.stack.len()
    }

    /// The stack of the packet, as on the wire.
    #[must_use]
    pub fn stack(&self) -> &Stack<'a> {
        &self.stack
    }

    /// A hop, 0 being the one nearest to the source.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<Hop> {
        let count = self.stack.len();
        let Some(from_top) = count.checked_sub(index + 1) else {
            return self.own.filter(|_| index == count && !self.is_merged);
        };
        let hop = self.stack.get(from_top)?.hop();
        match self.own {
            Some(own) if self.is_merged && from_top == 0 => Some(hop.or(own)),
            Some(_) | None => Some(hop),
        }
    }

    /// The hops from source to sink.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Hop> + ExactSizeIterator + use<'a> {
        let hops = *self;
        (0..hops.len()).map(
            #[inline(always)]
            move |index| hops.get(index).unwrap_or_default(),
        )
    }
}
