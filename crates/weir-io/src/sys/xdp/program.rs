//! The program that sends what an interface receives to the sockets of its queues, and its link to
//! the interface.

use crate::sys::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// How a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attach {
    /// Within the driver.
    Native,
    /// After the driver, on packets as the kernel keeps them.
    Generic,
}

/// `union bpf_attr`, for maps.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    name: [u8; 16],
}

/// `union bpf_attr`, for entries.
#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr`, for programs.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

/// `union bpf_attr`, for links.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// bpf(2). The answer is a file or a zero.
///
/// # Safety
///
/// `attributes` must be what `command` takes, and its pointers good for it.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_int> {
    let pointer = std::ptr::from_ref(attributes);
    // SAFETY: the pointer is to as many bytes as are said; the rest is the caller's promise.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    check(libc::c_int::try_from(answer).unwrap_or(-1))
}

/// As [`bpf`], for a command whose answer is a file.
///
/// # Safety
///
/// As there, and the answer of `command` is a file that it has opened.
unsafe fn bpf_file<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the caller guarantees that the call has just opened this file; it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd() as u32
}

fn name() -> [u8; 16] {
    let mut name = [0; 16];
    name[..4].copy_from_slice(b"weir");
    name
}

/// A map with a place for the socket of every queue.
pub(super) fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    let attributes = MapCreate {
        map_type: MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: queues,
        name: name(),
        ..MapCreate::default()
    };
    // SAFETY: the attributes are those of this command and hold no pointer; it opens a map.
    unsafe { bpf_file(MAP_CREATE, &attributes) }
}

/// Puts the socket of a queue into the map.
pub(super) fn set_socket(map: &OwnedFd, queue: u32, socket: &OwnedFd) -> io::Result<()> {
    let value = number(socket);
    let attributes = MapUpdate {
        map_fd: number(map),
        padding: 0,
        key: std::ptr::from_ref(&queue) as u64,
        value: std::ptr::from_ref(&value) as u64,
        flags: 0,
    };
    // SAFETY: the pointers are to a key and a value of four bytes each, as the map has them.
    unsafe { bpf(MAP_UPDATE_ELEM, &attributes) }.map(|_| ())
}

/// Loads the program: what arrives at a queue with a socket goes there, everything else to the
/// kernel.
///
/// In the words of the kernel's headers:
/// `return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);`
pub(super) fn redirect_program(map: &OwnedFd) -> io::Result<OwnedFd> {
    let instruction = |code: u8, registers: u8, offset: u16, value: u32| {
        // The two registers are in the order of the machine's bit fields.
        let registers = if cfg!(target_endian = "big") {
            registers.rotate_left(4)
        } else {
            registers
        };
        let [a, b] = offset.to_ne_bytes();
        let [c, d, e, f] = value.to_ne_bytes();
        [code, registers, a, b, c, d, e, f]
    };
    let code = [
        // r2 = *(u32 *)(r1 + 16), which is rx_queue_index
        instruction(0x61, 0x12, 16, 0),
        // r1 = the map, by its file; takes two
        instruction(0x18, 0x11, 0, number(map)),
        instruction(0, 0, 0, 0),
        // r3 = XDP_PASS
        instruction(0xb7, 0x03, 0, 2),
        // call bpf_redirect_map
        instruction(0x85, 0, 0, 51),
        // exit
        instruction(0x95, 0, 0, 0),
    ];
    let license = c"Apache-2.0";
    let attributes = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: name(),
        interface: 0,
        expected_attach_type: ATTACH_XDP,
    };
    // SAFETY: the pointers are to as many instructions as are said and to a text that ends with a
    // zero, all of which live during the call; it opens a program.
    unsafe { bpf_file(PROG_LOAD, &attributes) }
}

/// Attaches a program. It is detached when the file is closed, at the latest when the process ends.
pub(super) fn attach(program: &OwnedFd, interface: u32, how: Attach) -> io::Result<OwnedFd> {
    let attributes = LinkCreate {
        prog_fd: number(program),
        interface,
        attach_type: ATTACH_XDP,
        flags: match how {
            Attach::Generic => 1 << 1,
            Attach::Native => 1 << 2,
        },
    };
    // SAFETY: the attributes are those of this command and hold no pointer; it opens a link.
    unsafe { bpf_file(LINK_CREATE, &attributes) }
}
