//! Runs the egress parser, at compile time, over the headers that the ingress deparser emits, so
//! that compiled code need not write the packet and parse it again (PSA and TNA).
//!
//! At each [`Point`] of the egress parser, the number of emitted headers already consumed is known.
//! An extract consumes the next header that was emitted. If the layouts agree, its fields are
//! copied, or the egress header becomes an alias of the ingress header ([`aliases`]). If they
//! differ, or the parser reads beyond the emitted headers, the packet is punted: the driver
//! deparses it and runs the egress parser.

use crate::emits::Emit;
use crate::pipeline_builder::AppendCode;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use weir_ir::passes::{Renaming, read_by_inst, read_by_terminator, written};
use weir_ir::{
    BinaryOp, BlockId, Body, HeaderId, InstKind, Loc, Operand, Pattern, Program, Rvalue, SelectCase, Terminator, Type,
    VarId,
};

/// A point of the egress parser: basic block, instruction, number of emitted headers consumed.
type Point = (BlockId, usize, usize);

/// The most branches that the egress parser may expand to.
const BRANCHES: usize = 1 << 16;

/// Whether the egress parser, over `emitted` headers, expands to at most [`BRANCHES`].
pub(crate) fn is_affordable(parser: &Body, emitted: usize) -> bool {
    let insts = parser.blocks.iter().flat_map(|(_, b)| &b.insts);
    let extracts = insts.filter(|i| matches!(i.kind, InstKind::Extract { .. })).count();
    let points = parser.blocks.len().saturating_mul(emitted + 1);
    let branches = extracts.saturating_mul(emitted).saturating_mul(emitted);
    points.saturating_add(branches) <= BRANCHES
}

/// Whether each emitted header is whole bytes long. If not, a deparser that writes the packet pads
/// it, and the egress parser finds the padding in the payload.
pub(crate) fn are_whole_bytes(program: &Program, emits: &[Emit]) -> bool {
    emits.iter().all(|emit| {
        let ty = &program.header_types[program.headers[emit.header].ty];
        let widths = ty.fields.iter().map(|field| match field.ty {
            Type::Bits(width) => width % 8,
            Type::Varbit(_) => 0,
        });
        widths.sum::<u32>().is_multiple_of(8)
    })
}

/// Whether two headers have the same layout: fields of equal, constant widths.
fn same_layout(program: &Program, a: HeaderId, b: HeaderId) -> bool {
    let fields = |h: HeaderId| {
        let ty = &program.header_types[program.headers[h].ty];
        ty.fields.iter().map(|f| f.ty).collect::<Vec<_>>()
    };
    let (a, b) = (fields(a), fields(b));
    a == b && a.iter().all(|ty| matches!(ty, Type::Bits(_)))
}

/// The effects of the egress parser, over all paths.
#[derive(Default)]
struct Explored {
    /// Emitted headers with the egress headers they become.
    pairs: BTreeSet<(usize, HeaderId)>,
    /// Numbers of emitted headers consumed where the parser ends.
    ends: BTreeSet<usize>,
    /// Accesses to variables: the variable, emitted headers consumed by then, whether written.
    touched: HashSet<(VarId, usize, bool)>,
    /// The packet may be punted.
    leaves: bool,
}

/// The targets that control may reach: cases after a catch-all case are dead.
fn targets(terminator: &Terminator) -> Vec<BlockId> {
    let Terminator::Select { cases, .. } = terminator else {
        return terminator.targets();
    };
    let takes_all = |c: &SelectCase| c.patterns.iter().all(|p| *p == Pattern::Any);
    match cases.iter().position(takes_all) {
        Some(last) => cases[..=last].iter().map(|c| c.target).collect(),
        None => terminator.targets(),
    }
}

fn explore(program: &Program, parser: &Body, emits: &[Emit]) -> Explored {
    let mut explored = Explored::default();
    let mut seen = HashSet::new();
    let mut work: Vec<Point> = vec![(BlockId::new(0), 0, 0)];
    while let Some(point) = work.pop() {
        if !seen.insert(point) {
            continue;
        }
        let (id, inst_index, consumed) = point;
        let block = &parser.blocks[id];
        let Some(next_inst) = block.insts.get(inst_index) else {
            read_by_terminator(&block.terminator, &mut |v| {
                explored.touched.insert((v, consumed, false));
            });
            let targets = targets(&block.terminator);
            if targets.is_empty() {
                explored.ends.insert(consumed);
            }
            work.extend(targets.into_iter().map(|t| (t, 0, consumed)));
            continue;
        };
        match &next_inst.kind {
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => {
                explored.leaves = true;
                for (emitted_index, emit) in emits.iter().enumerate().skip(consumed) {
                    if same_layout(program, emit.header, *header) {
                        explored.pairs.insert((emitted_index, *header));
                        work.push((id, inst_index + 1, emitted_index + 1));
                    }
                }
            }
            InstKind::Extract { .. }
            | InstKind::Lookahead { .. }
            | InstKind::Advance { .. }
            | InstKind::PacketLength { .. } => explored.leaves = true,
            kind => {
                read_by_inst(kind, &program.headers, &mut |v| {
                    explored.touched.insert((v, consumed, false));
                });
                written(kind, &program.headers, &mut |v| {
                    explored.touched.insert((v, consumed, true));
                });
                work.push((id, inst_index + 1, consumed));
            }
        }
    }
    explored
}

