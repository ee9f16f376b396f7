//! A forwarding pipeline config: what `p4_device_config` may be, and whether it is what its P4Info
//! says (specification, section "P4 Forwarding-Pipeline Configuration").

use super::refusal::Refusal;
use super::schema::Schema;
use crate::{container, standalone};
use std::sync::Arc;
use weir_compiler::{Cancellation, Options, Origin, compile_source};
use weir_extern_api::Registry;
use weir_ir::Program;
use weir_proto::p4::config::v1 as config;
use weir_proto::p4::v1 as pb;
use weir_syntax::render;

/// Diagnostics that a client is shown.
const MAX_DIAGNOSTICS: usize = 20;

/// A program that is loaded or saved, as the control plane names it.
#[derive(Debug)]
pub struct LoadedProgram {
    /// As the compiler made it.
    pub program: Arc<Program>,
    /// By the numbers of P4Info.
    pub schema: Schema,
    /// The client's config, or the one made in its place.
    pub config: pb::ForwardingPipelineConfig,
    /// As BF Runtime names it.
    pub bfrt: Result<Arc<crate::bfrt::program::Program>, Refusal>,
}

fn info_of(program: &Program) -> Result<config::P4Info, Refusal> {
    weir_compiler::p4info::p4info(program, weir_arch::targets()).map_err(|errors| {
        let list: Vec<String> = errors.iter().map(|e| e.with_places(program)).collect();
        Refusal::malformed(format!("the program has no P4Info: {}", list.join("; ")))
    })
}

impl LoadedProgram {
    /// A program that runs without a client of P4Runtime having loaded it; `name` is what BF
    /// Runtime calls it.
    ///
    /// # Errors
    /// It has no P4Info.
    pub fn running(program: Arc<Program>, name: &str) -> Result<Self, Refusal> {
        let info = info_of(&program)?;
        let schema = Schema::new(&program, &info);
        let config = pb::ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: weir_ir::print::print(&program).into_bytes(),
            cookie: None,
        };
        Ok(LoadedProgram {
            bfrt: crate::bfrt::program::Program::new(&program, name).map(Arc::new),
            program,
            schema,
            config,
        })
    }

    /// The program of a config, compiled and checked. `running` is what runs, for a config that
    /// means that; `externs` are those that it may call besides its architecture's; `cancellation`
    /// ends the compilation early.
    ///
    /// # Errors
    /// It has no P4Info, does not compile, cannot be run, or is not what its P4Info says.
    pub fn of_config(
        config: Option<pb::ForwardingPipelineConfig>,
        running: Option<&LoadedProgram>,
        externs: &Registry,
        cancellation: &Cancellation,
    ) -> Result<Self, Refusal> {
        let config = config.ok_or_else(|| Refusal::malformed("the config is missing"))?;
        let given = config.p4info.as_ref();
        let given = given.ok_or_else(|| Refusal::malformed("the config has no p4info"))?;
        let program = program(&config.p4_device_config, running, cancellation)?;
        let info = info_of(&program)?;
        if let Some(difference) = difference(given, &info) {
            return Err(Refusal::malformed(format!(
                "the p4info is not that of the program: {difference}"
            )));
        }
        standalone::load(&program, externs)
            .map_err(|e| Refusal::malformed(format!("the program cannot be run: {e}")))?;
        let schema = Schema::new(&program, &info);
        let name = info.pkg_info.as_ref().map_or("", |p| p.name.as_str());
        let before = running.and_then(|r| r.bfrt.as_ref().ok()).map(|b| b.name.as_str());
        let name = if name.is_empty() { before.unwrap_or("p4") } else { name };
        Ok(LoadedProgram {
            bfrt: crate::bfrt::program::Program::new(&program, name).map(Arc::new),
            program,
            schema,
            config,
        })
    }
}

/// Decodes `p4_device_config`: P4 source text, a program that `weir build` saved, the JSON of
/// `weir bmv2 p4c-bm2-ss`, any of them within `p4.tmp.P4DeviceConfig`, or nothing for the program
/// that runs.
pub(crate) fn program(
    bytes: &[u8],
    running: Option<&LoadedProgram>,
    cancellation: &Cancellation,
) -> Result<Arc<Program>, Refusal> {
    if bytes.is_empty() {
        return running.map(|r| Arc::clone(&r.program)).ok_or_else(|| {
            Refusal::malformed(
                "p4_device_config is empty, which means the program that runs, and none does; send the P4 source",
            )
        });
    }
    let data = container::device_data(bytes);
    let text = std::str::from_utf8(&data).map_err(|_| {
        Refusal::malformed(
            "p4_device_config is no text; send the P4 source, or the .weir file that `weir build` writes",
        )
    })?;
    if container::is_json(text) {
        let program = container::decode(text).map_err(|e| Refusal::malformed(format!("p4_device_config: {e}")))?;
        return Ok(Arc::new(program));
    }
    let start = text.trim_start();
    if start.starts_with("weir ") {
        let program = weir_ir::parse::parse(text)
            .map_err(|e| Refusal::malformed(format!("p4_device_config is no program of this version of weir: {e}")))?;
        if let Some(error) = weir_arch::nonconformities(&program).first() {
            return Err(Refusal::malformed(format!("p4_device_config: {error}")));
        }
        return Ok(Arc::new(program));
    }
    let targets = weir_arch::targets();
    let options = Options {
        origin: Origin::Sent,
        cancellation: cancellation.clone(),
        ..Options::default()
    };
    let compiled = compile_source("p4_device_config", text, &options, targets).started()?;
    if compiled.diagnostics.has_errors() {
        let shown = compiled.diagnostics.list().iter().take(MAX_DIAGNOSTICS);
        let list: Vec<String> = shown
            .map(|d| render::short(d, &compiled.sources).trim_end().to_string())
            .collect();
        return Err(Refusal::malformed(format!(
            "the program does not compile:\n{}",
            list.join("\n")
        )));
    }
    let missing = || {
        Refusal::malformed(format!(
            "the program has no `main` of an architecture that weir can run ({})",
            weir_arch::known()
        ))
    };
    compiled.program.map(Arc::new).ok_or_else(missing)
}

