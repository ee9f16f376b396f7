//! Calls with arguments that are copied in and out: of functions, actions, sub-controls and
//! sub-parsers.

use super::Generator;
use super::model::{HeaderRef, Place, Scope, Ty};
use std::fmt;

/// Which way values go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
    InOut,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::In => "in",
            Way::Out => "out",
            Way::InOut => "inout",
        })
    }
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A scalar.
    Scalar(Ty),
    /// A header of a type of the model.
    Header(usize),
    /// A stack: type and elements.
    Stack(usize, u32),
    /// All headers.
    Headers,
    /// All metadata.
    Metadata,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Formal {
    pub name: String,
    pub way: Way,
    pub kind: Kind,
}

/// What code may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Callee {
    /// A function, with the type that it gives.
    Function(Option<Ty>),
    /// An action whose parameters have directions.
    Action,
    /// A parser or control, by an instance or by its type.
    Block,
}

/// Something that code can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Callable {
    /// What stands before the arguments.
    pub name: String,
    pub callee: Callee,
    pub formals: Vec<Formal>,
}

impl Generator {
    /// The text of a formal's declaration.
    pub(super) fn formal_text(&self, formal: &Formal) -> String {
        let ty = match formal.kind {
            Kind::Scalar(ty) => ty.text(),
            Kind::Header(ty) => self.model.types[ty].name.clone(),
            Kind::Stack(ty, n) => format!("{}[{n}]", self.model.types[ty].name),
            Kind::Headers => "headers_t".to_owned(),
            Kind::Metadata => "meta_t".to_owned(),
        };
        format!("{} {ty} {}", formal.way, formal.name)
    }

    /// The text of a list of them.
    pub(super) fn formals_text(&self, formals: &[Formal]) -> String {
        let all: Vec<String> = formals.iter().map(|f| self.formal_text(f)).collect();
        all.join(", ")
    }

    /// The type of some field or metadata, so that there are l-values of it.
    fn common_type(&mut self) -> Ty {
        let fields = self.model.types.iter().flat_map(|t| t.fields.iter().map(|f| f.1));
        let metadata = self.model.metadata.iter().map(|m| m.1);
        let types: Vec<Ty> = fields.chain(metadata).collect();
        match self.rng.pick(&types) {
            Some(ty) if self.rng.chance(80) => *ty,
            _ => super::model::ty(&mut self.rng, 64),
        }
    }

    /// Parameters; `headers`: some of them may be headers, stacks, or all headers.
    pub(super) fn formals(&mut self, most: usize, headers: bool) -> Vec<Formal> {
        let mut formals: Vec<Formal> = Vec::new();
        for _ in 0..self.rng.between(1, most) {
            let instance = self.rng.pick(&self.model.instances).cloned();
            let kind = match (self.rng.below(10), instance) {
                (0, Some(instance)) if headers => match instance.stack {
                    Some(n) => Kind::Stack(instance.ty, n),
                    None => Kind::Header(instance.ty),
                },
                (1, _) if headers => Kind::Headers,
                (2, _) if headers => Kind::Metadata,
                _ => Kind::Scalar(self.common_type()),
            };
            if matches!(kind, Kind::Headers | Kind::Metadata) && formals.iter().any(|f| f.kind == kind) {
                continue;
            }
            let way = match kind {
                Kind::Scalar(_) => self.rng.one([Way::In, Way::In, Way::Out, Way::InOut, Way::InOut]),
                Kind::Header(_) => self.rng.one([Way::InOut, Way::InOut, Way::Out]),
                Kind::Metadata => self.rng.one([Way::In, Way::InOut, Way::InOut]),
                Kind::Stack(..) | Kind::Headers => Way::InOut,
            };
            let name = match kind {
                Kind::Headers => "hdr".to_owned(),
                Kind::Metadata => "meta".to_owned(),
                _ => self.name("a"),
            };
            formals.push(Formal { name, way, kind });
        }
        formals
    }

