//! The data of an action are read only where a lookup has chosen that action.
//!
//! A lookup writes the parameters of the action that it chooses and no others. Engines keep the
//! parameters of a table's actions in the same words, so that those of another action hold any
//! value.
//!
//! The check walks backwards from each block that reads parameters. A path is good if it comes from
//! an edge that only the action takes: a case of a switch on the lookup's `action`. Before that
//! switch the table's last lookup must be the one that wrote the switched variable. A walk visits a
//! block once for each action whose data the block may follow: in programs of a compiler, one.

use super::Verifier;
use crate::passes::{read_by, read_by_inst, read_by_terminator, written};
use crate::program::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The table and position there of the action that a parameter belongs to.
type Owners = HashMap<VarId, (TableId, usize)>;

impl Verifier<'_> {
    /// Checks every block. Every id must have been checked.
    pub(super) fn action_data(&mut self) {
        let p = self.program;
        let mut owners = Owners::new();
        for (id, table) in p.tables.iter() {
            for (index, action) in table.actions.iter().enumerate() {
                owners.extend(action.parameters.iter().map(|v| (*v, (id, index))));
            }
        }
        let methods = methods(p);
        for block in &p.blocks {
            let mut walk = Walk::new(p, &block.body, &owners, &methods);
            for (id, reads) in walk.reads(&methods) {
                for (table, action) in reads {
                    if !walk.is_chosen(id, table, action) {
                        let table = &p.tables[table];
                        let name = p.actions.get(table.actions[action].action).map_or("", |a| &a.name);
                        self.at(format!("block {} b{}", block.role, id.index()));
                        self.error(format!(
                            "it reads data of action {name} where table {} may have chosen another one, or none",
                            table.name
                        ));
                    }
                }
            }
        }
    }
}

/// The effects of the methods of an instance, for one closure, and of the methods that they call.
#[derive(Debug, Default, Clone)]
struct Effects {
    /// Parameters of actions that they read.
    reads: BTreeSet<VarId>,
    /// Variables that they write.
    writes: BTreeSet<VarId>,
    /// The instances that they call, with the closure.
    calls: BTreeSet<(ExternId, u32)>,
}

type Methods = HashMap<(ExternId, u32), Effects>;

/// The effects of the methods of each instance. Methods do not call themselves.
fn methods(program: &Program) -> Methods {
    let mut found = Methods::new();
    for (id, instance) in program.externs.iter() {
        for method in &instance.methods {
            let effects = found.entry((id, method.closure)).or_default();
            read_by(program, &method.body, &mut |v| {
                if program.vars[v].kind == VarKind::ActionParameter {
                    effects.reads.insert(v);
                }
            });
            let writes = method.parameters.iter().flat_map(|(_, vars)| vars);
            effects.writes.extend(writes.chain(&method.results));
            for inst in method.body.blocks.iter().flat_map(|(_, block)| &block.insts) {
                written(&inst.kind, &program.headers, &mut |v| {
                    effects.writes.insert(v);
                });
                effects.calls.extend(inst.kind.call().and_then(Call::methods));
            }
        }
    }
    let keys: Vec<(ExternId, u32)> = found.keys().copied().collect();
    let mut done = HashSet::new();
    for key in keys {
        complete(&mut found, key, &mut done);
    }
    found
}

/// Adds the effects of the methods that a method calls, theirs first.
fn complete(methods: &mut Methods, key: (ExternId, u32), done: &mut HashSet<(ExternId, u32)>) {
    let mut open = vec![(key, false)];
    while let Some((key, is_behind)) = open.pop() {
        let Some(calls) = methods.get(&key).map(|effects| effects.calls.clone()) else {
            continue;
        };
        if is_behind {
            let inner: Vec<Effects> = calls.iter().filter_map(|c| methods.get(c)).cloned().collect();
            if let Some(effects) = methods.get_mut(&key) {
                for inner in inner {
                    effects.reads.extend(inner.reads);
                    effects.writes.extend(inner.writes);
                }
            }
        } else if done.insert(key) {
            open.push((key, true));
            open.extend(calls.into_iter().map(|call| (call, false)));
        }
    }
}

