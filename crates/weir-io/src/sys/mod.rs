//! The Linux calls that the standard library has no words for. All `unsafe` of this crate is here
//! and in `pool`.
#![allow(unsafe_code)]

pub(crate) mod core;
pub(crate) mod datagrams;
pub(crate) mod ethtool;
mod packet_ring;
pub(crate) mod raw;
pub(crate) mod select;
pub(crate) mod tap;
pub(crate) mod timestamped;
pub(crate) mod udp;
pub(crate) mod xdp;

use crate::error::IoError;
use crate::spec::is_interface_name;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// Bytes of two VLAN tags.
const TAGS: usize = 8;

/// Bytes of the longest frame of an interface, two VLAN tags included; `None` where it does not
/// say.
pub(crate) fn longest_frame(name: &str) -> Option<usize> {
    let control = control_socket().ok()?;
    Some(mtu(&control, name).ok()? + HEADER + TAGS)
}

/// The answer of a call that says -1 where it failed.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// A new socket, closed when a child is started.
fn socket(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the call has just returned this file, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A value of plain numbers that the kernel reads or writes as bytes.
///
/// # Safety
///
/// Every pattern of bits, all zeros among them, must be a valid value.
unsafe trait Plain: Copy {
    fn zeroed() -> Self {
        // SAFETY: all zeros are a valid value, says whoever implements this.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: plain numbers.
unsafe impl Plain for libc::c_int {}
// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: a C struct of plain numbers and a union of them; the pointer in the union may be null.
unsafe impl Plain for libc::ifreq {}

fn set_option<T: Plain>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a value of `size` bytes that lives during the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size) })?;
    Ok(())
}

fn get_option<T: Plain>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int) -> io::Result<T> {
    let mut value = T::zeroed();
    let mut size = size_of::<T>() as libc::socklen_t;
    let pointer = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the pointers are to a value of `size` bytes and to that size; both live during the
    // call, and whatever the kernel writes is a valid value.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, pointer, &mut size) })?;
    Ok(value)
}

/// A request about an interface with its name filled in.
fn request(name: &str) -> Result<libc::ifreq, IoError> {
    let mut request = libc::ifreq::zeroed();
    if !is_interface_name(name) || name.len() >= request.ifr_name.len() {
        return Err(IoError::InvalidName { name: name.to_string() });
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Asks or tells the kernel something about an interface.
///
/// # Safety
///
/// `code` must take an `ifreq`, and what the request points to must be what `code` expects.
unsafe fn ioctl(fd: &impl AsRawFd, code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the pointer is to an `ifreq` that lives during the call; the rest is the caller's
    // promise.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), code, std::ptr::from_mut(request)) })?;
    Ok(())
}

/// An error about an interface, or the one that says which interfaces there are.
fn interface_error(name: &str, doing: &str, right: &'static str, error: io::Error) -> IoError {
    match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => IoError::NoInterface {
            name: name.to_string(),
            existing: interfaces(),
        },
        Some(libc::EPERM | libc::EACCES) => {
            let denied = io::Error::from(io::ErrorKind::PermissionDenied);
            IoError::system(doing, right, denied)
        }
        Some(libc::EBUSY) => IoError::Busy { name: name.to_string() },
        _ => IoError::system(doing, right, error),
    }
}

/// The kernel's number for an interface, if it exists.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the pointer is to a string that ends with a zero and lives during the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index > 0).then_some(index)
}

/// The number the kernel knows an interface by.
fn interface_index(control: &OwnedFd, name: &str) -> Result<libc::c_int, IoError> {
    let mut about = request(name)?;
    // SAFETY: SIOCGIFINDEX takes an `ifreq` and follows no pointer of it.
    let asked = unsafe { ioctl(control, libc::SIOCGIFINDEX as libc::Ioctl, &mut about) };
    asked.map_err(|e| interface_error(name, &format!("looking for `{name}`"), "CAP_NET_ADMIN", e))?;
    // SAFETY: the call has filled in this member of the union.
    Ok(unsafe { about.ifr_ifru.ifru_ifindex })
}

