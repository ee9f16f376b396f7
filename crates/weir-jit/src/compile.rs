//! Compiles a pipeline: analysis, layout, code generation for each segment, and the schedule.
//!
//! Each segment is compiled as a loop over packets by Cranelift. Where the processor has AVX-512
//! and the pipeline is not serial, it is also compiled by [`crate::lanes`].

use crate::analysis::{ANALYSIS_VARIABLES, Analysis, Deparse, VarInfo};
use crate::codegen::{Context, Shape, segment};
use crate::error::CompileError;
use crate::lanes::{self, LaneCode, SlotPrefetches};
use crate::layout::{How, Layout, PointKind};
use crate::run::TAILROOM;
use crate::run::calls::{LaneFunction, SegmentFunction};
use crate::run::schedule::Schedule;
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
use weir_table::fast::{KeyLayout, ResultLayout, TableLayout, is_array, slot_shift};

/// A pipeline as machine code.
pub struct Compiled {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) layout: Layout,
    pub(crate) vars: Vec<VarInfo>,
    pub(crate) sites: Sites,
    pub(crate) schedule: Schedule,
    /// The most bytes at the sentinel that lanes without a packet access.
    pub(crate) sentinel_bytes: usize,
    /// By input: its row, and a mask of its width. `None`: code has no row for it.
    pub(crate) input_rows: Vec<Option<(usize, u64)>>,
    /// By input: whether anything reads it.
    pub(crate) inputs_read: Vec<bool>,
    pub(crate) scratch: usize,
    pub(crate) serial: Option<String>,
    /// By table: the layout that code relies on.
    pub(crate) table_layouts: Vec<TableLayout>,
    pub(crate) has_back_edges: bool,
    /// By table: whether anything reads the handles of entries.
    reads_handles: Vec<bool>,
    pub(crate) in_place: bool,
    /// Read in place of the fields of an invalid header.
    pub(crate) zeros: Vec<u8>,
    /// Whether some exit saves varbits.
    pub(crate) keeps_varbits: bool,
    /// Blocks that update a checksum incrementally, and the fields that may have changed.
    incremental_checksums: Vec<(BlockId, Vec<VarId>)>,
    compile_time: Duration,
    /// The code as text, if [`Options::assembly`] is set.
    assembly: Option<String>,
    /// Owns the code's memory.
    module: Option<JITModule>,
}

// SAFETY: after compilation the module is used only to free the code. Code never changes, and
// reading everything else is safe from any thread.
unsafe impl Send for Compiled {}
// SAFETY: after compilation the module is used only to free the code, by `drop`, which has
// exclusive access; everything else is only read.
unsafe impl Sync for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: whatever runs the code holds the `Arc` of this, so no code runs now.
            unsafe { module.free_memory() };
        }
    }
}

/// Options of the compilation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Keep the code as text.
    pub assembly: bool,
    /// By table number: whether its lookups have no immediate side effects, as its entries name
    /// actions directly and it has no direct meters. Such lookups may be hoisted, done inline in
    /// arrays, and reported at the end of the vector.
    pub reorderable: Vec<bool>,
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

/// Whether a lookup needs few memory accesses.
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

/// Code for eight packets at a time, defined in the module.
struct PlacedLanes {
    id: FuncId,
    code: LaneCode,
}

