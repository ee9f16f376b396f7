//! `p4c-bm2-ss` and `p4c`: compile to the JSON that weir's `simple_switch` loads, and to P4Info.

use crate::cli::{FrontEnd, MessageFormat, NO, Source};
use crate::output::Messages;
use crate::overwriting::InUse;
use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};
use weir_compiler::p4info;
use weir_extern_api::Registry;
use weir_ir::Program;
use weir_server::container;

/// Which of the two commands it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// The back end: `-o` names the JSON file.
    BackEnd,
    /// The driver: `-o` names a directory.
    Driver,
}

/// Arguments of `p4c-bm2-ss` and `p4c`.
#[derive(Parser)]
#[command(
    version,
    about = "Compile a P4_16 program for weir's simple_switch, with the command line of p4c",
    after_help = "Examples:\n  p4c-bm2-ss --p4v 16 --p4runtime-files build/basic.p4info.txtpb -o build/basic.json basic.p4\n  p4c --target bmv2 --arch v1model --p4runtime-files basic.p4info.txtpb -o build basic.p4\n\nThe JSON carries the program for weir. It is not the JSON of bmv2: bmv2 does not load it."
)]
pub struct Arguments {
    /// The P4_16 program
    #[arg(value_name = "PROG.p4")]
    program: PathBuf,
    /// Write the JSON into this file, or into this directory as PROG.json
    #[arg(short = 'o', value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Search this directory for included files
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// The version of P4: 16
    #[arg(
        long = "p4v",
        visible_alias = "std",
        short = 'x',
        value_name = "VERSION",
        default_value = "16"
    )]
    version_of_p4: String,
    /// Write P4Info into these files: text, JSON where the name ends in .json, binary where it ends
    /// in .bin or .pb
    #[arg(
        long,
        value_name = "FILE[,FILE]",
        value_delimiter = ',',
        visible_alias = "p4runtime-file"
    )]
    p4runtime_files: Vec<PathBuf>,
    /// The form of P4Info whatever the names of its files
    #[arg(long, value_name = "FORM")]
    p4runtime_format: Option<Form>,
    /// The target: bmv2
    #[arg(long, short = 'b', value_name = "NAME", default_value = "bmv2")]
    target: String,
    /// The architecture: v1model or psa
    #[arg(long, short = 'a', value_name = "NAME")]
    arch: Option<String>,
    /// Not needed: all externs are written
    #[arg(long)]
    emit_externs: bool,
    /// Warnings of p4c; weir's have other names
    #[arg(long = "Wdisable", value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    disable: Vec<String>,
    /// The same
    #[arg(long = "Wwarn", value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    warn: Vec<String>,
    /// The same
    #[arg(long = "Werror", value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    error: Vec<String>,
}

/// A form of P4Info.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
enum Form {
    /// Protobuf's text format
    Text,
    /// Protobuf's binary format
    Binary,
    /// Protobuf's JSON
    Json,
}

impl Form {
    /// That of a file by its name, as p4c decides.
    fn of(path: &Path) -> Result<Form> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("txt" | "txtpb" | "textproto") | None => Ok(Form::Text),
            Some("bin" | "pb") => Ok(Form::Binary),
            Some("json") => Ok(Form::Json),
            Some("p4info") => Ok(Form::Text),
            Some(other) => bail!(
                "{}: .{other} is no ending of P4Info; use .txtpb, .txt, .json or .bin, or say --p4runtime-format",
                path.display()
            ),
        }
    }
}

