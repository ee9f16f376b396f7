//! `weir bench control`: how fast a target takes entries from weir-client.

use super::measure::median;
use super::svg::{Line, Plot};
use crate::ctl::{Connection, connect};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use weir_client::blocking::Client;
use weir_client::{BULK_BATCH, BULK_IN_FLIGHT, CellKind, Operation, Protocol, Query, ReadOptions, Table, Template};

const EXAMPLES: &str = "Examples:
  weir run acl_firewall.p4 -i 1@null -i 2@null --p4runtime 127.0.0.1:9559 &
  weir bench control address_pairs --action allow
  weir bench control ipv4_lpm --entries 1000,100k --runs 3 --bfrt 10.0.0.7 --svg control.svg

The target is reached as by `weir ctl`. The table must have no entries, and has none afterwards. Entries have all bits of their
keys; parameters of actions are 0.";

/// Arguments of `weir bench control`.
#[derive(Args, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Control {
    #[command(flatten)]
    pub connection: Connection,
    /// The table that entries are inserted into
    pub table: String,
    /// Their action; without it the first of the table
    #[arg(long, value_name = "NAME")]
    pub action: Option<String>,
    /// How many entries: measured once for each
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = count, default_value = "1,10,100,1k,10k,100k")]
    pub entries: Vec<u32>,
    /// How many runs of each; medians are reported
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Save a plot
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

fn count(text: &str) -> Result<u32, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number: Option<u32> = digits.parse().ok().and_then(|n: u32| n.checked_mul(factor));
    let number = number.filter(|n| (1..=10_000_000).contains(n));
    number.ok_or_else(|| format!("`{text}` is no number of entries: 1 to 10M, such as 1000 or 100k"))
}

/// A way to insert entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    name: &'static str,
    /// Entries of a request; `None`: all.
    batch: Option<usize>,
    in_flight: usize,
    /// More entries take too long.
    most: u32,
}

const WAYS: [Way; 4] = [
    Way {
        name: "one after another",
        batch: Some(1),
        in_flight: 1,
        most: 10_000,
    },
    Way {
        name: "64 in flight",
        batch: Some(1),
        in_flight: 64,
        most: 100_000,
    },
    Way {
        name: "one request",
        batch: None,
        in_flight: 1,
        most: 1_000_000,
    },
    Way {
        name: "bulk",
        batch: Some(BULK_BATCH),
        in_flight: BULK_IN_FLIGHT,
        most: 10_000_000,
    },
];

/// A table that entries are inserted into.
struct Target {
    client: Client,
    table: Arc<Table>,
    insert: Template,
}

impl Target {
    fn new(arguments: &Control) -> Result<Target> {
        let mut options = connect::options(&arguments.connection)?;
        if options.protocol == Protocol::BfRuntime {
            options = options.observer();
        }
        let client = Client::connect(options)?;
        connect::check_control(client.inner())?;
        let table = client.table(&arguments.table)?;
        let action = match &arguments.action {
            Some(name) => name.clone(),
            None => {
                let first = table.actions.first();
                first.map(|a| a.name.clone()).context("the table has no actions")?
            }
        };
        let insert = Template::new(&table, Operation::Insert, Some(&action))?;
        let present = client.entries(&table)?.iter().filter(|e| !e.is_default()).count();
        ensure!(
            present == 0,
            "{} has {present} entries, which would be deleted: `weir ctl clear {}` first",
            table.name,
            table.name
        );
        Ok(Target { client, table, insert })
    }

    /// Seconds to insert so many entries into the empty table.
    fn insert(&self, entries: u32, way: Way) -> Result<f64> {
        self.client.clear(&self.table)?;
        let begin = Instant::now();
        let batch = way.batch.unwrap_or(entries as usize);
        let mut pipeline = self.client.pipeline(batch, way.in_flight);
        for i in 0..entries {
            pipeline.push_numbers(&self.insert, &numbers(&self.insert, i))?;
        }
        let outcome = pipeline.finish()?;
        let seconds = begin.elapsed().as_secs_f64();
        match outcome.failed.first() {
            Some(failed) => bail!(
                "{} of {entries} entries were refused, the first: {failed}",
                outcome.failures
            ),
            None => Ok(seconds),
        }
    }

    /// Seconds to read the entries with their counters, and how many there were.
    fn read(&self) -> Result<(f64, u64)> {
        let begin = Instant::now();
        let queries = [Query::Table(Arc::clone(&self.table))];
        let mut rows = 0;
        self.client.wait(async {
            let inner = self.client.inner();
            let mut pages = inner.read_pages(&queries, &ReadOptions::default()).await?;
            while let Some(page) = pages.next().await? {
                page.rows(|row| rows += u64::from(!row.is_default))?;
            }
            Ok::<(), weir_client::Error>(())
        })?;
        Ok((begin.elapsed().as_secs_f64(), rows))
    }
}

