//! Who owns a variable, and where it may stand.
//!
//! The passes and the compiling engines rely on this: a variable that is local to a block is not
//! kept once the block has ended, and a field changes only with its header.

use super::Verifier;
use crate::passes::{read_by, written};
use crate::program::*;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The owner of a variable or header, for messages.
type Claims<T> = HashMap<T, String>;

impl Verifier<'_> {
    /// Checks who owns what. Every id must have been checked.
    pub(super) fn owners(&mut self) {
        self.kinds();
        self.groups();
        self.parameters();
        self.places();
    }

    /// Fields and validities belong to the headers that have them.
    fn kinds(&mut self) {
        let p = self.program;
        for (id, header) in p.headers.iter() {
            self.at(format!("header h{} {}", id.index(), header.name));
            let good = p.vars[header.valid].kind == VarKind::Valid { header: id };
            self.require(good, || {
                format!("its validity %{} is no validity of it", header.valid.index())
            });
        }
        for (id, var) in p.vars.iter() {
            self.at(format!("variable %{} {}", id.index(), var.name));
            let owned = match var.kind {
                VarKind::Field { header, index } => {
                    p.headers.get(header).and_then(|h| h.fields.get(index as usize)) == Some(&id)
                }
                VarKind::Valid { header } => p.headers.get(header).map(|h| h.valid) == Some(id),
                VarKind::FieldCopy { valid } => {
                    (p.vars.get(valid)).is_some_and(|v| matches!(v.kind, VarKind::Valid { .. }))
                }
                VarKind::Shared | VarKind::Local | VarKind::Temporary | VarKind::ActionParameter => true,
            };
            self.require(owned, || format!("it is no {:?} of that header", var.kind));
        }
    }

    /// A variable or header is in one group, once, and a header with all its variables.
    fn groups(&mut self) {
        let p = self.program;
        let (mut vars, mut headers): (Claims<VarId>, Claims<HeaderId>) = Default::default();
        let mut roles: Claims<&str> = HashMap::new();
        for group in &p.shared {
            self.at(format!("shared {}", group.role));
            let twice = roles.insert(&group.role, group.name.clone());
            self.require(twice.is_none(), || "there are two groups of this role".into());
            for &id in &group.headers {
                if let Some(other) = headers.insert(id, group.role.clone()) {
                    self.error(format!("header h{} is in {other} already", id.index()));
                }
            }
            let here: HashSet<HeaderId> = group.headers.iter().copied().collect();
            let mut paths = HashSet::new();
            for leaf in &group.leaves {
                self.require(paths.insert(&leaf.path), || format!("`{}` stands twice", leaf.path));
                if let Some(other) = vars.insert(leaf.var, format!("{} as `{}`", group.role, leaf.path)) {
                    self.error(format!(
                        "`{}` is %{}, which is in {other} already",
                        leaf.path,
                        leaf.var.index()
                    ));
                }
                let is_here = match p.vars[leaf.var].kind {
                    VarKind::Shared => true,
                    VarKind::Field { header, .. } | VarKind::Valid { header } => here.contains(&header),
                    VarKind::Local | VarKind::Temporary | VarKind::FieldCopy { .. } | VarKind::ActionParameter => false,
                };
                self.require(is_here, || {
                    format!("`{}` is %{}, which is not shared", leaf.path, leaf.var.index())
                });
            }
        }
    }

    /// What every compiler's program has, and engines rely on.
    pub(super) fn saved(&mut self) {
        let p = self.program;
        for block in &p.blocks {
            self.at(format!("block {}", block.role));
            if let Some(error) = block.body.error {
                self.require(p.vars[error].kind == VarKind::Local, || {
                    format!("its error is %{}, which is no local variable", error.index())
                });
            }
            for (id, basic) in block.body.blocks.iter() {
                if let Terminator::Lookup(lookup) = &basic.terminator {
                    self.at(format!("block {} b{} end", block.role, id.index()));
                    self.lookup_results(lookup);
                }
            }
        }
        for group in &p.shared {
            let here: HashSet<VarId> = group.leaves.iter().map(|leaf| leaf.var).collect();
            for header in group.headers.iter().filter_map(|id| p.headers.get(*id)) {
                self.at(format!("shared {}", group.role));
                self.require(here.contains(&header.valid), || {
                    format!("header {} is in it, but not its validity", header.name)
                });
                for (&var, field) in header.fields.iter().zip(&p.header_types[header.ty].fields) {
                    self.require(here.contains(&var) || field.name == FLEXIBLE_PADDING, || {
                        format!("header {} is in it, but not its `{}`", header.name, field.name)
                    });
                }
            }
        }
        let leaves = || p.shared.iter().flat_map(|group| &group.leaves);
        let grouped: HashSet<VarId> = leaves().map(|leaf| leaf.var).collect();
        for (id, var) in p.vars.iter().filter(|(_, var)| var.kind == VarKind::Shared) {
            self.at(format!("variable %{} {}", id.index(), var.name));
            self.require(grouped.contains(&id), || {
                "it is shared, but in no group of shared variables".into()
            });
        }
        for leaf in leaves() {
            let name = match p.vars[leaf.var].kind {
                VarKind::Field { header, index } => {
                    let fields = p.headers.get(header).and_then(|h| p.header_types.get(h.ty));
                    fields
                        .and_then(|ty| ty.fields.get(index as usize))
                        .map(|f| f.name.as_str())
                }
                VarKind::Valid { .. } => Some("$valid$"),
                VarKind::Shared
                | VarKind::Local
                | VarKind::Temporary
                | VarKind::FieldCopy { .. }
                | VarKind::ActionParameter => None,
            };
            let Some(name) = name else { continue };
            self.at(format!("variable %{} {}", leaf.var.index(), p.vars[leaf.var].name));
            // A field within a struct of a header has a name with dots.
            let is_named = leaf.path.strip_suffix(name);
            let is_named = is_named.is_some_and(|above| above.is_empty() || above.ends_with('.'));
            self.require(is_named, || {
                format!("it is shared as `{}`, but it is `{name}` of its header", leaf.path)
            });
        }
    }

    /// Engines write the results of a lookup without updating headers or groups.
    fn lookup_results(&mut self, lookup: &Lookup) {
        for v in [lookup.hit, lookup.action, lookup.entry] {
            let kind = self.program.vars[v].kind;
            self.require(matches!(kind, VarKind::Local | VarKind::Temporary), || {
                format!("the lookup writes %{}, which is no local variable", v.index())
            });
        }
    }

    /// The data of an action at a table have variables of their own.
    fn parameters(&mut self) {
        let p = self.program;
        let mut claims: Claims<VarId> = HashMap::new();
        for (id, table) in p.tables.iter() {
            self.at(format!("table t{} {}", id.index(), table.name));
            for action in &table.actions {
                for v in &action.parameters {
                    let good = p.vars[*v].kind == VarKind::ActionParameter;
                    self.require(good, || format!("%{} is no action parameter", v.index()));
                    if let Some(other) = claims.insert(*v, table.name.clone()) {
                        self.error(format!("%{} is a parameter of another action of {other}", v.index()));
                    }
                }
            }
        }
    }

    /// A variable that is not shared stands in one block only; a method's body belongs to the block
    /// that calls it.
    fn places(&mut self) {
        let p = self.program;
        let shared = self.shared_headers();
        let mut seen: BTreeMap<VarId, usize> = BTreeMap::new();
        for (number, block) in p.blocks.iter().enumerate() {
            self.at(format!("block {}", block.role));
            for v in used_by_block(p, &block.body) {
                let crosses = match p.vars[v].kind {
                    VarKind::Shared => true,
                    VarKind::Field { header, .. } | VarKind::Valid { header } => shared.contains(&header),
                    VarKind::Local | VarKind::Temporary | VarKind::FieldCopy { .. } | VarKind::ActionParameter => false,
                };
                let first = *seen.entry(v).or_insert(number);
                self.require(crosses || first == number, || {
                    let other = p.blocks.get(first).map_or("", |b| b.role.as_str());
                    format!("%{} is not shared, and stands in block {other} too", v.index())
                });
            }
        }
    }

    fn shared_headers(&self) -> HashSet<HeaderId> {
        self.program
            .shared
            .iter()
            .flat_map(|s| s.headers.iter().copied())
            .collect()
    }
}

