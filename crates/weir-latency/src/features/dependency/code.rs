//! What tables and statements read and write.

use super::super::Place;
use super::super::effects::Effects;
use super::super::operations::{Operations, is_computed};
use super::super::walk;
use super::{Node, NodeKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use weir_ir::passes::{VarSet, read_by, read_by_inst, read_by_terminator, written};
use weir_ir::{
    BasicBlock, BinaryOp, Block, BlockId, Body, Call, InstKind, Loc, Mark, Operand, Program, Rvalue, TableId,
    Terminator, VarId, VarKind,
};

/// A place in a body: the block, and the instruction in it; the terminator is after all of them.
pub(super) type At = (BlockId, usize);

/// Where a table is looked up.
pub(in crate::features) struct Site {
    pub(in crate::features) table: TableId,
    block: BlockId,
}

/// The lookups of a control in the order of control flow.
pub(in crate::features) fn sites(control: &Block) -> Vec<Site> {
    let lookup = |block: BlockId| match &control.body.blocks[block].terminator {
        Terminator::Lookup(lookup) => Some(Site {
            table: lookup.table,
            block,
        }),
        _ => None,
    };
    walk::order(&control.body).into_iter().filter_map(lookup).collect()
}

/// The instructions of an action: ranges of blocks.
type Region = Vec<(BlockId, std::ops::Range<usize>)>;

/// The code of each action of a table where it is looked up. An action that ends the control early
/// is followed until the next lookup.
fn action_regions(program: &Program, body: &Body, site: &Site) -> Vec<Region> {
    let Terminator::Lookup(lookup) = &body.blocks[site.block].terminator else {
        return Vec::new();
    };
    let actions = program.tables[site.table].actions.len();
    let next = &body.blocks[lookup.next];
    let enters = |inst: &weir_ir::Inst| matches!(inst.kind, InstKind::Mark(Mark::EnterAction(_)));
    let entries: Vec<BlockId> = match &next.terminator {
        Terminator::Switch { value, cases, default } if *value == Operand::Var(lookup.action) => {
            let case = |i: usize| cases.iter().find(|(c, _)| c.to_u64() == Some(i as u64));
            (0..actions).map(|i| case(i).map_or(*default, |(_, to)| *to)).collect()
        }
        // The code of an only action may follow the lookup in the same block.
        _ if actions == 1 && next.insts.first().is_some_and(enters) => vec![lookup.next],
        Terminator::Goto(only) if actions == 1 => vec![*only],
        _ => return Vec::new(),
    };
    entries.into_iter().map(|entry| region(body, entry)).collect()
}

fn region(body: &Body, entry: BlockId) -> Region {
    let mut found = Region::new();
    let mut seen = BTreeSet::new();
    let mut stack = vec![(entry, 0_usize)];
    while let Some((id, mut depth)) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let block = &body.blocks[id];
        let mut end = block.insts.len();
        for (i, inst) in block.insts.iter().enumerate() {
            match inst.kind {
                InstKind::Mark(Mark::EnterAction(_) | Mark::Enter(_)) => depth += 1,
                InstKind::Mark(Mark::Leave) => depth = depth.saturating_sub(1),
                InstKind::Mark(Mark::ParserBlocks(_)) => {}
                _ => continue,
            }
            if depth == 0 {
                end = i + 1;
                break;
            }
        }
        found.push((id, 0..end));
        if depth > 0 && !matches!(block.terminator, Terminator::Lookup(_)) {
            stack.extend(block.terminator.targets().into_iter().map(|to| (to, depth)));
        }
    }
    found
}

/// What each action of a table does, in the order of the table's actions; where it is looked up at
/// several places, at the first.
pub(in crate::features) fn action_operations(
    program: &Program,
    control: &Block,
    effects: &Effects,
    table: TableId,
) -> Vec<Operations> {
    let Some(site) = sites(control).into_iter().find(|s| s.table == table) else {
        return Vec::new();
    };
    let count = |region: Region| {
        let mut operations = Operations::default();
        for (id, range) in region {
            for at in range.filter(|at| effects.has_effect(id, *at)) {
                operations.add(program, &control.body.blocks[id].insts[at].kind);
            }
        }
        operations
    };
    let regions = action_regions(program, &control.body, &site);
    regions.into_iter().map(count).collect()
}

