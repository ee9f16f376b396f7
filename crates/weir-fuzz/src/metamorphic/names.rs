//! What names mean, as far as that can be said without scopes: where a name is declared only once,
//! every use is its.

use super::nodes::Nodes;
use super::text::Subject;
use std::collections::HashMap;
use weir_syntax::ast::{
    Declaration, DeclarationKind, Direction, Expr, ExprKind, Name, Parameter, ParserState, StatementKind, StructType,
    Type, TypeKind, TypedefTarget,
};

/// What a name is declared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A variable.
    Variable,
    /// A parameter with a direction, or of a block.
    Parameter,
    /// Control-plane data of an action.
    ActionData,
    /// A constant.
    Constant,
    /// A parser state.
    State,
    /// A field of a struct, header or union.
    Field,
    /// A struct, header, enum or other type.
    Type,
    /// A parser or control: its name is part of those of what it holds.
    Block,
    /// A member of an enum.
    Member,
    /// A function.
    Function,
    /// An action.
    Action,
    /// A table.
    Table,
    /// An instance in a block.
    Instance,
    /// Anything whose name must stay: of externs, packages, errors, global instances.
    Fixed,
}

/// All that is declared, the files of the compiler included.
pub(crate) struct Names<'a> {
    /// The program's own declarations by name.
    pub own: HashMap<&'a str, Vec<Sort>>,
    /// The types of fields by the field's name, of all structs.
    fields: HashMap<&'a str, Vec<&'a Type>>,
    /// The types of variables and parameters by name.
    variables: HashMap<&'a str, Vec<&'a Type>>,
    /// What typedefs stand for.
    typedefs: HashMap<&'a str, &'a Type>,
    subject: &'a Subject,
}

impl<'a> Names<'a> {
    /// The names of a program.
    pub fn new(subject: &'a Subject, nodes: &Nodes<'a>) -> Self {
        let mut names = Names {
            own: HashMap::new(),
            fields: HashMap::new(),
            variables: HashMap::new(),
            typedefs: HashMap::new(),
            subject,
        };
        for declaration in &subject.parsed.program.declarations {
            names.types_of(declaration);
        }
        for (declaration, is_top) in &nodes.declarations {
            names.own_declaration(declaration, *is_top);
        }
        for state in nodes.states() {
            names.own_state(state);
        }
        for (statement, _) in &nodes.statements {
            if let StatementKind::ForIn {
                ty: Some(ty), variable, ..
            } = &statement.kind
                && let ExprKind::Name { name, .. } = &variable.kind
            {
                names.variables.entry(&name.name).or_default().push(ty);
            }
        }
        for parameter in &nodes.parameters {
            names
                .variables
                .entry(&parameter.name.name)
                .or_default()
                .push(&parameter.ty);
        }
        names
    }

    fn types_of(&mut self, declaration: &'a Declaration) {
        if let DeclarationKind::Struct(s) = &declaration.kind {
            for field in &s.fields {
                self.fields.entry(&field.name.name).or_default().push(&field.ty);
            }
        }
        if let DeclarationKind::Typedef(t) = &declaration.kind
            && let (TypedefTarget::Type(ty), false) = (&t.ty, t.is_new_type)
        {
            self.typedefs.insert(&t.name.name, ty);
        }
    }

    fn own_state(&mut self, state: &'a ParserState) {
        self.own.entry(&state.name.name).or_default().push(Sort::State);
    }

    fn add(&mut self, name: &'a Name, sort: Sort) {
        self.own.entry(name).or_default().push(sort);
    }

    fn parameters(&mut self, parameters: &'a [Parameter], of_action: bool) {
        for parameter in parameters {
            let is_data = of_action && parameter.direction == Direction::None;
            let sort = if is_data { Sort::ActionData } else { Sort::Parameter };
            self.add(&parameter.name.name, sort);
        }
    }

    /// Every word of a declaration keeps its name.
    fn fixed(&mut self, declaration: &'a Declaration) {
        let (lo, hi) = (declaration.span.lo as usize, declaration.span.hi as usize);
        for word in super::text::words(self.subject.text.get(lo..hi).unwrap_or("")) {
            self.own.entry(word).or_default().push(Sort::Fixed);
        }
    }

