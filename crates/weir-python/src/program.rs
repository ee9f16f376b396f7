//! Compiling, and what can be asked of a program.

use crate::errors::{invalid, outside};
use prost::Message;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use weir_compiler::{Options, bfrt, compile_bytes, p4info};
use weir_files::Readable;
use weir_ir::{AnnotationBody, MatchKind};
use weir_show::{graph, lines::Lines};
use weir_syntax::preprocess::{DiskLoader, MAX_FILE_BYTES};
use weir_syntax::render;

/// A program that was compiled or loaded.
#[pyclass(frozen, module = "weir._weir")]
pub struct Program {
    /// The program as it is written.
    pub written: Arc<weir_ir::Program>,
    /// The same without what has no effect on any packet.
    optimized: OnceLock<Arc<weir_ir::Program>>,
    /// Source lines, for traces.
    pub lines: Lines,
    name: String,
}

impl Program {
    fn new(program: weir_ir::Program, lines: Lines, name: String) -> Self {
        Program {
            written: Arc::new(program),
            optimized: OnceLock::new(),
            lines,
            name,
        }
    }

    /// The program as engines run it.
    pub fn optimized(&self) -> Arc<weir_ir::Program> {
        let make = || {
            let mut optimized = weir_ir::Program::clone(&self.written);
            let observes = weir_arch::observes(&optimized);
            weir_ir::passes::optimize(&mut optimized, &observes);
            Arc::new(optimized)
        };
        Arc::clone(self.optimized.get_or_init(make))
    }
}

/// What a compilation gave: the program, and each diagnostic as JSON and as text.
type Compiled = (Option<Program>, Vec<(String, String)>, usize);

/// Compiles a text. Includes are read from the disk.
#[pyfunction]
#[pyo3(signature = (name, text, include, define, architecture))]
pub fn compile(
    py: Python<'_>,
    name: String,
    text: Option<Vec<u8>>,
    include: Vec<PathBuf>,
    define: Vec<(String, Option<String>)>,
    architecture: Option<String>,
) -> PyResult<Compiled> {
    let chosen = architecture.map(|wanted| target(&wanted)).transpose()?;
    let mut defines: Vec<(String, Option<String>)> = Vec::new();
    if let Some(chosen) = chosen {
        let given = chosen.macros.iter();
        defines.extend(given.map(|&(name, value)| (name.to_owned(), Some(value.to_owned()))));
    }
    // Later ones win.
    defines.extend(define);
    let options = Options {
        include_dirs: include,
        defines,
        architecture: chosen.map(|c| c.name),
        ..Options::default()
    };
    let text = match text {
        Some(text) => text,
        None => read(py, &name)?,
    };
    outside(py, || {
        let result = compile_bytes(&name, text, &options, &DiskLoader, weir_arch::targets());
        let mut found: Vec<(String, String)> = result
            .diagnostics
            .list()
            .iter()
            .map(|d| {
                (
                    render::json(d, &result.sources),
                    render::human(d, &result.sources, false),
                )
            })
            .collect();
        let has_errors = result.diagnostics.has_errors();
        let program = result.program.filter(|_| !has_errors);
        if let Some(program) = &program {
            found.extend(weir_arch::advice(program).iter().map(|a| advice(program, a)));
        } else if !has_errors {
            found.push(no_main(&name));
        }
        let dropped = result.diagnostics.dropped();
        let lines = Lines::new(result.sources);
        (program.map(|p| Program::new(p, lines, name)), found, dropped)
    })
}

fn read(py: Python<'_>, name: &str) -> PyResult<Vec<u8>> {
    let read = outside(py, || {
        weir_files::read(std::path::Path::new(name), Readable::Streams, MAX_FILE_BYTES)
    })?;
    read.map_err(|error| pyo3::exceptions::PyOSError::new_err(error.to_string()))
}

fn target(wanted: &str) -> PyResult<&'static weir_ir::target::Target> {
    let found = weir_arch::targets().iter().find(|t| t.name == wanted);
    found.ok_or_else(|| {
        invalid(format!(
            "there is no architecture `{wanted}`; weir has {}",
            weir_arch::known()
        ))
    })
}

/// A diagnostic about a program that has nothing to run.
fn no_main(name: &str) -> (String, String) {
    let message = format!(
        "there is no `main` of an architecture that weir can run ({})",
        weir_arch::known()
    );
    let object = json!({ "severity": "error", "code": "main", "message": message, "file": name, "line": 1, "column": 1,
        "source": "", "labels": [], "help": null });
    (object.to_string(), format!("error[main]: {message}\n"))
}

/// A restriction of devices as a diagnostic.
fn advice(program: &weir_ir::Program, advice: &weir_arch::Advice) -> (String, String) {
    let file = program.files.get(advice.loc.file as usize).map_or("", String::as_str);
    let (line, column) = (advice.loc.line, advice.loc.column);
    let object = json!({ "severity": "warning", "code": advice.code, "message": advice.message, "file": file,
        "line": line, "column": column, "source": "", "labels": [], "help": advice.help });
    let text = format!(
        "warning[{}]: {}\n --> {file}:{line}:{column}\n  = help: {}\n",
        advice.code, advice.message, advice.help
    );
    (object.to_string(), text)
}

/// Loads a program that `weir build` has saved.
#[pyfunction]
pub fn load(py: Python<'_>, name: String) -> PyResult<Program> {
    let bytes = read(py, &name)?;
    let loaded = outside(py, || {
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        let program = if name.ends_with(".json") {
            weir_server::container::decode(&text).map_err(|error| error.to_string())?
        } else {
            weir_ir::parse::parse(&text).map_err(|error| error.to_string())?
        };
        match weir_arch::nonconformities(&program).first() {
            Some(error) => Err(error.to_string()),
            None => Ok(Program::new(program, Lines::default(), name.clone())),
        }
    })?;
    loaded.map_err(|error| invalid(format!("{name}: {error}")))
}

