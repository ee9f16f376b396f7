//! From a pipeline to machine code.

use crate::analysis::{Analysis, Deparse, OWN_VARIABLES, VarInfo};
use crate::codegen::{Context, Shape, segment};
use crate::error::CompileError;
use crate::lanes::{self, Asks, Lanes};
use crate::layout::{How, Layout, PointKind};
use crate::run::TAILROOM;
use crate::run::calls::{LanesFunction, SegmentFunction};
use crate::run::steps::Steps;
use crate::runtime::Runtime;
use crate::sites::Sites;
use cranelift_codegen::Context as CodegenContext;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_ir::pipeline::Pipeline;
use weir_ir::{BlockId, MatchKind, Program, TableId, Terminator, VarId};
use weir_table::TableSpec;
use weir_table::fast::{KeyLayout, ResultLayout, TableForm, is_array, slot_shift};

/// A pipeline as machine code.
pub struct Compiled {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) layout: Layout,
    pub(crate) vars: Vec<VarInfo>,
    pub(crate) sites: Sites,
    pub(crate) steps: Steps,
    /// Bytes that such code reads and writes at most of a packet that is none.
    pub(crate) reach: usize,
    /// Per input: its row, and ones for the bits of its width. `None`: code keeps no row for it.
    pub(crate) input_rows: Vec<Option<(usize, u64)>>,
    /// Per input: whether anything reads it.
    pub(crate) inputs_read: Vec<bool>,
    pub(crate) scratch: usize,
    pub(crate) serial: Option<String>,
    /// Per table: what code relies on.
    pub(crate) forms: Vec<TableForm>,
    pub(crate) has_back_edges: bool,
    /// Per table: whether anything reads the handles of entries.
    reads_handles: Vec<bool>,
    pub(crate) in_place: bool,
    /// What the fields of a header that is not valid are read from.
    pub(crate) zeros: Vec<u8>,
    /// Some exit keeps varbits.
    pub(crate) keeps_varbits: bool,
    /// Blocks that have a checksum from the one that the packet has, and the fields that may have changed since.
    changed_checksums: Vec<(BlockId, Vec<VarId>)>,
    compile_time: Duration,
    /// Text of the code, where it was asked for.
    assembly: Option<String>,
    /// Owns the code's memory.
    module: Option<JITModule>,
}

// SAFETY: the module is not used after compilation but to free the code; code is never changed, and reading
// everything else is harmless from any thread.
unsafe impl Send for Compiled {}
// SAFETY: the module is not used after compilation but to free the code, by `drop`, which has it
// alone; everything else is only read.
unsafe impl Sync for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: whoever runs the code holds the `Arc` of this.
            unsafe { module.free_memory() };
        }
    }
}

/// What to compile for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Keep the code as text.
    pub assembly: bool,
    /// Tables, by number, whose entries name actions themselves, without direct meters: they may be looked up before it is
    /// certain that a packet gets there.
    pub plain: Vec<bool>,
}

fn reads_handles(analysis: &Analysis<'_>) -> Vec<bool> {
    let mut reads = vec![false; analysis.program().tables.len()];
    for &id in &analysis.order {
        if let Terminator::Lookup(l) = &analysis.pipeline.body.blocks[id].terminator {
            reads[l.table.index()] |= analysis.live[l.next.index()].contains(l.entry);
        }
    }
    reads
}

/// Whether a lookup reads few places.
fn is_quick(spec: &TableSpec) -> bool {
    let mut keys = spec.match_keys();
    match (keys.next(), keys.next()) {
        (Some(key), None) if key.kind == MatchKind::Lpm => key.width <= 32,
        _ => spec.match_keys().all(|k| k.kind == MatchKind::Exact),
    }
}

/// Bytes of the longest header, apart from varbits.
fn longest_header(program: &Program) -> usize {
    let bits = program.header_types.iter().map(|(_, ty)| ty.fixed_width());
    bits.max().unwrap_or(0).div_ceil(8) as usize
}

fn module() -> Result<JITModule, CompileError> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("opt_level", "speed"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(CompileError::codegen)?;
    }
    let isa = cranelift_native::builder().map_err(CompileError::codegen)?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(CompileError::codegen)?;
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    crate::runtime::add_symbols(&mut builder);
    Ok(JITModule::new(builder))
}

