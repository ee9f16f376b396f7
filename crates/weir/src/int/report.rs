//! `weir int report`: a file of results as one page.

mod findings;
mod page;

pub use page::STYLE;

use super::arguments::Report;
use super::show;
use crate::output::Messages;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// Writes the page.
pub fn report(arguments: &Report, messages: &Messages) -> Result<u8> {
    write(&arguments.file, &arguments.output, arguments.since)?;
    messages.line(format!("written: {}", arguments.output.display()));
    Ok(0)
}

/// Writes the page of a file of results; what was found.
pub fn write(results: &Path, output: &Path, since: Option<Duration>) -> Result<Vec<String>> {
    let mut store = show::open(results)?;
    let page = page::Page::read(&mut store, since)?;
    weir_files::write(output, page.html().as_bytes())?;
    Ok(page.findings)
}
