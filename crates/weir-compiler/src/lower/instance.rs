//! Instances: externs, parsers, controls and packages made at compile time.

use super::Lowerer;
use super::value::{BlockInstance, Entity, Object, PackageInstance, Place, Val};
use crate::check::{CallInfo, DefKind, Param};
use crate::types::{DefId, Ty, TyKind};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use weir_ir::program::KEYS_ANNOTATION;
use weir_ir::{Body, ConstValue, ExternId, ExternInstance, VarId, VarKind};
use weir_syntax::ast::{self, DeclarationKind, Expr, ExprKind};
use weir_syntax::source::Span;

impl<'a> Lowerer<'a, '_> {
    /// The object a declared instance stands for. The caller has set the path it is declared in.
    pub(super) fn instantiate(&mut self, def: DefId, ast: &'a ast::Instantiation) -> Val {
        let declaration = &self.checked.defs[def.0 as usize];
        let (annotations, name) = (declaration.annotations, declaration.name.clone());
        let DefKind::Instance { ty, .. } = declaration.kind else {
            return Val::Void;
        };
        let Some(info) = self.checked.instantiations.get(&std::ptr::from_ref(ast)).cloned() else {
            return Val::Void;
        };
        let ty = self.concrete(ty);
        let path = self.control_name(&name, annotations);
        if let TyKind::Stack(element, count) = self.kind(ty) {
            let instances = (0..count).map(|i| {
                self.construct(
                    element,
                    format!("{path}[{i}]"),
                    &info,
                    &ast.arguments,
                    annotations,
                    ast.name.span,
                )
            });
            return Val::Object(Object::Array(Rc::new(instances.collect())));
        }
        let value = self.construct(ty, path, &info, &ast.arguments, annotations, ast.name.span);
        if let (Val::Object(Object::Extern(id)), Some(body)) = (&value, &ast.body) {
            self.closure_of_instance(*id, body);
        }
        value
    }

    /// A constructor call in an expression: `T(args)` as an argument or table property.
    pub(super) fn construct_call(&mut self, expr: &'a Expr, info: &CallInfo, arguments: &'a [ast::Argument]) -> Val {
        let ty = self.ty(expr);
        let name: String = match self.kind(ty) {
            TyKind::Parser(d, _) | TyKind::Control(d, _) | TyKind::Extern(d, _) | TyKind::Package(d, _) => {
                self.checked.defs[d.0 as usize].name.to_string()
            }
            _ => String::new(),
        };
        let path = match self.kind(ty) {
            // It is called after the parameter that it is given for.
            TyKind::Package(..) => String::new(),
            _ => self.control_name(&name, &[]),
        };
        self.construct(ty, path, info, arguments, &[], expr.span)
    }

    fn construct(
        &mut self,
        ty: Ty,
        path: String,
        info: &CallInfo,
        arguments: &'a [ast::Argument],
        annotations: &'a [ast::Annotation],
        span: Span,
    ) -> Val {
        match self.kind(ty) {
            TyKind::Extern(def, parts) => {
                let DefKind::Extern { parameters, methods } = self.def_kind(def) else {
                    return Val::Void;
                };
                let parameters = parameters.clone();
                let params = match info.callee {
                    crate::check::Callee::Constructor(Some(i)) => methods[i].params.clone(),
                    _ => Vec::new(),
                };
                let before = self.substitution.clone();
                self.substitution
                    .extend(parameters.into_iter().zip(parts.iter().copied()));
                let values = self.constructor_arguments(&params, arguments, info);
                let mut named = Vec::new();
                for (param, value) in params.iter().zip(&values) {
                    let ty = self.concrete(param.ty);
                    if let Some(value) = value {
                        named.push((param.name.name.to_string(), self.const_value(value, ty)));
                    }
                }
                self.substitution = before;
                Val::Object(Object::Extern(self.new_extern(
                    def,
                    &parts,
                    path,
                    named,
                    annotations,
                    span,
                )))
            }
            TyKind::Parser(def, parts) | TyKind::Control(def, parts) => {
                let (DefKind::Parser {
                    constructor,
                    parameters,
                    ..
                }
                | DefKind::Control {
                    constructor,
                    parameters,
                    ..
                }) = self.def_kind(def)
                else {
                    return Val::Void;
                };
                let types = parameters.iter().copied().zip(parts.iter().copied()).collect();
                let constructor = constructor.clone();
                let values = self.constructor_arguments(&constructor, arguments, info);
                let bound = constructor
                    .iter()
                    .zip(values)
                    .filter_map(|(p, v)| v.map(|v| (p.def, v)))
                    .collect();
                Val::Object(Object::Block(Rc::new(BlockInstance {
                    def,
                    types,
                    arguments: bound,
                    path,
                    locals: RefCell::new(None),
                })))
            }
            TyKind::Package(def, parts) => {
                let DefKind::BlockType { params, parameters, .. } = self.def_kind(def) else {
                    return Val::Void;
                };
                let (params, parameters) = (params.clone(), parameters.clone());
                let before = self.substitution.clone();
                self.substitution
                    .extend(parameters.into_iter().zip(parts.iter().copied()));
                let values = self.constructor_arguments(&params, arguments, info);
                self.substitution = before;
                let arguments = params
                    .iter()
                    .zip(values)
                    .filter_map(|(p, v)| v.map(|v| (p.name.name.clone(), v)))
                    .collect();
                Val::Object(Object::Package(Rc::new(PackageInstance { name: path, arguments })))
            }
            _ => Val::Void,
        }
    }

    fn constructor_arguments(
        &mut self,
        params: &[Param<'a>],
        arguments: &'a [ast::Argument],
        info: &CallInfo,
    ) -> Vec<Option<Val>> {
        params
            .iter()
            .zip(&info.arguments)
            .map(|(param, index)| {
                let ty = self.concrete(param.ty);
                match index.and_then(|i| arguments.get(i)) {
                    Some(argument) => Some(self.expr_as(&argument.value, ty)),
                    None => param.default.map(|d| self.expr_as(d, ty)),
                }
            })
            .collect()
    }

    fn new_extern(
        &mut self,
        def: DefId,
        parts: &[Ty],
        name: String,
        arguments: Vec<(String, ConstValue)>,
        annotations: &'a [ast::Annotation],
        span: Span,
    ) -> ExternId {
        let type_arguments = parts.iter().map(|&t| self.concrete(t)).collect::<Vec<_>>();
        let type_arguments = type_arguments.into_iter().map(|t| self.type_spec(t)).collect();
        let declared = &self.checked.defs[def.0 as usize];
        let (type_name, of_type) = (declared.name.to_string(), declared.annotations);
        let mut annotations = self.annotations(annotations);
        let keys = of_type.iter().find(|a| &*a.name.name == KEYS_ANNOTATION);
        if let Some(keys) = keys {
            annotations.extend(self.annotations(std::slice::from_ref(keys)));
        }
        let loc = self.locate(span);
        self.extern_spans.push(span);
        let instance = ExternInstance {
            name,
            type_name,
            type_arguments,
            arguments,
            methods: Vec::new(),
            annotations,
            loc,
        };
        if let Some(keys) = keys
            && instance.key_count().is_none()
        {
            let text = "@keys names the constructor parameter that is the number of keys: `@keys(\"PARAMETER\")`";
            self.error("invalid", keys.span, text);
        }
        self.program.externs.push(instance)
    }

    pub(super) fn vars_of(&self, place: &Place) -> Vec<VarId> {
        let mut vars = Vec::new();
        place.leaves(&mut vars, &|h| self.program.headers[h].valid);
        vars
    }

    /// Makes what a local declaration declares; variables get their place but no value yet.
    pub(super) fn elaborate(&mut self, declaration: &'a ast::Declaration) {
        match &declaration.kind {
            DeclarationKind::Instantiation(i) => {
                let Some(def) = self.declared(&i.name) else { return };
                let value = self.instantiate(def, i);
                self.bindings.insert(def, Entity::Value(value));
            }
            DeclarationKind::Variable(v) => {
                let Some(def) = self.declared(&v.name) else { return };
                let ty = self.written(&v.ty);
                let place = self.allocate(&v.name.name, ty, VarKind::Local);
                self.bindings.insert(def, Entity::Place(place));
            }
            DeclarationKind::ValueSet(v) => {
                let Some(def) = self.declared(&v.name) else { return };
                let id = self.make_value_set(v, &declaration.annotations);
                self.bindings
                    .insert(def, Entity::Value(Val::Object(Object::ValueSet(id))));
            }
            DeclarationKind::Constant(c) => {
                if let Some(def) = self.declared(&c.name) {
                    self.bindings.remove(&def);
                    self.entity(def);
                }
            }
            DeclarationKind::Table(t) => {
                if let Some(def) = self.declared(&t.name) {
                    self.bindings.remove(&def);
                }
            }
            _ => {}
        }
    }

    /// Gives a local variable its initial value; weir zeroes those without one.
    pub(super) fn initialise(&mut self, declaration: &'a ast::Declaration) {
        let DeclarationKind::Variable(v) = &declaration.kind else {
            return;
        };
        let Some(def) = self.declared(&v.name) else { return };
        let Some(Entity::Place(place)) = self.bindings.get(&def).cloned() else {
            return;
        };
        let ty = self.written(&v.ty);
        let loc = self.locate(declaration.span);
        self.loc = loc;
        let value = match &v.value {
            Some(value) => self.expr_as(value, ty),
            None => self.zero(ty),
        };
        self.write(&place, &value);
    }

    /// Enters an instance: what its constructor parameters and local declarations stand for.
    /// Returns what must be given to [`Self::leave`].
    pub(super) fn enter(&mut self, instance: &Rc<BlockInstance>, locals: &'a [ast::Declaration]) -> String {
        let outer = std::mem::replace(&mut self.path, instance.path.clone());
        self.substitution.extend(instance.types.iter().copied());
        for (def, value) in &instance.arguments {
            self.bindings.insert(*def, Entity::Value(value.clone()));
        }
        let known = instance.locals.borrow().clone();
        match known {
            Some(known) => self.bindings.extend(known),
            None => {
                for local in locals {
                    self.elaborate(local);
                }
            }
        }
        outer
    }

    pub(super) fn leave(&mut self, instance: &Rc<BlockInstance>, locals: &'a [ast::Declaration], outer: String) {
        let mut known = FxHashMap::default();
        for local in locals {
            if let Some(def) = local_name(local).and_then(|name| self.declared(name))
                && let Some(entity) = self.bindings.get(&def)
            {
                known.insert(def, entity.clone());
            }
        }
        *instance.locals.borrow_mut() = Some(known);
        self.path = outer;
    }

    /// The entry of the table whose action is being lowered, if an instance is direct to that
    /// table, or was made of one that is.
    pub(super) fn entry_of(&self, id: ExternId) -> Option<VarId> {
        let (table, _) = self.current_table.as_ref()?;
        let direct = &self.program.tables[table.id].direct;
        let arguments = &self.program.externs[id].arguments;
        let made_of = arguments.iter().filter_map(|(_, value)| match value {
            ConstValue::Extern(other) => Some(*other),
            _ => None,
        });
        let mut all = made_of.chain([id]);
        all.any(|id| direct.contains(&id)).then_some(table.entry)
    }

    /// The instance that a call's base names, made anew for a direct application of a type.
    pub(super) fn block_instance(&mut self, base: &'a Expr) -> Option<Rc<BlockInstance>> {
        let ty = self.ty(base);
        if let TyKind::TypeName(named) = self.kind(ty) {
            let named = self.concrete(named);
            let (TyKind::Parser(def, parts) | TyKind::Control(def, parts)) = self.kind(named) else {
                return None;
            };
            // Every direct application of a type in one block is one instance, named after the
            // type.
            let name = self.checked.defs[def.0 as usize].name.to_string();
            let path = self.control_name(&name, &[]);
            if let Some(known) = self.direct_instances.get(&(path.clone(), def)) {
                return Some(known.clone());
            }
            let (DefKind::Parser {
                constructor,
                parameters,
                ..
            }
            | DefKind::Control {
                constructor,
                parameters,
                ..
            }) = self.def_kind(def)
            else {
                return None;
            };
            let types = parameters.iter().copied().zip(parts.iter().copied()).collect();
            let constructor = constructor.clone();
            let mut arguments = Vec::new();
            for param in &constructor {
                if let Some(default) = param.default {
                    let ty = self.concrete(param.ty);
                    arguments.push((param.def, self.expr_as(default, ty)));
                }
            }
            let instance = Rc::new(BlockInstance {
                def,
                types,
                arguments,
                path: path.clone(),
                locals: RefCell::new(None),
            });
            self.direct_instances.insert((path, def), instance.clone());
            return Some(instance);
        }
        match self.expr(base) {
            Val::Object(Object::Block(instance)) => Some(instance),
            _ => {
                if !matches!(base.kind, ExprKind::Error) {
                    self.error("unsupported", base.span, "this instance is not known at compile time");
                }
                None
            }
        }
    }
}

/// The name that a declaration in a block gives to something with a value or a state.
pub(super) fn local_name(local: &ast::Declaration) -> Option<&ast::Ident> {
    match &local.kind {
        DeclarationKind::Instantiation(i) => Some(&i.name),
        DeclarationKind::Variable(v) => Some(&v.name),
        DeclarationKind::ValueSet(v) => Some(&v.name),
        DeclarationKind::Constant(c) => Some(&c.name),
        DeclarationKind::Table(t) => Some(&t.name),
        _ => None,
    }
}

/// Takes blocks that nothing reaches out of a body.
pub(super) fn clean(mut body: Body) -> Body {
    weir_ir::passes::simplify_control_flow(&mut body);
    body
}