    /// What a body sees of its parameters.
    pub(super) fn scope_of(&mut self, place: Place, formals: &[Formal]) -> Scope {
        let mut scope = Scope::new(place);
        for formal in formals {
            let name = formal.name.clone();
            match formal.kind {
                Kind::Scalar(ty) => scope.add(name, ty, formal.way != Way::In),
                Kind::Header(ty) => {
                    scope.variables.extend(self.model.fields_of(&name, ty));
                    scope.headers.push(HeaderRef { path: name, ty });
                }
                Kind::Stack(ty, n) => {
                    for i in 0..n {
                        let path = format!("{name}[{i}]");
                        scope.variables.extend(self.model.fields_of(&path, ty));
                        scope.headers.push(HeaderRef { path, ty });
                    }
                    scope.stacks.push((name, ty, n));
                }
                Kind::Headers => {
                    let all = self.model.scope(Place::Checksum);
                    let fields = all.variables.into_iter().filter(|v| v.path.starts_with("hdr."));
                    scope.variables.extend(fields);
                    scope.headers.extend(all.headers);
                    scope.stacks.extend(all.stacks);
                    scope.has_headers = true;
                }
                Kind::Metadata => {
                    for (path, ty, _) in self.model.metadata.clone() {
                        scope.add(format!("meta.{path}"), ty, formal.way != Way::In);
                    }
                    scope.has_metadata = formal.way != Way::In;
                }
            }
        }
        scope
    }

    /// Something of exactly this type that can be written: a variable, bits of one, or a new
    /// variable.
    pub(super) fn written_argument(&mut self, scope: &Scope, ty: Ty, before: &[String]) -> String {
        let fitting: Vec<String> = scope
            .variables
            .iter()
            .filter(|v| v.writable && v.ty == ty)
            .map(|v| v.path.clone())
            .collect();
        let again: Vec<String> = before.iter().filter(|b| fitting.contains(b)).cloned().collect();
        if self.rng.chance(30)
            && let Some(same) = self.rng.pick(&again).cloned()
        {
            return same;
        }
        let wider: Vec<(String, u32)> = scope
            .variables
            .iter()
            .filter(|v| v.writable && v.ty.width() > ty.width() && matches!(v.ty, Ty::Bit(_)))
            .map(|v| (v.path.clone(), v.ty.width()))
            .collect();
        if matches!(ty, Ty::Bit(_))
            && (fitting.is_empty() || self.rng.chance(15))
            && let Some((path, wide)) = self.rng.pick(&wider).cloned()
        {
            let low = self.rng.below((wide - ty.width() + 1) as usize) as u32;
            return format!("{path}[{}:{low}]", low + ty.width() - 1);
        }
        if let Some(path) = self.rng.pick(&fitting).cloned()
            && self.rng.chance(90)
        {
            return path;
        }
        let name = self.name("v");
        let value = self.literal(ty);
        self.line(&format!("{} {name} = {value};", ty.text()));
        name
    }

    /// Arguments for parameters, now and then by name in another order; `None`: nothing here fits.
    pub(super) fn arguments(&mut self, scope: &Scope, formals: &[Formal]) -> Option<String> {
        let mut given: Vec<(String, String)> = Vec::new();
        for formal in formals {
            let text = match (formal.kind, formal.way) {
                (Kind::Scalar(ty), Way::In) => match self.rng.chance(30) {
                    true => self.literal(ty),
                    false => self.expression(scope, ty, 1),
                },
                (Kind::Scalar(ty), Way::Out | Way::InOut) => {
                    let before: Vec<String> = given.iter().map(|g| g.1.clone()).collect();
                    self.written_argument(scope, ty, &before)
                }
                (Kind::Header(ty), _) => {
                    let fitting: Vec<String> = scope
                        .headers
                        .iter()
                        .filter(|h| h.ty == ty)
                        .map(|h| h.path.clone())
                        .collect();
                    self.rng.pick(&fitting).cloned()?
                }
                (Kind::Stack(ty, n), _) => scope.stacks.iter().find(|s| s.1 == ty && s.2 == n)?.0.clone(),
                (Kind::Headers, _) if scope.has_headers => "hdr".to_owned(),
                (Kind::Metadata, _) if scope.has_metadata => "meta".to_owned(),
                (Kind::Headers | Kind::Metadata, _) => return None,
            };
            given.push((formal.name.clone(), text));
        }
        let is_named = self.rng.chance(40);
        if is_named {
            for at in (1..given.len()).rev() {
                let other = self.rng.below(at + 1);
                given.swap(at, other);
            }
        }
        let all: Vec<String> = given
            .into_iter()
            .map(|(name, text)| if is_named { format!("{name} = {text}") } else { text })
            .collect();
        Some(all.join(", "))
    }

