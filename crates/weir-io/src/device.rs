//! What every device can do.

use crate::batch::{Batch, Frame};
use crate::error::IoError;
use crate::generator::Generator;
use crate::pcap::PcapDevice;
use crate::pool::{FrameBatch, Pool};
use crate::spec::DeviceSpec;
use std::time::Duration;

/// What a device has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames received.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that arrived but were lost: the kernel's queue was full, or they were damaged.
    pub receive_dropped: u64,
    /// Frames that could not be sent: longer than the interface takes, or the link was down.
    pub send_dropped: u64,
    /// Frames whose checksum was left to us.
    pub checksums_finished: u64,
    /// Large frames that were cut into segments here.
    pub segmented: u64,
}

impl Counters {
    /// The sums of both.
    #[must_use]
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            sent: self.sent + other.sent,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            receive_dropped: self.receive_dropped + other.receive_dropped,
            send_dropped: self.send_dropped + other.send_dropped,
            checksums_finished: self.checksums_finished + other.checksums_finished,
            segmented: self.segmented + other.segmented,
        }
    }
}

/// One end of a port.
pub trait Device: Send {
    /// Adds frames that have arrived to the batch, as many as there are and as it has room for.
    /// Does not wait. Returns how many were added.
    ///
    /// # Errors
    ///
    /// The device is of no use any more. A frame that is lost is counted, not an error.
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError>;

    /// Sends frames. Returns how many from the front were dealt with: sent, or counted as dropped
    /// because they never could be. The others can be tried again.
    ///
    /// # Errors
    ///
    /// The device is of no use any more.
    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError>;

    /// Writes out what is buffered.
    ///
    /// # Errors
    ///
    /// As for [`Self::transmit`].
    fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }

    /// Whether frames that it took are still on their way; those that the interface does not take
    /// now go when something is received or sent, or at [`Device::flush`].
    fn is_sending(&self) -> bool {
        false
    }

    /// What it is, for people: `eth0`, `tap:t0`, `pcap:in.pcap`.
    fn description(&self) -> String;

    /// Speed in bits per second, where it has one.
    fn speed(&self) -> Option<u64> {
        None
    }

    /// Whether what is sent can arrive.
    fn link_up(&self) -> bool {
        true
    }

    /// Nothing will be received any more.
    fn is_exhausted(&self) -> bool {
        false
    }

    /// The file that becomes readable when something has arrived.
    #[cfg(unix)]
    fn poll_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// When to look again, for a device without a file to poll.
    fn ready_in(&self) -> Option<Duration> {
        None
    }

    /// Whether packets that were not received yet wait without limit, as those of a capture do.
    /// Otherwise they are lost when the device is not polled.
    fn is_patient(&self) -> bool {
        false
    }

    /// Whether its packets are those of a capture. They are the same in every run, and so should be
    /// what results from them.
    fn is_replay(&self) -> bool {
        false
    }

    /// As [`Device::receive`], with the one copy there is made into frames of a pool; `None` where
    /// the device cannot. A packet that is longer than a frame takes is counted as dropped.
    ///
    /// # Errors
    ///
    /// As for [`Device::receive`].
    fn receive_into(&mut self, _batch: &mut FrameBatch) -> Result<Option<usize>, IoError> {
        Ok(None)
    }

    /// The same device by its interface without copying, where it has one.
    fn zero_copy(&mut self) -> Option<&mut dyn ZeroCopy> {
        None
    }

    /// What it has done so far.
    fn counters(&self) -> Counters;
}

/// A device that hands over the frames themselves instead of copies.
///
/// Frames that came from one device go to another without copying where both have the same
/// [`Pool`]; else they are copied on the way. Both interfaces of a device can be used in turns.
pub trait ZeroCopy: Device {
    /// Where its frames come from and go to.
    fn pool(&self) -> Pool;

    /// Adds frames that have arrived to the batch, as [`Device::receive`]. Each has at least
    /// [`Pool::HEADROOM`] bytes free in front and [`Pool::TAILROOM`] after.
    ///
    /// # Errors
    ///
    /// As for [`Device::receive`].
    fn receive_frames(&mut self, batch: &mut FrameBatch) -> Result<usize, IoError>;

