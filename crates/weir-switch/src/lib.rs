//! The switch: ports, traffic manager, replication and control state around an architecture.
//!
//! A [`Switch`] is used from one thread and does no I/O: [`Switch::receive`] takes a packet at a
//! port, [`Switch::advance`] gives what leaves until a point in time, [`Switch::inject`] does both
//! for one packet. The control plane names things as P4Info does ([`Switch::table`], …), writes
//! single changes or transactions ([`Switch::write`]) and reads counters, registers and statistics.
//!
//! What this crate does not do: it opens no device and no socket, it starts no thread and reads no
//! clock (the caller says what time it is), and it knows no control-plane protocol.
//!
//! ```
//! use std::sync::Arc;
//! use weir_switch::{Switch, testing};
//!
//! // A program that sends every packet back where it came from.
//! let mut switch = Switch::new(Arc::new(testing::reflector()))?;
//! let out = switch.inject(3, &[1, 2, 3], 0);
//! assert_eq!((out[0].port, out[0].bytes.as_slice()), (3, &[1, 2, 3][..]));
//! assert_eq!(switch.port_stats(3).tx.packets, 1);
//! # Ok::<(), weir_switch::LoadError>(())
//! ```
#![forbid(unsafe_code)]

mod control;
mod fast;
mod generator;
mod journal;
mod names;
mod port_counts;
mod queues;
mod read;
mod replication;
mod snapshot;
mod stats;
mod switch;
pub mod testing;
mod waiting;

pub use control::{Cell, ControlError, Mark, Transaction, Write, WriteError, WriteResult};
pub use fast::{FastError, Verdict};
pub use journal::Journal;
pub use names::{NameError, resolve};
pub use queues::{DEFAULT_CAPACITY, PortRate, QueueConfig, QueueStats};
pub use read::ResourceKind;
pub use replication::{
    CloneSession, GroupReplica, MAX_ALL_REPLICAS, MAX_REPLICAS, MulticastGroup, Node, Replica, Replication,
    ReplicationError,
};
pub use snapshot::{CounterValues, Kept, Restoring};
pub use stats::{DropCount, PortStats};
pub use switch::{Output, PacketOrder, Switch, SwitchConfig};
pub use waiting::{CallCause, CallReport, ExternCounts, ExternMode, ExternOptions, Job, JobService};
pub use weir_arch::KeyBytes;
pub use weir_arch::{
    Application, BUFFER, CUSTOM_CRC_WIDTHS, Choice, ChoiceKind, Choices, Color, Count, Counts, CrcScope,
    CustomCalculation, CustomCrcError, Defaults, Digest, DropReason, Enumeration, GeneratorError, GeneratorModel,
    GeneratorPort, GeneratorWrite, Generators, LoadError, LogMessage, LpfConfig, LpfKind, MASKS, MeterConfig,
    PRIORITIES, Pattern, Rate, ReplicationRules, Script, State, Trigger, WredConfig, calculation_name, custom_crcs,
    hash::CrcParameters, unset_custom_crcs,
};
pub use weir_jit::{Compiled, Frame, LaneUse, StageCount, TAILROOM, VECTOR, cycles};
pub use weir_table::{BatchMode, ErrorKind, OpResult};
