//! The ring through which the kernel hands packets to a raw socket without a call for each.
//!
//! It is the second version of the three there are. The third, with blocks of packets instead of
//! equal slots, takes less memory, but hands a block over when it is full or after a millisecond at
//! the earliest: too late for a switch with little to do. Packets longer than a slot, which are
//! unsegmented ones, also come through the socket and are read from there.

use super::{Plain, check, set_option};
use crate::offload::VnetHeader;
use crate::ports::PortsOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the kernel takes memory in.
const BLOCK: usize = 65_536;
/// Memory of a ring unless told otherwise: 7,936 packets of an interface with an MTU of 1500,
/// nearly as many as a ring of AF_XDP.
const MEMORY: usize = 16 << 20;
/// What is before a packet in its slot, at most: headers, an address, alignment.
const BEFORE: usize = 128;

// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::tpacket_req {}

/// What the kernel says of a packet in the ring.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Received {
    /// Where it is in its slot, and how much of it.
    start: usize,
    length: usize,
    pub(super) time_ns: u64,
    pub(super) vnet: VnetHeader,
    /// Type and contents of a tag that the kernel took off.
    pub(super) tag: Option<[u8; 4]>,
    /// Sent by this machine.
    pub(super) outgoing: bool,
    /// Longer than a slot.
    pub(super) is_cut: bool,
    /// All of it is to be read from the socket.
    pub(super) in_socket: bool,
}

/// The ring of a socket.
#[derive(Debug)]
pub(super) struct PacketRing {
    map: NonNull<u8>,
    length: usize,
    slot: usize,
    per_block: usize,
    count: usize,
    next: usize,
}

// SAFETY: the pointer is to a mapping that this owns; it can be used from any thread, by one at a
// time.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Gives a socket, which receives nothing yet, a ring for the packets of an interface with this
    /// MTU; for at least the given number of packets, and a few more where the last block has room
    /// for them.
    pub(super) fn new(socket: &OwnedFd, mtu: usize, packets: Option<u32>) -> io::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let on: libc::c_int = 1;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &on)?;
        // An odd number of cache lines, so that the first bytes of packets do not share few sets.
        let lines = (mtu + 22 + BEFORE).clamp(2048, 16_384) / 64;
        let slot = (lines | 1) * 64;
        let per_block = BLOCK / slot;
        let blocks = match packets {
            Some(packets) => (packets.clamp(64, PortsOptions::MAX_RING) as usize).div_ceil(per_block),
            None => MEMORY / BLOCK,
        };
        let length = blocks * BLOCK;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: slot as libc::c_uint,
            tp_frame_nr: (blocks * per_block) as libc::c_uint,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let fd = socket.as_raw_fd();
        // SAFETY: a new mapping anywhere; nothing that exists is changed.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, libc::MAP_SHARED, fd, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(PacketRing {
            map: NonNull::new(map.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?,
            length,
            slot,
            per_block,
            count: blocks * per_block,
            next: 0,
        })
    }

    /// The slot whose turn it is.
    fn current(&self) -> NonNull<u8> {
        let offset = self.next / self.per_block * BLOCK + self.next % self.per_block * self.slot;
        // SAFETY: `next` is below the number of slots, all of which are within the mapping.
        unsafe { self.map.add(offset) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: a slot begins with its status, aligned to 64 bytes, and lives as long as `self`.
        unsafe { self.current().cast::<AtomicU32>().as_ref() }
    }

    /// The next packet, which stays the next until [`Self::release`].
    pub(super) fn peek(&self) -> Option<Received> {
        // Acquire: the kernel has written the slot before its status.
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours by its status, and begins with this header of plain numbers.
        let header = unsafe { self.current().cast::<libc::tpacket2_hdr>().read() };
        let address = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
        // SAFETY: after the header is an address, within the slot.
        let address = unsafe { self.current().add(address).cast::<libc::sockaddr_ll>().read_unaligned() };
        let start = usize::from(header.tp_mac);
        let length = (header.tp_snaplen as usize).min(self.slot.saturating_sub(start));
        let mut received = Received {
            start: start.min(self.slot),
            length,
            time_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            is_cut: header.tp_snaplen < header.tp_len || length < header.tp_snaplen as usize,
            in_socket: status & libc::TP_STATUS_COPY != 0,
            ..Received::default()
        };
        if let Some(place) = start.checked_sub(VnetHeader::LENGTH).filter(|_| start <= self.slot) {
            let mut bytes = [0; VnetHeader::LENGTH];
            // SAFETY: the bytes before the packet are within the slot, which is ours.
            let slot = unsafe { std::slice::from_raw_parts(self.current().as_ptr(), self.slot) };
            bytes.copy_from_slice(&slot[place..start]);
            received.vnet = VnetHeader::parse(&bytes);
        }
        if status & libc::TP_STATUS_VLAN_VALID != 0 {
            let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let kind = if known { header.tp_vlan_tpid } else { 0x8100 };
            let (kind, contents) = (kind.to_be_bytes(), header.tp_vlan_tci.to_be_bytes());
            received.tag = Some([kind[0], kind[1], contents[0], contents[1]]);
        }
        Some(received)
    }

    /// The bytes of the packet that [`Self::peek`] has told of.
    pub(super) fn bytes(&mut self, received: &Received) -> &mut [u8] {
        // SAFETY: the slot is ours until it is released, and `self` is borrowed until then.
        let slot = unsafe { std::slice::from_raw_parts_mut(self.current().as_ptr(), self.slot) };
        slot.get_mut(received.start..received.start + received.length)
            .unwrap_or_default()
    }

    /// Gives the slot back to the kernel.
    pub(super) fn release(&mut self) {
        // Release: we have read the slot before it is given back.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.count;
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody has a reference into it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.length) };
    }
}

/// Reads a packet that was too long for its slot. The length of it; `None` where there is none or
/// it is longer than the buffer.
pub(super) fn receive_copy(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    let mut header = [0u8; VnetHeader::LENGTH];
    let part = |bytes: &mut [u8]| libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut parts = [part(&mut header), part(buffer)];
    // SAFETY: a message of zeros has no address, no parts and no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = 2;
    // SAFETY: the message points to two buffers of the lengths it says, which live during the call.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) };
    let got = check(libc::c_int::try_from(got).unwrap_or(-1))?;
    let whole = message.msg_flags & libc::MSG_TRUNC == 0;
    Ok((got as usize).checked_sub(VnetHeader::LENGTH).filter(|_| whole))
}
