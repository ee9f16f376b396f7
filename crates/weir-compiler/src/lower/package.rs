//! `main`: from the package to the program's blocks.

use super::Lowerer;
use super::value::{BlockInstance, Entity, Object, PackageInstance, Place, Val};
use crate::check::DefKind;
use crate::types::Ty;
use std::rc::Rc;
use weir_ir::target::{BlockSpec, PackageSpec};
use weir_ir::{Block, BlockKind, Body, Display, Shared, Terminator, Type, Var, VarKind};

/// The group of variables of a role, once its first block has been met.
struct Group {
    role: &'static str,
    place: Place,
    ty: Ty,
}

impl Lowerer<'_, '_> {
    /// Lowers everything. False where there is nothing to lower.
    pub(super) fn package(&mut self) -> bool {
        self.program.errors = error_codes(self.checked.errors.iter().map(|e| e.name.to_string()));
        let codes = (0..).zip(&self.program.errors).map(|(code, name)| (name.clone(), code));
        self.error_codes = codes.collect();
        let Some(main) = self.checked.main else { return false };
        let Some(package) = self.checked.main_package(self.target) else {
            return false;
        };
        let DefKind::Instance { ast, .. } = self.def_kind(main) else {
            return false;
        };
        let ast = *ast;
        let annotations = self.checked.defs[main.0 as usize].annotations;
        self.program.annotations = self.annotations(annotations);
        let Val::Object(Object::Package(arguments)) = self.instantiate(main, ast) else {
            return false;
        };
        // Other top-level instances exist even where no block uses them.
        let mut globals: Vec<_> = self.globals.iter().copied().filter(|&g| g != main).collect();
        globals.sort();
        for global in globals {
            let is_extern = match self.def_kind(global) {
                DefKind::Instance { ty, .. } => {
                    matches!(self.checked.types.get(*ty), crate::types::TyKind::Extern(..))
                }
                _ => false,
            };
            if is_extern {
                self.entity(global);
            }
        }
        let pipelines = pipelines(package, &arguments);
        self.program.pipelines = pipelines.iter().map(|(_, name)| name.clone()).collect();
        let mut groups: Vec<Group> = Vec::new();
        let mut used: Vec<Rc<BlockInstance>> = Vec::new();
        for spec in package.blocks {
            match find_block(&arguments, spec.path) {
                // One package given for two parameters is the same blocks with the same tables:
                // they are there once.
                Some(instance) if spec.optional && used.iter().any(|u| Rc::ptr_eq(u, &instance)) => {}
                Some(instance) => {
                    let of = spec.path.first().and_then(|p| arguments.argument(p));
                    let of = pipelines.iter().find(|(pipeline, _)| is_package(of, pipeline));
                    self.pipeline = of.map_or(String::new(), |(_, name)| name.clone());
                    self.package_block(spec, &instance, &mut groups);
                    used.push(instance);
                }
                None if spec.optional => {}
                None => {
                    self.error(
                        "expected",
                        ast.name.span,
                        format!("the package has no block `{}`", spec.path.join(".")),
                    );
                }
            }
        }
        self.pipeline.clear();
        if self.exhausted {
            self.error(
                "overlimit",
                ast.name.span,
                "the program is too large once everything is inlined: more than 700,000 instructions or 500,000 variables",
            );
        }
        self.check_direct();
        self.warn_of_ignored_annotations();
        self.controller_headers();
        true
    }

