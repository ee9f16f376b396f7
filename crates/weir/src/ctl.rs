//! `weir ctl`: the control plane of any P4Runtime or BF Runtime target from a shell.

mod complete;
pub mod connect;
mod entries;
mod key;
mod program;
mod queue;
mod state;
mod tables;
mod watch;

use crate::cli::duration;
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  weir run router.p4 -i 1@eth1 -i 2@eth2 --p4runtime 127.0.0.1:9559 &
  weir ctl tables
  weir ctl insert ipv4_lpm hdr.ipv4.dst_addr=10.0.1.0/24 route next_hop=0 port=1
  weir ctl show ipv4_lpm
  weir ctl delete ipv4_lpm 10.0.1.0/24
  weir ctl default address_pairs allow
  weir ctl show my_register 7 && weir ctl modify my_register 7 value=0
  weir ctl load ipv4_lpm.csv --table ipv4_lpm && weir ctl dump > state.jsonl
  weir ctl --bfrt 10.0.0.7 watch digests learn
  weir ctl key set outbound 0 outbound.key
  weir ctl queue set 2 --rate 10M --depth 32 && weir ctl queue
  weir ctl watch rates port_counter --interval 1s
  eval \"$(weir completion bash)\"

The target is --p4runtime ADDR or --bfrt ADDR, else the environment's WEIR_TARGET (p4runtime:ADDR or bfrt:ADDR), else
P4Runtime at 127.0.0.1:9559. Names may be shortened to their end behind a dot. Everything is a table: counters,
meters, registers, members, groups, ports. docs/ctl.md says more.";

/// Arguments of `weir ctl`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Ctl {
    #[command(flatten)]
    pub connection: Connection,
    #[command(subcommand)]
    pub command: Command,
}

/// How the target is reached.
#[derive(Args, Clone)]
pub struct Connection {
    /// The target speaks P4Runtime: HOST[:PORT] or unix:PATH
    #[arg(long, value_name = "ADDR", global = true, conflicts_with = "bfrt")]
    pub p4runtime: Option<String>,
    /// The target speaks BF Runtime
    #[arg(long, value_name = "ADDR", global = true)]
    pub bfrt: Option<String>,
    /// The number of the device; weir and most targets take 0 for the only one
    #[arg(long, value_name = "N", global = true, default_value_t = 0)]
    pub device_id: u64,
    /// P4Runtime: the highest election id may write
    #[arg(long, value_name = "N", global = true, default_value_t = 1)]
    pub election_id: u128,
    /// P4Runtime: the role
    #[arg(long, value_name = "NAME", global = true, default_value = "")]
    pub role: String,
    /// BF Runtime: the number of this client [default: one of its own]
    #[arg(long, value_name = "N", global = true)]
    pub client_id: Option<u32>,
    /// BF Runtime: the program, where the target runs several
    #[arg(long, value_name = "NAME", global = true)]
    pub program: Option<String>,
    /// Speak TLS: authorities of the target's certificate, as PEM
    #[arg(long, value_name = "FILE", global = true)]
    pub tls_ca: Option<PathBuf>,
    /// The name that the target's certificate has, where it is not the host's
    #[arg(long, value_name = "NAME", global = true, requires = "tls_ca")]
    pub tls_name: Option<String>,
    /// A certificate of our own, as PEM
    #[arg(long, value_name = "FILE", global = true, requires = "tls_ca", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(long, value_name = "FILE", global = true, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// How long a request may take
    #[arg(long, value_name = "TIME", global = true, default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Output as JSON, one object per line
    #[arg(long, global = true)]
    pub json: bool,
}