/// A branch that decides whether a node executes.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) at: At,
    /// Variables that it reads, outcomes of lookups left out.
    pub(super) reads: BTreeSet<VarId>,
    /// The tables whose outcome it reads.
    pub(super) outcomes: Vec<Option<TableId>>,
}

/// A node, with variables instead of names.
pub(super) struct Collected {
    pub(super) name: String,
    kind: NodeKind,
    loc: Loc,
    pub(super) at: At,
    pub(super) matches: BTreeSet<VarId>,
    pub(super) reads: BTreeSet<VarId>,
    pub(super) writes: BTreeSet<VarId>,
    pub(super) conditions: Vec<Condition>,
    /// The table whose outcome later conditions may read.
    pub(super) outcome: Option<TableId>,
}

impl Collected {
    pub(super) fn into_node(self, program: &Program, names: &Names) -> Node {
        let conditions = self.conditions.iter().flat_map(|c| &c.reads);
        let matches: BTreeSet<VarId> = self.matches.iter().chain(conditions).copied().collect();
        let names = |vars: &BTreeSet<VarId>| vars.iter().map(|v| names.of(program, *v)).collect();
        Node {
            name: self.name,
            kind: self.kind,
            place: Place::of(program, self.loc),
            matches: names(&matches),
            reads: names(&self.reads),
            writes: names(&self.writes),
        }
    }
}

/// Names of variables for people: of a value that only the compiler has named, where it is
/// computed.
pub(super) struct Names {
    lines: HashMap<VarId, u32>,
}

impl Names {
    pub(super) fn new(program: &Program, body: &Body) -> Self {
        let mut lines = HashMap::new();
        for inst in body.blocks.iter().flat_map(|(_, block)| &block.insts) {
            written(&inst.kind, &program.headers, &mut |var| {
                if program.vars[var].kind.is_hidden() {
                    lines.entry(var).or_insert(inst.loc.line);
                }
            });
        }
        Names { lines }
    }

    pub(super) fn of(&self, program: &Program, var: VarId) -> String {
        match self.lines.get(&var) {
            Some(line) => format!("the value computed in line {line}"),
            None => program.vars[var].name.clone(),
        }
    }
}

/// Which blocks control may reach from which.
pub(super) struct Flow {
    reach: Vec<Vec<u64>>,
}

impl Flow {
    pub(super) fn of(body: &Body) -> Self {
        let words = body.blocks.len().div_ceil(64);
        let mut reach = vec![vec![0_u64; words]; body.blocks.len()];
        // Against the order of control each block is seen after its successors, but for loops.
        for _ in 0..2 {
            for id in walk::order(body).into_iter().rev() {
                let mut here = std::mem::take(&mut reach[id.index()]);
                for to in body.successors(id) {
                    here[to.index() / 64] |= 1 << (to.index() % 64);
                    if to != id {
                        let there = &reach[to.index()];
                        here.iter_mut().zip(there).for_each(|(a, b)| *a |= b);
                    }
                }
                reach[id.index()] = here;
            }
        }
        Flow { reach }
    }

    fn reaches(&self, from: BlockId, to: BlockId) -> bool {
        self.reach[from.index()][to.index() / 64] >> (to.index() % 64) & 1 == 1
    }

    /// Whether control may come from one place to the other.
    pub(super) fn precedes(&self, from: At, to: At) -> bool {
        (from.0 == to.0 && from.1 < to.1) || self.reaches(from.0, to.0)
    }
}

/// Collects the nodes of a control.
pub(super) fn collect(
    program: &Program,
    control: &Block,
    effects: &Effects,
    tables: &[Option<usize>],
) -> Vec<Collected> {
    let mut collector = Collector::new(program, &control.body, effects, tables);
    collector.run();
    collector.add_conditions();
    collector.found
}

