//! Queues of ports.

use super::{Connection, connect};
use crate::run::rate_of;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::Write;
use weir_client::PortQueues;

const EXAMPLES: &str = "Examples:
  weir ctl queue
  weir ctl queue set 2 --rate 10M
  weir ctl queue set 2 --rate 50pps --depth 16
  weir ctl queue set 2 --rate none
  weir ctl queue reset 2

By P4Runtime, this works with weir only. By BF Runtime, it writes tm.port.sched_shaping and
tm.port.sched_cfg, which have rates and no depths.";

/// Arguments of `weir ctl queue`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Queue {
    #[command(subcommand)]
    pub what: Option<What>,
}

/// What is done; without it, the queues are listed.
#[derive(Subcommand)]
pub enum What {
    /// Set the rate of a port, the depth of its queues, or both
    Set {
        /// The port
        port: u32,
        /// Bits per second, e.g. 10M or 512kbit; packets per second, e.g. 50pps; or none
        #[arg(long, value_name = "RATE", required_unless_present = "depth")]
        rate: Option<String>,
        /// Packets for which each queue has room
        #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        depth: Option<u32>,
    },
    /// Give a port the rate and the depth that the switch was started with (BF Runtime: no limit)
    Reset {
        /// The port
        port: u32,
    },
}

/// Runs `weir ctl queue`: 0, or 1 where the target refuses.
pub async fn queue(connection: &Connection, arguments: &Queue) -> Result<u8> {
    match &arguments.what {
        None => {
            let client = connect::reader(connection).await?;
            list(&client.port_queues().await?, connection.json)?;
            Ok(0)
        }
        Some(What::Set { port, rate, depth }) => {
            let client = connect::writer(connection).await?;
            let known = client.port_queues().await?.into_iter().find(|(known, _)| known == port);
            let mut queues = known.map_or(PortQueues::default(), |(_, queues)| queues);
            if let Some(rate) = rate {
                (queues.bits_per_second, queues.packets_per_second) = limits(rate)?;
            }
            queues.capacity = depth.or(queues.capacity);
            connect::answer(client.set_port_queues(*port, queues).await)
        }
        Some(What::Reset { port }) => {
            let client = connect::writer(connection).await?;
            connect::answer(client.reset_port_queues(*port).await)
        }
    }
}

/// The limits that a rate means: bits per second, packets per second.
fn limits(rate: &str) -> Result<(Option<u64>, Option<u64>)> {
    if rate == "none" {
        return Ok((None, None));
    }
    let parsed = rate_of(rate).with_context(|| {
        format!("`{rate}` is no rate; write bits per second as 10M or 512kbit, packets per second as 50pps, or none")
    })?;
    Ok((parsed.bits_per_second, parsed.packets_per_second))
}

fn list(queues: &[(u32, PortQueues)], is_json: bool) -> Result<()> {
    let mut out = std::io::BufWriter::new(crate::output::stdout());
    if !is_json {
        writeln!(
            out,
            "{:>6}  {:>14}  {:>12}  {:>6}",
            "port", "bits/s", "packets/s", "depth"
        )?;
    }
    for (port, queues) in queues {
        if is_json {
            let line = json!({
                "port": port,
                "bits_per_second": queues.bits_per_second,
                "packets_per_second": queues.packets_per_second,
                "depth": queues.capacity,
            });
            writeln!(out, "{line}")?;
            continue;
        }
        let text = |limit: Option<u64>| limit.map_or("-".to_owned(), |limit| limit.to_string());
        let (bits, packets) = (text(queues.bits_per_second), text(queues.packets_per_second));
        let depth = text(queues.capacity.map(u64::from));
        writeln!(out, "{port:>6}  {bits:>14}  {packets:>12}  {depth:>6}")?;
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_packets_or_none() {
        assert_eq!(limits("10M").unwrap(), (Some(10_000_000), None));
        assert_eq!(limits("50pps").unwrap(), (None, Some(50)));
        assert_eq!(limits("none").unwrap(), (None, None));
        assert!(limits("fast").unwrap_err().to_string().contains("`fast` is no rate"));
    }
}
