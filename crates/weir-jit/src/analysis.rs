//! Dataflow analyses of a pipeline, before code is generated.
//!
//! They find where headers lie in the packet, which fields are unchanged since they were received,
//! whether the deparser can work in place, and which variables are live. Each submodule has one
//! analysis; [`Analysis::new`] runs them in order. The pipeline itself is not changed.

mod annotated;
mod checksums;
mod deparse;
mod flow;
mod live;
mod loops;
mod packet;
mod reads;

pub(crate) use annotated::AnnotatedInst;
pub(crate) use checksums::ChecksumUpdate;
pub(crate) use flow::State;
pub(crate) use loops::Loop;

use crate::error::Unsupported;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use weir_ir::passes::{Scope, VarSet, constants};
use weir_ir::pipeline::Pipeline;
use weir_ir::{BlockId, HeaderId, InLeaf, InstKind, Operand, Program, Terminator, Type, VarId, VarKind};

/// A variable as code generation sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VarInfo {
    /// Width in bits; of a varbit the greatest one.
    pub width: u32,
    /// Whether it has a length of its own.
    pub varbit: bool,
}

impl VarInfo {
    /// Whether it fits in a register.
    pub fn is_narrow(self) -> bool {
        !self.varbit && self.width <= 64
    }

    /// Words of its home in the context, if it is not narrow. Those of a varbit are its length in
    /// bits and the address of its first byte in the packet: nothing is copied before the deparser.
    pub fn home_words(self) -> usize {
        if self.varbit {
            2
        } else {
            self.width.div_ceil(64) as usize
        }
    }
}

/// Where an extracted header begins in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderOffset {
    /// At this bit, on all paths of the parser.
    Fixed(u32),
    /// At the bit that this variable holds.
    Variable(VarId),
}

/// How the deparser works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deparse {
    /// Headers stay where they are; changed fields are overwritten.
    InPlace,
    /// Headers are rebuilt in the scratch area and copied before the payload. At most this many
    /// bytes.
    Rebuild(usize),
}

/// How a variable is rematerialised after a suspension point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remat {
    /// It has this value.
    Constant(u64),
    /// The packet holds it, from this bit on.
    Packet(u32),
    /// If its header is valid, the packet holds it at this bit after the header's start; otherwise
    /// it is 0.
    IfValid(HeaderId, u32),
}

/// The results of the analyses.
pub(crate) struct Analysis<'a> {
    pub pipeline: &'a Pipeline,
    pub vars: Vec<VarInfo>,
    /// The parser's position in the packet, in bits.
    pub cursor: VarId,
    /// Bytes that the deparser has emitted to the scratch area.
    pub emitted: VarId,
    /// The offset of each header that is extracted.
    pub header_offsets: Vec<Option<HeaderOffset>>,
    /// The data of internet checksums, without duplicates.
    checksum_data: Vec<Vec<InLeaf>>,
    /// By block: the dataflow state at its start; `None`: it is unreachable.
    pub entry_states: Vec<Option<State>>,
    pub deparse: Deparse,
    /// Reachable blocks, each after its predecessors except for back edges.
    pub order: Vec<BlockId>,
    /// By block: the number of its first call.
    pub first_call: Vec<usize>,
    /// By exit: the variables that it saves for the caller.
    pub handed_over: Vec<Vec<VarId>>,
    /// By block: the variables that are live at its start.
    pub live: Vec<VarSet>,
    /// Headers whose fields are rematerialised at the start of a block, if they are valid then.
    pub remat_if_valid: BTreeSet<(BlockId, HeaderId)>,
    /// By block: variables that have the same value on all paths to its start.
    pub constants: Vec<HashMap<VarId, u64>>,
    /// Inputs that are never written.
    pub constant_inputs: VarSet,
    /// Sums that are only added to, and not often enough to reach 2^62.
    pub running_sums: VarSet,
    /// The loops, by their heads.
    pub loops: BTreeMap<BlockId, Loop>,
    /// By block: whether a packet may pass it more than once.
    pub repeated: Vec<bool>,
    /// By block: what it adds to `spent`; 0 outside of loops.
    pub loop_costs: Vec<u32>,
    /// The cost of the packet's loops since the segment began, in the units of [`weir_ir::cost`].
    /// Saved across suspension points inside loops.
    pub spent: VarId,
}

