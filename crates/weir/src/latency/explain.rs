//! `weir latency explain`

use super::arguments::Explain;
use crate::output::Messages;
use anyhow::Result;
use std::io::Write;
use weir_latency::features::Placement;
use weir_latency::{Features, Gress, show};

/// Shows features and stages.
pub fn explain(arguments: &Explain, messages: &Messages) -> Result<u8> {
    let program = match crate::compile::program(&arguments.source, messages)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let gress = if arguments.egress {
        Gress::Egress
    } else {
        Gress::Ingress
    };
    let features = Features::of(&program, gress)?;
    let chip = arguments.chip.chip();
    if let Some(path) = &arguments.svg {
        let title = format!("{}, {gress}", arguments.source.program.display());
        weir_files::write(path, show::svg(&features, &chip, &title).as_bytes())?;
    }
    let mut out = crate::output::stdout();
    if arguments.json {
        let placement = Placement::of(&features.dependencies, &features.tables, &chip);
        let value = serde_json::json!({ "features": features, "chip": chip, "placement": placement });
        writeln!(out, "{value:#}")?;
    } else {
        write!(out, "{}", show::explain(&features, &chip))?;
    }
    Ok(0)
}
