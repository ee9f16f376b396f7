//! Which variables a parser's decisions depend on, and which of them the architecture sets.

use super::{Unsupported, externs};
use std::collections::BTreeSet;
use weir_ir::{
    Block, BlockId, Body, Call, ExternId, InLeaf, Inst, InstKind, Operand, Pattern, Program, Rvalue, Terminator,
    ValueSetId, VarId, VarKind,
};

/// What a parser's control flow depends on.
#[derive(Debug, Default)]
pub(super) struct Needed {
    /// Variables whose values decide where control goes, or how much is taken from the packet.
    vars: BTreeSet<VarId>,
    /// Extern instances of which this is true.
    instances: BTreeSet<ExternId>,
    /// Those that the architecture gives the parser.
    pub inputs: Vec<VarId>,
    /// Value sets, in the order of their first use.
    pub sets: Vec<ValueSetId>,
}

impl Needed {
    /// Those of a parser.
    ///
    /// # Errors
    /// A needed variable is set by an extern, or there is a table lookup.
    pub fn of(program: &Program, block: &Block) -> Result<Self, Vec<Unsupported>> {
        let mut needed = Needed::default();
        let body = &block.body;
        let order = body.in_order();
        needed.vars.extend(body.error);
        let mut errors = Vec::new();
        for id in &order {
            needed.add_roots(&body.blocks[*id], &mut errors);
        }
        // Each round adds a variable, or is the last one.
        loop {
            let before = (needed.vars.len(), needed.instances.len());
            for id in &order {
                needed.add_sources(program, &body.blocks[*id].insts);
            }
            if (needed.vars.len(), needed.instances.len()) == before {
                break;
            }
        }
        for inst in order.iter().flat_map(|id| &body.blocks[*id].insts) {
            needed.check(program, inst, &mut errors);
        }
        needed.inputs = needed.find_inputs(program, body, &order);
        if errors.is_empty() { Ok(needed) } else { Err(errors) }
    }

    /// Whether decisions depend on a variable.
    pub fn has(&self, var: VarId) -> bool {
        self.vars.contains(&var)
    }

    /// Whether decisions depend on a call.
    pub fn has_call(&self, call: &Call) -> bool {
        call.instance.is_some_and(|id| self.instances.contains(&id)) || written(call).any(|var| self.has(var))
    }

    /// The number of a value set among those that are needed, from 1.
    pub fn set_number(&self, id: ValueSetId) -> usize {
        self.sets.iter().position(|set| *set == id).map_or(0, |index| index + 1)
    }

    fn add(&mut self, operand: &Operand) {
        if let Operand::Var(var) = operand {
            self.vars.insert(*var);
        }
    }

    fn add_roots(&mut self, block: &weir_ir::BasicBlock, errors: &mut Vec<Unsupported>) {
        for inst in &block.insts {
            match &inst.kind {
                InstKind::Extract { varbit_bits, .. } => varbit_bits.iter().for_each(|bits| self.add(bits)),
                InstKind::Advance { bits } => self.add(bits),
                InstKind::Assign { .. }
                | InstKind::Lookahead { .. }
                | InstKind::PacketLength { .. }
                | InstKind::Emit { .. }
                | InstKind::Call(_)
                | InstKind::Mark(_) => {}
            }
        }
        match &block.terminator {
            Terminator::Branch { condition, .. } => self.add(condition),
            Terminator::Switch { value, .. } => self.add(value),
            Terminator::Select { keys, cases, .. } => {
                keys.iter().for_each(|key| self.add(key));
                let patterns = cases.iter().flat_map(|case| &case.patterns);
                patterns.for_each(|pattern| self.add_pattern(pattern));
            }
            Terminator::Lookup(_) => {
                let message = "a parser that looks a table up cannot be a dissector";
                errors.push(Unsupported::new(message, block.loc));
            }
            Terminator::Goto(_)
            | Terminator::Accept
            | Terminator::Reject
            | Terminator::Return
            | Terminator::Exit(_)
            | Terminator::Suspend(_) => {}
        }
    }

