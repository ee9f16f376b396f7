//! Single entries.

use super::connect::{answer, reader, writer};
use super::{Connection, Words};
use anyhow::Result;
use std::io::Write;
use std::sync::Arc;
use weir_client::bulk::{entry_to_json, parse_words};
use weir_client::{Client, Entry, Error, Operation, Protocol, Query, ReadOptions, Table};

/// Prints an entry of a table.
pub fn print(out: &mut impl Write, entry: &Entry, is_json: bool) -> std::io::Result<()> {
    if is_json {
        return writeln!(out, "{}", entry_to_json(entry));
    }
    writeln!(out, "{entry}")
}

/// Shows the entries of all tables that match packets.
pub async fn show_all(client: &Client, counters: bool, is_json: bool) -> Result<u8> {
    let schema = client.schema();
    for table in schema.tables.iter().filter(|t| t.kind.is_match()) {
        let code = show(client, &table.name, &[], counters, is_json).await?;
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}

/// Shows entries of a table, or one.
pub async fn show(client: &Client, table: &str, words: &[String], counters: bool, is_json: bool) -> Result<u8> {
    let table = client.table(table)?;
    let mut out = std::io::BufWriter::new(crate::output::stdout());
    if !words.is_empty() {
        let like = parse_words(&table, words)?;
        let found = if like.is_default() {
            client.default_entry(&table).await
        } else {
            client.entry(&like).await
        };
        let Some(entry) = refused(found)? else { return Ok(1) };
        let Some(entry) = entry else {
            crate::output::message(format!("{}: there is no entry [{}]", table.name, like.key_text()));
            return Ok(1);
        };
        print(&mut out, &entry, is_json)?;
        return Ok(0);
    }
    let options = ReadOptions {
        counters,
        ..ReadOptions::default()
    };
    let pages = client.read_pages(&[Query::Table(Arc::clone(&table))], &options).await;
    let Some(mut pages) = refused(pages)? else { return Ok(1) };
    loop {
        let page = refused(pages.next().await)?;
        let Some(page) = page else { return Ok(1) };
        let Some(page) = page else { break };
        for entry in page.entries()? {
            print(&mut out, &entry, is_json)?;
        }
    }
    if client.schema().protocol == Protocol::P4Runtime
        && table.kind.is_match()
        && let Some(Some(entry)) = refused(client.default_entry(&table).await)?
    {
        print(&mut out, &entry, is_json)?;
    }
    out.flush()?;
    Ok(0)
}

/// What the target gives; `None`, with what it says on stderr, where it refuses.
fn refused<T>(result: Result<T, Error>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error @ (Error::Updates(_) | Error::Rpc { .. })) => {
            crate::output::message(format!("error: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Numbers of entries.
pub async fn count(client: &Client, names: &[String], is_json: bool) -> Result<u8> {
    let schema = client.schema();
    let tables: Vec<Arc<Table>> = if names.is_empty() {
        schema.tables.iter().filter(|t| t.kind.is_match()).cloned().collect()
    } else {
        names.iter().map(|name| client.table(name)).collect::<Result<_, _>>()?
    };
    let options = ReadOptions {
        counters: false,
        meters: false,
        idle: false,
        from_hardware: false,
        ..ReadOptions::default()
    };
    let mut out = crate::output::stdout();
    for table in tables {
        let mut pages = client.read_pages(&[Query::Table(Arc::clone(&table))], &options).await?;
        let mut count = 0_u64;
        while let Some(page) = pages.next().await? {
            if table.kind.is_match() {
                page.rows(|row| count += u64::from(!row.is_default))?;
            } else {
                count += page.entries()?.len() as u64;
            }
        }
        if is_json {
            writeln!(
                out,
                "{}",
                serde_json::json!({"table": table.name, "entries": count, "size": table.size})
            )?;
        } else {
            writeln!(out, "{count:>10}  {}", table.name)?;
        }
    }
    Ok(0)
}

/// Writes one entry.
pub async fn write(connection: &Connection, operation: Operation, words: &Words) -> Result<u8> {
    // Names and values are checked before anybody's control is disturbed.
    let client = reader(connection).await?;
    let entry = parse_words(&client.table(&words.table)?, &words.words)?;
    entry.check()?;
    let mut batch = client.batch();
    batch.push(operation, &entry)?;
    drop(client);
    let client = writer(connection).await?;
    answer(client.write(&batch).await)
}

/// Sets a default entry.
pub async fn default(connection: &Connection, words: &Words) -> Result<u8> {
    let client = reader(connection).await?;
    let table = client.table(&words.table)?;
    if table.has_const_default {
        let action = table.const_default_action.iter().map(|a| format!(", `{a}`"));
        anyhow::bail!(
            "the default action of {}{} is constant: without `const` before `default_action` in the \
             program it can be set",
            table.name,
            action.collect::<String>()
        );
    }
    drop(client);
    let given = std::iter::once("default".to_owned()).chain(words.words.iter().cloned());
    let operation = if words.words.is_empty() {
        Operation::Delete
    } else {
        Operation::Modify
    };
    let words = Words {
        table: words.table.clone(),
        words: given.collect(),
    };
    write(connection, operation, &words).await
}

/// Empties tables: these, or `all` that match packets and can be changed.
pub async fn clear(client: &Client, names: &[String], all: bool) -> Result<u8> {
    let tables: Vec<Arc<Table>> = if all {
        let schema = client.schema();
        let changeable = schema.tables.iter().filter(|t| t.kind.is_match() && !t.is_const);
        changeable.cloned().collect()
    } else {
        names.iter().map(|name| client.table(name)).collect::<Result<_, _>>()?
    };
    for table in &tables {
        let code = answer(client.clear(table).await)?;
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}
