//! Lines of a log, each with the time.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes the time of day (UTC) before each line, in the form that bmv2's log has.
pub struct Stamped<W> {
    stream: W,
    /// The next byte begins a line.
    is_at_start: bool,
}

impl<W: Write> Stamped<W> {
    /// A log on a stream.
    pub fn new(stream: W) -> Self {
        Stamped {
            stream,
            is_at_start: true,
        }
    }
}

/// `[HH:MM:SS.mmm]` of a time since 1970.
fn stamp(milliseconds: u128) -> String {
    let of_day = milliseconds % 86_400_000;
    let seconds = of_day / 1000;
    format!(
        "[{:02}:{:02}:{:02}.{:03}] [bmv2] ",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        of_day % 1000
    )
}

impl<W: Write> Write for Stamped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stamp = stamp(now.as_millis());
        let mut text = Vec::with_capacity(bytes.len() + stamp.len());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_at_start {
                text.extend_from_slice(stamp.as_bytes());
            }
            text.extend_from_slice(line);
            self.is_at_start = line.ends_with(b"\n");
        }
        self.stream.write_all(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_time_once() {
        assert_eq!(stamp(86_400_000 * 3 + 3_723_004), "[01:02:03.004] [bmv2] ");
        let mut text = Vec::new();
        let mut log = Stamped::new(&mut text);
        for part in ["one\ntw", "o\n", "three\n"] {
            log.write_all(part.as_bytes()).unwrap();
        }
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().map(|l| l.rsplit(' ').next().unwrap_or_default()).collect();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(text.matches("[bmv2]").count(), 3);
    }
}