/// The `IFF_…` flags of an interface.
fn interface_flags(control: &OwnedFd, name: &str) -> Result<libc::c_short, IoError> {
    let mut about = request(name)?;
    // SAFETY: SIOCGIFFLAGS takes an `ifreq` and follows no pointer of it.
    let asked = unsafe { ioctl(control, libc::SIOCGIFFLAGS as libc::Ioctl, &mut about) };
    asked.map_err(|e| interface_error(name, &format!("reading the state of `{name}`"), "CAP_NET_ADMIN", e))?;
    // SAFETY: the call has filled in this member of the union.
    Ok(unsafe { about.ifr_ifru.ifru_flags })
}

/// Longest payload of a frame of an interface.
fn mtu(control: &OwnedFd, name: &str) -> Result<usize, IoError> {
    let mut about = request(name)?;
    // SAFETY: SIOCGIFMTU takes an `ifreq` and follows no pointer of it.
    let asked = unsafe { ioctl(control, libc::SIOCGIFMTU as libc::Ioctl, &mut about) };
    asked.map_err(|e| interface_error(name, &format!("reading the MTU of `{name}`"), "CAP_NET_ADMIN", e))?;
    // SAFETY: the call has filled in this member of the union.
    let mtu = unsafe { about.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Binds to the packets of a protocol that an interface receives; to none with 0.
fn bind(socket: &OwnedFd, index: libc::c_int, protocol: u16) -> io::Result<()> {
    let mut address = libc::sockaddr_ll::zeroed();
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to an address of `size` bytes that lives during the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) })?;
    Ok(())
}

/// Has an interface receive everything, not only what is for it, as long as the socket exists.
fn receive_everything(socket: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    let mut membership = libc::packet_mreq::zeroed();
    membership.mr_ifindex = index;
    membership.mr_type = libc::PACKET_MR_PROMISC as libc::c_ushort;
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// An address by which other machines reach this one through an interface, where it has one.
fn own_address(name: &str) -> Option<std::net::IpAddr> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is to where the list is to be put; it is freed below.
    check(unsafe { libc::getifaddrs(&mut list) }).ok()?;
    let (mut entry, mut found) = (list, None);
    while !entry.is_null() {
        // SAFETY: the list ends with a null pointer, and the loop ends there.
        let current = unsafe { &*entry };
        // SAFETY: the name of an entry ends with a zero and lives as long as the list.
        let here = unsafe { CStr::from_ptr(current.ifa_name) }.to_bytes() == name.as_bytes();
        if here && !current.ifa_addr.is_null() {
            // SAFETY: the address is there, and its kind says how long it is.
            let address = unsafe {
                match libc::c_int::from((*current.ifa_addr).sa_family) {
                    libc::AF_INET => {
                        let v4 = &*current.ifa_addr.cast::<libc::sockaddr_in>();
                        Some(std::net::IpAddr::from(v4.sin_addr.s_addr.to_ne_bytes()))
                    }
                    libc::AF_INET6 => {
                        let v6 = &*current.ifa_addr.cast::<libc::sockaddr_in6>();
                        Some(std::net::IpAddr::from(v6.sin6_addr.s6_addr))
                    }
                    _ => None,
                }
            };
            // Every interface that is up has a link-local address.
            let reachable = |a: &std::net::IpAddr| match a {
                std::net::IpAddr::V4(_) => true,
                std::net::IpAddr::V6(v6) => !v6.is_unicast_link_local(),
            };
            found = found.or(address.filter(reachable));
        }
        entry = current.ifa_next;
    }
    // SAFETY: the list came from `getifaddrs` and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// What the kernel has dropped because a socket's buffer was full: a counter of 32 bits that wraps.
fn drops(socket: &OwnedFd) -> io::Result<u32> {
    /// Numbers that the kernel has of a socket's memory, and the place of its counter of drops
    /// among them (`linux/sock_diag.h`).
    const MEMORY_NUMBERS: usize = 9;
    const DROPS: usize = 8;
    let mut numbers = [0_u32; MEMORY_NUMBERS];
    let mut size = size_of_val(&numbers) as libc::socklen_t;
    let (fd, pointer) = (socket.as_raw_fd(), numbers.as_mut_ptr().cast());
    // SAFETY: the pointers are to numbers of `size` bytes and to their size, and live during the
    // call.
    check(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, pointer, &raw mut size) })?;
    Ok(numbers[DROPS])
}

