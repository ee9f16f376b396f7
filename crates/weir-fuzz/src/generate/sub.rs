//! Sub-controls and sub-parsers: types of which there are several instances, applied with different
//! arguments, whose actions, tables and functions see the parameters.

use super::Generator;
use super::call::{Callable, Callee, Formal, Kind, Way};
use super::model::{Place, Scope, Ty};

/// A control that others have instances of.
#[derive(Debug, Clone)]
pub(super) struct SubControl {
    name: String,
    formals: Vec<Formal>,
    /// The parameter of its constructor.
    constructor: Option<Constructor>,
    /// How many controls are below it.
    depth: u32,
}

/// What a constructor takes.
#[derive(Debug, Clone, Copy)]
enum Constructor {
    /// A number.
    Number(Ty),
    /// A register of such cells.
    Register(Ty),
}

/// A parser that others have instances of: it takes a header of a type, and computes a number from
/// another one.
#[derive(Debug, Clone)]
pub(super) struct SubParser {
    pub name: String,
    /// Type of the header.
    pub ty: usize,
    /// What it computes.
    pub number: Ty,
}

/// Most controls below a control.
const DEEPEST: u32 = 2;

impl Generator {
    /// Functions, sub-controls and sub-parsers, which what follows can use.
    pub(super) fn subs(&mut self) {
        if self.model.plain || self.model.strict || !self.rng.chance(55) {
            return;
        }
        for _ in 0..self.rng.below(3) {
            self.function();
        }
        for _ in 0..self.rng.between(1, 3) {
            self.sub_control();
        }
        if self.rng.chance(50) {
            self.sub_parser();
        }
    }

    pub(super) fn sub_control(&mut self) {
        let name = self.name("Sub");
        let formals = self.formals(4, true);
        let constructor = match self.rng.below(10) {
            0..4 => Some(Constructor::Number(super::model::ty(&mut self.rng, 32))),
            4 if !self.model.tna && !self.model.waiting => {
                Some(Constructor::Register(Ty::Bit(self.rng.one([8, 16, 32]))))
            }
            _ => None,
        };
        let parameter = match constructor {
            Some(Constructor::Number(ty)) => format!("({} k)", ty.text()),
            Some(Constructor::Register(ty)) => format!("({} k)", self.register_type(ty)),
            None => String::new(),
        };
        let list = self.formals_text(&formals);
        self.open(&format!("control {name}({list}){parameter}"));
        let mut scope = self.scope_of(Place::Sub, &formals);
        match constructor {
            Some(Constructor::Number(ty)) => {
                scope.add("k", ty, false);
                if ty != Ty::Bool && self.rng.chance(40) {
                    let (name, more) = (self.name("c"), self.literal(ty));
                    self.line(&format!("const {} {name} = k ^ {more};", ty.text()));
                    scope.add(name, ty, false);
                }
            }
            Some(Constructor::Register(ty)) => scope.registers.push(("k".to_owned(), ty)),
            None => {}
        }
        scope.calls.clone_from(&self.functions);
        let mut depth = 0;
        for sub in self.sub_controls.clone() {
            if sub.depth < DEEPEST && self.rng.chance(45) {
                depth = depth.max(sub.depth + 1);
                self.instances_of(&sub, &mut scope);
            }
        }
        for _ in 0..self.rng.below(3) {
            self.local(&mut scope);
        }
        self.state(&mut scope);
        self.tables(&mut scope);
        if self.rng.chance(40) {
            self.directed_action(&mut scope);
        }
        self.open("apply");
        let count = self.rng.between(1, 4);
        self.statements(&scope, count, 2);
        self.close();
        self.close();
        self.sub_controls.push(SubControl {
            name,
            formals,
            constructor,
            depth,
        });
    }

    fn register_type(&self, ty: Ty) -> String {
        let index = if self.model.version_2020 { ", bit<32>" } else { "" };
        format!("register<{}{index}>", ty.text())
    }

    /// What an instance is constructed with: a register of two instances is one that both have.
    fn constructed_with(&mut self, constructor: Option<Constructor>, scope: &mut Scope) -> String {
        match constructor {
            Some(Constructor::Number(ty)) => self.literal(ty),
            Some(Constructor::Register(ty)) => {
                let fitting: Vec<String> = scope
                    .registers
                    .iter()
                    .filter(|r| r.1 == ty)
                    .map(|r| r.0.clone())
                    .collect();
                if let Some(register) = self.rng.pick(&fitting).cloned() {
                    return register;
                }
                let (name, of_type) = (self.name("register"), self.register_type(ty));
                self.line(&format!("{of_type}(16) {name};"));
                scope.registers.push((name.clone(), ty));
                name
            }
            None => String::new(),
        }
    }

