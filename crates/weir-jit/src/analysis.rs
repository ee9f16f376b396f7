//! What is known of a pipeline before code is made: where headers lie in the packet, which fields still are
//! what the packet holds, how the deparser's work can be done, and what is live where.

mod checksums;
mod deparse;
mod flow;
mod live;
mod loops;
mod packet;
mod reads;
mod step;

pub(crate) use checksums::Change;
pub(crate) use flow::State;
pub(crate) use loops::{Loop, PARSER_LIMIT};
pub(crate) use step::Step;

use crate::error::Unsupported;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use weir_ir::passes::{Scope, VarSet, constants};
use weir_ir::pipeline::Pipeline;
use weir_ir::{BlockId, HeaderId, InLeaf, InstKind, Operand, Program, Terminator, Type, VarId, VarKind};

/// A variable as code generation sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VarInfo {
    /// Bits; of a varbit the most it can have.
    pub width: u32,
    /// It knows its length.
    pub varbit: bool,
}

impl VarInfo {
    /// It fits in a register.
    pub fn is_narrow(self) -> bool {
        !self.varbit && self.width <= 64
    }

    /// Words of its home in the context, where it is not narrow. A varbit's are its length in bits and the address of
    /// its first byte, in the packet: nothing is copied before the deparser.
    pub fn home_words(self) -> usize {
        if self.varbit {
            2
        } else {
            self.width.div_ceil(64) as usize
        }
    }
}

/// Where a header that was extracted begins in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this bit, whatever way the parser took.
    Fixed(u32),
    /// This variable holds the bit.
    Variable(VarId),
}

/// How the deparser's work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deparse {
    /// The headers stay where they are; changed fields are written over.
    InPlace,
    /// Headers are put together elsewhere and copied before what the parser left. At most this many bytes.
    Rebuild(usize),
}

/// How a variable is had again after a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It has this value.
    Constant(u64),
    /// The packet holds it, from this bit on.
    Packet(u32),
    /// If its header is valid the packet holds it, so many bits after where the header begins; else it is 0.
    IfValid(HeaderId, u32),
}

/// The result.
pub(crate) struct Analysis<'a> {
    pub pipeline: &'a Pipeline,
    pub vars: Vec<VarInfo>,
    /// The bit of the packet that the parser is at.
    pub cursor: VarId,
    /// Bytes that the deparser has made.
    pub emitted: VarId,
    /// Where each header lies that is extracted from whole bytes.
    pub places: Vec<Option<Place>>,
    /// What internet checksums are computed of, each once.
    checksum_data: Vec<Vec<InLeaf>>,
    /// What is known where each block begins; `None`: nothing gets there.
    pub at: Vec<Option<State>>,
    pub deparse: Deparse,
    /// Blocks that control can reach, each after those before it but for loops.
    pub order: Vec<BlockId>,
    /// Number of the first call of each block.
    pub first_call: Vec<usize>,
    /// What each exit hands over from variables.
    pub handed_over: Vec<Vec<VarId>>,
    /// What is live where each block begins.
    pub live: Vec<VarSet>,
    /// Headers whose fields are had again from the packet at the start of a block, should they be valid.
    pub had_if_valid: BTreeSet<(BlockId, HeaderId)>,
    /// Variables that have one value on every way to the start of a block.
    pub constants: Vec<HashMap<VarId, u64>>,
    /// Inputs that nothing writes.
    pub constant_inputs: VarSet,
    /// Sums that more is added to, but not often enough to reach 2^62.
    pub running_sums: VarSet,
    /// The loops, by the blocks that jumps back lead to.
    pub loops: BTreeMap<BlockId, Loop>,
    /// Blocks that a packet may pass more than once.
    pub repeated: Vec<bool>,
    /// Per block, what it adds to `spent`; 0 outside of loops.
    pub loop_costs: Vec<u32>,
    /// What the packet's loops have cost since the segment began, in the units of
    /// [`weir_ir::cost`]; kept across suspension points inside loops.
    pub spent: VarId,
}