    /// A call of something that is in scope.
    pub(super) fn call(&mut self, scope: &Scope) {
        let usable: Vec<Callable> = scope
            .calls
            .iter()
            .filter(|c| match c.callee {
                Callee::Function(_) => true,
                Callee::Action => scope.place != Place::Function,
                Callee::Block => !scope.in_action && !scope.in_loop && scope.place != Place::Function,
            })
            .cloned()
            .collect();
        let Some(callable) = self.rng.pick(&usable).cloned() else {
            return self.assignment(scope);
        };
        // Once more with other arguments, which is what instances are for.
        let times = if callable.callee == Callee::Block {
            self.rng.between(1, 2)
        } else {
            1
        };
        for _ in 0..times {
            let Some(arguments) = self.arguments(scope, &callable.formals) else {
                return self.assignment(scope);
            };
            let call = format!("{}({arguments})", callable.name);
            match callable.callee {
                Callee::Function(Some(ty)) => {
                    let value = match self.rng.chance(40) {
                        true => self.with_call(scope, ty, &callable, &call),
                        false => call,
                    };
                    let target = self.written_argument(scope, ty, &[]);
                    self.line(&format!("{target} = {value};"));
                }
                Callee::Function(None) | Callee::Action | Callee::Block => self.line(&format!("{call};")),
            }
        }
    }

    /// An expression with a call in it, perhaps twice: what the first does to its arguments the
    /// second sees.
    fn with_call(&mut self, scope: &Scope, ty: Ty, callable: &Callable, call: &str) -> String {
        let other = match self.rng.chance(50) {
            true => self
                .arguments(scope, &callable.formals)
                .map(|a| format!("{}({a})", callable.name)),
            false => None,
        };
        let other = other.unwrap_or_else(|| self.expression(scope, ty, 1));
        let (a, b) = match self.rng.chance(50) {
            true => (call.to_owned(), other),
            false => (other, call.to_owned()),
        };
        match ty {
            Ty::Bool => format!("({a} {} {b})", self.rng.one(["&&", "||", "=="])),
            Ty::Bit(_) | Ty::Int(_) => format!("({a} {} {b})", self.rng.one(["+", "-", "^", "&"])),
        }
    }

    /// A condition with a call of a function in it.
    pub(super) fn called_condition(&mut self, scope: &Scope) -> Option<String> {
        let functions: Vec<(Callable, Ty)> = scope
            .calls
            .iter()
            .filter_map(|c| match c.callee {
                Callee::Function(Some(ty)) => Some((c.clone(), ty)),
                Callee::Function(None) | Callee::Action | Callee::Block => None,
            })
            .collect();
        let (callable, ty) = self.rng.pick(&functions).cloned()?;
        let arguments = self.arguments(scope, &callable.formals)?;
        let compared = format!(
            "{}({arguments}) {} {}",
            callable.name,
            self.rng.one(["==", "!="]),
            self.literal(ty)
        );
        Some(match self.rng.below(3) {
            0 => format!("{} && {compared}", self.condition(scope, 1)),
            1 => format!("{compared} || {}", self.condition(scope, 1)),
            _ => compared,
        })
    }

    /// A function, which later code can call.
    pub(super) fn function(&mut self) {
        let name = self.name("fn");
        let formals = self.formals(4, true);
        let formals: Vec<Formal> = formals
            .into_iter()
            .filter(|f| !matches!(f.kind, Kind::Headers | Kind::Metadata))
            .collect();
        let result = self.rng.chance(50).then(|| self.common_type());
        let result_text = result.map_or("void".to_owned(), Ty::text);
        let list = self.formals_text(&formals);
        self.open(&format!("{result_text} {name}({list})"));
        let mut scope = self.scope_of(Place::Function, &formals);
        scope.in_action = true;
        scope.calls.clone_from(&self.functions);
        let count = self.rng.between(1, 3);
        self.statements(&scope, count, 1);
        if let Some(ty) = result {
            if self.rng.chance(40) {
                let (condition, value) = (self.condition(&scope, 1), self.expression(&scope, ty, 1));
                self.line(&format!("if ({condition}) {{ return {value}; }}"));
            }
            let value = self.expression(&scope, ty, 2);
            self.line(&format!("return {value};"));
        }
        self.close();
        self.functions.push(Callable {
            name,
            callee: Callee::Function(result),
            formals,
        });
    }

    /// An action whose parameters have directions, which its control can call.
    pub(super) fn directed_action(&mut self, scope: &mut Scope) {
        let name = self.name("act");
        let formals = self.formals(3, false);
        let list = self.formals_text(&formals);
        self.open(&format!("action {name}({list})"));
        let mut inner = scope.clone();
        inner.in_action = true;
        inner.tables.clear();
        inner.actions.clear();
        inner.calls.retain(|c| c.callee != Callee::Block);
        inner.variables.extend(self.scope_of(scope.place, &formals).variables);
        let count = self.rng.between(1, 3);
        self.statements(&inner, count, 1);
        self.close();
        scope.calls.push(Callable {
            name,
            callee: Callee::Action,
            formals,
        });
    }
}
