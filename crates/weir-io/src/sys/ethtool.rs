//! Settings of an interface's driver.

use super::{ioctl, request};
use std::os::fd::OwnedFd;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_SETTINGS: u32 = 0x01;
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
const GET_GRO: u32 = 0x2b;
const SET_GRO: u32 = 0x2c;
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