    /// A variable of a control, which begins anew each time that it is applied.
    fn local(&mut self, scope: &mut Scope) {
        let ty = super::model::ty(&mut self.rng, 64);
        let name = self.name("l");
        match self.rng.chance(70) {
            true => {
                let value = self.expression(scope, ty, 1);
                self.line(&format!("{} {name} = {value};", ty.text()));
            }
            false => self.line(&format!("{} {name};", ty.text())),
        }
        scope.add(name, ty, true);
    }

    /// Instances of a sub-control, which code can apply then; one without a constructor parameter
    /// can be applied by its type.
    fn instances_of(&mut self, sub: &SubControl, scope: &mut Scope) {
        let mut names = Vec::new();
        if sub.constructor.is_none() && self.rng.chance(25) {
            names.push(sub.name.clone());
        }
        for _ in 0..self.rng.between(1, 2) {
            let name = self.name("sub");
            let argument = self.constructed_with(sub.constructor, scope);
            self.line(&format!("{}({argument}) {name};", sub.name));
            names.push(name);
        }
        for name in names {
            scope.calls.push(Callable {
                name: format!("{name}.apply"),
                callee: Callee::Block,
                formals: sub.formals.clone(),
            });
        }
    }

    /// Instances of some sub-controls, and all functions.
    pub(super) fn use_subs(&mut self, scope: &mut Scope) {
        scope.calls.clone_from(&self.functions);
        for sub in self.sub_controls.clone() {
            if self.rng.chance(80) {
                self.instances_of(&sub, scope);
            }
        }
    }

    fn sub_parser(&mut self) {
        let types: Vec<usize> = self
            .model
            .instances
            .iter()
            .filter(|i| i.stack.is_none())
            .map(|i| i.ty)
            .collect();
        let types: Vec<usize> = types
            .into_iter()
            .filter(|&t| self.model.types[t].varbit.is_none())
            .collect();
        let Some(ty) = self.rng.pick(&types).copied() else {
            return;
        };
        let metadata: Vec<Ty> = self.model.metadata.iter().map(|m| m.1).collect();
        let Some(number) = self.rng.pick(&metadata).copied() else {
            return;
        };
        let name = self.name("Part");
        let formals = [
            (Way::Out, Kind::Header(ty), "h"),
            (Way::In, Kind::Scalar(number), "given"),
            (Way::InOut, Kind::Scalar(number), "sum"),
        ];
        let formals = formals.map(|(way, kind, name)| Formal {
            name: name.to_owned(),
            way,
            kind,
        });
        let list = self.formals_text(&formals);
        self.open(&format!("parser {name}(packet_in b, {list})"));
        let mut scope = self.scope_of(Place::Parser, &formals);
        if self.rng.chance(50) {
            self.local(&mut scope);
        }
        self.open("state start");
        self.line("b.extract(h);");
        let value = self.expression(&scope, number, 2);
        self.line(&format!("sum = {value};"));
        if self.rng.chance(25) {
            let (value, other) = (self.expression(&scope, number, 1), self.literal(number));
            self.line(&format!("verify({value} != {other}, error.Odd);"));
        }
        if self.rng.chance(60) {
            let key = self.expression(&scope, Ty::Bit(4), 1);
            let value = self.literal(Ty::Bit(4));
            let otherwise = self.rng.one(["accept", "accept", "reject"]);
            self.line(&format!(
                "transition select({key}) {{ {value}: more; _: {otherwise}; }}"
            ));
            self.close();
            self.open("state more");
            let value = self.expression(&scope, number, 2);
            self.line(&format!("sum = {value};"));
        }
        self.line("transition accept;");
        self.close();
        self.close();
        self.sub_parsers.push(SubParser { name, ty, number });
    }

    /// Takes a header by a sub-parser of its type, if there is one with an instance; `false`: there
    /// is none.
    pub(super) fn extract_by_part(&mut self, scope: &Scope, path: &str, ty: usize) -> bool {
        let Some(part) = self.sub_parsers.iter().find(|p| p.ty == ty).cloned() else {
            return false;
        };
        let targets: Vec<String> = scope
            .variables
            .iter()
            .filter(|v| v.writable && v.ty == part.number)
            .map(|v| v.path.clone())
            .collect();
        let Some(target) = self.rng.pick(&targets).cloned() else {
            return false;
        };
        let given = self.expression(scope, part.number, 1);
        let instance = part.name.to_lowercase();
        let text = match self.rng.below(3) {
            0 => format!("{instance}.apply(b, sum = {target}, given = {given}, h = {path});"),
            _ => format!("{instance}.apply(b, {path}, {given}, {target});"),
        };
        // Either all arguments have names, or none.
        self.line(&text.replace("apply(b, sum", "apply(b = b, sum"));
        true
    }
}
