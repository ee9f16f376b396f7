//! Where packets come from and where they go.
//!
//! A [`Device`] is one end of a port: it fills a [`Batch`] with what has arrived and takes frames
//! to send. There are Linux interfaces (AF_XDP and raw sockets), TAPs, links over UDP, capture
//! files, a generator and nothing at all; [`PortSpec`] is their notation on the command line,
//! [`open`] makes the device.
//!
//! A frame is Ethernet from the destination address on, without its checksum, as it was on the
//! wire: VLAN tags that the kernel took off are back, checksums that a sender left to its hardware
//! are finished, and what was merged or never cut into segments is cut ([`offload`]). Users of a
//! device see no trace of offloads.
//!
//! This crate does not parse packets, has no threads and no queues but the kernel's: when to
//! receive and what to do where a device does not take a frame is the caller's decision.
//!
//! ```
//! use weir_io::{Batch, Device, PortSpec};
//!
//! let port: PortSpec = "1@gen:size=64,count=3".parse()?;
//! let mut device = weir_io::open(&port.device)?;
//! let mut batch = Batch::new(32);
//! assert_eq!(device.receive(&mut batch)?, 3);
//! assert!(batch.iter().all(|frame| frame.data.len() == 64));
//! assert!(device.is_exhausted());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod batch;
mod checksum;
mod device;
mod error;
mod generator;
mod idle;
pub mod offload;
pub mod pcap;
mod pool;
mod ports;
mod record;
mod spec;
#[cfg(target_os = "linux")]
mod sys;
mod tunnel;

pub use batch::{Batch, Frame, MAX_FRAME};
pub use device::{Counters, Device, Null, ZeroCopy, open, receive_frames, transmit_frames, wait};
pub use error::IoError;
pub use generator::{Generator, GeneratorSpec, Protocol};
pub use idle::BusyPoll;
pub use pool::{FrameBatch, FrameLayout, FrameMut, Pool};
pub use ports::{Ports, PortsError, PortsOptions, reopen};
pub use record::{OnFailure, Recorder};
pub use spec::{DeviceSpec, PortSpec, Sending, SpecError};
#[cfg(target_os = "linux")]
pub use sys::{
    interfaces,
    raw::RawSocket,
    tap::Tap,
    timestamped::{Stamping, TimestampCapabilities, TimestampedReceiver, TimestampedSender, timestamp_capabilities},
    udp::UdpReceiver,
    xdp::{XdpBusyPoll, XdpMode, XdpOptions, XdpSocket},
};
pub use tunnel::UdpTunnel;

/// Nanoseconds since 1970 by the system's clock, in which frames are stamped.
#[must_use]
pub fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// The kernel's number for an interface, by its name or an alternative name; `None` if there is
/// none of this name, or elsewhere than on Linux. It does not change when the interface is renamed.
#[must_use]
pub fn interface_index(name: &str) -> Option<u32> {
    #[cfg(target_os = "linux")]
    return sys::index_of(name);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = name;
        None
    }
}

/// Numbers of the cores that this thread may run on; empty where the system does not tell.
#[must_use]
pub fn cores() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    return sys::core::cores();
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}

/// Lets the calling thread run on one core only. Elsewhere than on Linux nothing happens.
///
/// # Errors
///
/// There is no such core, or this process may not use it.
pub fn pin_to_core(core: usize) -> Result<(), IoError> {
    #[cfg(target_os = "linux")]
    return sys::core::pin(core);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = core;
        Ok(())
    }
}

/// Has this process end, by SIGTERM, when the process that started it has ended. To Linux the
/// parent is the thread that has started it. `parent` is what [`parent_process`] gave when this
/// process began.
///
/// # Errors
///
/// The parent has ended since, or the system does not know this: only Linux does.
pub fn die_with_parent(parent: i32) -> Result<(), IoError> {
    #[cfg(target_os = "linux")]
    return sys::core::die_with_parent(parent);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = parent;
        Err(IoError::NotHere {
            kind: "ending with the parent process",
        })
    }
}

/// The number of the process that has started this one; 0 where the system does not tell.
#[must_use]
pub fn parent_process() -> i32 {
    #[cfg(target_os = "linux")]
    return sys::core::parent_process();
    #[cfg(not(target_os = "linux"))]
    0
}

/// Makes the calling thread, and those that it starts from now on, nicer than normal, unless it is
/// nicer already: where they share a core with threads at 0 they get less of it (at 10 a tenth of a
/// share, at 19, the most, a seventieth). Real-time threads ignore it. Elsewhere than on Linux
/// nothing happens.
///
/// # Errors
///
/// The system has something against it.
pub fn be_nice(nice: u8) -> Result<(), IoError> {
    #[cfg(target_os = "linux")]
    return sys::core::be_nice(nice);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = nice;
        Ok(())
    }
}
