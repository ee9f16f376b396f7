//! Captures as devices.

use super::{ETHERNET, PcapError, PcapErrorKind, PcapReader, PcapWriter};
use crate::batch::{Batch, Frame};
use crate::device::{Counters, Device};
use crate::error::IoError;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Plays a capture, as fast as its packets are taken.
#[derive(Debug)]
pub struct PcapSource {
    path: PathBuf,
    reader: PcapReader<BufReader<File>>,
    /// A packet that has been read but did not fit.
    held: Option<(Vec<u8>, u64)>,
    ended: bool,
}

impl PcapSource {
    /// Opens a capture.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, IoError> {
        let pcap = |source| IoError::Pcap {
            path: path.to_path_buf(),
            source,
        };
        let opened = File::open(path).map_err(|error| PcapError {
            offset: 0,
            kind: PcapErrorKind::Io(error),
        });
        let reader = PcapReader::new(BufReader::with_capacity(1 << 18, opened.map_err(pcap)?));
        Ok(PcapSource {
            path: path.to_path_buf(),
            reader: reader.map_err(pcap)?,
            held: None,
            ended: false,
        })
    }

    /// Whether everything has been played.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.ended && self.held.is_none()
    }

    /// Adds packets to the batch while there are any and there is room.
    ///
    /// # Errors
    ///
    /// The capture does not go on as it must, or is not of Ethernet; nothing more comes after.
    pub fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        let before = batch.len();
        if let Some((data, time_ns)) = &self.held {
            if !batch.push(data, *time_ns) {
                return Ok(0);
            }
            self.held = None;
        }
        while !self.ended && batch.room() > 0 {
            let packet = self.reader.next_packet().map_err(|source| {
                self.ended = true;
                IoError::Pcap {
                    path: self.path.clone(),
                    source,
                }
            })?;
            let Some(packet) = packet else {
                self.ended = true;
                break;
            };
            if packet.link_type != ETHERNET {
                self.ended = true;
                return Err(IoError::LinkType {
                    path: self.path.clone(),
                    found: packet.link_type,
                });
            }
            if !batch.push(packet.data, packet.time_ns) {
                self.held = Some((packet.data.to_vec(), packet.time_ns));
                break;
            }
        }
        Ok(batch.len() - before)
    }
}

/// Writes frames to a capture.
#[derive(Debug)]
pub struct PcapSink {
    path: PathBuf,
    writer: PcapWriter<BufWriter<File>>,
}

impl PcapSink {
    /// Creates the file, or empties the one there is.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn create(path: &Path) -> Result<Self, IoError> {
        PcapSink::of(File::create(path).map_err(|e| failed(path, e))?, path)
    }

    /// Writes to a file that was created for it; `path` is its name for messages.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn of(file: File, path: &Path) -> Result<Self, IoError> {
        Ok(PcapSink {
            path: path.to_path_buf(),
            writer: PcapWriter::new(BufWriter::new(file)).map_err(|e| failed(path, e))?,
        })
    }

    /// Writes a frame.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&mut self, frame: Frame<'_>) -> Result<(), IoError> {
        let written = self.writer.write(frame.data, frame.time_ns);
        written.map_err(|e| failed(&self.path, e))
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<(), IoError> {
        self.writer.flush().map_err(|e| failed(&self.path, e))
    }
}

fn failed(path: &Path, source: io::Error) -> IoError {
    IoError::System {
        doing: format!("writing {}", path.display()),
        source,
    }
}

/// A port that plays one capture, writes another, or both.
#[derive(Debug)]
pub struct PcapDevice {
    /// `None`: nothing is received.
    source: Option<PcapSource>,
    sink: Option<PcapSink>,
    counters: Counters,
}

impl PcapDevice {
    /// Plays `input`; what is sent goes to `output`, or nowhere.
    ///
    /// # Errors
    ///
    /// One of the files cannot be used.
    pub fn open(input: &Path, output: Option<&Path>) -> Result<Self, IoError> {
        Ok(PcapDevice {
            source: Some(PcapSource::open(input)?),
            sink: output.map(PcapSink::create).transpose()?,
            counters: Counters::default(),
        })
    }

    /// Receives nothing; what is sent goes to `output`.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn record(output: &Path) -> Result<Self, IoError> {
        Ok(PcapDevice {
            source: None,
            sink: Some(PcapSink::create(output)?),
            counters: Counters::default(),
        })
    }
}

impl Device for PcapDevice {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        let before = batch.len();
        let result = self.source.as_mut().map_or(Ok(0), |source| source.receive(batch));
        for frame in (before..batch.len()).filter_map(|i| batch.get(i)) {
            self.counters.count_received(frame.data.len());
        }
        result
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        if let Some(sink) = &mut self.sink {
            frames.iter().try_for_each(|&frame| sink.write(frame))?;
        }
        self.counters.count_sent(frames);
        Ok(frames.len())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        self.sink.as_mut().map_or(Ok(()), PcapSink::flush)
    }

    fn description(&self) -> String {
        let path = |path: Option<&PathBuf>| path.map_or_else(String::new, |path| path.display().to_string());
        let input = path(self.source.as_ref().map(|source| &source.path));
        match &self.sink {
            Some(sink) => format!("pcap:{input},{}", path(Some(&sink.path))),
            None => format!("pcap:{input}"),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.source.as_ref().is_none_or(PcapSource::is_exhausted)
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn is_replay(&self) -> bool {
        self.source.is_some()
    }

    fn ready_in(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