/// Where a P4Info describes another program than the other: the first object that differs.
fn difference(given: &config::P4Info, own: &config::P4Info) -> Option<String> {
    let (given, own) = (essentials(given), essentials(own));
    macro_rules! compare {
        ($($list:ident $what:literal),* $(,)?) => {
            $(if let Some(name) = first_difference(&given.$list, &own.$list, |o| &o.preamble) {
                return Some(format!(concat!("the ", $what, " {}"), name));
            })*
        };
    }
    compare! {
        tables "table", actions "action", action_profiles "action profile", counters "counter",
        direct_counters "direct counter", meters "meter", direct_meters "direct meter", registers "register",
        digests "digest", value_sets "value set", controller_packet_metadata "controller header",
    }
    // Other compilers know nothing of weir's externs: they may be missing.
    let unknown = given.externs.iter().find(|g| !own.externs.contains(g));
    unknown.map(|e| {
        format!(
            "the extern type `{}` ({:#x}) is not in the program as it is there",
            e.extern_type_name, e.extern_type_id
        )
    })
}

fn first_difference<T: PartialEq>(
    given: &[T],
    own: &[T],
    preamble: impl Fn(&T) -> &Option<config::Preamble>,
) -> Option<String> {
    let name = |o: &T| {
        preamble(o)
            .as_ref()
            .map_or_else(String::new, |p| format!("`{}` ({:#x})", p.name, p.id))
    };
    let extra = given.iter().find(|g| !own.contains(g));
    let missing = own.iter().find(|o| !given.contains(o));
    match (extra, missing) {
        (Some(g), Some(o)) if name(g) == name(o) => Some(format!("{} is another one there", name(g))),
        (Some(g), _) => Some(format!("{} is not in the program", name(g))),
        (None, Some(o)) => Some(format!("{} of the program is not there", name(o))),
        (None, None) => None,
    }
}

/// A P4Info without what requests do not depend on: texts, annotations, and what compilers have not
/// always written.
fn essentials(info: &config::P4Info) -> config::P4Info {
    let mut info = info.clone();
    let plain = |preamble: &mut Option<config::Preamble>| {
        if let Some(p) = preamble {
            *p = config::Preamble {
                id: p.id,
                name: std::mem::take(&mut p.name),
                ..config::Preamble::default()
            };
        }
    };
    let plain_field = |field: &mut config::MatchField| {
        field.annotations.clear();
        field.annotation_locations.clear();
        field.structured_annotations.clear();
        field.doc = None;
    };
    for table in &mut info.tables {
        plain(&mut table.preamble);
        table.match_fields.iter_mut().for_each(plain_field);
        for action in &mut table.action_refs {
            action.annotations.clear();
            action.annotation_locations.clear();
            action.structured_annotations.clear();
        }
        table.action_refs.sort_by_key(|a| a.id);
        table.direct_resource_ids.sort_unstable();
        table.initial_default_action = None;
        table.has_initial_entries = false;
    }
    for action in &mut info.actions {
        plain(&mut action.preamble);
        for param in &mut action.params {
            param.annotations.clear();
            param.annotation_locations.clear();
            param.structured_annotations.clear();
            param.doc = None;
        }
    }
    for profile in &mut info.action_profiles {
        plain(&mut profile.preamble);
        profile.table_ids.sort_unstable();
    }
    for set in &mut info.value_sets {
        plain(&mut set.preamble);
        set.r#match.iter_mut().for_each(plain_field);
    }
    for header in &mut info.controller_packet_metadata {
        plain(&mut header.preamble);
        for field in &mut header.metadata {
            field.annotations.clear();
            field.annotation_locations.clear();
            field.structured_annotations.clear();
        }
    }
    for instance in info.externs.iter_mut().flat_map(|e| &mut e.instances) {
        plain(&mut instance.preamble);
        instance.info = None;
    }
    info.counters.iter_mut().for_each(|o| plain(&mut o.preamble));
    info.direct_counters.iter_mut().for_each(|o| plain(&mut o.preamble));
    info.meters.iter_mut().for_each(|o| plain(&mut o.preamble));
    info.direct_meters.iter_mut().for_each(|o| plain(&mut o.preamble));
    info.registers.iter_mut().for_each(|o| plain(&mut o.preamble));
    info.digests.iter_mut().for_each(|o| plain(&mut o.preamble));
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_compilation_is_an_error() {
        let (cancellation, while_awaited) = Cancellation::new();
        let text = b"const bit<8> a = 1;";
        let of = |cancellation| {
            program(text, None, cancellation)
                .expect_err("no main")
                .message
                .to_string()
        };
        assert!(!of(&cancellation).contains("cancelled"));
        drop(while_awaited);
        assert!(of(&cancellation).contains("the compilation was cancelled"));
    }
}