    fn own_declaration(&mut self, declaration: &'a Declaration, is_top: bool) {
        match &declaration.kind {
            DeclarationKind::Constant(c) => self.add(&c.name.name, Sort::Constant),
            DeclarationKind::Variable(v) => {
                self.variables.entry(&v.name.name).or_default().push(&v.ty);
                self.add(&v.name.name, Sort::Variable);
            }
            DeclarationKind::Action(a) => {
                self.parameters(&a.parameters, true);
                self.add(&a.name.name, Sort::Action);
            }
            DeclarationKind::Struct(s) => self.own_struct(s),
            DeclarationKind::Enum(e) => {
                self.add(&e.name.name, Sort::Type);
                e.members.iter().for_each(|m| self.add(&m.name.name, Sort::Member));
            }
            DeclarationKind::Typedef(t) => self.add(&t.name.name, Sort::Type),
            DeclarationKind::Parser(p) => {
                self.add(&p.signature.name.name, Sort::Block);
                self.parameters(&p.signature.parameters, false);
                self.parameters(&p.constructor_parameters, false);
            }
            DeclarationKind::Control(c) => {
                self.add(&c.signature.name.name, Sort::Block);
                self.parameters(&c.signature.parameters, false);
                self.parameters(&c.constructor_parameters, false);
            }
            DeclarationKind::Instantiation(i) => {
                self.add(&i.name.name, if is_top { Sort::Fixed } else { Sort::Instance });
            }
            DeclarationKind::Function(f) => {
                self.parameters(&f.prototype.parameters, false);
                self.add(&f.prototype.name.name, Sort::Function);
            }
            DeclarationKind::Table(t) => {
                self.add(&t.name.name, Sort::Table);
                t.properties.iter().for_each(|p| self.add(&p.name.name, Sort::Fixed));
            }
            DeclarationKind::ValueSet(v) => self.add(&v.name.name, Sort::Instance),
            DeclarationKind::Error(_)
            | DeclarationKind::MatchKind(_)
            | DeclarationKind::ExternFunction(_)
            | DeclarationKind::ExternType(_)
            | DeclarationKind::ParserType(_)
            | DeclarationKind::ControlType(_)
            | DeclarationKind::PackageType(_) => self.fixed(declaration),
        }
    }

    fn own_struct(&mut self, declared: &'a StructType) {
        self.add(&declared.name.name, Sort::Type);
        declared.fields.iter().for_each(|f| self.add(&f.name.name, Sort::Field));
    }

    /// Whether a name is declared exactly once that is not a field, and not by the compiler's
    /// files.
    pub fn is_single(&self, name: &str) -> bool {
        let count = self.own.get(name).map_or(0, |sorts| {
            sorts
                .iter()
                .filter(|s| !matches!(s, Sort::Field | Sort::Member))
                .count()
        });
        count == 1 && !self.subject.system.contains(name)
    }

