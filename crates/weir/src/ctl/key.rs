//! Keys of externs. They come from a file or from stdin: other users can read command lines.

use super::{Connection, connect};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use weir_client::KeyMaterial;

const EXAMPLES: &str = "Examples:
  openssl rand -hex 20 > outbound.key && chmod 600 outbound.key
  weir ctl key set outbound 0 outbound.key
  openssl rand -hex 20 | weir ctl key set outbound 1 -
  weir ctl key list outbound
  weir ctl key remove outbound 0";

/// The most bytes that are read of a key: digits and white space for the longest.
const MAX_INPUT: u64 = 1 << 16;

/// Arguments of `weir ctl key`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Key {
    #[command(subcommand)]
    pub what: What,
}

/// What is done.
#[derive(Subcommand)]
pub enum What {
    /// Set a key, whether one is set already or not
    Set {
        /// The extern instance
        instance: String,
        /// The number of the key, from 0
        index: u64,
        /// The key as hexadecimal digits; - for stdin
        file: PathBuf,
        /// The file has the bytes of the key, not digits
        #[arg(long)]
        raw: bool,
    },
    /// Remove a key; sequence numbers and replay windows are reset
    Remove {
        /// The extern instance
        instance: String,
        /// The number of the key, from 0
        index: u64,
    },
    /// List the numbers of the keys that are set; the keys themselves cannot be read
    List {
        /// The extern instance
        instance: String,
    },
}

/// Runs `weir ctl key`: 0, or 1 where the target refuses.
pub async fn key(connection: &Connection, arguments: &Key) -> Result<u8> {
    match &arguments.what {
        What::Set {
            instance,
            index,
            file,
            raw,
        } => {
            let key = read(file, *raw)?;
            let client = connect::writer(connection).await?;
            connect::answer(client.set_key(instance, *index, key).await)
        }
        What::Remove { instance, index } => {
            let client = connect::writer(connection).await?;
            connect::answer(client.remove_key(instance, *index).await)
        }
        What::List { instance } => {
            let client = connect::reader(connection).await?;
            let set = client.keys_set(instance).await?;
            let mut out = std::io::BufWriter::new(crate::output::stdout());
            for index in set {
                match connection.json {
                    true => writeln!(out, "{}", json!({ "index": index, "is_set": true }))?,
                    false => writeln!(out, "{index}")?,
                }
            }
            out.flush()?;
            Ok(0)
        }
    }
}

fn read(file: &Path, is_raw: bool) -> Result<KeyMaterial> {
    let bytes = match file.as_os_str() == "-" {
        true => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
            bytes
        }
        false => crate::input::bytes(file)?,
    };
    // It is overwritten when it is dropped.
    let bytes = KeyMaterial::new(bytes);
    let name = file.display();
    if bytes.len() as u64 > MAX_INPUT {
        bail!("{name}: more than {MAX_INPUT} bytes, which no key has");
    }
    if is_raw {
        if bytes.is_empty() {
            bail!("{name}: no bytes; `weir ctl key remove` removes a key");
        }
        return Ok(bytes);
    }
    bytes.parse_hex().map_err(|e| anyhow::anyhow!("{name}: {e}"))
}
