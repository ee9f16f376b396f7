//! Entries of one table as CSV.
//!
//! The first line names the columns: keys, `priority`, `action`, parameters and other data. An
//! empty cell is a missing value. A column that is no parameter of a line's action must be empty in
//! that line.
//!
//! ```csv
//! hdr.ipv4.dst,action,port
//! 10.0.0.0/8,forward,3
//! 10.1.0.0/16,drop,
//! ```

use crate::entry::Entry;
use crate::error::Error;
use crate::notation;
use crate::schema::Table;
use std::io::Read;
use std::sync::Arc;

enum Column {
    Key(usize),
    Priority,
    Action,
    Data(String),
}

/// Entries of a CSV file.
pub struct CsvEntries<R> {
    table: Arc<Table>,
    columns: Vec<Column>,
    /// The action, if there is no column for it.
    action: Option<String>,
    records: csv::StringRecordsIntoIter<R>,
}

impl<R: Read> CsvEntries<R> {
    /// Reads entries of a table. `action` is used if there is no column for it.
    ///
    /// # Errors
    /// The first line names columns that the table does not have.
    pub fn new(table: &Arc<Table>, action: Option<&str>, from: R) -> Result<Self, Error> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(from);
        let headers = reader.headers().map_err(|e| Error::Input(e.to_string()))?.clone();
        let mut columns = Vec::new();
        for name in &headers {
            columns.push(column(table, name)?);
        }
        Ok(CsvEntries {
            table: Arc::clone(table),
            columns,
            action: action.map(str::to_owned),
            records: reader.into_records(),
        })
    }

    fn entry(&self, record: &csv::StringRecord) -> Result<Entry, Error> {
        let mut entry = Entry::of(&self.table);
        let cells = || self.columns.iter().zip(record).filter(|(_, text)| !text.is_empty());
        if let Some(action) = &self.action {
            entry = entry.action(action);
        }
        // The action determines which fields the other names mean.
        for (column, text) in cells() {
            if let Column::Action = column {
                entry = entry.action(text);
            }
        }
        for (column, text) in cells() {
            entry = match column {
                Column::Action => entry,
                Column::Key(place) => {
                    let key = &self.table.keys[*place];
                    let to = notation::parse_match(key, text)?;
                    entry.key(&key.name, to)
                }
                Column::Priority => {
                    let number = text
                        .parse()
                        .map_err(|_| Error::Input(format!("`{text}` is no priority")))?;
                    entry.priority(number)
                }
                Column::Data(name) => {
                    let params = entry.chosen_action().map_or(&[][..], |a| &a.params);
                    let field = params.iter().chain(&self.table.data).find(|f| f.name == *name);
                    let value = match field {
                        Some(field) => notation::parse_value(name, &field.ty, text)?,
                        None => crate::Value::Bits(0),
                    };
                    entry.data(name, value)
                }
            };
        }
        entry.check()?;
        Ok(entry)
    }
}

fn column(table: &Arc<Table>, name: &str) -> Result<Column, Error> {
    match name {
        "priority" => return Ok(Column::Priority),
        "action" => return Ok(Column::Action),
        _ => {}
    }
    let is_data = table.data.iter().any(|f| f.name == name);
    let is_param = table.actions.iter().any(|a| a.params.iter().any(|p| p.name == name));
    match table.key(name) {
        Ok(place) => Ok(Column::Key(place)),
        Err(_) if is_data || is_param => Ok(Column::Data(name.to_owned())),
        Err(_) => {
            let keys = table.keys.iter().map(|k| k.name.clone());
            let params = table.actions.iter().flat_map(|a| &a.params).map(|p| p.name.clone());
            Err(Error::Name {
                what: "key, parameter or data for the column",
                owner: table.name.clone(),
                name: name.to_owned(),
                is_ambiguous: false,
                candidates: keys.chain(params).take(8).collect(),
            })
        }
    }
}

impl<R: Read> Iterator for CsvEntries<R> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        Some(record.map_err(|e| Error::Input(e.to_string())).and_then(|record| {
            let line = record.position().map_or(0, csv::Position::line);
            self.entry(&record)
                .map_err(|e| Error::Input(format!("line {line}: {e}")))
        }))
    }
}