    /// The text of the type that all these have in common; one that can be written anywhere.
    fn common(&self, types: &[&'a Type]) -> Option<String> {
        let (first, rest) = types.split_first()?;
        let text = |ty: &Type| self.subject.parsed.sources.text(ty.span);
        let is_simple = match &self.resolved(first).kind {
            TypeKind::Bit(Some(size)) | TypeKind::Int(size) => matches!(size.kind, ExprKind::Int { .. }),
            TypeKind::Bool => true,
            _ => false,
        };
        // The text of what a macro made is the macro's.
        let is_written = match &first.kind {
            TypeKind::Named { name, .. } => text(first) == &*name.name,
            _ => ["bit<", "int<", "bool"].iter().any(|t| text(first).starts_with(t)),
        };
        let same = is_written && rest.iter().all(|ty| text(ty) == text(first));
        (is_simple && same && !text(first).is_empty()).then(|| text(first).to_owned())
    }

    fn resolved(&self, ty: &'a Type) -> &'a Type {
        let mut ty = ty;
        for _ in 0..8 {
            let TypeKind::Named {
                name, arguments: None, ..
            } = &ty.kind
            else {
                break;
            };
            match self.typedefs.get(&*name.name) {
                Some(target) => ty = target,
                None => break,
            }
        }
        ty
    }

    fn types(&self, expr: &Expr) -> Option<&[&'a Type]> {
        match &expr.kind {
            ExprKind::Member(_, field) => self.fields.get(&*field.name).map(Vec::as_slice),
            ExprKind::Name { name, .. } => self.variables.get(&*name.name).map(Vec::as_slice),
            _ => None,
        }
    }

    /// The type of a path as text, where that is `bool` or of a width.
    pub fn type_of(&self, expr: &Expr) -> Option<String> {
        self.common(self.types(expr)?)
    }

    /// The width of an unsigned path.
    pub fn width_of(&self, expr: &Expr) -> Option<u32> {
        let types = self.types(expr)?;
        self.common(types)?;
        let TypeKind::Bit(Some(size)) = &self.resolved(types.first()?).kind else {
            return None;
        };
        match &size.kind {
            ExprKind::Int { value, .. } => value.try_into().ok(),
            _ => None,
        }
    }
}

/// Whether an expression is a path: names and members only.
pub(crate) fn is_path(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name { .. } => true,
        ExprKind::Member(base, _) => is_path(base),
        _ => false,
    }
}

/// Whether the value of an expression can be computed at any time and as often as one likes.
pub(crate) fn is_pure(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_) | ExprKind::Int { .. } | ExprKind::Name { .. } => true,
        ExprKind::Member(base, _) => is_pure(base),
        ExprKind::Index(a, b) => is_pure(a) && is_pure(b),
        ExprKind::Slice(a, b, c) | ExprKind::PlusSlice(a, b, c) | ExprKind::Conditional(a, b, c) => {
            is_pure(a) && is_pure(b) && is_pure(c)
        }
        ExprKind::Unary(_, e) | ExprKind::Cast(_, e) => is_pure(e),
        ExprKind::Binary(_, a, b) => is_pure(a) && is_pure(b),
        ExprKind::Call { callee, arguments, .. } => {
            let is_validity = matches!(&callee.kind, ExprKind::Member(b, m) if &*m.name == "isValid" && is_pure(b));
            is_validity && arguments.is_empty()
        }
        ExprKind::Type(_)
        | ExprKind::String(_)
        | ExprKind::This
        | ExprKind::List(_)
        | ExprKind::Struct(..)
        | ExprKind::InvalidHeader
        | ExprKind::Mask(..)
        | ExprKind::Range(..)
        | ExprKind::Default
        | ExprKind::DontCare
        | ExprKind::Dots
        | ExprKind::Error => false,
    }
}

/// The name that a declaration declares.
pub(crate) fn declared_name(declaration: &Declaration) -> Option<&str> {
    let name = match &declaration.kind {
        DeclarationKind::Constant(c) => &c.name,
        DeclarationKind::Variable(v) => &v.name,
        DeclarationKind::Action(a) => &a.name,
        DeclarationKind::Struct(s) => &s.name,
        DeclarationKind::Enum(e) => &e.name,
        DeclarationKind::Typedef(t) => &t.name,
        DeclarationKind::Parser(p) => &p.signature.name,
        DeclarationKind::Control(c) => &c.signature.name,
        DeclarationKind::Instantiation(i) => &i.name,
        DeclarationKind::Function(f) => &f.prototype.name,
        DeclarationKind::Table(t) => &t.name,
        DeclarationKind::ValueSet(v) => &v.name,
        DeclarationKind::ExternFunction(f) => &f.name,
        DeclarationKind::ExternType(t) => &t.name,
        DeclarationKind::ParserType(t) | DeclarationKind::ControlType(t) | DeclarationKind::PackageType(t) => &t.name,
        DeclarationKind::Error(_) | DeclarationKind::MatchKind(_) => return None,
    };
    Some(&name.name)
}
