//! Records what ports receive and send.

use crate::batch::{Batch, Frame};
use crate::device::{Counters, Device};
use crate::error::IoError;
use crate::pcap::{Direction, NgWriter, PcapSink};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The capture files of a port: `NAME_in.pcap` and `NAME_out.pcap`, as bmv2 names them, and
/// `NAME.pcapng` with both directions and comments.
///
/// [`Recorder::record`] records what a device sends. The caller records received packets with
/// [`Recorder::received`], once their fate is known.
///
/// A failure to write ends the recording, not the device.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Files>>);

/// Called when a recording ends because its files cannot be written.
pub type OnFailure = Box<dyn FnOnce(&IoError) + Send>;

struct Files {
    received: PcapSink,
    sent: PcapSink,
    both: NgWriter<BufWriter<File>>,
    path: PathBuf,
    /// Something is not written out yet.
    is_dirty: bool,
    /// `None`: the files could not be written, and nothing more is recorded.
    on_failure: Option<OnFailure>,
}

impl Files {
    fn write(&mut self, frame: Frame<'_>, direction: Direction, comment: &str) {
        if self.on_failure.is_none() {
            return;
        }
        self.is_dirty = true;
        let alone = match direction {
            Direction::In => self.received.write(frame),
            Direction::Out => self.sent.write(frame),
        };
        let both = self.both.write(frame.data, frame.time_ns, direction, comment);
        let outcome = alone.and_then(|()| both.map_err(|e| failed(&self.path, e)));
        self.check(outcome);
    }

    /// Ends the recording where the files could not be written.
    fn check(&mut self, outcome: Result<(), IoError>) {
        if let Err(error) = outcome
            && let Some(report) = self.on_failure.take()
        {
            report(&error);
        }
    }

    fn flush(&mut self) {
        if self.on_failure.is_none() || !self.is_dirty {
            return;
        }
        self.is_dirty = false;
        let alone = self.received.flush().and_then(|()| self.sent.flush());
        let both = self.both.flush();
        let outcome = alone.and_then(|()| both.map_err(|e| failed(&self.path, e)));
        self.check(outcome);
    }
}

fn failed(path: &Path, source: io::Error) -> IoError {
    IoError::System {
        doing: format!("writing {}", path.display()),
        source,
    }
}

impl Recorder {
    /// Creates the files in a directory, or empties those there are.
    ///
    /// # Errors
    ///
    /// They cannot be written, or one that exists is a symbolic link or no regular file.
    pub fn create(directory: &Path, name: &str, on_failure: OnFailure) -> Result<Self, IoError> {
        let sink = |suffix: &str| {
            let path = directory.join(format!("{name}{suffix}"));
            let file = create(&path).map_err(|e| failed(&path, e))?;
            PcapSink::of(file, &path)
        };
        let path = directory.join(format!("{name}.pcapng"));
        let both = create(&path).and_then(|file| NgWriter::new(BufWriter::new(file), name));
        Ok(Recorder(Arc::new(Mutex::new(Files {
            received: sink("_in.pcap")?,
            sent: sink("_out.pcap")?,
            both: both.map_err(|e| failed(&path, e))?,
            path,
            is_dirty: true,
            on_failure: Some(on_failure),
        }))))
    }

    /// Records a frame that was received, with a comment, which may be empty.
    pub fn received(&self, frame: Frame<'_>, comment: &str) {
        self.with(|files| files.write(frame, Direction::In, comment));
    }

    /// Records a frame that was sent.
    pub fn sent(&self, frame: Frame<'_>) {
        self.with(|files| files.write(frame, Direction::Out, ""));
    }

    /// Writes out what is buffered.
    pub fn flush(&self) {
        self.with(Files::flush);
    }

    /// The device, with everything that it sends recorded.
    #[must_use]
    pub fn record(&self, device: Box<dyn Device>) -> Box<dyn Device> {
        Box::new(Recorded {
            device,
            recorder: self.clone(),
        })
    }

    fn with<T>(&self, then: impl FnOnce(&mut Files) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Creates a file, or empties the one there is. The last part of the path must not be a symbolic
/// link: every user who can write the directory could choose which file is emptied.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    file.set_len(0)?;
    Ok(file)
}

/// A device whose sent frames are recorded. Its frames are copied, whatever the device could do.
struct Recorded {
    device: Box<dyn Device>,
    recorder: Recorder,
}

impl Device for Recorded {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        let before = batch.len();
        let result = self.device.receive(batch);
        if batch.len() == before {
            // Idle: a reader of the files may look at them now.
            self.recorder.flush();
        }
        result
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        let done = self.device.transmit(frames)?;
        self.recorder.with(|files| {
            for frame in frames.iter().take(done) {
                files.write(*frame, Direction::Out, "");
            }
        });
        Ok(done)
    }

    fn flush(&mut self) -> Result<(), IoError> {
        self.recorder.with(Files::flush);
        self.device.flush()
    }

    fn is_sending(&self) -> bool {
        self.device.is_sending()
    }

    fn description(&self) -> String {
        self.device.description()
    }

    fn speed(&self) -> Option<u64> {
        self.device.speed()
    }

    fn link_up(&self) -> bool {
        self.device.link_up()
    }

    fn is_exhausted(&self) -> bool {
        self.device.is_exhausted()
    }

    #[cfg(unix)]
    fn poll_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.device.poll_fd()
    }

    fn ready_in(&self) -> Option<Duration> {
        self.device.ready_in()
    }

    fn is_patient(&self) -> bool {
        self.device.is_patient()
    }

    fn is_replay(&self) -> bool {
        self.device.is_replay()
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.recorder.with(Files::flush);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;
    use crate::pcap::PcapReader;

    fn packets(path: &Path) -> usize {
        let file = std::fs::read(path).unwrap();
        let mut reader = PcapReader::new(file.as_slice()).unwrap();
        let mut count = 0;
        while reader.next_packet().unwrap().is_some() {
            count += 1;
        }
        count
    }

    #[test]
    fn both_directions_are_recorded_apart_and_together() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::create(folder.path(), "eth0", Box::new(|error| panic!("{error}"))).unwrap();
        let mut device = recorder.record(Box::new(Generator::new("count=3".parse().unwrap())));
        let mut batch = Batch::new(8);
        assert_eq!(device.receive(&mut batch).unwrap(), 3);
        (0..3).for_each(|i| recorder.received(batch.get(i).unwrap(), "dropped: acl"));
        let frame = Frame {
            data: &[7; 60],
            time_ns: 9,
        };
        assert_eq!(device.transmit(&[frame, frame]).unwrap(), 2);
        drop(device);
        let count = |name: &str| packets(&folder.path().join(name));
        assert_eq!(
            (count("eth0_in.pcap"), count("eth0_out.pcap"), count("eth0.pcapng")),
            (3, 2, 5)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_regular_file_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("precious");
        std::fs::write(&precious, "keep").unwrap();
        for name in ["a.pcapng", "b_in.pcap", "c_out.pcap"] {
            std::os::unix::fs::symlink(&precious, folder.path().join(name)).unwrap();
        }
        for name in ["a", "b", "c"] {
            assert!(
                Recorder::create(folder.path(), name, Box::new(|_| {})).is_err(),
                "{name}"
            );
        }
        assert_eq!(std::fs::read(&precious).unwrap(), b"keep");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(Recorder::create(Path::new("/nonexistent"), "eth0", Box::new(|_| {})).is_err());
    }
}