/// Variables that something other than keys of tables and comparisons for equality reads.
fn computed_with(program: &Program, body: &Body) -> VarSet {
    let mut read = VarSet::new(program.vars.len());
    for (_, block) in body.blocks.iter() {
        for inst in &block.insts {
            let compares = matches!(
                &inst.kind,
                InstKind::Assign {
                    value: Rvalue::Binary(BinaryOp::Eq | BinaryOp::Ne, ..),
                    ..
                }
            );
            if !compares {
                read_by_inst(&inst.kind, &program.headers, &mut |var| read.insert(var));
            }
        }
        if !matches!(block.terminator, Terminator::Lookup(_)) {
            read_by_terminator(&block.terminator, &mut |var| read.insert(var));
        }
    }
    read
}

/// Statements of a block that a pipeline executes at once.
struct Step {
    node: Collected,
    operations: Operations,
}

/// The steps in which the statements of a block are executed.
#[derive(Default)]
struct Steps {
    all: Vec<Step>,
    /// The last step that reads a variable.
    read: HashMap<VarId, usize>,
    /// The last step that writes it.
    written: HashMap<VarId, usize>,
}

impl Steps {
    /// The number of the step that an instruction belongs to.
    fn number(&mut self, reads: &BTreeSet<VarId>, writes: &BTreeSet<VarId>, computes: bool) -> usize {
        let from = reads.iter().filter_map(|var| self.written.get(var)).max();
        let after = from.map_or(0, |step| step + usize::from(computes));
        let before = writes
            .iter()
            .flat_map(|var| [self.read.get(var), self.written.get(var)]);
        let number = before.flatten().copied().fold(after, usize::max);
        for var in reads {
            let last = self.read.entry(*var).or_insert(number);
            *last = number.max(*last);
        }
        self.written.extend(writes.iter().map(|var| (*var, number)));
        number
    }

    /// The step of this number, which begins here if it is new.
    fn at(&mut self, number: usize, loc: Loc, at: At) -> &mut Step {
        while self.all.len() <= number {
            self.all.push(Step {
                node: Collected {
                    name: String::new(),
                    kind: NodeKind::Statements(Operations::default()),
                    loc,
                    at,
                    matches: BTreeSet::new(),
                    reads: BTreeSet::new(),
                    writes: BTreeSet::new(),
                    conditions: Vec::new(),
                    outcome: None,
                },
                operations: Operations::default(),
            });
        }
        &mut self.all[number]
    }
}

struct Collector<'a> {
    program: &'a Program,
    body: &'a Body,
    effects: &'a Effects,
    tables: &'a [Option<usize>],
    /// Instructions of actions of tables, by block.
    owned: BTreeMap<BlockId, Vec<std::ops::Range<usize>>>,
    /// What the compiler's own variables were made of.
    sources: HashMap<VarId, BTreeSet<VarId>>,
    /// The tables whose outcome a variable is.
    outcomes: HashMap<VarId, TableId>,
    /// Switches on actions that are part of a lookup.
    dispatch: BTreeSet<BlockId>,
    /// Variables that something other than keys of tables and comparisons reads.
    computed_with: VarSet,
    found: Vec<Collected>,
}

impl<'a> Collector<'a> {
    fn new(program: &'a Program, body: &'a Body, effects: &'a Effects, tables: &'a [Option<usize>]) -> Self {
        Collector {
            program,
            body,
            effects,
            tables,
            computed_with: computed_with(program, body),
            owned: BTreeMap::new(),
            sources: HashMap::new(),
            outcomes: HashMap::new(),
            dispatch: BTreeSet::new(),
            found: Vec::new(),
        }
    }

    fn run(&mut self) {
        let order = walk::order(self.body);
        for id in &order {
            if let Terminator::Lookup(lookup) = &self.body.blocks[*id].terminator {
                let site = Site {
                    table: lookup.table,
                    block: *id,
                };
                for (block, range) in action_regions(self.program, self.body, &site).into_iter().flatten() {
                    self.owned.entry(block).or_default().push(range);
                }
                self.outcomes.insert(lookup.hit, lookup.table);
                self.outcomes.insert(lookup.action, lookup.table);
                if let Terminator::Switch { value, .. } = &self.body.blocks[lookup.next].terminator
                    && *value == Operand::Var(lookup.action)
                {
                    self.dispatch.insert(lookup.next);
                }
            }
        }
        for id in order {
            self.statements(id);
            self.lookup(id);
        }
    }

