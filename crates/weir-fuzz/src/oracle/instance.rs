//! Instances: parsers, controls, externs, tables and value sets, each at its path.

use super::control::ValueSet;
use super::externs::Extern;
use super::machine::{Block, Machine};
use super::stop::{Eval, unknown};
use super::value::{Object, Value};
use std::collections::HashMap;
use weir_compiler::tools::{CallInfo, Callee, DefId, DefKind, Param, Ty, TyKind};
use weir_syntax::ast::{
    self, Annotation, AnnotationBody, AnnotationTokenKind, Argument, Declaration, DeclarationKind, Expr, ExprKind,
    Statement, StatementKind,
};

/// What a package is made of: arguments by parameter.
pub(super) type Package = Vec<(String, Part)>;

/// An argument of a package.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// A parser or control, or anything else.
    Value(Value),
    /// Another package.
    Package(Package),
}

/// The string of `@name("…")`.
pub(super) fn name_annotation(annotations: &[Annotation]) -> Option<String> {
    let annotation = annotations.iter().find(|a| &*a.name.name == "name")?;
    let AnnotationBody::Unstructured(tokens) = &annotation.body else {
        return None;
    };
    let strings = tokens.iter().filter(|t| t.kind == AnnotationTokenKind::String);
    Some(strings.map(|t| &*t.text).collect())
}

/// What the control plane calls something that is declared at a path.
pub(super) fn path_of(path: &str, name: &str, annotations: &[Annotation]) -> String {
    let name = name_annotation(annotations).unwrap_or_else(|| name.to_owned());
    match name.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if path.is_empty() => name,
        None => format!("{path}.{name}"),
    }
}

impl<'a> Machine<'a> {
    /// Makes what is declared at the top level, and `main`.
    pub fn instantiate(&mut self, program: &'a ast::Program) -> Eval<Package> {
        // Code at the top level belongs to no parser or control: this stands for one.
        self.blocks.push(Block {
            def: DefId(u32::MAX),
            path: String::new(),
            known: HashMap::new(),
            direct: HashMap::new(),
        });
        let mut packages: HashMap<DefId, Package> = HashMap::new();
        for declaration in &program.declarations {
            let DeclarationKind::Instantiation(instance) = &declaration.kind else {
                continue;
            };
            let def = self.declared(&instance.name)?;
            let DefKind::Instance { ty, .. } = self.def(def) else {
                continue;
            };
            let ty = *ty;
            let Some(info) = self.checked.instantiations.get(&std::ptr::from_ref(instance)).cloned() else {
                return unknown("an instance of nothing");
            };
            if let TyKind::Package(..) = self.kind(ty) {
                let package = self.package(ty, &instance.arguments, &info, &packages)?;
                packages.insert(def, package);
            } else {
                let value = self.declared_instance(instance, &declaration.annotations, "")?;
                self.globals.insert(def, value);
            }
        }
        match self.checked.main.and_then(|main| packages.remove(&main)) {
            Some(main) => Ok(main),
            None => unknown("a program without `main`"),
        }
    }

    fn package(
        &mut self,
        ty: Ty,
        arguments: &'a [Argument],
        info: &CallInfo,
        known: &HashMap<DefId, Package>,
    ) -> Eval<Package> {
        let TyKind::Package(def, _) = self.kind(ty) else {
            return unknown("a package that is none");
        };
        let DefKind::BlockType { params, .. } = self.def(def) else {
            return unknown("a package that is none");
        };
        let params: Vec<String> = params.iter().map(|p| p.name.name.to_string()).collect();
        let mut package = Vec::new();
        for (name, at) in params.into_iter().zip(&info.arguments) {
            let Some(argument) = at.and_then(|at| arguments.get(at)) else {
                continue;
            };
            let part = self.package_part(&argument.value, known)?;
            package.push((name, part));
        }
        Ok(package)
    }

    fn package_part(&mut self, argument: &'a Expr, known: &HashMap<DefId, Package>) -> Eval<Part> {
        if let Some(package) = self.named(argument).and_then(|d| known.get(&d)) {
            return Ok(Part::Package(package.clone()));
        }
        if let ExprKind::Call { arguments, .. } = &argument.kind
            && let TyKind::Package(..) = self.kind_of(argument)
            && let Some(info) = self.checked.calls.get(&argument.id).cloned()
        {
            let ty = self.checked.ty(argument);
            return self.package(ty, arguments, &info, known).map(Part::Package);
        }
        self.expr(argument).map(Part::Value)
    }

