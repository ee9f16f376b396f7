//! Completion: what a shell can put where the cursor is.

use super::Connection;
use anyhow::Result;
use std::io::Write;
use std::time::Duration;
use weir_client::{Schema, Table};

const COMMANDS: [&str; 17] = [
    "tables",
    "show",
    "count",
    "insert",
    "modify",
    "set",
    "delete",
    "default",
    "clear",
    "queue",
    "operation",
    "dump",
    "load",
    "ports",
    "program",
    "watch",
    "packet-out",
];

/// How long a shell waits for a target.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints what could stand in the place of the last word.
pub fn candidates(connection: &Connection, words: &[String]) -> Result<u8> {
    let (unfinished, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", words),
    };
    let mut connection = connection.clone();
    let words = options(before, &mut connection);
    let mut out = crate::output::stdout();
    for candidate in found(&connection, &words, unfinished) {
        writeln!(out, "{candidate}")?;
    }
    Ok(0)
}

/// Takes the options of the connection out of the words.
fn options<'a>(words: &'a [String], connection: &mut Connection) -> Vec<&'a str> {
    let mut plain = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--p4runtime" => connection.p4runtime = words.next().map(str::to_owned),
            "--bfrt" => connection.bfrt = words.next().map(str::to_owned),
            "--device-id" => {
                connection.device_id = words.next().and_then(|w| w.parse().ok()).unwrap_or_default();
            }
            "--tls-ca" => connection.tls_ca = words.next().map(Into::into),
            "--tls-cert" => connection.tls_cert = words.next().map(Into::into),
            "--tls-key" => connection.tls_key = words.next().map(Into::into),
            "--tls-name" => connection.tls_name = words.next().map(str::to_owned),
            "--election-id" | "--role" | "--client-id" | "--program" | "--timeout" | "--table" | "--action" => {
                words.next();
            }
            option if option.starts_with("--") => {}
            plain_word => plain.push(plain_word),
        }
    }
    plain
}

fn found(connection: &Connection, words: &[&str], unfinished: &str) -> Vec<String> {
    let Some((command, arguments)) = words.split_first() else {
        return matching(COMMANDS.iter().map(|c| (*c).to_owned()), unfinished);
    };
    if *command == "watch" && arguments.is_empty() {
        let all = ["digests", "packets", "idle", "ports", "rates"];
        return matching(all.iter().map(|w| (*w).to_owned()), unfinished);
    }
    let Some(schema) = schema(connection) else {
        return Vec::new();
    };
    let tables = |wanted: &dyn Fn(&Table) -> bool| {
        let names = schema.tables.iter().filter(|t| wanted(t)).map(|t| t.name.clone());
        matching(short_too(names.collect()), unfinished)
    };
    match (*command, arguments) {
        ("watch", ["digests"]) => matching(schema.digests.iter().map(|d| d.name.clone()), unfinished),
        ("watch", ["rates"]) => tables(&|t| t.data.iter().any(|f| f.name.starts_with("$COUNTER_SPEC"))),
        ("count" | "clear", _) | ("show" | "insert" | "modify" | "set" | "delete" | "default" | "operation", []) => {
            tables(&|t| *command != "default" || t.kind.is_match())
        }
        ("operation", [table]) => match schema.table(table) {
            Ok(table) => matching(table.operations.iter().cloned(), unfinished),
            Err(_) => Vec::new(),
        },
        ("show" | "delete" | "insert" | "modify" | "set" | "default", [table, given @ ..]) => match schema.table(table)
        {
            Ok(table) => entry_words(table, command, given, unfinished),
            Err(_) => Vec::new(),
        },
        ("packet-out", [_, ..]) => matching(schema.packet_out.iter().map(|f| format!("{}=", f.name)), unfinished),
        _ => Vec::new(),
    }
}

/// Keys that are not given yet, actions, parameters of the one that is.
fn entry_words(table: &Table, command: &str, given: &[&str], unfinished: &str) -> Vec<String> {
    let is_given = |name: &str| given.iter().any(|w| w.split('=').next() == Some(name));
    let action = given
        .iter()
        .find_map(|w| table.action(w).ok())
        .and_then(|a| table.actions.get(a));
    let mut all: Vec<String> = Vec::new();
    if let Some(action) = action {
        let params = action
            .params
            .iter()
            .chain(table.data.iter().filter(|f| !f.is_read_only));
        all.extend(params.filter(|p| !is_given(&p.name)).map(|p| format!("{}=", p.name)));
        return matching(all.into_iter(), unfinished);
    }
    if command != "default" {
        let keys = table.keys.iter().filter(|k| !is_given(&k.name));
        all.extend(keys.map(|k| format!("{}=", k.name)));
        if table.priority.is_some() && !is_given("priority") {
            all.push("priority=".to_owned());
        }
    }
    if matches!(command, "insert" | "modify" | "set" | "default") {
        all.extend(short_too(table.actions.iter().map(|a| a.name.clone()).collect()));
        all.extend(
            table
                .data
                .iter()
                .filter(|f| !f.is_read_only)
                .map(|f| format!("{}=", f.name)),
        );
    }
    matching(all.into_iter(), unfinished)
}

/// Names, and their last parts where those are no other's.
fn short_too(names: Vec<String>) -> impl Iterator<Item = String> {
    let last = |name: &String| name.rsplit('.').next().unwrap_or(name).to_owned();
    let short: Vec<String> = names.iter().map(last).collect();
    let unique = short
        .clone()
        .into_iter()
        .filter(move |s| short.iter().filter(|o| *o == s).count() == 1);
    let mut all: Vec<String> = unique.chain(names).collect();
    all.dedup();
    all.into_iter()
}

fn matching(all: impl Iterator<Item = String>, unfinished: &str) -> Vec<String> {
    let mut fitting: Vec<String> = all.filter(|c| c.starts_with(unfinished)).collect();
    fitting.dedup();
    fitting
}

fn schema(connection: &Connection) -> Option<std::sync::Arc<Schema>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    runtime.block_on(async {
        let client = tokio::time::timeout(PATIENCE, super::connect::reader(connection)).await;
        client.ok()?.ok().map(|c| c.schema())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed_without_a_target() {
        assert_eq!(
            matching(COMMANDS.iter().map(|c| (*c).to_owned()), "de"),
            ["delete", "default"]
        );
    }

    #[test]
    fn short_names_are_offered_where_they_are_unique() {
        let names = ["A.x", "B.x", "A.y"].map(str::to_owned).to_vec();
        assert_eq!(short_too(names).collect::<Vec<_>>(), ["y", "A.x", "B.x", "A.y"]);
    }
}