/// Bits of a key that tell entries apart.
fn used(width: u32) -> u32 {
    width.min(64)
}

/// The numbers of an entry: no two entries have the same keys, as long as the keys have room for
/// all.
fn numbers(template: &Template, entry: u32) -> Vec<u128> {
    let mut rest = u64::from(entry);
    let (mut value, mut width) = (0, 0);
    let cells = template.cells().iter().map(|cell| match cell.kind {
        CellKind::Exact | CellKind::Optional | CellKind::Prefix | CellKind::Masked | CellKind::Low => {
            width = cell.width;
            let bits = used(width);
            let mask = u64::MAX >> (64 - bits);
            // Odd factors give each number another one: neighbours are far apart, as addresses are.
            value = u128::from((rest & mask).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask);
            rest = rest.checked_shr(bits).unwrap_or(0);
            value
        }
        CellKind::High => value,
        CellKind::PrefixLength => u128::from(width),
        CellKind::Mask => u128::MAX >> (128 - cell.width),
        CellKind::Priority => 1,
        CellKind::Param => 0,
    });
    cells.collect()
}

/// Entries that the keys of a table have room for.
fn room(table: &Table) -> u64 {
    let bits: u32 = table.keys.iter().map(|k| used(k.ty.width().unwrap_or(0))).sum();
    1_u64.checked_shl(bits).unwrap_or(u64::MAX)
}

/// Measures.
pub fn control(arguments: &Control) -> Result<u8> {
    let target = Target::new(arguments)?;
    let most = arguments.entries.iter().copied().max().unwrap_or(1);
    ensure!(
        u64::from(most) <= room(&target.table),
        "the keys of {} have room for {} entries, not {most}",
        target.table.name,
        room(&target.table)
    );
    let measured = measure(arguments, &target);
    // Also after a failure.
    let cleared = target.client.clear(&target.table);
    let rows = measured?;
    cleared?;
    if let Some(path) = &arguments.svg {
        weir_files::write(path, plot(&target.table, &rows).svg().as_bytes())?;
    }
    Ok(0)
}

/// What was measured: the way, entries, seconds.
type Row = (&'static str, u64, f64);

fn measure(arguments: &Control, target: &Target) -> Result<Vec<Row>> {
    let mut out = crate::output::stdout();
    if !arguments.connection.json {
        writeln!(
            out,
            "{:<20} {:>9} {:>12} {:>12}",
            target.table.name, "entries", "seconds", "entries/s"
        )?;
    }
    let mut tell = |(name, entries, seconds): Row| {
        let rate = entries as f64 / seconds;
        if arguments.connection.json {
            let row = json!({"way": name, "entries": entries, "seconds": seconds, "entries_per_second": rate});
            writeln!(out, "{row}")
        } else {
            writeln!(out, "{name:<20} {entries:>9} {seconds:>12.6} {rate:>12.0}")
        }
    };
    let mut rows = Vec::new();
    for &entries in &arguments.entries {
        let ways: Vec<Way> = WAYS.into_iter().filter(|way| entries <= way.most).collect();
        let mut times = vec![Vec::new(); ways.len()];
        for _ in 0..arguments.runs {
            for (way, times) in ways.iter().zip(&mut times) {
                times.push(target.insert(entries, *way)?);
            }
        }
        for (way, times) in ways.iter().zip(&times) {
            rows.push((way.name, u64::from(entries), median(times)));
            tell(rows[rows.len() - 1])?;
        }
        let (mut times, mut found) = (Vec::new(), 0);
        for _ in 0..arguments.runs {
            let (seconds, entries) = target.read()?;
            times.push(seconds);
            found = entries;
        }
        ensure!(
            found == u64::from(entries),
            "{entries} entries were inserted, {found} are there"
        );
        rows.push(("read", found, median(&times)));
        tell(rows[rows.len() - 1])?;
    }
    Ok(rows)
}

fn plot(table: &Table, rows: &[Row]) -> Plot {
    let names = WAYS.iter().map(|way| way.name).chain(["read"]);
    let lines = names.map(|name| {
        let of = rows.iter().filter(|(way, ..)| *way == name);
        Line {
            name: name.to_owned(),
            points: of
                .map(|(_, entries, seconds)| (*entries as f64, *entries as f64 / seconds / 1e3))
                .collect(),
            is_joined: true,
        }
    });
    Plot {
        title: format!("{}: entries into a target", table.name),
        x: "entries".to_owned(),
        y: "1,000 entries per second".to_owned(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units_and_limits() {
        assert_eq!(
            (count("7"), count("100k"), count("10M")),
            (Ok(7), Ok(100_000), Ok(10_000_000))
        );
        for wrong in ["", "0", "k", "11M", "-1", "5000M", "1x"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }
}