    fn is_owned(&self, id: BlockId, inst: usize) -> bool {
        self.owned
            .get(&id)
            .is_some_and(|all| all.iter().any(|range| range.contains(&inst)))
    }

    /// The statements of a block that belong to no table: a node for each step of computation. What
    /// is computed from the result of a step is in the next one; a copy is in the step that
    /// computes what it copies.
    fn statements(&mut self, id: BlockId) {
        let mut steps = Steps::default();
        for (i, inst) in self.body.blocks[id].insts.iter().enumerate() {
            if self.is_owned(id, i) || !self.effects.has_effect(id, i) || self.look_through(&inst.kind) {
                continue;
            }
            let (reads, writes) = self.accesses(&inst.kind);
            if writes.is_empty() && inst.kind.call().is_none() {
                continue;
            }
            let copies = matches!(&inst.kind, InstKind::Assign { value, .. } if !is_computed(self.program, value));
            let number = steps.number(&reads, &writes, !copies);
            let step = steps.at(number, inst.loc, (id, i));
            step.operations.add(self.program, &inst.kind);
            step.node.reads.extend(reads);
            step.node.writes.extend(writes);
        }
        for step in steps.all {
            let mut node = step.node;
            node.kind = NodeKind::Statements(step.operations);
            node.name = format!("line {}", node.loc.line);
            self.found.push(node);
        }
    }

    /// Whether an instruction masks a field for a key or a comparison, which match masked.
    fn is_mask(&self, dst: VarId, value: &Rvalue) -> bool {
        let masks = matches!(
            value,
            Rvalue::Binary(BinaryOp::And, Operand::Var(_), Operand::Const(_))
                | Rvalue::Binary(BinaryOp::And, Operand::Const(_), Operand::Var(_))
        );
        masks && !self.computed_with.contains(dst)
    }

    /// Whether an instruction only gives a value a name of the compiler's; remembers which.
    fn look_through(&mut self, inst: &InstKind) -> bool {
        let InstKind::Assign { dst, value } = inst else {
            return false;
        };
        let is_computed = is_computed(self.program, value) && !self.is_mask(*dst, value);
        if !self.program.vars[*dst].kind.is_hidden() || is_computed {
            return false;
        }
        let mut from = BTreeSet::new();
        read_by_inst(inst, &self.program.headers, &mut |var| self.expand(var, &mut from));
        self.sources.entry(*dst).or_default().extend(from);
        true
    }

    /// The variables of the program that a variable stands for.
    fn expand(&self, var: VarId, to: &mut BTreeSet<VarId>) {
        match self.sources.get(&var) {
            Some(sources) => to.extend(sources),
            None => {
                to.insert(var);
            }
        }
    }

    /// What an instruction reads and writes, methods that it runs included.
    fn accesses(&self, inst: &InstKind) -> (BTreeSet<VarId>, BTreeSet<VarId>) {
        let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
        if !matches!(inst, InstKind::Call(_)) {
            read_by_inst(inst, &self.program.headers, &mut |var| self.expand(var, &mut reads));
        }
        written(inst, &self.program.headers, &mut |var| {
            writes.insert(var);
        });
        if let InstKind::Call(call) = inst {
            self.inputs(inst, call, &mut reads);
            self.methods(call, &mut reads, &mut writes);
        }
        reads.retain(|var| !matches!(self.program.vars[*var].kind, VarKind::ActionParameter));
        (reads, writes)
    }

    /// What a call reads: not what it only writes, though the IR counts that as read.
    fn inputs(&self, inst: &InstKind, call: &Call, reads: &mut BTreeSet<VarId>) {
        let mut only_out: BTreeSet<VarId> = BTreeSet::new();
        for argument in &call.arguments {
            if let weir_ir::ArgumentValue::Out(vars) = &argument.value {
                only_out.extend(vars);
            }
        }
        read_by_inst(inst, &self.program.headers, &mut |var| {
            if !only_out.contains(&var) && call.entry != Some(var) {
                self.expand(var, reads);
            }
        });
    }

