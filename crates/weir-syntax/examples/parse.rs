//! Parses files and prints what is wrong with them, one line each.
//!
//! `cargo run -p weir-syntax --example parse -- [-I DIR]… [-D NAME[=VALUE]]… [--human|--json|--tree] FILE…`
//!
//! System files are read from `p4/include` of the source tree.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_syntax::preprocess::{DiskLoader, Options, SystemFiles};
use weir_syntax::{parse_file, render};

fn main() -> ExitCode {
    let mut options = Options::default();
    let mut files = Vec::new();
    let mut format = "--short".to_string();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-I" => options.include_dirs.extend(arguments.next().map(PathBuf::from)),
            "-D" => {
                let define = arguments.next().unwrap_or_default();
                let (name, value) = match define.split_once('=') {
                    Some((name, value)) => (name.to_string(), Some(value.to_string())),
                    None => (define, None),
                };
                options.defines.push((name, value));
            }
            "--human" | "--json" | "--short" | "--tree" => format = argument,
            _ => files.push(argument),
        }
    }
    let system = system_files(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/include")));
    let mut failed = false;
    for file in files {
        let parsed = parse_file(Path::new(&file), &options, &DiskLoader, system);
        for diagnostic in parsed.diagnostics.list() {
            match format.as_str() {
                "--human" => println!("{}", render::human(diagnostic, &parsed.sources, false)),
                "--json" => println!("{}", render::json(diagnostic, &parsed.sources)),
                _ => println!("{}", render::short(diagnostic, &parsed.sources)),
            }
        }
        if format == "--tree" {
            println!("{:#?}", parsed.program);
        }
        failed |= parsed.diagnostics.has_errors();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The files under a directory, by their paths below it.
fn system_files(root: &Path) -> SystemFiles {
    let mut files = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if let (Ok(name), Ok(text)) = (path.strip_prefix(root), std::fs::read_to_string(&path)) {
                let name: &'static str = name.to_string_lossy().into_owned().leak();
                let text: &'static str = text.leak();
                files.push((name, text));
            }
        }
    }
    SystemFiles(files.leak())
}