/// Every variable that a body reads or writes.
fn used_by(program: &Program, body: &Body, found: &mut Vec<VarId>) {
    read_by(program, body, &mut |v| found.push(v));
    found.extend(body.error);
    for (_, block) in body.blocks.iter() {
        for inst in &block.insts {
            written(&inst.kind, &program.headers, &mut |v| found.push(v));
        }
        if let Terminator::Lookup(lookup) = &block.terminator {
            found.extend([lookup.hit, lookup.action, lookup.entry]);
            let actions = &program.tables[lookup.table].actions;
            found.extend(actions.iter().flat_map(|a| a.parameters.iter().copied()));
        }
    }
}

/// Every variable that a block's body reads or writes, itself or in the bodies of the methods that
/// its calls may run. Every id must name something.
#[must_use]
pub fn used_by_block(program: &Program, body: &Body) -> Vec<VarId> {
    let mut found = Vec::new();
    used_by(program, body, &mut found);
    let insts = body.blocks.iter().flat_map(|(_, block)| &block.insts);
    let mut called: Vec<(ExternId, u32)> = insts.filter_map(|i| i.kind.call()?.methods()).collect();
    called.sort_unstable();
    called.dedup();
    for (id, closure) in called {
        let methods = program.externs[id].methods.iter().filter(|m| m.closure == closure);
        for method in methods {
            found.extend(method.parameters.iter().flat_map(|(_, vars)| vars));
            found.extend(&method.results);
            used_by(program, &method.body, &mut found);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
