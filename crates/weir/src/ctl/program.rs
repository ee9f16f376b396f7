//! The program that a target runs.

use super::Connection;
use super::connect::{answer, listener, reader};
use anyhow::Result;
use std::io::Write;
use std::path::Path;
use weir_client::{Config, ConfigAction};

/// Tells which program runs, or loads one.
pub async fn program(connection: &Connection, load: Option<&Path>, reconcile: bool) -> Result<u8> {
    let Some(path) = load else {
        let client = reader(connection).await?;
        let schema = client.schema();
        let count = |is_match: bool| schema.tables.iter().filter(|t| t.kind.is_match() == is_match).count();
        if connection.json {
            let digests: Vec<&str> = schema.digests.iter().map(|d| d.name.as_str()).collect();
            let result = serde_json::json!({
                "program": schema.program,
                "architecture": schema.architecture,
                "match_tables": count(true),
                "other_tables": count(false),
                "digests": digests,
            });
            writeln!(crate::output::stdout(), "{result}")?;
        } else {
            // P4Runtime knows the name that the annotation @pkginfo gives; few programs have one.
            let name = match (schema.program.as_str(), schema.architecture.as_str()) {
                ("", "") => "a program without @pkginfo(name=…)".to_owned(),
                ("", architecture) => format!("a program for {architecture} without @pkginfo(name=…)"),
                (name, _) => name.to_owned(),
            };
            writeln!(
                crate::output::stdout(),
                "{name}: {} tables that match, {} others, {} digests",
                count(true),
                count(false),
                schema.digests.len()
            )?;
        }
        return Ok(0);
    };
    let compiled = compile(path)?;
    let Some(compiled) = compiled else { return Ok(1) };
    let client = listener(connection).await?;
    let action = if reconcile {
        ConfigAction::Reconcile
    } else {
        ConfigAction::Commit
    };
    answer(client.set_program(&compiled, action).await)
}

/// The program as a config: its P4Info, and itself.
fn compile(path: &Path) -> Result<Option<Config>> {
    // It is read once more to be compiled.
    let device_config = crate::input::regular(path)?;
    let mut externs = crate::externs();
    externs.set_files(weir_extern_api::Folder::of_program(path));
    let source = crate::cli::Source {
        program: path.to_owned(),
        front_end: crate::cli::FrontEnd {
            include: Vec::new(),
            define: Vec::new(),
            arch: None,
            externs,
        },
        message_format: crate::cli::MessageFormat::Human,
    };
    let Ok(program) = crate::compile::program(&source, &crate::output::Messages::direct())? else {
        return Ok(None);
    };
    let p4info = weir_compiler::p4info::p4info(&program, weir_arch::targets()).map_err(|errors| {
        anyhow::anyhow!(
            "{}",
            errors
                .iter()
                .map(|e| e.with_places(&program))
                .collect::<Vec<_>>()
                .join("; ")
        )
    })?;
    Ok(Some(Config::P4Runtime {
        p4info: Box::new(p4info),
        device_config,
        cookie: None,
    }))
}