/// What is done.
#[derive(Subcommand)]
pub enum Command {
    /// List tables, counters, registers, …: all, or those whose name contains a text
    Tables {
        /// Part of a name
        pattern: Option<String>,
    },
    /// Show entries: of all tables, of one, or one entry with a key
    Show {
        /// The table; without it all that match packets
        table: Option<String>,
        /// KEY=MATCH … of one entry, or `default`
        words: Vec<String>,
        /// Do not ask for counters
        #[arg(long)]
        no_counters: bool,
    },
    /// How many entries tables have: all that match, or these
    Count {
        /// The tables
        tables: Vec<String>,
    },
    /// Insert an entry that is not there yet: KEY=MATCH … [priority=N] ACTION PARAM=VALUE …
    Insert(Words),
    /// Modify an entry that is there; set a counter, meter or register
    Modify(Words),
    /// Insert an entry, or modify the one that is there
    Set(Words),
    /// Delete an entry: KEY=MATCH …
    Delete(Words),
    /// Set what a table does with packets that match nothing: ACTION PARAM=VALUE …; without: the
    /// program's own
    Default(Words),
    /// Delete all entries of tables
    Clear {
        /// The tables
        tables: Vec<String>,
        /// All tables that match packets
        #[arg(long, conflicts_with = "tables")]
        all: bool,
    },
    /// Set and remove keys of externs
    Key(key::Key),
    /// Show and set rates and depths of ports' queues, while the switch runs
    Queue(queue::Queue),
    /// Do an operation on a whole table, such as SyncCounters (BF Runtime)
    Operation {
        /// The table
        table: String,
        /// The operation
        operation: String,
    },
    /// Write all state to stdout as JSON lines
    Dump,
    /// Write entries from a file: JSON lines, .csv (with --table), .entries, or a runtime file of
    /// the P4 tutorials (.json)
    Load {
        /// The file; - for stdin
        file: PathBuf,
        /// Of a .csv: the table
        #[arg(long, value_name = "NAME")]
        table: Option<String>,
        /// Of a .csv without a column `action`: the action
        #[arg(long, value_name = "NAME")]
        action: Option<String>,
        /// What is done with each entry
        #[arg(long, value_enum, default_value_t = How::Insert)]
        how: How,
        /// Entries per request
        #[arg(long, value_name = "N", default_value_t = 2500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        batch: u32,
        /// Requests in flight
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
        in_flight: u32,
    },
    /// Ports of the device (BF Runtime)
    Ports,
    /// The program that runs, or another one
    Program {
        /// Load this P4 program or what `weir build` made (P4Runtime targets that are weir)
        #[arg(long, value_name = "PROG.p4")]
        load: Option<PathBuf>,
        /// Keep what the two programs have in common
        #[arg(long, requires = "load")]
        reconcile: bool,
    },
    /// Show what the target tells, until Ctrl-C
    Watch {
        /// What to watch
        #[command(subcommand)]
        what: watch::What,
    },
    /// Send a packet by the control plane: its bytes, and NAME=VALUE … of the header packet_out
    /// (P4Runtime)
    PacketOut {
        /// The packet, in hex
        #[arg(value_name = "HEX")]
        payload: String,
        /// NAME=VALUE of header fields
        fields: Vec<String>,
    },
    /// Print what makes a shell complete weir's command lines, as `weir completion` does
    Completion(crate::shell::Completion),
    /// What could come next (asked by shells)
    #[command(hide = true)]
    Complete {
        /// Words behind `weir ctl`, the last one unfinished
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// A table and the words of an entry.
#[derive(Args)]
pub struct Words {
    /// The table
    pub table: String,
    /// KEY=MATCH …, priority=N, ACTION, PARAM=VALUE …; names may be left out in the program's order
    pub words: Vec<String>,
}

/// What is done with entries of a file.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum How {
    /// They must not be there yet
    Insert,
    /// They may be there
    Set,
    /// They are taken away
    Delete,
}

/// Runs `weir ctl`: 0, or 1 where the target refuses something.
pub fn ctl(arguments: &Ctl) -> Result<u8> {
    match &arguments.command {
        Command::Completion(arguments) => return crate::shell::completion(arguments),
        Command::Complete { words } => return complete::candidates(&arguments.connection, words),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: &Ctl) -> Result<u8> {
    let connection = &arguments.connection;
    let is_json = connection.json;
    match &arguments.command {
        Command::Tables { pattern } => tables::list(&connect::reader(connection).await?, pattern.as_deref(), is_json),
        Command::Show {
            table,
            words,
            no_counters,
        } => {
            let client = connect::reader(connection).await?;
            match table {
                Some(table) => entries::show(&client, table, words, !*no_counters, is_json).await,
                None => entries::show_all(&client, !*no_counters, is_json).await,
            }
        }
        Command::Count { tables } => entries::count(&connect::reader(connection).await?, tables, is_json).await,
        Command::Insert(words) => entries::write(connection, weir_client::Operation::Insert, words).await,
        Command::Modify(words) => entries::write(connection, weir_client::Operation::Modify, words).await,
        Command::Set(words) => entries::write(connection, weir_client::Operation::InsertOrModify, words).await,
        Command::Delete(words) => entries::write(connection, weir_client::Operation::Delete, words).await,
        Command::Default(words) => entries::default(connection, words).await,
        Command::Clear { tables, all: false } if tables.is_empty() => {
            anyhow::bail!("which tables? Name them, or write --all for all that match packets")
        }
        Command::Clear { tables, all } => entries::clear(&connect::writer(connection).await?, tables, *all).await,
        Command::Key(arguments) => key::key(connection, arguments).await,
        Command::Queue(arguments) => queue::queue(connection, arguments).await,
        Command::Operation { table, operation } => {
            let client = connect::writer(connection).await?;
            let table = client.table(table)?;
            connect::answer(client.operation(&table, operation).await)
        }
        Command::Dump => state::dump(&connect::reader(connection).await?).await,
        Command::Load { .. } => state::load(&connect::writer(connection).await?, &arguments.command, is_json).await,
        Command::Ports => tables::ports(&connect::reader(connection).await?, is_json).await,
        Command::Program { load, reconcile } => program::program(connection, load.as_deref(), *reconcile).await,
        Command::Watch { what } => watch::watch(connection, what).await,
        Command::PacketOut { payload, fields } => watch::packet_out(connection, payload, fields).await,
        // Answered without a target.
        Command::Completion(_) | Command::Complete { .. } => Ok(0),
    }
}
