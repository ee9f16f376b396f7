//! The environment of compiled code: data that it accesses besides contexts, at constant offsets.

use super::Host;
use crate::compile::Compiled;
use weir_table::fast::SlotAddressing;

/// The environment of a segment: everything besides contexts. Code accesses the first fields at the
/// offsets in [`crate::codegen::env`].
#[repr(C)]
pub(crate) struct Env {
    /// By point: the mask of the slots that wait there.
    pub(super) pending: *mut u64,
    /// The argument area of runtime functions: arguments, and results.
    pub(super) arguments: *mut u64,
    /// The tally area: masks, then rows of indexes.
    pub(super) tallies: *mut u64,
    /// Members of small value sets: a bit per value.
    pub(super) members: *const u64,
    /// Read in place of the fields of invalid headers.
    pub(super) zeros: *const u8,
    /// By register array: the address of its cells, and their number.
    pub(super) cells: *const [usize; 2],
    /// Arguments and result of the runtime functions that keep all registers.
    pub(super) exchange: [u64; 3],
    /// Readable and writable memory for lanes without a packet.
    pub(super) sentinel: *mut u8,
    /// By inline lookup table: the two addresses of its [`weir_table::fast::ResultArray`].
    pub(super) arrays: *const [usize; 2],
    /// By table whose slots are prefetched by code: where its slots are; all 0 if it has none now.
    pub(super) slot_addressing: *const SlotAddressing,
    // The following are for runtime functions only.
    pub(super) context: *const u64,
    pub(super) compiled: *const Compiled,
    pub(super) host: *mut HostPointer,
}

// The offsets that code uses.
const _: () = {
    use crate::codegen::env;
    use std::mem::offset_of;
    assert!(offset_of!(Env, pending) == env::POINT_MASKS as usize);
    assert!(offset_of!(Env, arguments) == env::ARGUMENTS as usize);
    assert!(offset_of!(Env, tallies) == env::TALLY_AREA as usize);
    assert!(offset_of!(Env, members) == env::MEMBERS as usize);
    assert!(offset_of!(Env, zeros) == env::ZEROS as usize);
    assert!(offset_of!(Env, cells) == env::CELLS as usize);
    assert!(offset_of!(Env, exchange) == env::EXCHANGE as usize);
    assert!(offset_of!(Env, sentinel) == env::SENTINEL as usize);
    assert!(offset_of!(Env, arrays) == env::ARRAYS as usize);
    assert!(offset_of!(Env, slot_addressing) == env::SLOT_ADDRESSING as usize);
};

/// A fat pointer behind a thin one.
pub(super) struct HostPointer(pub(super) *mut (dyn Host + 'static));
