//! `weir int report`: a file of results as one page.

mod findings;
mod page;

pub use page::STYLE;

use super::arguments::Report;
use super::show;
use crate::output::Messages;
use anyhow::{Result, ensure};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Writes the page.
pub fn report(arguments: &Report, messages: &Messages) -> Result<u8> {
    write(&arguments.file, &arguments.output, arguments.since)?;
    messages.line(format!("written: {}", arguments.output.display()));
    Ok(0)
}

/// Refuses to overwrite a file of results, or any other SQLite file.
fn refuse_results(output: &Path) -> Result<()> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut start = [0; MAGIC.len()];
    // Opening a FIFO would wait for its writer. It is refused when the page is written.
    if !output.is_file() {
        return Ok(());
    }
    let read = std::fs::File::open(output).and_then(|mut file| file.read_exact(&mut start));
    ensure!(
        read.is_err() || start != MAGIC,
        "{} is an SQLite file: name another one for the page",
        output.display()
    );
    Ok(())
}

/// Writes the page of a file of results; what was found.
pub fn write(results: &Path, output: &Path, since: Option<Duration>) -> Result<Vec<String>> {
    refuse_results(output)?;
    let mut store = show::open(results)?;
    let page = page::Page::read(&mut store, since)?;
    weir_files::write(output, page.html().as_bytes())?;
    Ok(page.findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_in_the_place_of_the_page_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("page.html");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(refuse_results(&fifo).is_ok()));
        assert_eq!(is_done.recv_timeout(Duration::from_secs(10)), Ok(true));
    }
}
