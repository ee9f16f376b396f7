//! The devices of all ports, opened together so that they share their frames.

use crate::device::{Device, open};
use crate::error::IoError;
use crate::pool::{FrameLayout, Pool};
use crate::spec::DeviceSpec;

/// How [`Ports::open`] opens devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortsOptions {
    /// Longest packet of a device that does not say how long its packets are, in bytes. Where one
    /// has AF_XDP, only those with AF_XDP count.
    pub longest: usize,
    /// Bytes of a packet for which a frame has room even where the devices say that theirs are
    /// shorter: the MTU of an interface may rise after it was opened. With AF_XDP it does not
    /// count.
    pub at_least: usize,
    /// Bytes that a packet may grow by in front, beyond [`Pool::HEADROOM`].
    pub growth: usize,
    /// A device for each receive queue where there are several and they can be had one by one
    /// (AF_XDP).
    pub split: bool,
    /// Packets for which an interface has room until they are received, for each receive queue with
    /// AF_XDP, where a power of two is made of it; from 64 to [`PortsOptions::MAX_RING`]. `None`:
    /// some 8,000, shared by an interface's queues.
    pub ring: Option<u32>,
}

impl PortsOptions {
    /// Most packets of [`PortsOptions::ring`].
    pub const MAX_RING: u32 = 32_768;
}

/// The devices of all ports.
pub struct Ports {
    /// Where their frames come from: all devices that hand over frames have this pool.
    pub pool: Pool,
    /// For each port its device; or a device for each receive queue, each for a thread of its own,
    /// where whatever is of one flow arrives at the same.
    pub devices: Vec<Vec<Box<dyn Device>>>,
}

/// A device that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct PortsError {
    /// Why not.
    pub source: IoError,
    /// Its position among the specifications; `None` where there is no memory for the frames of
    /// all.
    pub index: Option<usize>,
}

impl Ports {
    /// Opens the devices that the specifications describe, in their order. `frames` gets the number
    /// of queues of each device, and returns the most frames outside of devices: in batches and
    /// rings.
    ///
    /// # Errors
    ///
    /// The first that does not exist or that the process may not use; the message says what would
    /// help.
    pub fn open(
        specs: &[DeviceSpec],
        options: &PortsOptions,
        frames: impl FnOnce(&[usize]) -> u32,
    ) -> Result<Self, PortsError> {
        let pool = pool(specs, options, frames).map_err(|source| PortsError { source, index: None })?;
        let mut devices = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let opened = open_with(spec, &pool, options).map_err(|source| PortsError {
                source,
                index: Some(index),
            });
            devices.push(opened?);
        }
        Ok(Ports { pool, devices })
    }
}

/// A pool for all of them.
fn pool(specs: &[DeviceSpec], options: &PortsOptions, frames: impl FnOnce(&[usize]) -> u32) -> Result<Pool, IoError> {
    let needs: Vec<Option<Needs>> = specs.iter().map(|spec| needs(spec, options)).collect();
    let pieces = |needs: &Option<Needs>| match needs {
        Some(needs) if options.split => needs.queues as usize,
        _ => 1,
    };
    let others = frames(&needs.iter().map(pieces).collect::<Vec<_>>());
    let with_xdp = || needs.iter().flatten();
    let Some(longest) = with_xdp().map(|n| n.longest).max() else {
        let each = specs.iter().map(|spec| longest_of(spec).unwrap_or(options.longest));
        let longest = each.max().unwrap_or(0).max(options.at_least).min(options.longest);
        return Pool::new(others, longest + options.growth, FrameLayout::Packed);
    };
    // Only so can hardware write into the frames itself.
    let layout = match with_xdp().all(|n| n.is_veth) {
        true => FrameLayout::Packed,
        false => FrameLayout::Aligned,
    };
    let count = with_xdp().fold(others, |sum, n| sum.saturating_add(n.frames));
    Pool::new(count, longest + options.growth, layout)
}

/// Bytes of the longest packet that a device gives, where that is known before it is opened.
fn longest_of(spec: &DeviceSpec) -> Option<usize> {
    match spec {
        DeviceSpec::Null => Some(0),
        DeviceSpec::Generator(spec) => Some(spec.size),
        #[cfg(target_os = "linux")]
        DeviceSpec::Interface(name) | DeviceSpec::Packet(name, _) | DeviceSpec::Xdp(name) => {
            crate::sys::longest_frame(name)
        }
        _ => None,
    }
}

