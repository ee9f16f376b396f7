//! Which kind of socket a plain interface name gets.

use super::raw::RawSocket;
use super::xdp::{XdpMode, XdpOptions, XdpSocket};
use super::{control_socket, ethtool, interface_index, own_address};
use crate::device::Device;
use crate::error::IoError;
use crate::pool::Pool;
use crate::spec::Sending;

/// Drivers of virtual machines: their hosts hand over packets with unfinished checksums like a
/// veth's peer does, unless the program is attached within the driver, which then declines such
/// packets.
const PARAVIRTUAL: [&str; 5] = ["virtio_net", "hv_netvsc", "vmxnet3", "xen_netfront", "vif"];

/// Opens an interface with AF_XDP where that is as good and faster, else with AF_PACKET, whose
/// description then says why.
pub(crate) fn open(name: &str) -> Result<Box<dyn Device>, IoError> {
    Ok(match choose(name, None, None)? {
        Ok(socket) => Box::new(socket),
        Err(socket) => Box::new(socket),
    })
}

/// Whether [`open`] tries AF_XDP with an interface.
pub(crate) fn tries_xdp(name: &str) -> bool {
    let driver = control_socket()
        .ok()
        .and_then(|control| ethtool::driver(&control, name));
    let (driver, bus) = driver.unwrap_or_default();
    against_xdp(name, &driver, &bus).is_none()
}

/// As [`open`]: the AF_XDP socket, with its frames from `pool`, or else the other one; with rings
/// of a size.
pub(crate) fn choose(
    name: &str,
    pool: Option<&Pool>,
    ring: Option<u32>,
) -> Result<Result<XdpSocket, RawSocket>, IoError> {
    let control = control_socket()?;
    interface_index(&control, name)?;
    let (driver, bus) = ethtool::driver(&control, name).unwrap_or_default();
    let why = match against_xdp(name, &driver, &bus) {
        Some(why) => why,
        None => match open_xdp(name, &driver, pool, ring) {
            Ok(device) => return Ok(Ok(device)),
            Err(error) => error.to_string(),
        },
    };
    let mut device = RawSocket::with_ring(name, ring, Sending::Queued)?;
    device.set_note(format!("AF_PACKET; {why}"));
    Ok(Err(device))
}

/// Why AF_XDP would do harm, where it would.
fn against_xdp(name: &str, driver: &str, bus: &str) -> Option<String> {
    // TAPs say `tap` for their bus.
    if bus.is_empty() || matches!(driver, "tun" | "veth") {
        return Some(format!(
            "local senders leave checksums and segments to a virtual interface and AF_XDP is not told; xdp:{name} forces it"
        ));
    }
    own_address(name)
        .map(|address| format!("AF_XDP would cut this machine off at its address {address}; xdp:{name} forces it"))
}

fn open_xdp(name: &str, driver: &str, pool: Option<&Pool>, ring: Option<u32>) -> Result<XdpSocket, IoError> {
    let with = |mode| {
        let options = XdpOptions {
            mode,
            pool: pool.cloned(),
            ring,
            ..XdpOptions::default()
        };
        XdpSocket::open(name, &options)
    };
    if PARAVIRTUAL.contains(&driver) {
        return with(XdpMode::ZeroCopy).or_else(|_| with(XdpMode::Native));
    }
    with(XdpMode::Auto)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_interfaces_and_those_with_an_address_keep_af_packet() {
        let why = |driver, bus| against_xdp("wx0", driver, bus);
        for (driver, bus) in [("veth", ""), ("bridge", ""), ("tun", "tap"), ("", "")] {
            assert!(
                why(driver, bus).is_some_and(|w| w.contains("xdp:wx0 forces it")),
                "{driver}"
            );
        }
        assert_eq!(why("ixgbe", "0000:01:00.0"), None);
        assert_eq!(why("virtio_net", "0000:00:03.0"), None);
        let with_address = against_xdp("lo", "ixgbe", "0000:01:00.0");
        match own_address("lo") {
            Some(address) => assert!(with_address.is_some_and(|w| w.contains(&address.to_string()))),
            None => assert_eq!(with_address, None),
        }
    }
}