/// Code for eight packets at a time that has got its place.
struct PlacedLanes {
    id: FuncId,
    code: Lanes,
}

/// Makes code for eight packets at a time of what a segment does to one.
fn lanes_of(
    module: &mut JITModule,
    mut context: CodegenContext,
    goals: &BTreeSet<usize>,
    asks: &Asks,
) -> Result<Option<PlacedLanes>, CompileError> {
    context
        .optimize(module.isa(), &mut ControlPlane::default())
        .map_err(CompileError::codegen)?;
    let Some(code) = Lanes::new(&context.func, goals, &asks.by_row) else {
        return Ok(None);
    };
    // What it is in truth: as the function of the loop, with a mask that it gives back.
    let mut signature = Shape::Loop.signature(module);
    signature.returns.push(AbiParam::new(types::I64));
    let id = module
        .declare_anonymous_function(&signature)
        .map_err(CompileError::codegen)?;
    module
        .define_function_bytes(id, 64, &code.bytes, &[])
        .map_err(CompileError::codegen)?;
    Ok(Some(PlacedLanes { id, code }))
}

impl Compiled {
    /// Compiles a pipeline.
    ///
    /// # Errors
    /// It does something that compiled code cannot do, or is so large that compiling it would take
    /// too much memory.
    pub fn new(pipeline: Arc<Pipeline>, options: Options) -> Result<Self, CompileError> {
        let started = Instant::now();
        crate::budget::check(&pipeline)?;
        let program = Arc::clone(&pipeline.program);
        let specs = program.tables.ids();
        let specs: Vec<TableSpec> = specs.map(|id| TableSpec::from_program(&program, id, &[])).collect();
        let tables: Vec<(KeyLayout, ResultLayout)> = specs
            .iter()
            .map(|spec| (KeyLayout::new(spec), ResultLayout::new(spec)))
            .collect();
        // Not where a lookup takes long, or a hit can be noticed.
        let may_waste: Vec<bool> = (specs.iter().enumerate())
            .map(|(i, spec)| options.plain.get(i) == Some(&true) && !spec.idle_timeout && is_quick(spec))
            .collect();
        let held = Arc::clone(&pipeline);
        let analysis = Analysis::new(&held)?;
        let arrays: Vec<bool> = (specs.iter().enumerate())
            .map(|(i, spec)| options.plain.get(i) == Some(&true) && is_array(spec))
            .collect();
        let layout = Layout::new(&analysis, &tables, &may_waste, &arrays);
        let read = analysis.variables_read();
        let inputs_read = pipeline.inputs.iter().map(|v| read.contains(*v)).collect();
        let changed_checksums = analysis.changed_checksums();
        let serial = crate::order::why_serial(&analysis, &layout);
        let mut sites = Sites::new(&analysis, layout.reached);
        let scratch = match analysis.deparse {
            Deparse::InPlace => 0,
            Deparse::Rebuild(most) => (most + 16).next_multiple_of(64) + 64,
        };
        let mut module = module()?;
        let mut frontend = FunctionBuilderContext::new();
        let runtime = Runtime::new(&mut module, &mut frontend)?;
        let cx = Context {
            analysis: &analysis,
            layout: &layout,
            tables: &tables,
        };
        let asks = Asks::new(
            layout
                .lookups()
                .map(|(table, row)| (table, row, slot_shift(&specs[table.index()]))),
        );
        let mut assembly = options.assembly.then(String::new);
        let (mut ids, mut lanes_ids, mut reach) = (Vec::new(), BTreeMap::new(), 0);
        let config = module.target_config();
        // Most packets are looked up on, or sent.
        let of_lookups = layout.of_block.values().copied();
        let deparsed = (layout.of_exit.iter().zip(&pipeline.exits)).filter(|(_, exit)| exit.deparsed);
        let (of_lookups, of_exits): (BTreeSet<usize>, BTreeSet<usize>) =
            (of_lookups.collect(), deparsed.map(|(point, _)| *point).collect());
        for (index, point) in layout.points.iter().enumerate() {
            if point.resume.is_none() {
                ids.push(None);
                continue;
            }
            let mut context = module.make_context();
            context.func.signature = Shape::Loop.signature(&module);
            context.set_disasm(options.assembly);
            let imported = runtime.import(&mut module, &mut context.func);
            let builder = FunctionBuilder::new(&mut context.func, &mut frontend);
            segment(&cx, index, Shape::Loop, builder, imported, &mut sites, config);
            let id = module
                .declare_anonymous_function(&context.func.signature)
                .map_err(CompileError::codegen)?;
            module
                .define_function(id, &mut context)
                .map_err(|e| CompileError::Codegen(format!("{e:?}")))?;
            if let Some(text) = &mut assembly
                && let Some(code) = context.compiled_code()
            {
                let _ = writeln!(text, "; segment {index}");
                text.push_str(code.vcode.as_deref().unwrap_or(""));
            }
            ids.push(Some(id));
            if serial.is_none() && lanes::is_available() {
                let mut context = module.make_context();
                context.func.signature = Shape::Packet.signature(&module);
                let imported = runtime.import(&mut module, &mut context.func);
                let builder = FunctionBuilder::new(&mut context.func, &mut frontend);
                let is_last = layout.regions[index].iter().all(|b| !layout.of_block.contains_key(b));
                let goals = if is_last { &of_exits } else { &of_lookups };
                segment(&cx, index, Shape::Packet, builder, imported, &mut sites, config);
                if let Some(lanes) = lanes_of(&mut module, context, goals, &asks)? {
                    if let Some(text) = &mut assembly {
                        let _ = writeln!(text, "; segment {index}, {} packets at a time", lanes::LANES);
                        text.push_str(&lanes.code.describe());
                    }
                    reach = reach.max(lanes.code.reach);
                    lanes_ids.insert(index, lanes.id);
                }
            }
        }
        module.finalize_definitions().map_err(CompileError::codegen)?;
        let functions = ids.into_iter().enumerate().filter_map(|(index, id)| {
            let address = module.get_finalized_function(id?);
            // SAFETY: the function was compiled with this signature.
            let function = unsafe { std::mem::transmute::<*const u8, SegmentFunction>(address) };
            let lanes = lanes_ids.get(&index).map(|id| {
                let address = module.get_finalized_function(*id);
                // SAFETY: `lanes` makes functions of this type.
                unsafe { std::mem::transmute::<*const u8, LanesFunction>(address) }
            });
            Some((function, lanes))
        });
        let steps = Steps::new(&layout, &tables, asks, functions);
        let has_back_edges = layout.points.iter().enumerate().any(|(i, _)| {
            layout.regions[i].iter().any(|b| {
                matches!(pipeline.body.blocks[*b].terminator, Terminator::Lookup(_))
                    && layout.of_block.get(b).is_some_and(|&to| to <= i)
            })
        });
        Ok(Compiled {
            vars: analysis.vars.clone(),
            input_rows: pipeline
                .inputs
                .iter()
                .map(|v| Some((layout.rows[v.index()]?, ones(analysis.vars[v.index()].width))))
                .collect(),
            inputs_read,
            keeps_varbits: (layout.points.iter().flat_map(|p| &p.handed_over)).any(|v| analysis.vars[v.index()].varbit),
            in_place: analysis.deparse == Deparse::InPlace,
            zeros: vec![0; longest_header(&program) + TAILROOM],
            forms: specs.iter().map(TableForm::new).collect(),
            reads_handles: reads_handles(&analysis),
            scratch,
            changed_checksums,
            sites,
            steps,
            reach,
            serial,
            has_back_edges,
            layout,
            compile_time: started.elapsed(),
            assembly,
            module: Some(module),
            pipeline,
        })
    }

