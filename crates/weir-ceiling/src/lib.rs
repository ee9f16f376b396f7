//! Two of the bundled programs written by hand, as fast as we can make them: what `weir bench --vs ceiling`
//! compares compiled P4 with.
//!
//! [`L2Switch`] and [`Router`] do for each packet the work that `l2_switch.p4` and `ipv4_router.p4` do for
//! packets that are forwarded or dropped, with tables made for this and nothing else: an exact hash whose
//! buckets are one cache line ([`exact::Exact`]), DIR-24-8 for routes ([`lpm::Lpm`]). Each takes a vector of
//! packets through stages: the first reads headers, hashes and prefetches, the last rewrites and counts.
//!
//! What `L2Switch` does: length; group address as source; link-local destination; source lookup with the time
//! of the hit (in steps of 2²⁰ ns, written only when it differs) and comparison of ports; destination lookup;
//! not back where it came from; packets and bytes received and sent per port; the refusals' counters.
//! What it does not: stations that are unknown or have moved are counted, no digest is made of them; frames to
//! unknown destinations are dropped, not flooded.
//!
//! What `Router` does: lengths, EtherType, version, header length; the header's checksum; the port's own MAC
//! address (one per port, compared directly); TTL; route lookup with a packet and byte counter per route; next
//! hop, neighbour lookup; TTL one less, checksum by difference, both MAC addresses; packets and bytes received
//! and sent per port; the refusals' counters. What it does not: headers with options (they count as refused),
//! ARP, and the counters of table hits and misses that a switch keeps for its control plane.
//!
//! Neither has drop reasons, ports that are down, or tables that can change while packets run; each has one
//! action per table where programs have several. All that is what a ceiling leaves out.
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
mod memory;
mod router;
mod simd;

pub use count::{Count, Lookups, PORTS};
pub use l2::{L2Switch, Learned};
pub use memory::huge_vec;
pub use router::{Hop, Neighbour, Route, Router};

/// At most this many packets at a time.
pub const VECTOR: usize = 64;
/// Instead of a port: the packet is dropped.
pub const DROP: u32 = u32::MAX;
/// Instead of a port: to all ports but the one it came from.
pub const FLOOD: u32 = u32::MAX - 1;