/// What a device needs that is opened with AF_XDP, unless something is wrong with it: that is said
/// when it is opened.
#[cfg(target_os = "linux")]
fn needs(spec: &DeviceSpec, options: &PortsOptions) -> Option<Needs> {
    use crate::sys::{select, xdp};
    let name = match spec {
        DeviceSpec::Interface(name) if select::tries_xdp(name) => name,
        DeviceSpec::Xdp(name) => name,
        _ => return None,
    };
    let needs = xdp::needs(name, options.ring).ok()?;
    (needs.longest + options.growth <= Pool::MAX_FRAME).then_some(needs)
}

#[cfg(not(target_os = "linux"))]
fn needs(_: &DeviceSpec, _: &PortsOptions) -> Option<Needs> {
    None
}

/// What a pool must have for an interface to be opened with AF_XDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Receive queues.
    pub(crate) queues: u32,
    /// Frames in all.
    pub(crate) frames: u32,
    /// Bytes of the longest packet.
    pub(crate) longest: usize,
    /// There is no hardware that could write into frames.
    pub(crate) is_veth: bool,
}

/// Opens a device again whose interface was deleted and is there again.
///
/// # Errors
///
/// As for [`Ports::open`]; with AF_XDP also where the pool has too few frames left.
pub fn reopen(spec: &DeviceSpec, pool: &Pool, options: &PortsOptions) -> Result<Box<dyn Device>, IoError> {
    let one = PortsOptions {
        split: false,
        ..*options
    };
    let devices = open_with(spec, pool, &one)?;
    devices.into_iter().next().ok_or_else(|| IoError::System {
        doing: format!("opening `{spec}` again"),
        source: std::io::ErrorKind::NotFound.into(),
    })
}

fn open_with(spec: &DeviceSpec, pool: &Pool, options: &PortsOptions) -> Result<Vec<Box<dyn Device>>, IoError> {
    #[cfg(target_os = "linux")]
    {
        use crate::sys::raw::RawSocket;
        use crate::sys::xdp::{XdpOptions, XdpSocket};
        let with_xdp = || XdpOptions {
            pool: Some(pool.clone()),
            ring: options.ring,
            ..XdpOptions::default()
        };
        let socket = match spec {
            DeviceSpec::Interface(name) => crate::sys::select::choose(name, Some(pool), options.ring)?,
            DeviceSpec::Xdp(name) => Ok(XdpSocket::open(name, &with_xdp())?),
            DeviceSpec::Packet(name, sending) => Err(RawSocket::with_ring(name, options.ring, *sending)?),
            _ => return Ok(vec![open(spec)?]),
        };
        match socket {
            Ok(socket) if options.split && socket.queues() > 1 => {
                let boxed = |queue| Box::new(queue) as Box<dyn Device>;
                Ok(socket.into_queues()?.into_iter().map(boxed).collect())
            }
            Ok(socket) => Ok(vec![Box::new(socket)]),
            Err(socket) => Ok(vec![Box::new(socket)]),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (pool, options);
        Ok(vec![open(spec)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: PortsOptions = PortsOptions {
        longest: 9000,
        at_least: 0,
        growth: 100,
        split: true,
        ring: None,
    };

    #[test]
    fn ports_share_a_pool_and_the_wrong_one_is_named() {
        let ports = Ports::open(
            &[DeviceSpec::Null, "gen:count=1".parse().unwrap()],
            &OPTIONS,
            |pieces| {
                assert_eq!(pieces, [1, 1]);
                64
            },
        );
        let ports = ports.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((ports.devices.len(), ports.devices[1].len()), (2, 1));
        assert!(ports.pool.frames() == 64 && ports.pool.frame_size() < 9100);
        let capture: DeviceSpec = "pcap:none.pcap".parse().unwrap();
        assert!(
            pool(&[capture, DeviceSpec::Null], &OPTIONS, |_| 1)
                .unwrap()
                .frame_size()
                >= 9100
        );
        let raised = PortsOptions {
            at_least: 5000,
            ..OPTIONS
        };
        assert!(pool(&[DeviceSpec::Null], &raised, |_| 1).unwrap().frame_size() >= 5100);
        let wrong = Ports::open(
            &[DeviceSpec::Null, DeviceSpec::Xdp("weir-none".into())],
            &OPTIONS,
            |_| 64,
        );
        let Err(error) = wrong else { panic!("no such interface") };
        assert_eq!(error.index, Some(1));
        assert!(error.to_string().contains("no interface"), "{error}");
    }
}