/// A body that is walked backwards.
struct Walk<'a> {
    program: &'a Program,
    body: &'a Body,
    owners: &'a Owners,
    /// Predecessors of each block, each once.
    before: Vec<Vec<BlockId>>,
    /// The `action` variables of each table's lookups.
    actions: HashMap<TableId, Vec<VarId>>,
    /// Variables that something else than a lookup writes.
    written: HashSet<VarId>,
    /// Blocks that are known to follow the choice of an action. So each block is visited once for
    /// each action.
    chosen: HashMap<(TableId, usize), HashSet<BlockId>>,
    /// By the block that a switch ends and its targets: the only action of the table that leads
    /// there.
    only: HashMap<(BlockId, TableId), HashMap<BlockId, Option<usize>>>,
    /// Whether blocks are always after a lookup of a table that wrote a variable.
    looked_up: HashMap<(BlockId, TableId, VarId), bool>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program, body: &'a Body, owners: &'a Owners, methods: &Methods) -> Self {
        let mut before = vec![Vec::new(); body.blocks.len()];
        let mut actions: HashMap<TableId, Vec<VarId>> = HashMap::new();
        let mut others = HashSet::new();
        for (id, block) in body.blocks.iter() {
            let successors: BTreeSet<BlockId> = body.successors(id).into_iter().collect();
            successors.into_iter().for_each(|next| before[next.index()].push(id));
            for inst in &block.insts {
                written(&inst.kind, &program.headers, &mut |v| {
                    others.insert(v);
                });
                let effects = inst.kind.call().and_then(Call::methods).and_then(|m| methods.get(&m));
                others.extend(effects.into_iter().flat_map(|effects| &effects.writes));
            }
            if let Terminator::Lookup(lookup) = &block.terminator {
                actions.entry(lookup.table).or_default().push(lookup.action);
            }
        }
        Walk {
            program,
            body,
            owners,
            before,
            actions,
            written: others,
            chosen: HashMap::new(),
            only: HashMap::new(),
            looked_up: HashMap::new(),
        }
    }

    /// The actions whose data each block reads, itself or by the methods that it calls.
    fn reads(&self, methods: &Methods) -> BTreeMap<BlockId, BTreeSet<(TableId, usize)>> {
        let mut found: BTreeMap<BlockId, BTreeSet<(TableId, usize)>> = BTreeMap::new();
        for (id, block) in self.body.blocks.iter() {
            let mut note = |v: VarId| {
                if let Some(owner) = self.owners.get(&v) {
                    found.entry(id).or_default().insert(*owner);
                }
            };
            for inst in &block.insts {
                read_by_inst(&inst.kind, &self.program.headers, &mut note);
                if let Some(effects) = inst.kind.call().and_then(Call::methods).and_then(|m| methods.get(&m)) {
                    effects.reads.iter().for_each(|v| note(*v));
                }
            }
            read_by_terminator(&block.terminator, &mut note);
        }
        found
    }

    /// Whether every path to a block has chosen an action of a table.
    fn is_chosen(&mut self, block: BlockId, table: TableId, action: usize) -> bool {
        let known = self.chosen.remove(&(table, action)).unwrap_or_default();
        let (mut seen, mut open) = (known, Vec::new());
        if seen.insert(block) {
            open.push(block);
        }
        while let Some(at) = open.pop() {
            if at.index() == 0 {
                return false;
            }
            for from in self.before[at.index()].clone() {
                match self.edge(from, at, table, action) {
                    Edge::Chosen => {}
                    Edge::Other => return false,
                    Edge::Open => {
                        if seen.insert(from) {
                            open.push(from);
                        }
                    }
                }
            }
        }
        // No path to any of them comes from elsewhere.
        self.chosen.insert((table, action), seen);
        true
    }

    /// The fact that an edge between blocks implies about the action that a table has chosen.
    fn edge(&mut self, from: BlockId, to: BlockId, table: TableId, action: usize) -> Edge {
        let count = self.program.tables[table].actions.len();
        match &self.body.blocks[from].terminator {
            Terminator::Lookup(lookup) if lookup.table == table => match count {
                1 => Edge::Chosen,
                _ => Edge::Other,
            },
            Terminator::Switch {
                value: Operand::Var(var),
                cases,
                default,
            } if self.actions.get(&table).is_some_and(|vars| vars.contains(var)) && !self.written.contains(var) => {
                let var = *var;
                let only = self
                    .only
                    .entry((from, table))
                    .or_insert_with(|| leading(count, cases, *default));
                match only.get(&to) == Some(&Some(action)) {
                    true if self.is_looked_up(from, table, var) => Edge::Chosen,
                    _ => Edge::Open,
                }
            }
            _ => Edge::Open,
        }
    }

    /// Whether every path to the end of a block has a lookup of the table that writes the variable,
    /// and after it no lookup that is of the table or writes the variable.
    fn is_looked_up(&mut self, block: BlockId, table: TableId, var: VarId) -> bool {
        if let Some(known) = self.looked_up.get(&(block, table, var)) {
            return *known;
        }
        let (mut seen, mut open) = (HashSet::from([block]), vec![block]);
        let mut good = true;
        while let Some(at) = open.pop().filter(|_| good) {
            good &= at.index() != 0;
            for &from in &self.before[at.index()] {
                match &self.body.blocks[from].terminator {
                    Terminator::Lookup(lookup) if (lookup.table, lookup.action) == (table, var) => {}
                    Terminator::Lookup(lookup) if lookup.table == table || lookup.action == var => good = false,
                    _ => {
                        if seen.insert(from) {
                            open.push(from);
                        }
                    }
                }
            }
        }
        self.looked_up.insert((block, table, var), good);
        good
    }
}

/// By target of a switch on the number of an action: the action that leads there; `None` if several
/// do.
fn leading(actions: usize, cases: &[(crate::Bits, BlockId)], default: BlockId) -> HashMap<BlockId, Option<usize>> {
    let listed: HashMap<u64, BlockId> = cases.iter().filter_map(|(v, to)| Some((v.to_u64()?, *to))).collect();
    let mut found: HashMap<BlockId, Option<usize>> = HashMap::new();
    for action in 0..actions {
        let target = listed.get(&(action as u64)).copied().unwrap_or(default);
        found
            .entry(target)
            .and_modify(|only| *only = None)
            .or_insert(Some(action));
    }
    found
}

/// The facts known at an edge.
enum Edge {
    /// The action has been chosen.
    Chosen,
    /// Any action may have been.
    Other,
    /// The facts known where it begins.
    Open,
}
