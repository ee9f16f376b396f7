//! `weir build`

use crate::cli::{Build, Emit, FrontEnd, NO};
use crate::output::Messages;
use crate::overwriting::InUse;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use weir_compiler::bfrt;
use weir_compiler::p4info::{self, P4InfoError};

/// Writes what was asked for.
pub fn build(arguments: &Build, messages: &Messages) -> Result<u8> {
    let wants_bfrt = arguments.bfrt_json.is_some() || arguments.output.is_some();
    let wants_file = arguments.p4info.is_some() || arguments.fixed_tables.is_some();
    if !wants_bfrt && !wants_file && arguments.emit.is_none() {
        bail!(
            "nothing to build: say -o DIR, --p4info FILE, --bfrt-json FILE, --fixed-tables FILE or --emit ir, asm, dot, svg, rust or lua"
        );
    }
    refuse_overwriting(arguments)?;
    let program = match crate::compile::program_or_declarations(&arguments.source, messages)? {
        Ok(program) => program,
        Err(_) => return Ok(NO),
    };
    let wants_types = matches!(arguments.emit, Some(Emit::Rust));
    let wants_info = arguments.p4info.is_some() || arguments.output.is_some() || wants_types;
    let info = if wants_info {
        match p4info::p4info(&program, weir_arch::targets()) {
            Ok(info) => Some(info),
            Err(errors) => return Ok(refuse(&program, &errors)),
        }
    } else {
        None
    };
    if let Some(info) = &info {
        if let Some(path) = &arguments.p4info {
            let binary = path.extension().is_some_and(|e| e == "bin" || e == "pb");
            let bytes = if binary {
                prost::Message::encode_to_vec(info)
            } else {
                weir_proto::text::to_text(info).into_bytes()
            };
            write_file(path, &bytes)?;
        }
        if let Some(folder) = &arguments.output {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            write_file(&folder.join("p4info.txtpb"), weir_proto::text::to_text(info).as_bytes())?;
            write_file(&folder.join("p4info.bin"), &prost::Message::encode_to_vec(info))?;
            let stem = stem(&arguments.source.program);
            write_file(
                &folder.join(format!("{stem}.weir")),
                weir_ir::print::print(&program).as_bytes(),
            )?;
            let picture = crate::graph::svg(&program, &stem, &crate::graph::Notes::new(), &[]);
            write_file(&folder.join(format!("{stem}.svg")), picture.as_bytes())?;
        }
    }
    if wants_bfrt {
        let info = match bfrt::bfrt_info(&program, weir_arch::targets()) {
            Ok(info) => info.to_json() + "\n",
            Err(errors) => {
                let code = refuse(&program, &errors);
                let is_asked = arguments.bfrt_json.is_some();
                // P4Info has a form for these: what else was asked for is written.
                if is_asked || !errors.iter().all(|e| matches!(e, P4InfoError::TooComplex { .. })) {
                    return Ok(code);
                }
                String::new()
            }
        };
        if let Some(path) = &arguments.bfrt_json {
            write_file(path, info.as_bytes())?;
        }
        if let Some(folder) = arguments.output.as_ref().filter(|_| !info.is_empty()) {
            write_file(&folder.join("bfrt.json"), info.as_bytes())?;
        }
    }
    if let Some(path) = &arguments.fixed_tables {
        let info = bfrt::fixed_info(bfrt::Chip::of(&program));
        write_file(path, (info.to_json() + "\n").as_bytes())?;
    }
    let mut out = crate::output::stdout();
    match arguments.emit {
        Some(Emit::Ir) => {
            write!(out, "{}", weir_ir::print::print(&program))?;
            for line in pipeline(&program, &arguments.source.front_end)?.lines() {
                writeln!(out, "// {line}")?;
            }
        }
        Some(Emit::Asm) => {
            let mut switch = crate::load::switch_of(&program, &arguments.source.front_end)?;
            switch.compile_with(true)?;
            let text = switch
                .compiled()
                .and_then(weir_switch::Compiled::assembly)
                .unwrap_or("");
            write!(out, "{text}")?;
        }
        Some(Emit::Rust) => {
            let schema = info.as_ref().map(weir_client::Schema::from_p4info);
            write!(
                out,
                "{}",
                schema.map(|s| weir_client::generate::module(&s)).unwrap_or_default()
            )?;
        }
        Some(Emit::Lua) => match crate::lua::script(&program, &stem(&arguments.source.program)) {
            Ok(script) => write!(out, "{script}")?,
            Err(errors) => {
                for error in errors {
                    crate::output::message(format!("error: {}", error.with_place(&program)));
                }
                return Ok(NO);
            }
        },
        Some(Emit::Dot) => write!(out, "{}", crate::graph::dot(&program))?,
        Some(Emit::Svg) => {
            let title = arguments.source.program.display().to_string();
            write!(
                out,
                "{}",
                crate::graph::svg(&program, &title, &crate::graph::Notes::new(), &[])
            )?;
        }
        None => {}
    }
    Ok(0)
}

