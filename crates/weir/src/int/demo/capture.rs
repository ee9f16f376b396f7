//! Captures of the demo's packets.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use weir_io::pcap::PcapWriter;

/// A capture, if there is one.
pub struct Capture {
    writer: Option<PcapWriter<BufWriter<File>>>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
    path: PathBuf,
}

/// Captures at three places.
pub struct Captures {
    /// Packets that hosts get.
    pub hosts: Capture,
    /// Packets on links between switches.
    pub links: Capture,
    /// Reports.
    pub reports: Capture,
}

impl Capture {
    fn create(folder: Option<&Path>, name: &str) -> Result<Self> {
        let path = folder.map(|folder| folder.join(name)).unwrap_or_default();
        let writer = match folder {
            None => None,
            Some(_) => {
                // A file that is there is kept.
                let file = File::create_new(&path);
                let file = file.with_context(|| format!("cannot create {}", path.display()))?;
                Some(PcapWriter::new(BufWriter::new(file))?)
            }
        };
        Ok(Capture {
            writer,
            error: None,
            path,
        })
    }

    /// Writes a packet with its time, ns.
    pub fn write(&mut self, packet: &[u8], time: u64) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.error.is_none()) else {
            return;
        };
        self.error = writer.write(packet, time).err();
    }

    fn finish(mut self) -> Result<()> {
        let flushed = self.writer.as_mut().map_or(Ok(()), PcapWriter::flush);
        let result = self.error.map_or(flushed, Err);
        result.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Captures {
    /// Creates the files in a folder, if there is one.
    pub fn create(folder: Option<&Path>) -> Result<Self> {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        Ok(Captures {
            hosts: Capture::create(folder, "hosts.pcap")?,
            links: Capture::create(folder, "links.pcap")?,
            reports: Capture::create(folder, "reports.pcap")?,
        })
    }

    /// Ends the files.
    pub fn finish(self) -> Result<()> {
        self.hosts.finish()?;
        self.links.finish()?;
        self.reports.finish()
    }
}