    /// `T(args) n;` at a path.
    fn declared_instance(
        &mut self,
        instance: &'a ast::Instantiation,
        annotations: &[Annotation],
        path: &str,
    ) -> Eval<Value> {
        let def = self.declared(&instance.name)?;
        let DefKind::Instance { ty, .. } = self.def(def) else {
            return unknown("an instance that is none");
        };
        let ty = *ty;
        let Some(info) = self.checked.instantiations.get(&std::ptr::from_ref(instance)).cloned() else {
            return unknown("an instance of nothing");
        };
        let path = path_of(path, &instance.name.name, annotations);
        let value = self.construct(ty, path, &instance.arguments, &info)?;
        if let (Value::Object(Object::Extern(id)), Some(body)) = (&value, &instance.body) {
            self.bodies(*id, body)?;
        }
        Ok(value)
    }

    /// Bodies of abstract methods, and instances that are declared beside them.
    fn bodies(&mut self, id: usize, body: &'a [Declaration]) -> Eval<()> {
        for declaration in body {
            match &declaration.kind {
                DeclarationKind::Function(function) => {
                    let name = function.prototype.name.name.clone();
                    self.externs[id].bodies.insert(name, function);
                }
                DeclarationKind::Instantiation(_) => {
                    let path = self.externs[id].path.clone();
                    self.local(self.block, &path, declaration)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `T(args)` in an expression.
    pub fn construct_here(&mut self, expr: &Expr, arguments: &[Argument], info: &CallInfo) -> Eval<Value> {
        let ty = self.checked.ty(expr);
        let name = match self.kind(ty) {
            TyKind::Parser(def, _) | TyKind::Control(def, _) | TyKind::Extern(def, _) => {
                self.checked.def(def).name.to_string()
            }
            _ => return unknown("a constructor of something else"),
        };
        let path = path_of(&self.blocks[self.block].path, &name, &[]);
        self.construct(ty, path, arguments, info)
    }

    fn construct(&mut self, ty: Ty, path: String, arguments: &[Argument], info: &CallInfo) -> Eval<Value> {
        match self.kind(ty) {
            TyKind::Extern(def, given) => {
                let DefKind::Extern { parameters, methods } = self.def(def) else {
                    return unknown("an extern that is none");
                };
                let params = match info.callee {
                    Callee::Constructor(Some(index)) => methods[index].params.clone(),
                    _ => Vec::new(),
                };
                let before = self.types.clone();
                let map: Vec<(Ty, Ty)> = parameters.iter().copied().zip(given.iter().copied()).collect();
                self.types.extend(map);
                let values = self.constructor_values(&params, arguments, info);
                self.types = before;
                let named = params.iter().map(|p| p.name.name.clone());
                let arguments = named.zip(values?).filter_map(|(n, v)| Some((n, v?))).collect();
                let types = given.iter().map(|&t| self.concrete(t)).collect();
                self.externs.push(Extern {
                    type_name: self.checked.def(def).name.clone(),
                    path,
                    arguments,
                    types,
                    bodies: HashMap::new(),
                    block: self.block,
                    cells: HashMap::new(),
                    members: HashMap::new(),
                    groups: HashMap::new(),
                });
                Ok(Value::Object(Object::Extern(self.externs.len() - 1)))
            }
            TyKind::Parser(def, given) | TyKind::Control(def, given) => {
                if !given.is_empty() {
                    return unknown("a generic parser or control");
                }
                let (DefKind::Parser { constructor, .. } | DefKind::Control { constructor, .. }) = self.def(def) else {
                    return unknown("a block without a body");
                };
                let constructor = constructor.clone();
                let values = self.constructor_values(&constructor, arguments, info)?;
                let defs = constructor.iter().map(|p| p.def);
                let known = defs.zip(values).filter_map(|(d, v)| Some((d, v?))).collect();
                self.new_block(def, path, known)
            }
            _ => unknown("an instance of something else"),
        }
    }

    fn constructor_values(
        &mut self,
        params: &[Param<'a>],
        arguments: &[Argument],
        info: &CallInfo,
    ) -> Eval<Vec<Option<Value>>> {
        let mut values = Vec::new();
        for (param, at) in params.iter().zip(&info.arguments) {
            values.push(match (at.and_then(|at| arguments.get(at)), param.default) {
                (Some(argument), _) => Some(self.expr_as(&argument.value, param.ty)?),
                (None, Some(default)) => Some(self.expr_as(default, param.ty)?),
                (None, None) => None,
            });
        }
        Ok(values)
    }

    fn new_block(&mut self, def: DefId, path: String, known: HashMap<DefId, Value>) -> Eval<Value> {
        let block = self.blocks.len();
        self.blocks.push(Block {
            def,
            path: path.clone(),
            known,
            direct: HashMap::new(),
        });
        let locals: &'a [Declaration] = match self.def(def) {
            DefKind::Parser { ast, .. } => &ast.locals,
            DefKind::Control { ast, .. } => &ast.locals,
            _ => &[],
        };
        self.within(block, |m| locals.iter().try_for_each(|l| m.local(block, &path, l)))?;
        match self.def(def) {
            DefKind::Parser { ast, .. } => {
                let ast = *ast;
                for state in &ast.states {
                    self.direct_instances(block, &state.statements)?;
                }
            }
            DefKind::Control { ast, .. } => {
                let ast = *ast;
                self.direct_instances(block, &ast.apply.statements)?;
            }
            _ => {}
        }
        Ok(Value::Object(Object::Block(block)))
    }

    /// What a local declaration makes once for the instance.
    fn local(&mut self, block: usize, path: &str, declaration: &'a Declaration) -> Eval<()> {
        match &declaration.kind {
            DeclarationKind::Instantiation(instance) => {
                let def = self.declared(&instance.name)?;
                let value = self.declared_instance(instance, &declaration.annotations, path)?;
                self.blocks[block].known.insert(def, value);
            }
            DeclarationKind::Table(table) => self.new_table(block, table, &declaration.annotations)?,
            DeclarationKind::ValueSet(set) => {
                let def = self.declared(&set.name)?;
                let name = path_of(path, &set.name.name, &declaration.annotations);
                let ty = self.written_type(&set.element)?;
                let fields = self.value_set_fields(ty)?;
                self.value_sets.push(ValueSet {
                    name,
                    fields,
                    members: Vec::new(),
                });
                let value = Value::Object(Object::ValueSet(self.value_sets.len() - 1));
                self.blocks[block].known.insert(def, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// Instances for `C.apply()` of a type: one for all such calls of a block, named after the
    /// type.
    fn direct_instances(&mut self, block: usize, statements: &'a [Statement]) -> Eval<()> {
        for statement in statements {
            match &statement.kind {
                StatementKind::Call(call) => self.direct_instance(block, call)?,
                StatementKind::If { then, otherwise, .. } => {
                    self.direct_instances(block, std::slice::from_ref(then))?;
                    if let Some(otherwise) = otherwise {
                        self.direct_instances(block, std::slice::from_ref(otherwise))?;
                    }
                }
                StatementKind::Block(inner) => self.direct_instances(block, &inner.statements)?,
                StatementKind::Switch { cases, .. } => {
                    for body in cases.iter().filter_map(|c| c.body.as_ref()) {
                        self.direct_instances(block, &body.statements)?;
                    }
                }
                StatementKind::For { body, .. } | StatementKind::ForIn { body, .. } => {
                    self.direct_instances(block, std::slice::from_ref(body))?;
                }
                StatementKind::Empty
                | StatementKind::Assign { .. }
                | StatementKind::Return(_)
                | StatementKind::Exit
                | StatementKind::Break
                | StatementKind::Continue
                | StatementKind::Declaration(_) => {}
            }
        }
        Ok(())
    }

    fn direct_instance(&mut self, block: usize, call: &'a Expr) -> Eval<()> {
        let ExprKind::Call { callee, .. } = &call.kind else {
            return Ok(());
        };
        let ExprKind::Member(base, _) = &callee.kind else {
            return Ok(());
        };
        let ty = self.checked.ty(base);
        let TyKind::TypeName(named) = self.checked.types.get(ty).clone() else {
            return Ok(());
        };
        let (TyKind::Parser(def, given) | TyKind::Control(def, given)) = self.kind(named) else {
            return Ok(());
        };
        if self.blocks[block].direct.contains_key(&def) {
            return Ok(());
        }
        if !given.is_empty() {
            return unknown("a generic parser or control");
        }
        let (DefKind::Parser { constructor, .. } | DefKind::Control { constructor, .. }) = self.def(def) else {
            return unknown("a block without a body");
        };
        let constructor = constructor.clone();
        let mut known = HashMap::new();
        for param in &constructor {
            if let Some(default) = param.default {
                let value = self.within(block, |m| m.expr_as(default, param.ty))?;
                known.insert(param.def, value);
            }
        }
        let path = path_of(&self.blocks[block].path, &self.checked.def(def).name, &[]);
        if let Value::Object(Object::Block(made)) = self.new_block(def, path, known)? {
            self.blocks[block].direct.insert(def, made);
        }
        Ok(())
    }
}