    /// The pipeline it was made from.
    #[must_use]
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// How long compilation took.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }

    /// Why packets run one by one rather than a vector at a time; `None`: they do not.
    #[must_use]
    pub fn serial(&self) -> Option<&str> {
        self.serial.as_deref()
    }

    /// Whether code needs to know the handles of a table's entries.
    #[must_use]
    pub fn reads_handles(&self, table: TableId) -> bool {
        self.reads_handles.get(table.index()) != Some(&false)
    }

    /// Bytes of memory that must lie before a packet.
    #[must_use]
    pub fn headroom(&self) -> usize {
        self.scratch
    }

    /// The machine code as text, where [`Options::assembly`] asked for it.
    #[must_use]
    pub fn assembly(&self) -> Option<&str> {
        self.assembly.as_deref()
    }

    /// What packets wait for at a suspension point.
    pub(crate) fn point_name(&self, index: usize) -> String {
        match &self.layout.points[index].kind {
            PointKind::Start => "start".to_owned(),
            PointKind::Lookup { table, .. } => {
                let sites = self.layout.points[index].ahead.iter();
                let ahead = sites.map(|site| self.layout.sites[*site].table);
                let names = std::iter::once(*table)
                    .chain(ahead)
                    .map(|t| self.pipeline.program.tables[t].name.as_str());
                names.collect::<Vec<_>>().join(" + ")
            }
            PointKind::Exit(e) => self.pipeline.exits[*e as usize].name.to_owned(),
        }
    }