/// What the first variables are that are not the program's; those after them are where headers begin.
pub(crate) const OWN_VARIABLES: [&str; 3] = ["where the parser is", "bytes emitted", "cost of loops"];

/// The header and index that a variable is a field of.
pub(crate) fn field_of(program: &Program, var: VarId) -> Option<(HeaderId, usize)> {
    match program.vars.get(var)?.kind {
        VarKind::Field { header, index } => Some((header, index as usize)),
        _ => None,
    }
}

/// The bit within its header where each field begins.
pub(crate) fn field_offsets(program: &Program, header: HeaderId) -> Vec<u32> {
    let ty = &program.header_types[program.headers[header].ty];
    let mut at = 0;
    ty.fields
        .iter()
        .map(|f| {
            let begin = at;
            if let Type::Bits(w) = f.ty {
                at += w;
            }
            begin
        })
        .collect()
}

impl<'a> Analysis<'a> {
    /// Looks a pipeline over.
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
        // As in `OWN_VARIABLES`.
        let [cursor, emitted, spent] = std::array::from_fn(|_| new());
        let mut analysis = Analysis {
            pipeline,
            cursor,
            emitted,
            spent,
            loop_costs: Vec::new(),
            places: vec![None; program.headers.len()],
            checksum_data: Vec::new(),
            at: Vec::new(),
            deparse: Deparse::InPlace,
            order: pipeline.body.in_order(),
            first_call: Vec::new(),
            handed_over: Vec::new(),
            live: Vec::new(),
            had_if_valid: BTreeSet::new(),
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
        analysis.at = analysis.flow();
        analysis.check_alignment()?;
        // Places: the same bit on every way, or a variable.
        let mut found: BTreeMap<HeaderId, Option<u32>> = BTreeMap::new();
        analysis.each_inst(|state, inst| {
            if let InstKind::Extract { header, .. } = inst {
                let here = state.cursor;
                found
                    .entry(*header)
                    .and_modify(|p| *p = p.filter(|p| Some(*p) == here))
                    .or_insert(here);
            }
        });
        for (header, place) in found {
            analysis.places[header.index()] = Some(match place {
                Some(bit) => Place::Fixed(bit),
                None => Place::Variable(new()),
            });
        }
        analysis.vars = vars;
        analysis.check_varbits()?;
        analysis.deparse = analysis.plan()?;
        analysis.constant_inputs = analysis.find_constant_inputs();
        analysis.running_sums = analysis.find_running_sums();
        analysis.handed_over = analysis.find_handed_over();
        analysis.live = analysis.liveness();
        analysis.had_if_valid = analysis.find_had_if_valid();
        if !analysis.had_if_valid.is_empty() {
            // Where the headers lie must be known there.
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
        self.each_inst(|_, inst| {
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
        // Not only what code reads: whether headers are valid says which fields are in the packet.
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
            for step in self.steps(id) {
                step.written(&self.program().headers, &mut |v| set.remove(v));
            }
            if let Terminator::Lookup(l) = &block.terminator {
                [l.hit, l.action, l.entry].into_iter().for_each(|v| set.remove(v));
            }
        }
        set
    }

    /// The instructions of a block.
    pub fn steps(&self, block: BlockId) -> impl Iterator<Item = Step<'a>> + use<'a> {
        let (pipeline, mut calls) = (self.pipeline, self.first_call[block.index()]);
        pipeline.body.blocks[block].insts.iter().map(move |inst| {
            let call = matches!(inst.kind, InstKind::Call(_)).then(|| (calls, &pipeline.calls[calls]));
            calls += usize::from(call.is_some());
            let inst = &inst.kind;
            Step { inst, call }
        })
    }

    /// Blocks that control may get to from `start`, it included, without going on behind one that is an end.
    pub fn reach(&self, start: BlockId, is_end: impl Fn(BlockId) -> bool) -> BTreeSet<BlockId> {
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