    /// Sends frames from the front of the batch and takes them out. Returns how many were dealt
    /// with, as [`Device::transmit`]; the others stay and can be tried again. Holes go without
    /// being counted.
    ///
    /// # Errors
    ///
    /// As for [`Device::transmit`].
    fn transmit_frames(&mut self, batch: &mut FrameBatch) -> Result<usize, IoError>;
}

/// Takes everything, gives nothing.
#[derive(Debug, Default)]
pub struct Null {
    counters: Counters,
}

impl Device for Null {
    fn receive(&mut self, _: &mut Batch) -> Result<usize, IoError> {
        Ok(0)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        self.counters.count_sent(frames);
        Ok(frames.len())
    }

    fn description(&self) -> String {
        "null".to_string()
    }

    fn is_exhausted(&self) -> bool {
        true
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

impl Counters {
    pub(crate) fn count_sent(&mut self, frames: &[Frame<'_>]) {
        self.sent += frames.len() as u64;
        self.sent_bytes += frames.iter().map(|f| f.data.len() as u64).sum::<u64>();
    }

    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.received += 1;
        self.received_bytes += bytes as u64;
    }
}

/// Makes the device that a specification describes.
///
/// # Errors
///
/// It does not exist, or the process may not use it; the message says what would help.
pub fn open(spec: &DeviceSpec) -> Result<Box<dyn Device>, IoError> {
    Ok(match spec {
        DeviceSpec::Null => Box::new(Null::default()),
        DeviceSpec::Generator(spec) => Box::new(Generator::new(spec.clone())),
        DeviceSpec::Udp { local, remote } => Box::new(crate::tunnel::UdpTunnel::open(*local, *remote)?),
        DeviceSpec::Pcap { input, output } => Box::new(PcapDevice::open(input, output.as_deref())?),
        DeviceSpec::PcapRecord(output) => Box::new(PcapDevice::record(output)?),
        #[cfg(target_os = "linux")]
        DeviceSpec::Interface(name) => crate::sys::select::open(name)?,
        #[cfg(target_os = "linux")]
        DeviceSpec::Xdp(name) => Box::new(crate::sys::xdp::XdpSocket::open(name, &Default::default())?),
        #[cfg(target_os = "linux")]
        DeviceSpec::Packet(name, sending) => Box::new(crate::sys::raw::RawSocket::with_ring(name, None, *sending)?),
        #[cfg(target_os = "linux")]
        DeviceSpec::Tap(name) => Box::new(crate::sys::tap::Tap::open(name)?),
        #[cfg(not(target_os = "linux"))]
        DeviceSpec::Interface(_) | DeviceSpec::Xdp(_) | DeviceSpec::Packet(..) => {
            return Err(IoError::NotHere { kind: "an interface" });
        }
        #[cfg(not(target_os = "linux"))]
        DeviceSpec::Tap(_) => return Err(IoError::NotHere { kind: "a TAP" }),
    })
}

/// Frames that [`transmit_frames`] hands to a device at a time.
const AT_A_TIME: usize = 64;

/// Receives frames of a pool from any device: those of the device itself, or copies by way of
/// `staged`, which is cleared. What the batch does not take, because it is longer than a frame or
/// the pool has none left, is given to `odd`. Returns how many arrived.
///
/// # Errors
///
/// As for [`Device::receive`]; what came before has arrived.
pub fn receive_frames(
    device: &mut dyn Device,
    batch: &mut FrameBatch,
    staged: &mut Batch,
    mut odd: impl FnMut(Frame<'_>),
) -> Result<usize, IoError> {
    if let Some(device) = device.zero_copy() {
        return device.receive_frames(batch);
    }
    if let Some(received) = device.receive_into(batch)? {
        return Ok(received);
    }
    staged.clear();
    let received = device.receive(staged);
    for frame in staged.iter() {
        if !batch.push(frame.data, frame.time_ns) {
            odd(frame);
        }
    }
    received
}

/// Sends the frames of a batch without holes by any device, and takes out those that were dealt
/// with: sent, or counted as dropped. The others stay and can be tried again. Returns how many were
/// dealt with.
///
/// # Errors
///
/// As for [`Device::transmit`].
pub fn transmit_frames(device: &mut dyn Device, batch: &mut FrameBatch) -> Result<usize, IoError> {
    if let Some(device) = device.zero_copy() {
        return device.transmit_frames(batch);
    }
    let mut done = 0;
    loop {
        let time_ns = if batch.is_empty() { 0 } else { crate::now_ns() };
        let mut frames = [Frame { data: &[], time_ns }; AT_A_TIME];
        let mut count = 0;
        while let Some((place, data)) = frames.get_mut(count).zip(batch.get(count)) {
            place.data = data;
            count += 1;
        }
        let sent = device.transmit(&frames[..count])?;
        batch.remove_front(sent);
        done += sent;
        if sent < AT_A_TIME {
            return Ok(done);
        }
    }
}

/// Waits until one of the devices may have something, at most this long. Exhausted devices are not
/// waited for. False where the time is over.
///
/// # Errors
///
/// The system cannot wait.
pub fn wait(devices: &[&dyn Device], timeout: Duration) -> Result<bool, IoError> {
    let mut timeout = timeout;
    let mut timer = false;
    for device in devices.iter().filter(|d| !d.is_exhausted()) {
        if let Some(ready) = device.ready_in().filter(|&r| r <= timeout) {
            (timeout, timer) = (ready, true);
        }
    }
    if timer && timeout.is_zero() {
        return Ok(true);
    }
    let ready = wait_for_files(devices, timeout)?;
    Ok(ready || timer)
}

#[cfg(target_os = "linux")]
fn wait_for_files(devices: &[&dyn Device], timeout: Duration) -> Result<bool, IoError> {
    let files: Vec<_> = devices
        .iter()
        .filter(|d| !d.is_exhausted())
        .filter_map(|d| d.poll_fd())
        .collect();
    crate::sys::poll(&files, timeout)
}

#[cfg(not(target_os = "linux"))]
fn wait_for_files(_: &[&dyn Device], timeout: Duration) -> Result<bool, IoError> {
    std::thread::sleep(timeout);
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_takes_everything_and_gives_nothing() {
        let mut null = Null::default();
        let frame = Frame {
            data: &[0; 60],
            time_ns: 0,
        };
        assert_eq!(null.transmit(&[frame, frame]).unwrap(), 2);
        assert_eq!(null.receive(&mut Batch::new(1)).unwrap(), 0);
        assert_eq!(null.counters().sent_bytes, 120);
    }

    #[test]
    fn any_device_gives_and_takes_frames_of_a_pool() {
        let pool = Pool::new(256, 1514, crate::FrameLayout::Packed).unwrap();
        let (mut batch, mut staged) = (pool.batch(100), Batch::new(100));
        let mut odd = 0;
        for spec in ["count=60,size=64", "count=5,size=9000", "count=40,size=1514"] {
            let mut generator = Generator::new(spec.parse().unwrap());
            let count = |frame: Frame<'_>| odd += frame.data.len();
            receive_frames(&mut generator, &mut batch, &mut staged, count).unwrap();
        }
        assert_eq!((batch.held(), odd), (100, 5 * 9000));
        let mut null = Null::default();
        assert_eq!(transmit_frames(&mut null, &mut batch).unwrap(), 100);
        assert_eq!(
            (null.counters().sent, null.counters().sent_bytes),
            (100, 60 * 64 + 40 * 1514)
        );
        assert!(batch.is_empty() && transmit_frames(&mut null, &mut batch).unwrap() == 0);
    }

    #[test]
    fn waiting_ends_at_once_where_a_device_has_something() {
        let generator = Generator::new("count=1".parse().unwrap());
        let started = std::time::Instant::now();
        assert!(wait(&[&generator, &Null::default()], Duration::from_secs(60)).unwrap());
        assert!(!wait(&[&Null::default()], Duration::from_millis(1)).unwrap());
        assert!(started.elapsed() < Duration::from_secs(50));
    }
}
