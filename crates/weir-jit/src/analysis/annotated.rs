//! An instruction together with the pipeline's description of its call.

use weir_ir::pipeline::CallKind;
use weir_ir::{Arena, Call, Header, InstKind, VarId};

/// An instruction of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnotatedInst<'a> {
    pub kind: &'a InstKind,
    /// For a call: its number in the pipeline, and its kind.
    pub call: Option<(usize, &'a CallKind)>,
}

impl<'a> AnnotatedInst<'a> {
    /// The kind of a call.
    pub fn call_kind(self) -> Option<&'a CallKind> {
        self.call.map(|(_, kind)| kind)
    }

    /// Calls `f` with every variable of the program that it writes.
    pub fn written(self, headers: &Arena<Header>, f: &mut dyn FnMut(VarId)) {
        weir_ir::passes::written(self.kind, headers, f);
        if let Some(CallKind::Host { writes, .. }) = self.call_kind() {
            writes.iter().for_each(|&v| f(v));
        }
    }

    /// The exit by which the call may drop the packet.
    pub fn abort(self) -> Option<u32> {
        match self.call_kind() {
            Some(CallKind::Host { abort, .. }) => *abort,
            Some(CallKind::Extern { abort, .. } | CallKind::ExternFinish { abort }) => Some(*abort),
            _ => None,
        }
    }

    /// The call, if it computes an internet checksum.
    pub fn internet_checksum(self) -> Option<&'a Call> {
        match (self.kind, self.call_kind()) {
            (InstKind::Call(call), Some(CallKind::InternetChecksum)) => Some(call),
            _ => None,
        }
    }
}