    fn add_pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Any => {}
            Pattern::Exact(value) => self.add(value),
            Pattern::Mask(first, second) | Pattern::Range(first, second, _) => {
                self.add(first);
                self.add(second);
            }
            Pattern::ValueSet(id) => {
                if !self.sets.contains(id) {
                    self.sets.push(*id);
                }
            }
        }
    }

    /// What needed variables are computed from.
    fn add_sources(&mut self, program: &Program, insts: &[Inst]) {
        for inst in insts {
            match &inst.kind {
                InstKind::Assign { dst, value } if self.has(*dst) => {
                    operands(value).into_iter().for_each(|operand| self.add(operand));
                }
                InstKind::Call(call) if self.has_call(call) => self.add_call(program, call),
                InstKind::Assign { .. }
                | InstKind::Call(_)
                | InstKind::Extract { .. }
                | InstKind::Advance { .. }
                | InstKind::Lookahead { .. }
                | InstKind::PacketLength { .. }
                | InstKind::Emit { .. }
                | InstKind::Mark(_) => {}
            }
        }
    }

    fn add_call(&mut self, program: &Program, call: &Call) {
        self.instances.extend(call.instance);
        for leaf in (0..call.arguments.len()).flat_map(|index| call.inputs(index)) {
            match leaf {
                InLeaf::Value(operand) => self.add(operand),
                InLeaf::Header(id) => {
                    let header = &program.headers[*id];
                    self.vars.insert(header.valid);
                    self.vars.extend(&header.fields);
                }
            }
        }
    }

    /// What a call writes must be known.
    fn check(&self, program: &Program, inst: &Inst, errors: &mut Vec<Unsupported>) {
        let InstKind::Call(call) = &inst.kind else { return };
        if self.has_call(call) && externs::method(program, call).is_none() {
            let name = match call.instance {
                Some(instance) => format!("{}.{}", program.externs[instance].name, call.function),
                None => call.function.clone(),
            };
            let message = format!("the parser depends on the extern call `{name}`, which a dissector cannot execute");
            errors.push(Unsupported::new(message, inst.loc));
        }
    }

    /// Needed variables of the architecture that are read before they are written.
    fn find_inputs(&self, program: &Program, body: &Body, order: &[BlockId]) -> Vec<VarId> {
        let users = |role: &str| role.ends_with("headers") || is_users_metadata(role);
        let groups = program.shared.iter().filter(|group| !users(&group.role));
        let given: BTreeSet<VarId> = groups.flat_map(|group| &group.leaves).map(|leaf| leaf.var).collect();
        let is_input = |var: VarId| given.contains(&var) && program.vars[var].kind == VarKind::Shared && self.has(var);
        let mut read_first: BTreeSet<VarId> = BTreeSet::new();
        for id in order {
            let mut written = BTreeSet::new();
            let block = &body.blocks[*id];
            for inst in &block.insts {
                let reads = reads(&inst.kind);
                read_first.extend(reads.into_iter().filter(|var| is_input(*var) && !written.contains(var)));
                if let InstKind::Assign { dst, .. } = &inst.kind {
                    written.insert(*dst);
                }
            }
            let reads = terminator_reads(&block.terminator);
            read_first.extend(reads.into_iter().filter(|var| is_input(*var) && !written.contains(var)));
        }
        read_first.into_iter().collect()
    }
}

/// The variables that a call writes.
fn written(call: &Call) -> impl Iterator<Item = VarId> + '_ {
    let outputs = (0..call.arguments.len()).flat_map(|index| call.outputs(index));
    outputs.chain(&call.results).copied()
}

/// Whether a role is that of the program's own metadata, which begins as zero.
fn is_users_metadata(role: &str) -> bool {
    let last = role.rsplit('.').next().unwrap_or(role);
    matches!(last, "metadata" | "ingress_metadata")
}

fn variables<'a>(operands: impl IntoIterator<Item = &'a Operand>) -> Vec<VarId> {
    let vars = operands.into_iter().filter_map(|operand| match operand {
        Operand::Var(var) => Some(*var),
        Operand::Const(_) => None,
    });
    vars.collect()
}

fn reads(kind: &InstKind) -> Vec<VarId> {
    match kind {
        InstKind::Assign { value, .. } => variables(operands(value)),
        InstKind::Extract { varbit_bits, .. } => variables(varbit_bits),
        InstKind::Advance { bits } => variables([bits]),
        InstKind::Call(call) => {
            let leaves = (0..call.arguments.len()).flat_map(|index| call.inputs(index));
            let values = leaves.filter_map(|leaf| match leaf {
                InLeaf::Value(operand) => Some(operand),
                InLeaf::Header(_) => None,
            });
            variables(values)
        }
        InstKind::Lookahead { .. } | InstKind::PacketLength { .. } | InstKind::Emit { .. } | InstKind::Mark(_) => {
            Vec::new()
        }
    }
}

fn terminator_reads(terminator: &Terminator) -> Vec<VarId> {
    match terminator {
        Terminator::Branch { condition, .. } => variables([condition]),
        Terminator::Switch { value, .. } => variables([value]),
        Terminator::Select { keys, .. } => variables(keys),
        Terminator::Lookup(lookup) => variables(&lookup.keys),
        Terminator::Goto(_)
        | Terminator::Accept
        | Terminator::Reject
        | Terminator::Return
        | Terminator::Exit(_)
        | Terminator::Suspend(_) => Vec::new(),
    }
}

/// The operands of a value.
fn operands(value: &Rvalue) -> Vec<&Operand> {
    match value {
        Rvalue::Use(a) | Rvalue::Unary(_, a) | Rvalue::ZeroExtend(a) | Rvalue::SignExtend(a) => vec![a],
        Rvalue::Slice { value, .. } => vec![value],
        Rvalue::Binary(_, a, b) | Rvalue::VarbitEq(a, b) => vec![a, b],
        Rvalue::Insert { base, value, .. } => vec![base, value],
        Rvalue::Mux {
            condition,
            then,
            otherwise,
        } => vec![condition, then, otherwise],
    }
}
