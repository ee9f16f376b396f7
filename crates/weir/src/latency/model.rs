//! Models by name or file, and `weir latency models`.

use super::arguments::Models;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use weir_files::Readable;
use weir_latency::model::{MAX_BYTES, Model, shipped, shipped_names};

/// Finds a model: one that ships, else a file.
pub fn find(name: &str) -> Result<Model> {
    if let Some(model) = shipped(name) {
        return Ok(model);
    }
    if !name.contains('/') && !name.contains('.') {
        bail!(
            "no model `{name}` ships: there are {}; or give a file",
            shipped_names().join(", ")
        );
    }
    let text = weir_files::read_text(Path::new(name), Readable::Streams, MAX_BYTES)?;
    Model::parse(&text).with_context(|| format!("{name}: not used"))
}

/// `weir latency models`
pub fn models(arguments: &Models) -> Result<u8> {
    let mut out = crate::output::stdout();
    if let Some(name) = &arguments.name {
        write!(out, "{}", find(name)?.to_json())?;
        return Ok(0);
    }
    for name in shipped_names() {
        if let Some(model) = shipped(name) {
            writeln!(
                out,
                "{name:16} {}, {}: error {:.2} % on average, {:.2} % at worst, by {}\n{:16} {}",
                model.target.name(),
                model.unit.symbol(),
                model.error.mean_pct,
                model.error.worst_pct,
                model.error.method,
                "",
                model.about
            )?;
        }
    }
    writeln!(
        out,
        "\nModels of a Tofino: seven programs were measured. Leave-one-case-out predicts each of them by a\n\
         model that was fitted to measurements of the others; the paper's own models were not."
    )?;
    Ok(0)
}
