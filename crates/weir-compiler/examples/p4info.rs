//! Writes the P4Info of a program: `p4info PROG.p4 OUT.txtpb [ENTRIES.txtpb]`.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (program, out, entries) = match arguments.as_slice() {
        [program, out] => (program, out, None),
        [program, out, entries] => (program, out, Some(entries)),
        _ => {
            eprintln!("usage: p4info PROG.p4 OUT.txtpb [ENTRIES.txtpb]");
            return ExitCode::from(2);
        }
    };
    let compilation = weir_compiler::compile_file(
        Path::new(program),
        &weir_compiler::Options::default(),
        weir_arch::targets(),
    );
    // A file without `main` compiles to nothing, and has nothing to describe.
    let empty = || (!compilation.diagnostics.has_errors()).then(weir_ir::Program::default);
    let Some(program) = compilation.program.or_else(empty) else {
        eprintln!("the program does not compile, or is for no architecture known here");
        for diagnostic in compilation.diagnostics.list().iter().take(3) {
            eprintln!("{}: {}", diagnostic.code, diagnostic.message);
        }
        return ExitCode::FAILURE;
    };
    let texts = weir_compiler::p4info::p4info(&program, weir_arch::targets()).and_then(|info| {
        let entries = weir_compiler::p4info::entries(&program, weir_arch::targets())?;
        Ok((weir_proto::text::to_text(&info), weir_proto::text::to_text(&entries)))
    });
    let (info, request) = match texts {
        Ok(texts) => texts,
        Err(errors) => {
            for error in errors {
                eprintln!("line {}: {error}", error.loc().line);
            }
            return ExitCode::FAILURE;
        }
    };
    let written = std::fs::write(out, info).and_then(|()| entries.map_or(Ok(()), |path| std::fs::write(path, request)));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{out}: {error}");
            ExitCode::FAILURE
        }
    }
}
