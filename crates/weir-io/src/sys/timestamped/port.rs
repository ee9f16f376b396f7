//! Which clocks an interface stamps packets with.

use super::super::ethtool;
use super::super::{control_socket, interface_error, interface_flags, ioctl, request};
use super::Stamping;
use crate::error::IoError;
use std::os::fd::OwnedFd;

/// `HWTSTAMP_TX_ON` and `HWTSTAMP_FILTER_ALL` (`linux/net_tstamp.h`).
const SEND_ON: libc::c_int = 1;
const RECEIVE_ALL: libc::c_int = 1;

/// What an interface can stamp packets with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimestampCapabilities {
    /// The driver stamps packets with the system's clock when it hands them to the hardware.
    pub software_send: bool,
    /// The kernel stamps packets with the system's clock when the driver hands them over.
    pub software_receive: bool,
    /// The number of the interface's own clock (`/dev/ptpN`), if it stamps every packet in both
    /// directions.
    pub hardware_clock: Option<u32>,
}

/// What an interface can stamp packets with, as `ethtool -T` shows it.
///
/// # Errors
/// There is no such interface.
pub fn timestamp_capabilities(name: &str) -> Result<TimestampCapabilities, IoError> {
    let control = control_socket()?;
    // An interface that does not exist has no flags either.
    interface_flags(&control, name)?;
    let Some(info) = ethtool::timestamping(&control, name) else {
        return Ok(TimestampCapabilities::default());
    };
    let has = |flags: libc::c_uint| info.flags & flags == flags;
    let in_hardware = has(libc::SOF_TIMESTAMPING_TX_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE);
    let on_each = info.send_types & (1 << SEND_ON) != 0 && info.receive_filters & (1 << RECEIVE_ALL) != 0;
    Ok(TimestampCapabilities {
        software_send: has(libc::SOF_TIMESTAMPING_TX_SOFTWARE),
        software_receive: has(libc::SOF_TIMESTAMPING_RX_SOFTWARE),
        hardware_clock: u32::try_from(info.clock).ok().filter(|_| in_hardware && on_each),
    })
}

/// Hardware timestamps of an interface, switched back to what they were when this is dropped.
#[derive(Debug)]
pub(super) struct HardwareStamps {
    control: OwnedFd,
    name: String,
    before: libc::hwtstamp_config,
}

impl HardwareStamps {
    /// Switches them on where `stamping` is hardware.
    pub(super) fn start(name: &str, stamping: Stamping) -> Result<Option<Self>, IoError> {
        if stamping == Stamping::Software {
            return Ok(None);
        }
        let control = control_socket()?;
        let off = libc::hwtstamp_config {
            flags: 0,
            tx_type: 0,
            rx_filter: 0,
        };
        // A driver without this call has them off.
        let before = configure(&control, name, libc::SIOCGHWTSTAMP as libc::Ioctl, off).unwrap_or(off);
        let on = libc::hwtstamp_config {
            flags: 0,
            tx_type: SEND_ON,
            rx_filter: RECEIVE_ALL,
        };
        configure(&control, name, libc::SIOCSHWTSTAMP as libc::Ioctl, on)?;
        let name = name.to_owned();
        Ok(Some(HardwareStamps { control, name, before }))
    }
}

impl Drop for HardwareStamps {
    fn drop(&mut self) {
        // Where the interface has gone there is nothing to restore.
        let _ = configure(
            &self.control,
            &self.name,
            libc::SIOCSHWTSTAMP as libc::Ioctl,
            self.before,
        );
    }
}

/// Reads or writes the configuration; `code` is `SIOCGHWTSTAMP` or `SIOCSHWTSTAMP`.
fn configure(
    control: &OwnedFd,
    name: &str,
    code: libc::Ioctl,
    mut config: libc::hwtstamp_config,
) -> Result<libc::hwtstamp_config, IoError> {
    let mut about = request(name)?;
    about.ifr_ifru.ifru_data = std::ptr::from_mut(&mut config).cast();
    // SAFETY: the request points to the structure that both codes expect, which outlives the call.
    let done = unsafe { ioctl(control, code, &mut about) };
    done.map_err(|e| interface_error(name, &format!("stamping in hardware on `{name}`"), "CAP_NET_ADMIN", e))?;
    Ok(config)
}
