//! Checks that a program conforms to its architecture. Compiled programs do; an edited text need
//! not.
//!
//! 1. Its programmable blocks are those of one package, each once, parsers where parsers belong,
//!    and none is missing.
//! 2. A programmable block uses the shared variables that its parameters are bound to, no others.
//!    Only blocks with the packet emit.
//! 3. Every group of shared variables is bound to a parameter, and the scalars of it that are in no
//!    header have at most 64 bits where the architecture knows them.
//! 4. A table's implementation is an action profile or selector. A resource with a value per entry
//!    belongs to one table.
//! 5. Calls and instances have the arguments that the architecture's files declare
//!    ([`crate::signatures`]).

use crate::error::{LoadError, place};
use crate::signatures::Signatures;
use std::collections::{HashMap, HashSet};
use weir_ir::target::{BlockSpec, PackageSpec, ResourceKind, Target};
use weir_ir::verify::used_by_block;
use weir_ir::{Block, BlockKind, Body, ExternId, InstKind, Loc, Program, Shared, Type, VarId};

/// Parts of the roles of the groups whose variables are the architecture's own.
const INTRINSIC: [&str; 4] = [
    "standard_metadata",
    "intrinsic_metadata",
    "input_metadata",
    "output_metadata",
];

/// All that is wrong with a program of a target. Every id in it must name something.
pub(crate) fn errors(program: &Program, target: &Target) -> Vec<LoadError> {
    let mut check = Check {
        program,
        target,
        errors: Vec::new(),
    };
    check.blocks();
    check.tables();
    check.calls();
    check.errors
}

struct Check<'a> {
    program: &'a Program,
    target: &'a Target,
    errors: Vec<LoadError>,
}

impl Check<'_> {
    fn require(&mut self, good: bool, loc: Loc, problem: impl FnOnce() -> String) {
        if !good {
            self.errors.push(LoadError::NotOfTarget {
                problem: problem(),
                place: place(self.program, loc),
                target: self.target.name,
            });
        }
    }

    fn blocks(&mut self) {
        let target = self.target;
        let Some(package) = package_of(self.program, target) else {
            let roles: Vec<&str> = self.program.blocks.iter().map(|b| b.role.as_str()).collect();
            self.require(false, Loc::default(), || {
                format!("no package has the blocks {}", roles.join(", "))
            });
            return;
        };
        for spec in package.blocks.iter().filter(|s| !s.optional) {
            if !self.program.blocks.iter().any(|b| b.role == spec.role) {
                let (role, target) = (spec.role, target.name);
                self.errors.push(LoadError::MissingBlock { role, target });
            }
        }
        let mut bound: HashSet<&str> = HashSet::new();
        let roles: HashMap<VarId, &str> = self
            .program
            .shared
            .iter()
            .flat_map(|s| s.leaves.iter().map(|l| (l.var, s.role.as_str())))
            .collect();
        let mut seen = HashSet::new();
        for block in &self.program.blocks {
            self.require(seen.insert(&block.role), block.loc, || {
                format!("there are two blocks `{}`", block.role)
            });
            for spec in package.blocks.iter().filter(|s| s.role == block.role) {
                bound.extend(spec.bindings);
                self.block(block, spec, &roles);
            }
        }
        for group in &self.program.shared {
            self.intrinsic(group);
            self.require(bound.contains(group.role.as_str()), Loc::default(), || {
                format!("no block is bound to the shared variables `{}`", group.role)
            });
        }
    }

    /// The architecture reads and writes these as numbers.
    fn intrinsic(&mut self, group: &Shared) {
        if !INTRINSIC.iter().any(|part| group.role.contains(part)) {
            return;
        }
        for leaf in &group.leaves {
            let ty = self.program.vars[leaf.var].ty;
            self.require(matches!(ty, Type::Bits(0..=64)), Loc::default(), || {
                format!("`{}` of `{}` is {ty:?}", leaf.path, group.role)
            });
        }
    }

    fn block(&mut self, block: &Block, spec: &BlockSpec, roles: &HashMap<VarId, &str>) {
        self.require(block.kind == kind_of(spec), block.loc, || {
            format!("`{}` must be a {:?}", block.role, kind_of(spec))
        });
        let used = used_by_block(self.program, &block.body);
        for var in used {
            let Some(role) = roles.get(&var) else { continue };
            self.require(spec.bindings.contains(role), block.loc, || {
                let name = &self.program.vars[var].name;
                format!("`{}` has no parameter that `{name}` of `{role}` belongs to", block.role)
            });
        }
        let emits = emits(&block.body);
        self.require(
            emits.is_none() || spec.bindings.contains(&""),
            emits.unwrap_or_default(),
            || format!("`{}` has no packet to emit headers to", block.role),
        );
    }

    fn kind(&self, id: ExternId) -> Option<ResourceKind> {
        let instance = &self.program.externs[id];
        self.target.control.resource(&instance.type_name).map(|r| r.kind)
    }

    fn tables(&mut self) {
        let mut owners: HashMap<ExternId, &str> = HashMap::new();
        for (_, table) in self.program.tables.iter() {
            if let Some(id) = table.implementation {
                let kind = self.kind(id);
                let good = matches!(kind, Some(ResourceKind::ActionProfile | ResourceKind::ActionSelector));
                self.require(good, table.loc, || {
                    let name = &self.program.externs[id].name;
                    format!("table `{}` cannot be implemented by `{name}`", table.name)
                });
            }
            for &id in &table.direct {
                let name = &self.program.externs[id].name;
                let good = self.kind(id).is_some_and(ResourceKind::is_direct);
                self.require(good, table.loc, || {
                    format!("`{name}` has no values for the entries of table `{}`", table.name)
                });
                let other = owners.insert(id, &table.name);
                self.require(other.is_none(), table.loc, || {
                    format!("`{name}` belongs to two tables, or twice to table `{}`", table.name)
                });
            }
        }
    }

    fn calls(&mut self) {
        let signatures = Signatures::of(self.target);
        for (_, instance) in self.program.externs.iter() {
            if let Some(problem) = signatures.instance(instance) {
                self.require(false, instance.loc, || problem);
            }
        }
        let bodies = self.program.blocks.iter().map(|b| &b.body);
        let methods = self
            .program
            .externs
            .iter()
            .flat_map(|(_, x)| &x.methods)
            .map(|m| &m.body);
        let blocks = bodies.chain(methods).flat_map(|b| b.blocks.iter());
        for inst in blocks.flat_map(|(_, block)| &block.insts) {
            let InstKind::Call(call) = &inst.kind else { continue };
            if let Some(problem) = signatures.call(self.program, call) {
                self.require(false, inst.loc, || problem);
            }
        }
    }
}

/// The package that has all programmable blocks of a program.
fn package_of(program: &Program, target: &Target) -> Option<&'static PackageSpec> {
    let has = |package: &PackageSpec, role: &str| package.blocks.iter().any(|s| s.role == role);
    target
        .packages
        .iter()
        .find(|package| program.blocks.iter().all(|b| has(package, &b.role)))
}

/// The kind of a programmable block: deparsers have the packet, too, and are controls.
fn kind_of(spec: &BlockSpec) -> BlockKind {
    match spec.bindings.contains(&"") && !spec.role.contains("deparser") {
        true => BlockKind::Parser,
        false => BlockKind::Control,
    }
}

/// Where a body emits a header first.
fn emits(body: &Body) -> Option<Loc> {
    let mut insts = body.blocks.iter().flat_map(|(_, block)| &block.insts);
    let found = insts.find(|inst| matches!(inst.kind, InstKind::Emit { .. }));
    found.map(|inst| inst.loc)
}
