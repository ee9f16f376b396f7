//! Two of the bundled programs, hand-written and as fast as we can make them: the baseline with
//! which `weir bench --vs baseline` compares compiled P4.
//!
//! [`L2Switch`] and [`Router`] do the same as `l2_switch.p4` and `ipv4_router.p4`, which
//! `tests/interpreter.rs` checks: the same packets leave at the same ports with the same bytes. The
//! programs' counters, the hits and misses of their tables, and the packets and bytes per port are
//! the same, too. Tables are specialised: an exact hash whose buckets are one cache line
//! ([`exact::Exact`]), and multi-level arrays for routes ([`lpm::Lpm`]). A vector of packets goes
//! through stages that pass arrays to each other: read headers and prefetch tables, look up,
//! decide, rewrite.
//!
//! Left out of the baseline: tables do not change while packets run, ports are not down, and
//! drops have no reasons besides the programs' own counters. Flooded frames are not copied (their
//! verdict is [`FLOOD`]), and a port has one MAC address. Constant lookups are precomputed: the MAC
//! address of the port behind which a neighbour is. The time of a source's last hit is kept in its
//! slot, in steps of 2²⁰ ns modulo 128.
//!
//! With [`coroutine`] and [`ucontext`], a packet that waits for an extern has a stack of its own:
//! the baselines of weir's saved contexts.
//!
//! ```
//! use weir_baseline::{DROP, L2Switch};
//!
//! let mut switch = L2Switch::new(&[(0x02_0000_0000_0a, 1), (0x02_0000_0000_0b, 2)]);
//! let mut frame = [0u8; 60];
//! frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a]);
//! let mut verdicts = [DROP];
//! switch.forward(&[1], &mut [&mut frame], 0, &mut verdicts);
//! assert_eq!(verdicts, [2]);
//! ```

pub mod coroutine;
mod count;
pub mod exact;
mod l2;
pub mod lpm;
mod router;
mod simd;
pub mod ucontext;

pub use count::{Count, Lookups, PORTS};
pub use l2::{L2Switch, Learned};
pub use router::{Hop, Neighbour, Route, Router};

/// Most packets of a vector.
pub const VECTOR: usize = 64;
/// The verdict of a dropped packet, in place of a port.
pub const DROP: u32 = u32::MAX;
/// The verdict of a flooded packet, in place of a port: to all ports but the ingress port.
pub const FLOOD: u32 = u32::MAX - 1;
