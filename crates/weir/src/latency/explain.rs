//! `weir latency explain`

use super::arguments::Explain;
use crate::output::Messages;
use anyhow::Result;
use std::io::Write;
use weir_latency::{Features, Gress, show};

/// Shows features and stages.
pub fn explain(arguments: &Explain, messages: &Messages) -> Result<u8> {
    let svg = arguments.svg.as_deref();
    super::files::distinct(&[("--svg", svg)], &[Some(&arguments.source.program)])?;
    let program = match super::program(&arguments.source, messages)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let gress = if arguments.egress {
        Gress::Egress
    } else {
        Gress::Ingress
    };
    let pipe = super::pipe(&program, arguments.pipe.as_deref())?;
    let features = Features::of_pipe(&program, gress, pipe.as_deref())?;
    let chip = arguments.chip.chip();
    if let Some(path) = svg {
        let title = format!("{}, {gress}", arguments.source.program.display());
        weir_files::write(path, show::svg(&features, &chip, &title).as_bytes())?;
    }
    let mut out = crate::output::stdout();
    if arguments.json {
        let placement = features.placement(&chip);
        let value = serde_json::json!({ "features": features, "chip": chip, "placement": placement });
        writeln!(out, "{value:#}")?;
    } else {
        write!(out, "{}", show::explain(&features, &chip))?;
    }
    Ok(0)
}