    fn methods(&self, call: &Call, reads: &mut BTreeSet<VarId>, writes: &mut BTreeSet<VarId>) {
        let Some((instance, closure)) = call.methods() else {
            return;
        };
        let methods = &self.program.externs[instance].methods;
        for method in methods.iter().filter(|m| m.closure == closure) {
            let own: BTreeSet<VarId> = method.parameters.iter().flat_map(|(_, vars)| vars).copied().collect();
            let is_own = |var: VarId| own.contains(&var) || method.results.contains(&var);
            read_by(self.program, &method.body, &mut |var| {
                if !is_own(var) && !matches!(self.program.vars[var].kind, VarKind::Temporary | VarKind::Local) {
                    reads.insert(var);
                }
            });
            for inst in method.body.blocks.iter().flat_map(|(_, b)| &b.insts) {
                written(&inst.kind, &self.program.headers, &mut |var| {
                    if !is_own(var) && !matches!(self.program.vars[var].kind, VarKind::Temporary | VarKind::Local) {
                        writes.insert(var);
                    }
                });
            }
        }
    }

    fn lookup(&mut self, id: BlockId) {
        let block = &self.body.blocks[id];
        let Terminator::Lookup(lookup) = &block.terminator else {
            return;
        };
        let mut node = Collected {
            name: self.program.tables[lookup.table].name.clone(),
            kind: NodeKind::Table(self.tables[lookup.table.index()].unwrap_or_default()),
            loc: block.loc,
            at: (id, block.insts.len()),
            matches: BTreeSet::new(),
            reads: BTreeSet::new(),
            writes: BTreeSet::new(),
            conditions: Vec::new(),
            outcome: Some(lookup.table),
        };
        for key in &lookup.keys {
            if let Operand::Var(var) = key {
                self.expand(*var, &mut node.matches);
            }
        }
        let site = Site {
            table: lookup.table,
            block: id,
        };
        for (block, range) in action_regions(self.program, self.body, &site).into_iter().flatten() {
            for at in range {
                let inst = &self.body.blocks[block].insts[at];
                if !self.effects.has_effect(block, at) || self.look_through(&inst.kind) {
                    continue;
                }
                let (reads, writes) = self.accesses(&inst.kind);
                node.reads.extend(reads);
                node.writes.extend(writes);
            }
            node.reads.extend(self.branch_reads(&self.body.blocks[block], block));
        }
        self.found.push(node);
    }

    /// What the branch at the end of a block reads, unless it belongs to a lookup.
    fn branch_reads(&self, block: &BasicBlock, id: BlockId) -> BTreeSet<VarId> {
        let mut reads = BTreeSet::new();
        let is_branch = matches!(
            block.terminator,
            Terminator::Branch { .. } | Terminator::Switch { .. } | Terminator::Select { .. }
        );
        if is_branch && !self.dispatch.contains(&id) {
            read_by_terminator(&block.terminator, &mut |var| self.expand(var, &mut reads));
        }
        reads
    }

    /// Gives each node the branches that decide whether it executes: those that reach it from some
    /// of their targets, but not from all.
    fn add_conditions(&mut self) {
        let flow = Flow::of(self.body);
        let mut conditions = Vec::new();
        for id in walk::order(self.body) {
            let block = &self.body.blocks[id];
            let reads = self.branch_reads(block, id);
            let targets = block.terminator.targets();
            if reads.is_empty() || self.is_owned(id, block.insts.len().saturating_sub(1)) {
                continue;
            }
            let outcomes = reads.iter().map(|var| self.outcomes.get(var).copied()).collect();
            let reads = reads
                .into_iter()
                .filter(|var| !self.outcomes.contains_key(var))
                .collect();
            let at = (id, block.insts.len());
            conditions.push((targets, Condition { at, reads, outcomes }));
        }
        for node in &mut self.found {
            let leads = |target: &BlockId| *target == node.at.0 || flow.reaches(*target, node.at.0);
            for (targets, condition) in &conditions {
                let leading = targets.iter().filter(|target| leads(target)).count();
                if leading > 0 && leading < targets.len() {
                    node.conditions.push(condition.clone());
                }
            }
        }
    }
}