/// Sets an interface up.
fn set_up(control: &OwnedFd, name: &str) -> Result<(), IoError> {
    let flags = interface_flags(control, name)?;
    let mut about = request(name)?;
    about.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS takes an `ifreq` and follows no pointer of it.
    let told = unsafe { ioctl(control, libc::SIOCSIFFLAGS as libc::Ioctl, &mut about) };
    told.map_err(|e| interface_error(name, &format!("setting `{name}` up"), "CAP_NET_ADMIN", e))
}

/// When it is time to look whether an interface is still there: where nothing is received, ten
/// times a second.
#[derive(Debug, Default)]
struct Patrol {
    last: Option<Instant>,
}

impl Patrol {
    /// Time between two looks.
    const INTERVAL: Duration = Duration::from_millis(100);

    /// Whether it is time, after a round in which so many packets were received.
    fn is_due(&mut self, received: usize) -> bool {
        if received > 0 {
            return false;
        }
        let now = Instant::now();
        let is_due = self.last.is_none_or(|last| now - last >= Self::INTERVAL);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// Whether an interface is up and has a carrier.
fn is_running(control: &OwnedFd, name: &str) -> bool {
    let wanted = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    interface_flags(control, name).is_ok_and(|flags| flags & wanted == wanted)
}

/// A socket to talk to the kernel about interfaces.
fn control_socket() -> Result<OwnedFd, IoError> {
    socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(|e| IoError::system("opening a socket", "CAP_NET_RAW", e))
}

/// Names of the interfaces that this process can see.
#[must_use]
pub fn interfaces() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the call takes nothing; what it returns is freed below.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return names;
    }
    let mut entry = list;
    loop {
        // SAFETY: the list ends with an entry of zeros, and the loop ends there.
        let current = unsafe { &*entry };
        if current.if_index == 0 || current.if_name.is_null() {
            break;
        }
        // SAFETY: the name of an entry ends with a zero and lives as long as the list.
        let name = unsafe { CStr::from_ptr(current.if_name) };
        names.push(name.to_string_lossy().into_owned());
        // SAFETY: this was not the last entry.
        entry = unsafe { entry.add(1) };
    }
    // SAFETY: the list came from `if_nameindex` and is not used any more.
    unsafe { libc::if_freenameindex(list) };
    names
}

/// Waits until one of the files can be read, at most this long.
pub(crate) fn poll(files: &[BorrowedFd<'_>], timeout: Duration) -> Result<bool, IoError> {
    let entry = |file: &BorrowedFd<'_>| libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // Few ports need no memory for this.
    let (mut few, mut many);
    let entries = if files.len() <= 16 {
        few = [libc::pollfd {
            fd: -1,
            events: 0,
            revents: 0,
        }; 16];
        for (to, file) in few.iter_mut().zip(files) {
            *to = entry(file);
        }
        &mut few[..files.len()]
    } else {
        many = files.iter().map(entry).collect::<Vec<_>>();
        &mut many[..]
    };
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let count = entries.len() as libc::nfds_t;
    // SAFETY: the pointers are to `count` entries and to a time, and live during the call; no
    // signal mask is passed.
    let ready = check(unsafe { libc::ppoll(entries.as_mut_ptr(), count, &time, std::ptr::null()) });
    match ready {
        Ok(ready) => Ok(ready > 0),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(IoError::system("waiting for packets", "CAP_NET_RAW", error)),
    }
}
