//! Bodies that instances give to abstract methods, which may name what the block around them
//! declares.
//!
//! A body is lowered where a method of its instance is called, so its free names stand for what
//! they stand for
//! there: a parameter of the control around it is the argument of the application that is being
//! lowered. Calls
//! for which all free names stand for the same share one closure.

use super::Lowerer;
use super::instance::clean;
use super::value::{Entity, Object, Val};
use crate::check::{DefKind, FunctionKind, Signature};
use crate::types::{DefId, Ty, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use weir_ir::{ConstValue, ExternId, Method, TableId, Terminator, VarKind};
use weir_syntax::ast::{self, DeclarationKind};
use weir_syntax::source::Span;

/// Where an instance with bodies is declared, and the closures made of it so far.
pub(super) struct Bodies<'a> {
    declarations: &'a [ast::Declaration],
    /// The prefix of control-plane names there.
    path: String,
    /// What type parameters stand for there.
    substitution: FxHashMap<Ty, Ty>,
    /// What the declarations beside the methods stand for.
    own: FxHashMap<DefId, Entity>,
    closures: Vec<Closure>,
}

/// What the free names of one closure stand for.
struct Closure {
    captured: Vec<(DefId, Entity)>,
    table: Option<TableId>,
}

/// Names that a body has used while it is being lowered.
#[derive(Default)]
pub(super) struct Captures {
    instance: Option<ExternId>,
    used: FxHashMap<DefId, Entity>,
}

