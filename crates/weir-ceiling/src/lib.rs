//! Two of the bundled programs written by hand, as fast as we can make them: what `weir bench --vs ceiling`
//! compares compiled P4 with.
//!
//! [`L2Switch`] and [`Router`] do what `l2_switch.p4` and `ipv4_router.p4` do, and `tests/interpreter.rs` holds them
//! to it: the same packets leave at the same ports with the same bytes, the programs' counters and the hits and
//! misses of their tables are the same, and so are packets and bytes per port. Tables are made for this and nothing
//! else: an exact hash whose buckets are one cache line ([`exact::Exact`]), tables of tables for routes
//! ([`lpm::Lpm`]). A vector of packets goes through stages that leave arrays for each other: read headers and fetch
//! tables, look up, decide, rewrite.
//!
//! What a ceiling leaves out: tables do not change while packets run, ports are not down, drops have no reasons
//! besides the programs' own counters, copies of flooded frames are not made (their fate is [`FLOOD`]), and a
//! port has one MAC address. What is known beforehand is not looked up: which MAC address belongs to the port that a
//! neighbour is behind. When a source was hit last is kept in its slot, in steps of 2²⁰ ns modulo 128.
//!
//! ```
//! use weir_ceiling::{DROP, L2Switch};
//!
//! let mut switch = L2Switch::new(&[(0x02_0000_0000_0a, 1), (0x02_0000_0000_0b, 2)]);
//! let mut frame = [0u8; 60];
//! frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a]);
//! let mut fates = [DROP];
//! switch.forward(&[1], &mut [&mut frame], 0, &mut fates);
//! assert_eq!(fates, [2]);
//! ```

mod count;
pub mod exact;
mod l2;
pub mod lpm;
mod router;
mod simd;

pub use count::{Count, Lookups, PORTS};
pub use l2::{L2Switch, Learned};
pub use router::{Hop, Neighbour, Route, Router};

/// At most this many packets at a time.
pub const VECTOR: usize = 64;
/// Instead of a port: the packet is dropped.
pub const DROP: u32 = u32::MAX;
/// Instead of a port: to all ports but the one it came from.
pub const FLOOD: u32 = u32::MAX - 1;
