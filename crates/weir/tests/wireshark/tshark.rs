//! Runs tshark over captures that the tests write.

#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A frame of a capture: its bytes, and the length that it had on the wire.
type Captured<'a> = (&'a [u8], usize);

/// tshark with some scripts and preferences.
pub struct Tshark {
    scripts: Vec<PathBuf>,
    preferences: Vec<String>,
}

impl Tshark {
    /// With these scripts, in this order. `None`, with a message, where there is no tshark.
    pub fn with(scripts: &[PathBuf]) -> Option<Self> {
        match Command::new("tshark").arg("--version").output() {
            Ok(_) => Some(Tshark {
                scripts: scripts.to_vec(),
                preferences: Vec::new(),
            }),
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "tshark: {error}");
                eprintln!("skipped: tshark: {error}");
                None
            }
        }
    }

    /// With the scripts of this name in the repository.
    pub fn with_bundled(names: &[&str]) -> Option<Self> {
        let folder = super::frames::root().join("wireshark");
        Self::with(&names.iter().map(|name| folder.join(name)).collect::<Vec<_>>())
    }

    /// With a preference, `NAME:VALUE`.
    pub fn preferring(mut self, preference: &str) -> Self {
        self.preferences.push(preference.to_owned());
        self
    }

    fn run(&self, capture: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("tshark");
        for script in &self.scripts {
            command.arg("-X").arg(format!("lua_script:{}", script.display()));
        }
        for preference in &self.preferences {
            command.args(["-o", preference]);
        }
        let output = command
            .arg("-n")
            .arg("-r")
            .arg(capture)
            .args(arguments)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("Lua"), "{stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// For each frame the values of each field, joined by commas.
    pub fn fields(&self, frames: &[Vec<u8>], fields: &[&str]) -> Vec<Vec<String>> {
        let capture = Capture::new(&whole(frames));
        let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
        for field in fields {
            arguments.extend(["-e", field]);
        }
        let text = self.run(&capture.path(), &arguments);
        let rows = text.lines().map(|line| line.split('|').map(str::to_owned).collect());
        let rows: Vec<Vec<String>> = rows.collect();
        assert_eq!(rows.len(), frames.len());
        rows
    }

    /// The values of each field of one frame.
    pub fn values(&self, frame: &[u8], fields: &[&str]) -> Vec<String> {
        self.fields(&[frame.to_vec()], fields).remove(0)
    }

    /// How many frames a filter selects.
    pub fn count(&self, frames: &[Vec<u8>], filter: &str) -> usize {
        let capture = Capture::new(&whole(frames));
        self.run(&capture.path(), &["-Y", filter]).lines().count()
    }

    /// Dissects the frames and every truncation of them, as sent and as captured; none of it may
    /// raise an error of Lua, and the whole frames are of `protocol`.
    pub fn survives_truncation(&self, frames: &[Vec<u8>], protocol: &str) {
        assert_eq!(self.count(frames, protocol), frames.len(), "{protocol}");
        let mut captured = whole(frames);
        for frame in frames {
            for length in 0..frame.len() {
                captured.push((&frame[..length], length));
                captured.push((&frame[..length], frame.len()));
            }
        }
        self.raises_nothing(&captured);
    }

    /// Dissects the frames; none of them may raise an error of Lua.
    pub fn raises_nothing(&self, captured: &[Captured<'_>]) {
        let capture = Capture::new(captured);
        let errors = self.run(
            &capture.path(),
            &[
                "-Y",
                "_ws.lua.error",
                "-T",
                "fields",
                "-e",
                "frame.number",
                "-e",
                "_ws.lua.error",
            ],
        );
        assert_eq!(errors, "");
    }
}

/// Frames that were captured whole.
pub fn whole(frames: &[Vec<u8>]) -> Vec<Captured<'_>> {
    frames.iter().map(|frame| (&frame[..], frame.len())).collect()
}

/// A pcap file of Ethernet frames.
struct Capture(tempfile::TempDir);

impl Capture {
    fn new(frames: &[Captured<'_>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for (number, (frame, length)) in frames.iter().enumerate() {
            for word in [number, 0, frame.len(), *length] {
                bytes.extend((word as u32).to_le_bytes());
            }
            bytes.extend(*frame);
        }
        std::fs::write(folder.path().join("test.pcap"), bytes).unwrap();
        Capture(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("test.pcap")
    }
}