/// The files in the folder of `-o`; the stem is that of the program.
fn folder_files(program: &Path) -> [String; 5] {
    let stem = stem(program);
    [
        "p4info.txtpb".to_owned(),
        "p4info.bin".to_owned(),
        "bfrt.json".to_owned(),
        format!("{stem}.weir"),
        format!("{stem}.svg"),
    ]
}

/// Refuses outputs that are the source, or another output.
fn refuse_overwriting(arguments: &Build) -> Result<()> {
    let source = &arguments.source.program;
    let mut files = InUse::new();
    files.read(source, "the source");
    let outputs = [
        (&arguments.p4info, "--p4info"),
        (&arguments.bfrt_json, "--bfrt-json"),
        (&arguments.fixed_tables, "--fixed-tables"),
    ];
    for (path, option) in outputs {
        if let Some(path) = path.as_deref().filter(|path| *path != Path::new("-")) {
            files.write(path, option)?;
        }
    }
    if let Some(folder) = &arguments.output {
        for file in folder_files(source) {
            files.write(&folder.join(file), "-o")?;
        }
    }
    Ok(())
}

/// The pipeline that is compiled, for people.
fn pipeline(program: &Arc<weir_ir::Program>, front_end: &FrontEnd) -> Result<String> {
    let mut switch = match crate::load::switch_of(program, front_end) {
        Ok(switch) => switch,
        Err(error) => return Ok(format!("no pipeline: {error}")),
    };
    if let Err(error) = switch.compile() {
        return Ok(format!("no pipeline: {error}"));
    }
    let stages = [("pipeline", switch.compiled()), ("egress", switch.compiled_egress())];
    let mut text = String::new();
    for (name, compiled) in stages {
        let Some(compiled) = compiled else { continue };
        let pipeline = compiled.pipeline();
        let body = weir_ir::print::print_body(&pipeline.program, &pipeline.body);
        text += &format!("{name}\n{body}{}", compiled.describe());
    }
    let left_out = switch.left_out().iter();
    left_out.for_each(|why| text += &format!("interpreted: {why}\n"));
    Ok(text)
}

/// The program's name by its file.
fn stem(program: &Path) -> String {
    let stem = program.file_stem();
    stem.map_or_else(|| "program".into(), |s| s.to_string_lossy().into_owned())
}

/// Says what is wrong with names, ids and annotations.
fn refuse(program: &weir_ir::Program, errors: &[P4InfoError]) -> u8 {
    for error in errors {
        crate::output::message(format!("error: {}", error.with_places(program)));
    }
    NO
}

/// Writes a file; `-` is stdout.
fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        let mut out = crate::output::stdout();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return written.context("cannot write to stdout");
    }
    Ok(weir_files::write(path, bytes)?)
}
