//! The nodes of a program's own tree in flat lists, each with the place it stands in.

use super::text::Subject;
use weir_syntax::ast::{
    Action, ActionReference, Argument, Block, BlockType, Control, Declaration, DeclarationKind, Expr, ExprKind,
    Function, Instantiation, Parameter, Parser, ParserState, Statement, StatementKind, Table, TableProperty,
    TablePropertyValue, Transition, Type, TypeKind, TypedefTarget,
};

/// Whose body a statement stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// The `apply` of a control; its index in [`Nodes::controls`].
    Apply(usize),
    /// An action.
    Action,
    /// A function, or an abstract method of an instance.
    Function,
    /// A parser state.
    State,
}

/// What an expression is to the node above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A value computed at run time, or folded.
    Value,
    /// The left side of an assignment.
    Target,
    /// An argument of a call: perhaps one that is written.
    Argument,
    /// What is called.
    Callee,
    /// What a member, an index or a slice is taken of.
    Base,
    /// A keyset, or a part of one.
    Keyset,
    /// What must keep its text: a table key, whose text is its name, or arguments that are bound to
    /// actions.
    Key,
    /// A value known at compile time: sizes, constructor arguments, constants, properties.
    Constant,
}

/// All nodes.
#[derive(Default)]
pub(crate) struct Nodes<'a> {
    /// Declarations, outer ones before inner ones; those at the top level are marked.
    pub declarations: Vec<(&'a Declaration, bool)>,
    /// Parameters of controls, parsers, actions, functions.
    pub parameters: Vec<&'a Parameter>,
    /// Controls.
    pub controls: Vec<(&'a Declaration, &'a Control)>,
    /// Tables with their control in [`Nodes::controls`].
    pub tables: Vec<(&'a Declaration, &'a Table, usize)>,
    /// Actions; those at the top level have no control.
    pub actions: Vec<(&'a Declaration, &'a Action, Option<usize>)>,
    /// Parsers.
    pub parsers: Vec<(&'a Declaration, &'a Parser)>,
    /// Statements in bodies; those of the heads of loops are none.
    pub statements: Vec<(&'a Statement, Body)>,
    /// Expressions, outer ones before inner ones.
    pub expressions: Vec<(&'a Expr, Role)>,
    /// Types as written.
    pub types: Vec<&'a Type>,
}

fn is_bound(action: &ActionReference) -> bool {
    action.arguments.as_ref().is_some_and(|a| !a.is_empty())
}

impl<'a> Nodes<'a> {
    /// The nodes of the program's own declarations.
    pub fn new(subject: &'a Subject) -> Self {
        let mut nodes = Nodes::default();
        for declaration in &subject.parsed.program.declarations {
            if subject.is_own(declaration.span) {
                nodes.declaration(declaration, None, true);
            }
        }
        nodes
    }

    /// The states of all parsers.
    pub fn states(&self) -> impl Iterator<Item = &'a ParserState> + '_ {
        self.parsers.iter().flat_map(|(_, p)| p.states.iter())
    }

    fn declaration(&mut self, declaration: &'a Declaration, control: Option<usize>, top: bool) {
        self.declarations.push((declaration, top));
        match &declaration.kind {
            DeclarationKind::Constant(c) => {
                self.ty(&c.ty);
                self.expr(&c.value, Role::Constant);
            }
            DeclarationKind::Variable(v) => {
                self.ty(&v.ty);
                v.value.iter().for_each(|e| self.expr(e, Role::Value));
            }
            DeclarationKind::Action(a) => {
                self.actions.push((declaration, a, control));
                self.parameters(&a.parameters);
                self.block(&a.body, Body::Action);
            }
            DeclarationKind::Struct(s) => s.fields.iter().for_each(|f| self.ty(&f.ty)),
            DeclarationKind::Enum(e) => {
                e.underlying.iter().for_each(|t| self.ty(t));
                let values = e.members.iter().filter_map(|m| m.value.as_ref());
                values.for_each(|v| self.expr(v, Role::Constant));
            }
            DeclarationKind::Typedef(t) => match &t.ty {
                TypedefTarget::Type(ty) => self.ty(ty),
                TypedefTarget::Declaration(d) => self.declaration(d, control, false),
            },
            DeclarationKind::Parser(p) => {
                self.parsers.push((declaration, p));
                self.signature(&p.signature, &p.constructor_parameters);
                p.locals.iter().for_each(|d| self.declaration(d, None, false));
                p.states.iter().for_each(|s| self.state(s));
            }
            DeclarationKind::Control(c) => {
                let index = self.controls.len();
                self.controls.push((declaration, c));
                self.signature(&c.signature, &c.constructor_parameters);
                c.locals.iter().for_each(|d| self.declaration(d, Some(index), false));
                self.block(&c.apply, Body::Apply(index));
            }
            DeclarationKind::Instantiation(i) => self.instantiation(i),
            DeclarationKind::Function(f) => self.function(f),
            DeclarationKind::Table(t) => {
                self.tables.push((declaration, t, control.unwrap_or(0)));
                self.table(t);
            }
            DeclarationKind::ValueSet(v) => {
                self.ty(&v.element);
                self.expr(&v.size, Role::Constant);
            }
            DeclarationKind::Error(_)
            | DeclarationKind::MatchKind(_)
            | DeclarationKind::ExternFunction(_)
            | DeclarationKind::ExternType(_)
            | DeclarationKind::ParserType(_)
            | DeclarationKind::ControlType(_)
            | DeclarationKind::PackageType(_) => {}
        }
    }

    fn signature(&mut self, signature: &'a BlockType, constructor: &'a [Parameter]) {
        self.parameters(&signature.parameters);
        self.parameters(constructor);
    }

    fn parameters(&mut self, parameters: &'a [Parameter]) {
        for parameter in parameters {
            self.parameters.push(parameter);
            self.ty(&parameter.ty);
            parameter.default.iter().for_each(|e| self.expr(e, Role::Constant));
        }
    }

    fn instantiation(&mut self, instance: &'a Instantiation) {
        self.ty(&instance.ty);
        self.arguments(&instance.arguments, Role::Constant);
        let body = instance.body.iter().flatten();
        body.for_each(|d| self.declaration(d, None, false));
    }

    fn function(&mut self, function: &'a Function) {
        function.prototype.result.iter().for_each(|t| self.ty(t));
        self.parameters(&function.prototype.parameters);
        self.block(&function.body, Body::Function);
    }

    fn state(&mut self, state: &'a ParserState) {
        state.statements.iter().for_each(|s| self.statement(s, Body::State));
        if let Some(Transition::Select { expressions, cases, .. }) = &state.transition {
            expressions.iter().for_each(|e| self.expr(e, Role::Value));
            cases.iter().for_each(|c| self.expr(&c.keyset, Role::Keyset));
        }
    }

    fn table(&mut self, table: &'a Table) {
        // Where the list of actions binds arguments, the default action and the entries repeat
        // their text.
        let binds = |p: &TableProperty| matches!(&p.value, TablePropertyValue::Actions(a) if a.iter().any(is_bound));
        let role = match table.properties.iter().any(binds) {
            true => Role::Key,
            false => Role::Constant,
        };
        for property in &table.properties {
            match &property.value {
                TablePropertyValue::Key(keys) => keys.iter().for_each(|k| self.expr(&k.expression, Role::Key)),
                TablePropertyValue::Actions(actions) => {
                    let arguments = actions.iter().filter_map(|a| a.arguments.as_ref());
                    arguments.for_each(|a| self.arguments(a, role));
                }
                TablePropertyValue::Entries(entries) => {
                    for entry in entries {
                        entry.priority.iter().for_each(|e| self.expr(e, Role::Constant));
                        self.expr(&entry.keyset, Role::Keyset);
                        let arguments = entry.action.arguments.iter();
                        arguments.for_each(|a| self.arguments(a, role));
                    }
                }
                TablePropertyValue::Expression(e) => self.expr(e, role),
            }
        }
    }

    fn block(&mut self, block: &'a Block, body: Body) {
        block.statements.iter().for_each(|s| self.statement(s, body));
    }

    fn statement(&mut self, statement: &'a Statement, body: Body) {
        self.statements.push((statement, body));
        match &statement.kind {
            StatementKind::Empty | StatementKind::Exit | StatementKind::Break | StatementKind::Continue => {}
            StatementKind::Assign { target, value, .. } => {
                self.expr(target, Role::Target);
                self.expr(value, Role::Value);
            }
            StatementKind::Call(call) => self.expr(call, Role::Value),
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.expr(condition, Role::Value);
                self.statement(then, body);
                otherwise.iter().for_each(|s| self.statement(s, body));
            }
            StatementKind::Block(block) => self.block(block, body),
            StatementKind::Switch { expression, cases } => {
                self.expr(expression, Role::Value);
                for case in cases {
                    self.expr(&case.label, Role::Keyset);
                    case.body.iter().for_each(|b| self.block(b, body));
                }
            }
            StatementKind::Return(value) => value.iter().for_each(|e| self.expr(e, Role::Value)),
            StatementKind::For {
                init,
                condition,
                update,
                body: inner,
                ..
            } => {
                let statements = self.statements.len();
                init.iter().chain(update).for_each(|s| self.statement(s, body));
                self.statements.truncate(statements);
                self.expr(condition, Role::Value);
                self.statement(inner, body);
            }
            StatementKind::ForIn {
                ty,
                collection,
                body: inner,
                ..
            } => {
                ty.iter().for_each(|t| self.ty(t));
                self.expr(collection, Role::Keyset);
                self.statement(inner, body);
            }
            StatementKind::Declaration(d) => self.declaration(d, None, false),
        }
    }

    fn arguments(&mut self, arguments: &'a [Argument], role: Role) {
        arguments.iter().for_each(|a| self.expr(&a.value, role));
    }

    fn expr(&mut self, expr: &'a Expr, role: Role) {
        self.expressions.push((expr, role));
        // Parts of what is known at compile time, or of what has a name, are such themselves.
        let is_fixed = matches!(role, Role::Keyset | Role::Key | Role::Constant);
        let of = |other| if is_fixed { role } else { other };
        // A list that an extern takes may be one of fields, not of values.
        let element = if role == Role::Argument { role } else { Role::Value };
        match &expr.kind {
            ExprKind::Index(base, index) => {
                self.expr(base, of(Role::Base));
                self.expr(index, of(Role::Value));
            }
            ExprKind::Slice(base, a, b) | ExprKind::PlusSlice(base, a, b) => {
                self.expr(base, of(Role::Base));
                self.expr(a, of(Role::Constant));
                self.expr(b, of(Role::Constant));
            }
            ExprKind::Member(base, _) => self.expr(base, of(Role::Base)),
            ExprKind::Unary(_, e) => self.expr(e, of(Role::Value)),
            ExprKind::Cast(ty, e) => {
                self.ty(ty);
                self.expr(e, of(Role::Value));
            }
            ExprKind::Binary(_, a, b) | ExprKind::Mask(a, b) | ExprKind::Range(a, b) => {
                self.expr(a, of(Role::Value));
                self.expr(b, of(Role::Value));
            }
            ExprKind::Conditional(c, a, b) => [c, a, b].iter().for_each(|e| self.expr(e, of(Role::Value))),
            ExprKind::List(list) => list.iter().for_each(|e| self.expr(e, of(element))),
            ExprKind::Struct(fields, _) => fields.iter().for_each(|(_, e)| self.expr(e, of(element))),
            ExprKind::Call {
                callee,
                type_arguments,
                arguments,
            } => {
                self.expr(callee, of(Role::Callee));
                type_arguments.iter().for_each(|t| self.ty(t));
                self.arguments(arguments, of(Role::Argument));
            }
            ExprKind::Type(ty) => self.ty(ty),
            ExprKind::Bool(_)
            | ExprKind::Int { .. }
            | ExprKind::String(_)
            | ExprKind::This
            | ExprKind::Name { .. }
            | ExprKind::InvalidHeader
            | ExprKind::Default
            | ExprKind::DontCare
            | ExprKind::Dots
            | ExprKind::Error => {}
        }
    }

    fn ty(&mut self, ty: &'a Type) {
        self.types.push(ty);
        match &ty.kind {
            TypeKind::Bit(Some(size)) | TypeKind::Int(size) | TypeKind::Varbit(size) => self.expr(size, Role::Constant),
            TypeKind::Named { arguments, .. } => arguments.iter().flatten().for_each(|t| self.ty(t)),
            TypeKind::Stack(element, size) => {
                self.ty(element);
                self.expr(size, Role::Constant);
            }
            TypeKind::Tuple(types) => types.iter().for_each(|t| self.ty(t)),
            TypeKind::List(element) => self.ty(element),
            TypeKind::Bit(None)
            | TypeKind::Bool
            | TypeKind::Error
            | TypeKind::MatchKind
            | TypeKind::String
            | TypeKind::Integer
            | TypeKind::Void
            | TypeKind::DontCare => {}
        }
    }
}