#[pymethods]
impl Program {
    /// The file.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The architecture.
    #[getter]
    fn architecture(&self) -> &str {
        &self.written.target
    }

    /// Tables, actions, extern instances and headers of the controller, as JSON.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        outside(py, || describe(&self.written).to_string())
    }

    /// P4Info as text.
    fn p4info(&self, py: Python<'_>) -> PyResult<String> {
        let info = self.info(py)?;
        outside(py, || weir_proto::text::to_text(&info))
    }

    /// P4Info as a protobuf message.
    fn p4info_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.info(py)?.encode_to_vec()))
    }

    /// The description of BF Runtime, as JSON.
    fn bfrt_json(&self, py: Python<'_>) -> PyResult<String> {
        let info = outside(py, || bfrt::bfrt_info(&self.written, weir_arch::targets()))?;
        Ok(info.map_err(|errors| self.refused(&errors))?.to_json())
    }

    /// The intermediate representation, which `load` reads.
    fn ir(&self, py: Python<'_>) -> PyResult<String> {
        outside(py, || weir_ir::print::print(&self.written))
    }

    /// The pipeline as SVG; `notes` are lines in the boxes of tables, by their full names.
    fn svg(&self, py: Python<'_>, title: &str, notes: Vec<(String, String)>, footer: Vec<String>) -> PyResult<String> {
        outside(py, || {
            let id = |name: &str| {
                self.written
                    .tables
                    .iter()
                    .find(|(_, t)| t.name == name)
                    .map(|(id, _)| id)
            };
            let notes = notes.into_iter().filter_map(|(name, note)| Some((id(&name)?, note)));
            graph::svg(&self.written, title, &notes.collect(), &footer)
        })
    }

    /// The pipeline as DOT.
    fn dot(&self, py: Python<'_>) -> PyResult<String> {
        outside(py, || graph::dot(&self.written))
    }
}

impl Program {
    fn info(&self, py: Python<'_>) -> PyResult<weir_proto::p4::config::v1::P4Info> {
        let info = outside(py, || p4info::p4info(&self.written, weir_arch::targets()))?;
        info.map_err(|errors| self.refused(&errors))
    }

    fn refused(&self, errors: &[p4info::P4InfoError]) -> PyErr {
        let texts: Vec<String> = errors.iter().map(|e| e.with_places(&self.written)).collect();
        invalid(texts.join("\n"))
    }
}

fn describe(program: &weir_ir::Program) -> Value {
    let tables: Vec<Value> = program
        .tables
        .iter()
        .map(|(_, table)| describe_table(program, table))
        .collect();
    let externs: Vec<Value> = program
        .externs
        .iter()
        .map(|(_, e)| json!({ "name": e.name, "type": e.type_name }))
        .collect();
    let sets = program.value_sets.iter().map(|(_, set)| {
        let fields: Vec<Value> = set.fields.iter().map(describe_key).collect();
        json!({ "name": set.name, "fields": fields, "size": set.size })
    });
    let sets: Vec<Value> = sets.collect();
    json!({
        "tables": tables,
        "externs": externs,
        "value_sets": sets,
        "packet_in": controller_header(program, "packet_in"),
        "packet_out": controller_header(program, "packet_out"),
        "port_bits": weir_arch::port_bits(program),
    })
}

fn describe_key(key: &weir_ir::Key) -> Value {
    json!({ "name": key.name, "width": key.width, "kind": key.match_kind.name() })
}

fn describe_table(program: &weir_ir::Program, table: &weir_ir::Table) -> Value {
    let name_of = |id: weir_ir::ExternId| program.externs.get(id).map_or("", |e| e.name.as_str());
    let actions: Vec<Value> = table
        .actions
        .iter()
        .filter_map(|used| {
            let action = program.actions.get(used.action)?;
            let parameters = action.parameters.iter();
            let parameters: Vec<Value> = parameters
                .map(|p| json!({ "name": p.name, "width": p.width }))
                .collect();
            Some(json!({ "name": action.name, "parameters": parameters,
                "default_only": used.default_only, "table_only": used.table_only }))
        })
        .collect();
    let keys = table.keys.iter().filter(|k| k.match_kind != MatchKind::Selector);
    let keys: Vec<Value> = keys.map(describe_key).collect();
    let file = program.files.get(table.loc.file as usize);
    json!({
        "name": table.name,
        "keys": keys,
        "actions": actions,
        "size": table.size,
        "is_const": table.const_entries,
        "const_default": table.const_default,
        "direct": table.direct.iter().map(|id| name_of(*id)).collect::<Vec<_>>(),
        "implementation": table.implementation.map(name_of),
        "idle_timeout": table.idle_timeout,
        "file": file,
        "line": table.loc.line,
    })
}

/// The fields of a header of the controller, in order; `null`: the program has none.
fn controller_header(program: &weir_ir::Program, which: &str) -> Value {
    let is_it = |ty: &weir_ir::HeaderType| {
        ty.annotations.iter().any(|a| match &a.body {
            AnnotationBody::Text { tokens, .. } if a.name == "controller_header" => {
                tokens.first().is_some_and(|t| t.trim_matches('"') == which)
            }
            _ => false,
        })
    };
    let found = program.header_types.iter().find(|(_, ty)| is_it(ty));
    found.map_or(Value::Null, |(_, ty)| {
        let fields = ty.fields.iter();
        let fields: Vec<Value> = fields
            .map(|f| json!({ "name": f.name, "width": f.ty.width() }))
            .collect();
        json!(fields)
    })
}