/// Names of the first variables that analysis adds to the program's; the ones after them are
/// header offsets.
pub(crate) const ANALYSIS_VARIABLES: [&str; 3] = ["where the parser is", "bytes emitted", "cost of loops"];

/// The header, and the index in it, of a variable that is a field.
pub(crate) fn field_of(program: &Program, var: VarId) -> Option<(HeaderId, usize)> {
    match program.vars.get(var)?.kind {
        VarKind::Field { header, index } => Some((header, index as usize)),
        _ => None,
    }
}

/// The bit within its header where each field begins.
pub(crate) fn field_offsets(program: &Program, header: HeaderId) -> Vec<u32> {
    let ty = &program.header_types[program.headers[header].ty];
    let mut offset = 0;
    ty.fields
        .iter()
        .map(|f| {
            let begin = offset;
            if let Type::Bits(w) = f.ty {
                offset += w;
            }
            begin
        })
        .collect()
}

impl<'a> Analysis<'a> {
    /// Analyses a pipeline.
    pub fn new(pipeline: &'a Pipeline) -> Result<Self, Unsupported> {
        let program = &*pipeline.program;
        let mut vars: Vec<VarInfo> = program
            .vars
            .iter()
            .map(|(_, v)| VarInfo {
                width: v.ty.width(),
                varbit: matches!(v.ty, Type::Varbit(_)),
            })
            .collect();
        let mut new = || {
            vars.push(VarInfo {
                width: 64,
                varbit: false,
            });
            VarId::new(vars.len() - 1)
        };
        // In the order of `ANALYSIS_VARIABLES`.
        let [cursor, emitted, spent] = std::array::from_fn(|_| new());
        let mut analysis = Analysis {
            pipeline,
            cursor,
            emitted,
            spent,
            loop_costs: Vec::new(),
            header_offsets: vec![None; program.headers.len()],
            checksum_data: Vec::new(),
            entry_states: Vec::new(),
            deparse: Deparse::InPlace,
            order: pipeline.body.in_order(),
            first_call: Vec::new(),
            handed_over: Vec::new(),
            live: Vec::new(),
            remat_if_valid: BTreeSet::new(),
            constants: Vec::new(),
            constant_inputs: VarSet::new(0),
            running_sums: VarSet::new(0),
            loops: BTreeMap::new(),
            repeated: vec![false; pipeline.body.blocks.len()],
            vars: Vec::new(),
        };
        let mut calls = 0;
        for (_, block) in pipeline.body.blocks.iter() {
            analysis.first_call.push(calls);
            calls += block
                .insts
                .iter()
                .filter(|i| matches!(i.kind, InstKind::Call(_)))
                .count();
        }
        analysis.loops = loops::loops(&pipeline.body, &analysis.order);
        analysis.loop_costs = loops::costs(pipeline, &analysis.loops);
        for id in analysis.loops.values().flat_map(|l| &l.blocks) {
            analysis.repeated[id.index()] = true;
        }
        analysis.constants = analysis.find_constants();
        analysis.checksum_data = analysis.find_checksum_data();
        analysis.entry_states = analysis.flow();
        analysis.check_alignment()?;
        // Header offsets: the same bit on all paths, or a variable.
        let mut found: BTreeMap<HeaderId, Option<u32>> = BTreeMap::new();
        analysis.for_each_inst(|state, inst| {
            if let InstKind::Extract { header, .. } = inst {
                let here = state.cursor;
                found
                    .entry(*header)
                    .and_modify(|p| *p = p.filter(|p| Some(*p) == here))
                    .or_insert(here);
            }
        });
        for (header, place) in found {
            analysis.header_offsets[header.index()] = Some(match place {
                Some(bit) => HeaderOffset::Fixed(bit),
                None => HeaderOffset::Variable(new()),
            });
        }
        analysis.vars = vars;
        analysis.check_varbits()?;
        analysis.deparse = analysis.plan()?;
        analysis.constant_inputs = analysis.find_constant_inputs();
        analysis.running_sums = analysis.find_running_sums();
        analysis.handed_over = analysis.find_handed_over();
        analysis.live = analysis.liveness();
        analysis.remat_if_valid = analysis.find_remat_if_valid();
        if !analysis.remat_if_valid.is_empty() {
            // Again, as rematerialisation needs validity and offsets of those headers.
            analysis.live = analysis.liveness();
        }
        Ok(analysis)
    }

