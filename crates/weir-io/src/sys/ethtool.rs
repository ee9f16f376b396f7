//! Settings of an interface's driver.

use super::{ioctl, request};
use std::os::fd::OwnedFd;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_SETTINGS: u32 = 0x01;
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
const GET_GRO: u32 = 0x2b;
const SET_GRO: u32 = 0x2c;
const GET_DRIVER: u32 = 0x03;
const GET_CHANNELS: u32 = 0x3c;
const GET_TIMESTAMPING: u32 = 0x41;
const FLAG_RXVLAN: u32 = 1 << 8;
const FLAG_LRO: u32 = 1 << 15;

/// `struct ethtool_value`
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_cmd`, the parts between as bytes.
#[repr(C)]
struct Settings {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    between: [u8; 14],
    speed_high: u16,
    rest: [u8; 14],
}

const _: () = assert!(size_of::<Settings>() == 44 && std::mem::offset_of!(Settings, speed_high) == 28);

/// Reads or writes one number. `None` where the driver does not have it.
fn value(control: &OwnedFd, name: &str, command: u32, data: u32) -> Option<u32> {
    let mut value = Value { command, data };
    let mut about = request(name).ok()?;
    about.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the request points to the value that these commands expect, which outlives the call.
    unsafe { ioctl(control, SIOCETHTOOL, &mut about) }.ok()?;
    Some(value.data)
}

/// Speed of the link in bits per second, where it has one.
pub(super) fn speed(control: &OwnedFd, name: &str) -> Option<u64> {
    let mut settings = Settings {
        command: GET_SETTINGS,
        supported: 0,
        advertising: 0,
        speed_low: 0,
        between: [0; 14],
        speed_high: 0,
        rest: [0; 14],
    };
    let mut about = request(name).ok()?;
    about.ifr_ifru.ifru_data = std::ptr::from_mut(&mut settings).cast();
    // SAFETY: the request points to the settings that this command expects, which outlive the call.
    unsafe { ioctl(control, SIOCETHTOOL, &mut about) }.ok()?;
    let megabits = u32::from(settings.speed_high) << 16 | u32::from(settings.speed_low);
    // All ones, in 16 or 32 bits: not known.
    let known = megabits != 0 && megabits != u32::MAX && megabits != 0xffff;
    known.then(|| u64::from(megabits) * 1_000_000)
}

/// What the driver merged before it was told not to.
#[derive(Debug)]
pub(super) struct Merging {
    gro: bool,
    lro: bool,
}

impl Merging {
    /// Stops the interface from merging packets that arrive, where its driver lets itself be told.
    pub(super) fn stop(control: &OwnedFd, name: &str) -> Self {
        let gro = value(control, name, GET_GRO, 0).is_some_and(|on| on != 0);
        let flags = value(control, name, GET_FLAGS, 0).unwrap_or(0);
        let gro = gro && value(control, name, SET_GRO, 0).is_some();
        let lro = flags & FLAG_LRO != 0;
        let lro = lro && value(control, name, SET_FLAGS, flags & !FLAG_LRO).is_some();
        Merging { gro, lro }
    }

    /// Puts everything back.
    pub(super) fn restore(&self, control: &OwnedFd, name: &str) {
        if self.gro {
            value(control, name, SET_GRO, 1);
        }
        if self.lro {
            let flags = value(control, name, GET_FLAGS, 0);
            flags.and_then(|flags| value(control, name, SET_FLAGS, flags | FLAG_LRO));
        }
    }
}

/// Whether the driver took VLAN tags off received frames before it was told not to.
#[derive(Debug)]
pub(super) struct TagStripping {
    stopped: bool,
    /// It does so still, and cannot be told.
    pub(super) goes_on: bool,
}

impl TagStripping {
    /// Has tags left in the frames, where the driver lets itself be told.
    pub(super) fn stop(control: &OwnedFd, name: &str) -> Self {
        let flags = value(control, name, GET_FLAGS, 0).unwrap_or(0);
        if flags & FLAG_RXVLAN == 0 {
            return TagStripping {
                stopped: false,
                goes_on: false,
            };
        }
        let stopped = value(control, name, SET_FLAGS, flags & !FLAG_RXVLAN).is_some();
        let now = value(control, name, GET_FLAGS, 0).unwrap_or(0);
        TagStripping {
            stopped,
            goes_on: now & FLAG_RXVLAN != 0,
        }
    }

    /// Puts it back.
    pub(super) fn restore(&self, control: &OwnedFd, name: &str) {
        if self.stopped {
            let flags = value(control, name, GET_FLAGS, 0);
            flags.and_then(|flags| value(control, name, SET_FLAGS, flags | FLAG_RXVLAN));
        }
    }
}

/// `struct ethtool_drvinfo`
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    rest: [u8; 64],
}

const _: () = assert!(size_of::<DriverInfo>() == 196);

/// The names of the driver and of the place on a bus; the latter is empty for what is no device.
pub(super) fn driver(control: &OwnedFd, name: &str) -> Option<(String, String)> {
    let mut info = DriverInfo {
        command: GET_DRIVER,
        driver: [0; 32],
        version: [0; 32],
        firmware: [0; 32],
        bus: [0; 32],
        rest: [0; 64],
    };
    let mut about = request(name).ok()?;
    about.ifr_ifru.ifru_data = std::ptr::from_mut(&mut info).cast();
    // SAFETY: the request points to the structure that this command expects, which outlives the
    // call.
    unsafe { ioctl(control, SIOCETHTOOL, &mut about) }.ok()?;
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Some((text(&info.driver), text(&info.bus)))
}

/// `struct ethtool_channels`
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

/// Number of queues that the interface receives with; one where it does not say.
pub(super) fn receive_queues(control: &OwnedFd, name: &str) -> u32 {
    let mut channels = Channels {
        command: GET_CHANNELS,
        ..Channels::default()
    };
    let Ok(mut about) = request(name) else {
        return 1;
    };
    about.ifr_ifru.ifru_data = std::ptr::from_mut(&mut channels).cast();
    // SAFETY: the request points to the structure that this command expects, which outlives the
    // call.
    let asked = unsafe { ioctl(control, SIOCETHTOOL, &mut about) };
    let queues = channels.receive.saturating_add(channels.combined);
    if asked.is_ok() { queues.clamp(1, 4096) } else { 1 }
}

/// `struct ethtool_ts_info`
#[repr(C)]
pub(super) struct Timestamping {
    command: u32,
    /// `SOF_TIMESTAMPING_…`
    pub(super) flags: u32,
    /// Number of the interface's clock, -1 without one.
    pub(super) clock: i32,
    /// Bits by `HWTSTAMP_TX_…`.
    pub(super) send_types: u32,
    reserved: [u32; 3],
    /// Bits by `HWTSTAMP_FILTER_…`.
    pub(super) receive_filters: u32,
    rest: [u32; 3],
}

const _: () = assert!(size_of::<Timestamping>() == 44);

/// How an interface stamps packets. `None` where the driver does not say.
pub(super) fn timestamping(control: &OwnedFd, name: &str) -> Option<Timestamping> {
    let mut info = Timestamping {
        command: GET_TIMESTAMPING,
        flags: 0,
        clock: -1,
        send_types: 0,
        reserved: [0; 3],
        receive_filters: 0,
        rest: [0; 3],
    };
    let mut about = request(name).ok()?;
    about.ifr_ifru.ifru_data = std::ptr::from_mut(&mut info).cast();
    // SAFETY: the request points to the structure that this command expects, which outlives the
    // call.
    unsafe { ioctl(control, SIOCETHTOOL, &mut about) }.ok()?;
    Some(info)
}