/// Pairs of an emitted ingress header, by its index, and the egress header that the egress parser
/// extracts from it. The two share their variables from that extraction on.
pub(crate) fn aliases(program: &Program, parser: &Body, emits: &[Emit]) -> Vec<(usize, HeaderId)> {
    let explored = explore(program, parser, emits);
    let fits = |&&(emitted_index, header): &&(usize, HeaderId)| {
        let is_unique = explored
            .pairs
            .iter()
            .filter(|p| p.0 == emitted_index || p.1 == header)
            .count()
            == 1;
        let instance = &program.headers[header];
        let is_unchanged = explored.touched.iter().all(|&(var, consumed, writes)| {
            let belongs = var == instance.valid || instance.fields.contains(&var);
            // Before the extract it is invalid. After a punt the driver needs it as ingress left
            // it.
            !belongs || (consumed > emitted_index && !(writes && explored.leaves))
        });
        let always = emits[emitted_index].always && explored.ends.iter().all(|end| *end > emitted_index);
        is_unique && is_unchanged && always
    };
    explored.pairs.iter().filter(fits).copied().collect()
}

/// The headers that the deparser emits, and how the egress parser refers to them.
#[derive(Default)]
pub(crate) struct Emitted {
    pub emits: Vec<Emit>,
    /// Whether each header was emitted, if that depends on the path through the deparser.
    pub flags: Vec<Option<VarId>>,
    /// Emitted headers that egress headers stand for.
    pub aliased: Vec<usize>,
    /// Egress headers that are ingress headers.
    pub renaming: Renaming,
    /// The number of leading emitted headers that are never payload.
    pub leading_headers: usize,
    /// The exit for a packet that must be deparsed before it can be parsed …
    pub punt_exit: u32,
    /// … unless this basic block deparses it.
    pub deparse_block: Option<BlockId>,
}

impl Emitted {
    /// Leads a packet that must be deparsed before it can be parsed to `deparse_block` or
    /// `punt_exit`.
    fn deparse_or_punt(&self) -> Terminator {
        match self.deparse_block {
            Some(block) => Terminator::Goto(block),
            None => Terminator::Exit(self.punt_exit),
        }
    }

    /// The egress headers that [`aliases`] has found are ingress headers.
    pub(crate) fn alias(&mut self, program: &Program, aliases: &[(usize, HeaderId)]) {
        for (emitted_index, header) in aliases {
            self.renaming
                .header(program, *header, self.emits[*emitted_index].header);
        }
        self.aliased = aliases.iter().map(|(emitted_index, _)| *emitted_index).collect();
    }
}

/// Appends a parser of what was emitted.
pub(crate) trait Reparse: AppendCode {
    /// The headers that were emitted.
    fn emitted(&self) -> &Emitted;

    /// Appends the egress parser. Returns the basic blocks after accept and reject.
    fn reparse(&mut self, program: &Arc<Program>, parser: &Body) -> (BlockId, BlockId) {
        let (accepted, rejected) = (self.new_basic_block(), self.new_basic_block());
        let mut known: HashMap<Point, BlockId> = HashMap::new();
        let mut work = Vec::new();
        let start = self.point((BlockId::new(0), 0, 0), &mut known, &mut work);
        self.terminate(Terminator::Goto(start));
        let mut ends: HashMap<(BlockId, usize), BlockId> = HashMap::new();
        while let Some((id, first, consumed)) = work.pop() {
            self.cursor = known[&(id, first, consumed)];
            let block = &parser.blocks[id];
            let mut is_terminated = false;
            for (index, inst) in block.insts.iter().enumerate().skip(first) {
                match &inst.kind {
                    InstKind::Extract {
                        header,
                        varbit_bits: None,
                    } => {
                        self.take(program, *header, (id, index + 1, consumed), &mut known, &mut work);
                        is_terminated = true;
                    }
                    InstKind::Extract { .. }
                    | InstKind::Lookahead { .. }
                    | InstKind::Advance { .. }
                    | InstKind::PacketLength { .. } => {
                        let elsewhere = self.emitted().deparse_or_punt();
                        self.terminate(elsewhere);
                        is_terminated = true;
                    }
                    kind => self.instruction(kind, inst.loc),
                }
                if is_terminated {
                    break;
                }
            }
            if is_terminated {
                continue;
            }
            let mut terminator = match &block.terminator {
                Terminator::Accept | Terminator::Return => {
                    Terminator::Goto(self.parsed_up_to(consumed, accepted, &mut ends))
                }
                Terminator::Reject => Terminator::Goto(self.parsed_up_to(consumed, rejected, &mut ends)),
                other => {
                    let mut other = self.terminator(other);
                    other.map_targets(|b| self.point((b, 0, consumed), &mut known, &mut work));
                    other
                }
            };
            let cursor = self.cursor;
            std::mem::swap(&mut self.blocks[cursor].terminator, &mut terminator);
        }
        (accepted, rejected)
    }

