//! What a target tells by itself, and what counters say over time.

use super::Connection;
use super::connect::{listener, reader};
use crate::cli::interval;
use anyhow::{Result, bail};
use clap::Subcommand;
use serde_json::json;
use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};
use weir_client::bulk::{entry_to_json, value_to_json};
use weir_client::schema::Field;
use weir_client::{Client, DigestConfig, Entry, Overflow, Subscription, Value};

/// Events that wait to be printed.
const CAPACITY: usize = 65_536;

/// What can be watched.
#[derive(Subcommand)]
pub enum What {
    /// Digests of one kind
    Digests {
        /// The digest
        name: String,
    },
    /// Packets for the controller (P4Runtime)
    Packets,
    /// Entries that time out
    Idle,
    /// Ports that come up or go down (BF Runtime)
    Ports,
    /// Packets and bytes per second of counters: an array, or the entries of a table
    Rates {
        /// The counter or table
        name: String,
        /// How often to look
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
        interval: Duration,
        /// How often in all; without: until Ctrl-C
        #[arg(long, value_name = "N")]
        count: Option<u64>,
    },
}

pub async fn watch(connection: &Connection, what: &What) -> Result<u8> {
    let is_json = connection.json;
    match what {
        What::Digests { name } => {
            let client = listener(connection).await?;
            let digest = client.schema().digest(name)?.clone();
            let field = Field {
                id: 0,
                name: digest.name.clone(),
                ty: digest.ty.clone(),
                is_list: false,
                is_read_only: true,
                is_mandatory: false,
            };
            let events = client
                .digests(name, DigestConfig::default(), CAPACITY, Overflow::Count)
                .await?;
            each(&client, events, |out, list| {
                for element in &list.data {
                    if is_json {
                        writeln!(
                            out,
                            "{}",
                            json!({"digest": list.name, "data": value_to_json(&field, element)})
                        )?;
                    } else {
                        writeln!(
                            out,
                            "{} {}",
                            list.name,
                            weir_client::notation::value_text(&field, element)
                        )?;
                    }
                }
                Ok(())
            })
            .await
        }
        What::Packets => {
            let client = listener(connection).await?;
            let events = client.packets(CAPACITY, Overflow::Count);
            each(&client, events, |out, packet| {
                let payload: String = packet.payload.iter().map(|b| format!("{b:02x}")).collect();
                if is_json {
                    let metadata = packet.metadata.iter().map(|(n, v)| (n.clone(), json!(v.to_string())));
                    let metadata: serde_json::Map<_, _> = metadata.collect();
                    return writeln!(out, "{}", json!({"metadata": metadata, "payload": payload}));
                }
                for (name, value) in &packet.metadata {
                    write!(out, "{name}={value} ")?;
                }
                writeln!(out, "{payload}")
            })
            .await
        }
        What::Idle => {
            let client = listener(connection).await?;
            let events = client.idle_entries(None, CAPACITY, Overflow::Count).await?;
            each(&client, events, |out, idle| {
                let what = if idle.is_active { "active" } else { "idle" };
                if is_json {
                    return writeln!(out, "{}", json!({"event": what, "entry": entry_to_json(&idle.entry)}));
                }
                writeln!(out, "{what} {} [{}]", idle.entry.table().name, idle.entry.key_text())
            })
            .await
        }
        What::Ports => {
            if connection.bfrt.is_none()
                && weir_client::Protocol::P4Runtime == super::connect::options(connection)?.protocol
            {
                bail!("P4Runtime does not report ports; BF Runtime does");
            }
            let client = listener(connection).await?;
            let events = client.port_changes(CAPACITY, Overflow::Count).await?;
            each(&client, events, |out, change| {
                let state = if change.is_up { "up" } else { "down" };
                if is_json {
                    return writeln!(out, "{}", json!({"port": change.port, "state": state}));
                }
                writeln!(out, "port {} {state}", change.port)
            })
            .await
        }
        What::Rates { name, interval, count } => rates(connection, name, *interval, *count).await,
    }
}

/// Prints events as they come; what is lost is told, and so is the end of the connection.
async fn each<T>(
    client: &Client,
    mut events: Subscription<T>,
    mut print: impl FnMut(&mut crate::output::Out, T) -> std::io::Result<()>,
) -> Result<u8> {
    let mut standing = client.standings();
    let mut out = crate::output::stdout();
    let mut lost = 0;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            changed = standing.changed() => {
                if changed.is_err() {
                    bail!("the connection is closed");
                }
                if let weir_client::Standing::Lost(reason) = &*standing.borrow() {
                    bail!("the connection is lost: {reason}");
                }
                continue;
            }
        };
        let Some(event) = event else { return Ok(0) };
        print(&mut out, event)?;
        out.flush()?;
        if out.is_gone() {
            return Ok(0);
        }
        if events.lost() > lost {
            lost = events.lost();
            crate::output::message(format!(
                "warning: {lost} events were lost: they come faster than they are printed, or cannot be read"
            ));
        }
    }
}

async fn rates(connection: &Connection, name: &str, interval: Duration, count: Option<u64>) -> Result<u8> {
    let client = reader(connection).await?;
    let table = client.table(name)?;
    let counted = ["$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES"];
    if !table.data.iter().any(|f| counted.contains(&f.name.as_str())) {
        bail!("{}: nothing is counted there", table.name);
    }
    let number = |entry: &Entry, name: &str| entry.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut before: HashMap<String, (u64, u64)> = HashMap::new();
    let mut then = Instant::now();
    let mut rounds = 0;
    let mut out = crate::output::stdout();
    loop {
        let entries = client.entries(&table).await?;
        let now = Instant::now();
        let seconds = (now - then).as_secs_f64();
        for entry in &entries {
            let key = entry.key_text();
            let counts = (number(entry, counted[0]), number(entry, counted[1]));
            let old = before.insert(key.clone(), counts);
            let Some(old) = old.filter(|old| *old != counts) else {
                continue;
            };
            let per_second = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
            let (packets, bytes) = (per_second(counts.0, old.0), per_second(counts.1, old.1));
            if connection.json {
                let line =
                    json!({"table": table.name, "key": key, "packets_per_second": packets, "bytes_per_second": bytes});
                writeln!(out, "{line}")?;
            } else {
                writeln!(out, "{packets:>14.0} packets/s {bytes:>16.0} bytes/s  {key}")?;
            }
        }
        if rounds > 0 && !connection.json {
            writeln!(out)?;
        }
        out.flush()?;
        if out.is_gone() || count.is_some_and(|count| rounds >= count) {
            return Ok(0);
        }
        rounds += 1;
        then = now;
        tokio::time::sleep(interval).await;
    }
}

/// Sends a packet.
pub async fn packet_out(connection: &Connection, payload: &str, fields: &[String]) -> Result<u8> {
    let digits: String = payload.chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = weir_client::notation::hex_bytes(&digits);
    let Some(bytes) = bytes else {
        bail!("`{payload}` is no packet in hex digits");
    };
    let mut metadata = Vec::new();
    for field in fields {
        let Some((name, value)) = field.split_once('=') else {
            bail!("`{field}` is not NAME=VALUE");
        };
        let number = weir_client::notation::parse_number(value);
        metadata.push((name, number.unwrap_or_else(|| Value::from(value))));
    }
    let client = listener(connection).await?;
    client.packet_out(bytes, &metadata).await?;
    // The stream carries it as long as it is open; the target closes it once everything was heard.
    client.close().await;
    Ok(0)
}