/// Compiles a segment's code for one packet to code for eight.
fn lanes_of(
    module: &mut JITModule,
    mut context: CodegenContext,
    goals: &BTreeSet<usize>,
    slot_prefetches: &SlotPrefetches,
) -> Result<Option<PlacedLanes>, CompileError> {
    context
        .optimize(module.isa(), &mut ControlPlane::default())
        .map_err(CompileError::codegen)?;
    let Some(code) = LaneCode::new(&context.func, goals, &slot_prefetches.by_row) else {
        return Ok(None);
    };
    // The actual signature: that of the loop, and a returned mask.
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
    /// The program uses something that cannot be compiled, or is so large that compiling it would
    /// take too much memory.
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
        // Not where a lookup takes long, or a hit is observable (idle timeout).
        let may_speculate: Vec<bool> = (specs.iter().enumerate())
            .map(|(i, spec)| options.reorderable.get(i) == Some(&true) && !spec.idle_timeout && is_quick(spec))
            .collect();
        let analysed = Arc::clone(&pipeline);
        let analysis = Analysis::new(&analysed)?;
        // An array has one key word: keys of selectors would be words of their own.
        let has_no_selector = |i: usize| tables[i].0.fields.iter().all(Option::is_some);
        let arrays: Vec<bool> = (specs.iter().enumerate())
            .map(|(i, spec)| options.reorderable.get(i) == Some(&true) && is_array(spec) && has_no_selector(i))
            .collect();
        let layout = Layout::new(&analysis, &tables, &may_speculate, &arrays);
        let read = analysis.variables_read();
        let inputs_read = pipeline.inputs.iter().map(|v| read.contains(*v)).collect();
        let incremental_checksums = analysis.incremental_checksums();
        let serial = crate::order::why_serial(&analysis, &layout);
        let mut sites = Sites::new(&analysis, layout.executed_masks);
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
        let slot_prefetches = SlotPrefetches::new(
            layout
                .lookups()
                .map(|(table, row)| (table, row, slot_shift(&specs[table.index()]))),
        );
        let mut assembly = options.assembly.then(String::new);
        let (mut ids, mut lanes_ids, mut sentinel_bytes) = (Vec::new(), BTreeMap::new(), 0);
        let config = module.target_config();
        // Hot points: most packets wait for a further lookup, or are transmitted.
        let of_lookups = layout.point_of_block.values().copied();
        let deparsed = (layout.exit_points.iter().zip(&pipeline.exits)).filter(|(_, exit)| exit.deparsed);
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
                let is_last = layout.regions[index]
                    .iter()
                    .all(|b| !layout.point_of_block.contains_key(b));
                let goals = if is_last { &of_exits } else { &of_lookups };
                segment(&cx, index, Shape::Packet, builder, imported, &mut sites, config);
                if let Some(lanes) = lanes_of(&mut module, context, goals, &slot_prefetches)? {
                    if let Some(text) = &mut assembly {
                        let _ = writeln!(text, "; segment {index}, {} packets at a time", lanes::LANES);
                        text.push_str(&lanes.code.listing());
                    }
                    sentinel_bytes = sentinel_bytes.max(lanes.code.sentinel_bytes);
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
                // SAFETY: `lanes_of` makes functions of this type.
                unsafe { std::mem::transmute::<*const u8, LaneFunction>(address) }
            });
            Some((function, lanes))
        });
        let schedule = Schedule::new(&analysis, &layout, &tables, slot_prefetches, functions);
        let has_back_edges = layout.points.iter().enumerate().any(|(i, _)| {
            layout.regions[i].iter().any(|b| {
                matches!(
                    pipeline.body.blocks[*b].terminator,
                    Terminator::Lookup(_) | Terminator::Suspend(_)
                ) && layout.point_of_block.get(b).is_some_and(|&to| to <= i)
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
            table_layouts: specs.iter().map(TableLayout::new).collect(),
            reads_handles: reads_handles(&analysis),
            scratch,
            incremental_checksums,
            sites,
            schedule,
            sentinel_bytes,
            serial,
            has_back_edges,
            layout,
            compile_time: started.elapsed(),
            assembly,
            module: Some(module),
            pipeline,
        })
    }

    /// The pipeline from which it was compiled.
    #[must_use]
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// How long compilation took.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }

    /// Why packets run one by one; `None`: they run a vector at a time.
    #[must_use]
    pub fn serial(&self) -> Option<&str> {
        self.serial.as_deref()
    }

    /// Whether code reads the handles of a table's entries.
    #[must_use]
    pub fn reads_handles(&self, table: TableId) -> bool {
        self.reads_handles.get(table.index()) != Some(&false)
    }

    /// Bytes of memory that must lie before a packet.
    #[must_use]
    pub fn headroom(&self) -> usize {
        self.scratch
    }

    /// The machine code as text, if [`Options::assembly`] was set.
    #[must_use]
    pub fn assembly(&self) -> Option<&str> {
        self.assembly.as_deref()
    }

    /// Words of the largest context of a packet that waits for an extern.
    #[must_use]
    pub fn max_context_words(&self) -> usize {
        let contexts = self.schedule.contexts.iter();
        contexts.map(|context| context.rows.len()).max().unwrap_or(0)
    }

    /// The tables for which packets wait at a suspension point, or the point's kind.
    pub(crate) fn point_name(&self, index: usize) -> String {
        match &self.layout.points[index].kind {
            PointKind::Start => "start".to_owned(),
            PointKind::Lookup { table, .. } => {
                let sites = self.layout.points[index].hoisted.iter();
                let hoisted = sites.map(|site| self.layout.inline_lookups[*site].table);
                let names = std::iter::once(*table)
                    .chain(hoisted)
                    .map(|t| self.pipeline.program.tables[t].name.as_str());
                names.collect::<Vec<_>>().join(" + ")
            }
            PointKind::Suspend { block } => format!("extern in b{}", block.index()),
            PointKind::Exit(e) => self.pipeline.exits[*e as usize].name.to_owned(),
        }
    }

    /// A listing of segments and contexts.
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
            if let Some(stage) = self.schedule.stages.get(i) {
                let lookups = self.schedule.lookups[stage.lookups.clone()].iter();
                let prefetched = lookups.filter(|planned| planned.slot_table.is_some());
                let names: Vec<&str> = prefetched
                    .map(|planned| self.pipeline.program.tables[planned.table].name.as_str())
                    .collect();
                if !names.is_empty() {
                    let early = if stage.may_overlap {
                        "; one is started early"
                    } else {
                        ""
                    };
                    let _ = writeln!(
                        out,
                        "  slots prefetched with keys, eight packets at a time: {}{early}",
                        names.join(", ")
                    );
                }
            }
            for &v in &point.saved {
                let name = match self.pipeline.program.vars.get(v) {
                    Some(var) => format!("%{} {}", v.index(), var.name),
                    None => {
                        let number = v.index() - self.pipeline.program.vars.len();
                        let what = ANALYSIS_VARIABLES.get(number).unwrap_or(&"where a header begins");
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
        for (block, fields) in &self.incremental_checksums {
            let name = |v: &VarId| self.pipeline.program.vars[*v].name.as_str();
            let names: Vec<&str> = fields.iter().map(name).collect();
            let (number, names) = (block.index(), names.join(", "));
            let _ = writeln!(out, "b{number}: a checksum by what may have changed: {names}");
        }
        for (block, site) in &self.layout.inline_of_block {
            let site = &self.layout.inline_lookups[*site];
            let (number, table) = (block.index(), &self.pipeline.program.tables[site.table].name);
            let how = match site.how {
                How::Hoisted { result_row, .. } => {
                    format!("looked up at the point before, results in row {result_row}")
                }
                How::Array { .. } => "an array that code looks into".to_owned(),
            };
            let _ = writeln!(out, "b{number} {table}: {how}");
        }
        out
    }
}

/// A mask of the lowest bits; all ones if the width is 64 or more.
fn ones(width: u32) -> u64 {
    if width >= u64::BITS { u64::MAX } else { (1 << width) - 1 }
}