impl<'a> Lowerer<'a, '_> {
    /// Notes the bodies that an instance gives to abstract methods, and makes what is declared
    /// beside them.
    pub(super) fn closure_of_instance(&mut self, id: ExternId, declarations: &'a [ast::Declaration]) {
        // Instances may be declared within a body: afterwards `this` is the outer one again.
        let outer = self.this.replace(id);
        let mut own = FxHashMap::default();
        for declaration in declarations {
            if matches!(declaration.kind, DeclarationKind::Function(_)) {
                continue;
            }
            self.elaborate(declaration);
            if let Some(def) = super::instance::local_name(declaration).and_then(|name| self.declared(name))
                && let Some(entity) = self.bindings.get(&def)
            {
                own.insert(def, entity.clone());
            }
        }
        self.this = outer;
        let bodies = Bodies {
            declarations,
            path: self.path.clone(),
            substitution: self.substitution.clone(),
            own,
            closures: Vec::new(),
        };
        self.bodies.insert(id, bodies);
    }

    /// The closure in which a call of a method of `id` runs here. 0 for an instance without bodies.
    pub(super) fn closure(&mut self, id: ExternId) -> u32 {
        let Some(bodies) = self.bodies.get(&id) else {
            return 0;
        };
        let table = self.current_table.as_ref().map(|(t, _)| t.id);
        if self.capturing.iter().any(|c| c.instance == Some(id)) {
            // A body that calls a method of its own instance: an architecture may refuse it, or run
            // it.
            return bodies.closures.len() as u32;
        }
        let stands = |(def, entity): &(DefId, Entity)| self.bindings.get(def) == Some(entity);
        let is_known = |c: &Closure| c.table == table && c.captured.iter().all(stands);
        let known = bodies.closures.iter().position(is_known);
        if let Some(known) = known {
            let names = bodies.closures[known].captured.clone();
            self.note_captures(names);
            return known as u32;
        }
        self.new_closure(id, table)
    }

    fn new_closure(&mut self, id: ExternId, table: Option<TableId>) -> u32 {
        let Some(bodies) = self.bodies.get(&id) else {
            return 0;
        };
        let number = bodies.closures.len() as u32;
        let (declarations, own) = (bodies.declarations, bodies.own.clone());
        let path = std::mem::replace(&mut self.path, bodies.path.clone());
        let outer_substitution = self.substitution.clone();
        self.substitution.extend(bodies.substitution.clone());
        let outer = self.this.replace(id);
        let inside: FxHashSet<DefId> = own.keys().copied().collect();
        self.bindings.extend(own);
        let before = self.bindings.clone();
        self.capturing.push(Captures {
            instance: Some(id),
            used: FxHashMap::default(),
        });
        for declaration in declarations {
            let DeclarationKind::Function(f) = &declaration.kind else {
                continue;
            };
            let Some(def) = self.declared(&f.prototype.name) else {
                continue;
            };
            let DefKind::Function(signature) = self.def_kind(def) else {
                continue;
            };
            let signature = signature.clone();
            if !matches!(signature.kind, FunctionKind::Body(_)) {
                continue;
            }
            let method = self.method_body(&signature, f, number);
            self.program.externs[id].methods.push(method);
        }
        self.this = outer;
        self.path = path;
        self.substitution = outer_substitution;
        let captures = self.capturing.pop().unwrap_or_default();
        let captured: Vec<(DefId, Entity)> = captures
            .used
            .into_iter()
            .filter(|(def, entity)| before.get(def) == Some(entity))
            .filter(|(def, _)| !inside.contains(def) && !self.globals.contains(def))
            .collect();
        // Locals of the body are made anew with each closure.
        let globals = &self.globals;
        self.bindings
            .retain(|def, _| before.contains_key(def) || globals.contains(def));
        if let Some(bodies) = self.bodies.get_mut(&id) {
            bodies.closures.push(Closure {
                captured: captured.clone(),
                table,
            });
        }
        // What an inner body captures, the body around it does, too.
        self.note_captures(captured);
        number
    }

    /// Notes what a name stands for in the body that is being lowered, if one is.
    pub(super) fn note_capture(&mut self, def: DefId, entity: &Entity) {
        if let Some(captures) = self.capturing.last_mut() {
            captures.used.entry(def).or_insert_with(|| entity.clone());
        }
    }

    fn note_captures(&mut self, names: Vec<(DefId, Entity)>) {
        for (def, entity) in names {
            self.note_capture(def, &entity);
        }
    }

    /// Makes sure that the bodies of an instance that an extern is given, and may call, are there.
    /// An argument says
    /// no closure, so all calls must agree on one.
    pub(super) fn closure_of_argument(&mut self, id: ExternId, span: Span) {
        if self.closure(id) > 0 {
            self.error(
                "unsupported",
                span,
                "an extern is given this instance in several places, and what its methods capture differs between them",
            );
        }
    }

    /// As [`Self::closure_of_argument`], for the instances that `id` was made with.
    pub(super) fn closures_of_members(&mut self, id: ExternId, span: Span) {
        let given: Vec<ExternId> = self.program.externs[id]
            .arguments
            .iter()
            .filter_map(|(_, value)| match value {
                ConstValue::Extern(other) => Some(*other),
                _ => None,
            })
            .collect();
        for other in given {
            self.closure_of_argument(other, span);
        }
    }

    /// Whether an instance has bodies that may name what is declared around it.
    pub(super) fn has_bodies(&self, value: &Val) -> bool {
        match value {
            Val::Object(Object::Extern(id)) => self.bodies.contains_key(id),
            Val::Object(Object::Array(values)) => values.iter().any(|v| self.has_bodies(v)),
            _ => false,
        }
    }

    fn method_body(&mut self, signature: &Signature<'a>, f: &'a ast::Function, closure: u32) -> Method {
        let outer_body = std::mem::take(&mut self.body);
        let (outer_block, outer_flow, outer_loc) = (self.current, self.flow.clone(), self.loc);
        let (outer_accept, outer_reject) = (self.accept.take(), self.reject.take());
        self.current = self.new_block();
        let mut parameters = Vec::new();
        for param in &signature.params {
            let ty = self.concrete(param.ty);
            let place = self.allocate(&param.name.name, ty, VarKind::Local);
            parameters.push((param.name.name.to_string(), self.vars_of(&place)));
            self.bindings.insert(param.def, Entity::Place(place));
        }
        let result_type = self.concrete(signature.result);
        let result = (result_type != Types::VOID).then(|| self.allocate("result", result_type, VarKind::Local));
        let results = result.as_ref().map_or(Vec::new(), |p| self.vars_of(p));
        let end = self.new_block();
        self.flow.exit_to = end;
        self.run_inlined(Vec::new(), result, result_type, |s| s.block(&f.body));
        self.goto(end);
        self.body.blocks[end].terminator = Terminator::Return;
        let body = std::mem::replace(&mut self.body, outer_body);
        (self.current, self.flow, self.loc) = (outer_block, outer_flow, outer_loc);
        (self.accept, self.reject) = (outer_accept, outer_reject);
        Method {
            name: f.prototype.name.name.to_string(),
            closure,
            parameters,
            results,
            body: clean(body),
        }
    }
}