    /// Segments and contexts, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut out = String::new();
        let deparse = if self.in_place { "in place" } else { "rebuilt" };
        let _ = writeln!(
            out,
            "headers {deparse}, {} context rows of 8 bytes",
            self.layout.row_count
        );
        if let Some(why) = &self.serial {
            let _ = writeln!(out, "packets one by one: {why}");
        }
        for (i, point) in self.layout.points.iter().enumerate() {
            let _ = write!(out, "point {i} {}", self.point_name(i));
            if let PointKind::Lookup { block, .. } = &point.kind {
                let _ = write!(
                    out,
                    " (b{}): keys in row {}, results in row {}",
                    block.index(),
                    point.key_row,
                    point.result_row
                );
            }
            let _ = writeln!(out);
            if let Some(step) = self.steps.steps.get(i) {
                let lookups = self.steps.lookups[step.lookups.clone()].iter();
                let asked = lookups.filter(|wanted| wanted.asked.is_some());
                let names: Vec<&str> = asked
                    .map(|wanted| self.pipeline.program.tables[wanted.table].name.as_str())
                    .collect();
                if !names.is_empty() {
                    let begun = if step.may_begin { "; one is begun early" } else { "" };
                    let _ = writeln!(
                        out,
                        "  slots asked for with keys, eight packets at a time: {}{begun}",
                        names.join(", ")
                    );
                }
            }
            for &v in &point.kept {
                let name = match self.pipeline.program.vars.get(v) {
                    Some(var) => format!("%{} {}", v.index(), var.name),
                    None => {
                        let own = v.index() - self.pipeline.program.vars.len();
                        let what = OWN_VARIABLES.get(own).unwrap_or(&"where a header begins");
                        format!("%{} ({what})", v.index())
                    }
                };
                let row = self.layout.rows[v.index()].unwrap_or(0);
                let _ = writeln!(out, "  row {row}: {name} ({} bits)", self.vars[v.index()].width);
            }
            if let Some(b) = point.resume {
                let blocks: Vec<String> = self.layout.regions[i]
                    .iter()
                    .map(|b| format!("b{}", b.index()))
                    .collect();
                let _ = writeln!(out, "  segment from b{}: {}", b.index(), blocks.join(" "));
            }
        }
        for (block, fields) in &self.changed_checksums {
            let name = |v: &VarId| self.pipeline.program.vars[*v].name.as_str();
            let names: Vec<&str> = fields.iter().map(name).collect();
            let (number, names) = (block.index(), names.join(", "));
            let _ = writeln!(out, "b{number}: a checksum by what may have changed: {names}");
        }
        for (block, site) in &self.layout.site_of_block {
            let site = &self.layout.sites[*site];
            let (number, table) = (block.index(), &self.pipeline.program.tables[site.table].name);
            let how = match site.how {
                How::Ahead { result_row, .. } => format!("looked up at the point before, results in row {result_row}"),
                How::Array { .. } => "an array that code looks into".to_owned(),
            };
            let _ = writeln!(out, "b{number} {table}: {how}");
        }
        out
    }
}

/// Ones in the lowest bits of a word; all of them where the width is that of a word or more.
fn ones(width: u32) -> u64 {
    if width >= u64::BITS { u64::MAX } else { (1 << width) - 1 }
}
