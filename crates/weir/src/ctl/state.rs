//! Whole states.

use super::{Command, How};
use crate::entry_files::RuntimeFile;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, IsTerminal, Read, Write};
use std::time::Instant;
use weir_client::bulk::{CsvEntries, JsonEntries, Lines, LoadError, LoadOptions, entry_to_json};
use weir_client::{Client, Entry, Error, Operation};

/// Failed updates that are spelled out.
const SPELLED_OUT: usize = 20;

/// Writes all state as JSON lines.
pub async fn dump(client: &Client) -> Result<u8> {
    let mut out = std::io::BufWriter::new(crate::output::stdout());
    let mut failed = None;
    let dumped = client.dump(|entry| {
        writeln!(out, "{}", entry_to_json(entry)).map_err(|error| {
            failed = Some(error);
            Error::Closed
        })
    });
    let dumped = dumped.await;
    if let Some(error) = failed {
        return Err(error.into());
    }
    dumped?;
    out.flush()?;
    Ok(0)
}

/// Whether the first line of a file is an entry by itself. A runtime file of the P4 tutorials is
/// one object, mostly of many lines.
fn is_json_lines(reader: &mut impl BufRead) -> Result<bool> {
    let begin = reader.fill_buf()?;
    let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let object: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    Ok(object.is_some_and(|object| object.get("table").is_some()))
}

/// Writes the entries of a file.
pub async fn load(client: &Client, command: &Command, is_json: bool) -> Result<u8> {
    let Command::Load {
        file,
        table,
        action,
        how,
        batch,
        in_flight,
    } = command
    else {
        return Ok(0);
    };
    let name = file.display().to_string();
    let reader: Box<dyn Read> = if name == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(file).with_context(|| format!("cannot read {name}"))?)
    };
    let mut reader = BufReader::with_capacity(1 << 20, reader);
    let schema = client.schema();
    let entries: Box<dyn Iterator<Item = Result<Entry, Error>>> = if let Some(table) = table {
        Box::new(CsvEntries::new(&client.table(table)?, action.as_deref(), reader).with_context(|| name.clone())?)
    } else if name.ends_with(".csv") {
        anyhow::bail!("{name}: --table says which table the entries of a .csv are for");
    } else if name.ends_with(".json") && !is_json_lines(&mut reader)? {
        let text = std::io::read_to_string(reader).with_context(|| name.clone())?;
        let file = RuntimeFile::parse(&text).with_context(|| name.clone())?;
        let entries = file.entries(&*schema).with_context(|| name.clone())?;
        Box::new(Lines::new(&schema, Cursor::new(entries.text.into_owned())))
    } else if name.ends_with(".entries") {
        Box::new(Lines::new(&schema, reader))
    } else {
        Box::new(JsonEntries::new(&schema, reader))
    };
    let options = LoadOptions {
        operation: match how {
            How::Insert => Operation::Insert,
            How::Set => Operation::InsertOrModify,
            How::Delete => Operation::Delete,
        },
        batch_size: *batch as usize,
        in_flight: *in_flight as usize,
    };
    let begin = Instant::now();
    let shows_progress = std::io::stderr().is_terminal() && !is_json;
    let rate = |count: u64| count as f64 / begin.elapsed().as_secs_f64().max(1e-9);
    let loaded = client.load(entries, &options, |sent| {
        if shows_progress {
            crate::output::progress(format!("{sent} entries, {:.0} per second", rate(sent)));
        }
    });
    let (outcome, failure) = match loaded.await {
        Ok(outcome) => (outcome, None),
        Err(LoadError { error, outcome }) => (outcome, Some(error)),
    };
    if shows_progress {
        crate::output::message("");
    }
    for failed in outcome.failed.iter().take(SPELLED_OUT) {
        crate::output::message(format!("error: entry {}: {failed}", failed.index + 1));
    }
    let unsaid = outcome.failures.saturating_sub(SPELLED_OUT as u64);
    if unsaid > 0 {
        crate::output::message(format!("error: and {unsaid} more"));
    }
    if is_json {
        let mut result = serde_json::json!({
            "done": outcome.done,
            "failed": outcome.failures,
            "seconds": begin.elapsed().as_secs_f64(),
        });
        if let Some(error) = &failure {
            result["error"] = error.to_string().into();
        }
        writeln!(crate::output::stdout(), "{result}")?;
    } else {
        let all = outcome.done + outcome.failures;
        writeln!(
            crate::output::stdout(),
            "{} of {all} entries done, {:.0} per second",
            outcome.done,
            rate(outcome.done)
        )?;
    }
    match failure {
        Some(error) => Err(error).context(name),
        None => Ok(u8::from(outcome.failures > 0)),
    }
}