    pub fn program(&self) -> &'a Program {
        &self.pipeline.program
    }

    /// Headers must begin and end at whole bytes.
    fn check_alignment(&self) -> Result<(), Unsupported> {
        let program = self.program();
        let mut result = Ok(());
        self.for_each_inst(|_, inst| {
            let header = match inst {
                InstKind::Extract { header, .. } | InstKind::Emit { header } => *header,
                InstKind::Advance {
                    bits: Operand::Const(c),
                } if c.to_u64().is_none_or(|v| !v.is_multiple_of(8)) => {
                    result = Err(Unsupported::new(
                        "the parser advances by something else than whole bytes",
                    ));
                    return;
                }
                _ => return,
            };
            let ty = &program.header_types[program.headers[header].ty];
            if !ty.fixed_width().is_multiple_of(8) {
                let name = &program.headers[header].name;
                result = Err(Unsupported::new(format!(
                    "header `{name}` is not a whole number of bytes"
                )));
            }
            if let Some(i) = ty.varbit_field() {
                let offsets = field_offsets(program, header);
                if i + 1 != ty.fields.len() || !offsets[i].is_multiple_of(8) {
                    let name = &program.headers[header].name;
                    let what = format!("the varbit field of header `{name}` is not its last, at a whole byte");
                    result = Err(Unsupported::new(what));
                }
            }
        });
        result
    }

    fn find_constants(&self) -> Vec<HashMap<VarId, u64>> {
        let program = self.program();
        let mut inputs = VarSet::new(program.vars.len());
        self.pipeline.inputs.iter().for_each(|&v| inputs.insert(v));
        // Also validity of headers, which shows which fields are in the packet.
        let mut also = VarSet::new(program.vars.len());
        program.headers.iter().for_each(|(_, h)| also.insert(h.valid));
        for exit in &self.pipeline.exits {
            exit.live.iter().for_each(|&v| also.insert(v));
        }
        let scope = Scope {
            vars: &program.vars,
            headers: &program.headers,
            inputs: &inputs,
        };
        constants(scope, &self.pipeline.body, &also)
    }

    fn find_constant_inputs(&self) -> VarSet {
        let mut set = VarSet::new(self.vars.len());
        self.pipeline.inputs.iter().for_each(|&v| set.insert(v));
        for &id in &self.order {
            let block = &self.pipeline.body.blocks[id];
            for inst in self.annotated_insts(id) {
                inst.written(&self.program().headers, &mut |v| set.remove(v));
            }
            if let Terminator::Lookup(l) = &block.terminator {
                [l.hit, l.action, l.entry].into_iter().for_each(|v| set.remove(v));
            }
        }
        set
    }

    /// The instructions of a block, with their call kinds.
    pub fn annotated_insts(&self, block: BlockId) -> impl Iterator<Item = AnnotatedInst<'a>> + use<'a> {
        let (pipeline, mut calls) = (self.pipeline, self.first_call[block.index()]);
        pipeline.body.blocks[block].insts.iter().map(move |inst| {
            let call = matches!(inst.kind, InstKind::Call(_)).then(|| (calls, &pipeline.calls[calls]));
            calls += usize::from(call.is_some());
            let kind = &inst.kind;
            AnnotatedInst { kind, call }
        })
    }

    /// Blocks reachable from `start`, inclusive, without continuing after an end block.
    pub fn reachable(&self, start: BlockId, is_end: impl Fn(BlockId) -> bool) -> BTreeSet<BlockId> {
        let body = &self.pipeline.body;
        let (mut seen, mut work) = (BTreeSet::new(), vec![start]);
        while let Some(id) = work.pop() {
            if !seen.insert(id) {
                continue;
            }
            match is_end(id) {
                true => work.extend(body.on_error.filter(|_| body.blocks[id].can_fail())),
                false => work.extend(body.successors(id)),
            }
        }
        seen
    }
}