    fn package_block(&mut self, spec: &BlockSpec, instance: &Rc<BlockInstance>, groups: &mut Vec<Group>) {
        let Some(params) = self.block_params(instance) else {
            return;
        };
        self.substitution.extend(instance.types.iter().copied());
        let declaration = &self.checked.defs[instance.def.0 as usize];
        let (name, span) = (declaration.name.clone(), declaration.span);
        let is_parser = matches!(declaration.kind, DefKind::Parser { .. });
        let loc = self.locate(span);
        self.loc = loc;
        self.body = Body::default();
        self.current = self.new_block();
        let end = self.new_block();
        self.body.blocks[end].terminator = if is_parser {
            Terminator::Accept
        } else {
            Terminator::Return
        };
        self.flow.exit_to = end;
        self.flow.return_to = end;
        if is_parser {
            let reject = self.new_block();
            self.body.blocks[reject].terminator = Terminator::Reject;
            self.body.on_error = Some(reject);
            let error = self.program.vars.push(Var {
                name: format!("{name}.$error$"),
                ty: Type::Bits(32),
                display: Display::Error,
                kind: VarKind::Local,
            });
            self.body.error = Some(error);
            self.reject = Some(reject);
        } else {
            self.reject = None;
        }
        for (i, param) in params.iter().enumerate() {
            let role = spec.bindings.get(i).copied().unwrap_or("");
            let ty = self.concrete(param.ty);
            if matches!(self.kind(ty), crate::types::TyKind::Extern(..)) {
                self.bindings
                    .insert(param.def, Entity::Value(Val::Object(Object::Packet)));
                continue;
            }
            let place = match groups.iter().find(|g| g.role == role && g.ty == ty && !role.is_empty()) {
                Some(group) => group.place.clone(),
                None => {
                    let place = self.allocate(&param.name.name, ty, VarKind::Shared);
                    let (leaves, headers) = self.shared_leaves(&place, ty);
                    let spec = self.type_spec(ty);
                    self.program.shared.push(Shared {
                        role: role.to_string(),
                        name: param.name.name.to_string(),
                        leaves,
                        headers,
                        ty: spec,
                    });
                    groups.push(Group {
                        role,
                        place: place.clone(),
                        ty,
                    });
                    place
                }
            };
            self.bindings.insert(param.def, Entity::Place(place));
        }
        // The control-plane name of a block of the package is that of its declaration; the
        // reference compiler does not ask its `@name`.
        let path = self.of_pipeline(&name);
        let root = Rc::new(BlockInstance {
            def: instance.def,
            types: instance.types.clone(),
            arguments: instance.arguments.clone(),
            path: path.clone(),
            locals: std::cell::RefCell::new(instance.locals.borrow().clone()),
        });
        self.block_body(&root);
        self.goto(end);
        if let Some(reject) = self.reject {
            self.finish_reject(reject);
        }
        let body = super::instance::clean(std::mem::take(&mut self.body));
        let kind = if is_parser {
            BlockKind::Parser
        } else {
            BlockKind::Control
        };
        self.program.blocks.push(Block {
            role: spec.role.to_string(),
            name: path,
            kind,
            body,
            loc,
        });
    }

    /// Header types that the control plane uses in packet-in and packet-out.
    fn controller_headers(&mut self) {
        let mut found = Vec::new();
        for (i, def) in self.checked.defs.iter().enumerate() {
            let marked = def.annotations.iter().any(|a| &*a.name.name == "controller_header");
            if let (true, DefKind::Struct { parameters, .. }) = (marked, &def.kind)
                && parameters.is_empty()
            {
                found.push(crate::types::DefId(i as u32));
            }
        }
        for def in found {
            let ty = self
                .checked
                .types
                .intern(crate::types::TyKind::Struct(def, Rc::new([])));
            self.header_type(ty);
        }
    }
}

/// The block at a path of package parameters.
fn find_block(package: &PackageInstance, path: &[&str]) -> Option<Rc<BlockInstance>> {
    let (first, rest) = path.split_first()?;
    match package.argument(first)? {
        Val::Object(Object::Block(instance)) if rest.is_empty() => Some(instance.clone()),
        Val::Object(Object::Package(inner)) => find_block(inner, rest),
        _ => None,
    }
}

fn is_package(value: Option<&Val>, package: &Rc<PackageInstance>) -> bool {
    matches!(value, Some(Val::Object(Object::Package(p))) if Rc::ptr_eq(p, package))
}

/// The pipelines of a switch and what control planes call them, where there are several; else names
/// need not tell them apart. One made in place is called after its parameter.
fn pipelines(spec: &PackageSpec, switch: &PackageInstance) -> Vec<(Rc<PackageInstance>, String)> {
    let mut found: Vec<(Rc<PackageInstance>, String)> = Vec::new();
    for parameter in spec.pipelines {
        let Some(Val::Object(Object::Package(package))) = switch.argument(parameter) else {
            continue;
        };
        if found.iter().any(|(known, _)| Rc::ptr_eq(known, package)) {
            continue;
        }
        let name = if package.name.is_empty() {
            parameter
        } else {
            package.name.as_str()
        };
        found.push((package.clone(), name.to_owned()));
    }
    if found.len() > 1 { found } else { Vec::new() }
}

/// Errors that a parser raises by itself (P4_16, section "The parser abstract machine" and
/// core.p4).
const CORE_ERRORS: [&str; 6] = [
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
];

/// The members of `error`, each at its number. `NoError` is 0, which every variable is before it is
/// assigned,
/// wherever it is declared; what a parser raises has a number even if the program does not declare
/// it.
fn error_codes(declared: impl Iterator<Item = String>) -> Vec<String> {
    let mut codes = vec!["NoError".to_owned()];
    codes.extend(declared.filter(|name| name != "NoError"));
    for name in CORE_ERRORS {
        if !codes.iter().any(|known| known == name) {
            codes.push(name.to_owned());
        }
    }
    codes
}