/// Compiles.
pub fn run(name: Name, arguments: &Arguments, externs: &Registry, messages: &Messages) -> Result<u8> {
    check(arguments)?;
    for (option, given) in [
        ("--Wdisable", &arguments.disable),
        ("--Wwarn", &arguments.warn),
        ("--Werror", &arguments.error),
    ] {
        if !given.is_empty() {
            messages.line(format!(
                "{option} has no effect: warnings of weir have other names than those of p4c"
            ));
        }
    }
    let forms = arguments
        .p4runtime_files
        .iter()
        .map(|path| match arguments.p4runtime_format {
            Some(form) => Ok((path, form)),
            None => Ok((path, Form::of(path)?)),
        });
    let forms: Vec<(&PathBuf, Form)> = forms.collect::<Result<_>>()?;
    let json = json_file(name, arguments)?;
    let mut files = InUse::new();
    files.read(&arguments.program, "the source");
    for (path, _) in &forms {
        files.write(path, "--p4runtime-files")?;
    }
    if let Some(path) = &json {
        files.write(path, "the JSON (-o)")?;
    }
    let program = match crate::compile::runnable(&source(name, arguments, externs), messages)? {
        Ok(loaded) => loaded.program,
        Err(_) => return Ok(NO),
    };
    if let Some(other) = arguments.arch.as_deref().filter(|arch| *arch != program.target) {
        bail!(
            "{} is a program for {}, not for {other}",
            arguments.program.display(),
            program.target
        );
    }
    if !forms.is_empty() {
        write_info(&program, &forms, messages)?;
    }
    if let Some(path) = json {
        if let Some(folder) = path.parent().filter(|_| arguments.output.as_ref() != Some(&path)) {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let source = arguments.program.display().to_string();
        weir_files::write(&path, container::encode(&program, &source).as_bytes())?;
    }
    Ok(0)
}

/// Refuses what weir is not.
fn check(arguments: &Arguments) -> Result<()> {
    let version = arguments.version_of_p4.to_ascii_lowercase();
    if !matches!(version.trim_start_matches("p4").trim_start_matches(['-', '_']), "16") {
        bail!(
            "weir compiles P4_16; `{}` is another version of P4",
            arguments.version_of_p4
        );
    }
    if !matches!(arguments.target.as_str(), "bmv2" | "bmv2-ss-p4org" | "bmv2-ss-v1model") {
        bail!(
            "`{}` is no target of this command; it is bmv2, others: `weir build --help`",
            arguments.target
        );
    }
    match arguments.arch.as_deref() {
        None | Some("v1model" | "psa") => Ok(()),
        Some(other) => bail!("`{other}` is no architecture of bmv2; it is v1model or psa, others: `weir build --help`"),
    }
}

fn source(name: Name, arguments: &Arguments, externs: &Registry) -> Source {
    let mut define = arguments.define.clone();
    if name == Name::Driver {
        // As p4c's driver does.
        define.insert(0, "__TARGET_BMV2__".to_owned());
    }
    let mut externs = externs.clone();
    externs.set_files(weir_extern_api::Folder::of_program(&arguments.program));
    Source {
        program: arguments.program.clone(),
        front_end: FrontEnd {
            include: arguments
                .include
                .iter()
                .cloned()
                .chain(included_by_environment())
                .collect(),
            define,
            arch: arguments.arch.clone(),
            externs,
        },
        message_format: MessageFormat::Human,
    }
}

/// The directory that p4c searches after those of `-I`.
fn included_by_environment() -> Option<PathBuf> {
    let path = std::env::var_os("P4C_16_INCLUDE_PATH")?;
    (!path.is_empty()).then(|| PathBuf::from(path))
}

fn write_info(program: &Program, forms: &[(&PathBuf, Form)], messages: &Messages) -> Result<()> {
    let info = match p4info::p4info(program, weir_arch::targets()) {
        Ok(info) => info,
        Err(errors) => {
            for error in &errors {
                messages.line(format!("error: {}", error.with_places(program)));
            }
            bail!("the program has no P4Info");
        }
    };
    for (path, form) in forms {
        let bytes = match form {
            Form::Text => weir_proto::text::to_text(&info).into_bytes(),
            Form::Binary => prost::Message::encode_to_vec(&info),
            Form::Json => weir_proto::text::to_json(&info).into_bytes(),
        };
        weir_files::write(path, &bytes)?;
    }
    Ok(())
}

/// Where the JSON goes. Without `-o` the back end only checks, and the driver writes into the
/// current directory.
fn json_file(name: Name, arguments: &Arguments) -> Result<Option<PathBuf>> {
    let output = match (&arguments.output, name) {
        (None, Name::BackEnd) => return Ok(None),
        (None, Name::Driver) => Path::new("."),
        (Some(output), _) => output,
    };
    let is_file = match name {
        Name::BackEnd => !output.is_dir(),
        Name::Driver => !output.is_dir() && output.extension().is_some_and(|e| e == "json"),
    };
    if is_file {
        return Ok(Some(output.to_path_buf()));
    }
    let stem = arguments.program.file_stem().unwrap_or_default();
    let mut file = stem.to_os_string();
    file.push(".json");
    Ok(Some(output.join(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Arguments {
        Arguments::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn command_lines_of_makefiles_are_understood() {
        let tutorials = parsed("p4c-bm2-ss --p4v 16 --p4runtime-files build/a.p4info.txtpb -o build/a.json a.p4");
        assert!(check(&tutorials).is_ok());
        assert_eq!(
            json_file(Name::BackEnd, &tutorials).unwrap(),
            Some("build/a.json".into())
        );
        let utils = parsed(
            "p4c --target bmv2 --arch v1model --std p4-16 -Iinc -I inc2 -DX=1 a.p4 --p4runtime-files b.txt,c.bin",
        );
        assert!(check(&utils).is_ok());
        assert_eq!(utils.p4runtime_files.len(), 2);
        assert_eq!(
            (utils.include.len(), utils.define.as_slice()),
            (2, &["X=1".to_owned()][..])
        );
        assert_eq!(json_file(Name::Driver, &utils).unwrap(), Some("./a.json".into()));
        for other in ["--p4v 14", "--target tofino", "--arch tna"] {
            assert!(check(&parsed(&format!("p4c {other} a.p4"))).is_err(), "{other}");
        }
    }

    #[test]
    fn the_form_of_p4info_follows_the_name_of_its_file() {
        for (name, form) in [
            ("a.txtpb", Form::Text),
            ("a.txt", Form::Text),
            ("a.bin", Form::Binary),
            ("a.json", Form::Json),
        ] {
            assert_eq!(Form::of(Path::new(name)).unwrap(), form, "{name}");
        }
        assert!(Form::of(Path::new("a.doc")).is_err());
    }
}