    /// The basic block of a point. The caller fills it if it is new.
    fn point(&mut self, point: Point, known: &mut HashMap<Point, BlockId>, work: &mut Vec<Point>) -> BlockId {
        if let Some(block) = known.get(&point) {
            return *block;
        }
        let block = self.new_basic_block();
        known.insert(point, block);
        work.push(point);
        block
    }

    /// Extracts `header` from the next emitted header and continues at the point after the
    /// extract.
    fn take(
        &mut self,
        program: &Arc<Program>,
        header: HeaderId,
        (id, next, consumed): Point,
        known: &mut HashMap<Point, BlockId>,
        work: &mut Vec<Point>,
    ) {
        for (emitted_index, emit) in self.emitted().emits.clone().iter().enumerate().skip(consumed) {
            let mut condition = self.header(emit.header).valid;
            if let Some(flag) = self.emitted().flags[emitted_index] {
                let both = self.temporary(1);
                let value = Rvalue::Binary(BinaryOp::And, Operand::Var(condition), Operand::Var(flag));
                self.assign(both, value);
                condition = both;
            }
            let otherwise = self.branch(Operand::Var(condition));
            if same_layout(program, emit.header, header) {
                self.becomes(program, emit.header, header);
                let on = self.point((id, next, emitted_index + 1), known, work);
                self.terminate(Terminator::Goto(on));
            } else {
                let elsewhere = self.emitted().deparse_or_punt();
                self.terminate(elsewhere);
            }
            self.cursor = otherwise;
            if self.emitted().aliased.contains(&emitted_index) {
                // Egress sees a header that was not emitted as one with all fields unset.
                let fields = self.header(emit.header).fields.clone();
                fields.iter().for_each(|f| self.set(Some(*f), 0));
            }
        }
        // The packet itself comes next.
        let elsewhere = self.emitted().deparse_or_punt();
        self.terminate(elsewhere);
    }

    /// An emitted header has been parsed as an egress header.
    fn becomes(&mut self, program: &Arc<Program>, emitted: HeaderId, header: HeaderId) {
        if self.emitted().renaming.header_of(header) == emitted {
            return;
        }
        let (from, to) = (&program.headers[emitted], &program.headers[header]);
        for (from, to) in from.fields.iter().zip(&to.fields) {
            self.assign(*to, Rvalue::Use(Operand::Var(*from)));
        }
        self.set(Some(to.valid), 1);
    }

    /// The basic block at which the parser ends, with this number of emitted headers consumed. The
    /// headers after those are payload.
    fn parsed_up_to(&mut self, consumed: usize, to: BlockId, ends: &mut HashMap<(BlockId, usize), BlockId>) -> BlockId {
        if let Some(block) = ends.get(&(to, consumed)) {
            return *block;
        }
        let here = self.cursor;
        let block = self.new_basic_block();
        self.cursor = block;
        for emitted_index in 0..consumed {
            if !self.emitted().aliased.contains(&emitted_index) {
                let valid = self.header(self.emitted().emits[emitted_index].header).valid;
                self.set(Some(valid), 0);
            }
        }
        self.terminate(Terminator::Goto(to));
        self.cursor = here;
        ends.insert((to, consumed), block);
        block
    }

    /// Emits the headers that egress has not parsed, after those that it emits.
    fn emit_unparsed(&mut self) {
        let leading_headers = self.emitted().leading_headers;
        for (emitted_index, emit) in self.emitted().emits.clone().iter().enumerate().skip(leading_headers) {
            if self.emitted().aliased.contains(&emitted_index) {
                continue;
            }
            if let Some(flag) = self.emitted().flags[emitted_index] {
                let otherwise = self.branch(Operand::Var(flag));
                self.push(InstKind::Emit { header: emit.header }, Loc::default());
                self.terminate(Terminator::Goto(otherwise));
                self.cursor = otherwise;
            } else {
                self.push(InstKind::Emit { header: emit.header }, Loc::default());
            }
        }
    }
}
