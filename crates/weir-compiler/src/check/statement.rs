//! Statements.

use super::{Checker, DefKind, Place};
use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use weir_syntax::ast::{
    self, AnnotationBody, BinaryOp, DeclarationKind, Expr, ExprKind, Name, Statement, StatementKind,
};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

impl<'a> Checker<'a> {
    pub(super) fn block_in_new_scope(&mut self, block: &'a ast::Block) {
        self.annotations(&block.annotations);
        self.with_scope(|c| {
            for statement in &block.statements {
                c.statement(statement);
            }
        });
    }

    pub(super) fn statement(&mut self, statement: &'a Statement) {
        match &statement.kind {
            StatementKind::Empty => {}
            StatementKind::Assign {
                target,
                operator,
                value,
            } => self.assignment(statement.span, target, *operator, value),
            StatementKind::Call(call) => {
                if let ExprKind::Call { .. } = &call.kind {
                    let ty = self.expr(call, None);
                    if self.info.types.has_infer(ty) && !self.is_open_type(ty) {
                        self.report(
                            Diagnostic::error("type-error", call.span, "the type of the result cannot be inferred")
                                .help("write the type arguments between `<` and `>`"),
                        );
                    }
                } else {
                    self.expr(call, None);
                    self.error("type-error", call.span, "only a call can be a statement");
                }
            }
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.condition(condition, "if");
                self.with_scope(|c| c.statement(then));
                if let Some(otherwise) = otherwise {
                    self.with_scope(|c| c.statement(otherwise));
                }
            }
            StatementKind::Block(block) => self.block_in_new_scope(block),
            StatementKind::Switch { expression, cases } => self.switch(statement.span, expression, cases),
            StatementKind::Return(value) => self.return_statement(statement.span, value.as_ref()),
            StatementKind::Exit => {
                let is_function = matches!(self.context.place, Place::Function | Place::AbstractMethod);
                if self.context.in_parser || is_function {
                    self.error(
                        "invalid",
                        statement.span,
                        "`exit` can stand only in controls and actions",
                    );
                }
            }
            StatementKind::Break | StatementKind::Continue => {
                if self.context.loops == 0 {
                    let word = if matches!(statement.kind, StatementKind::Break) {
                        "break"
                    } else {
                        "continue"
                    };
                    self.error("invalid", statement.span, format!("`{word}` can stand only in a loop"));
                }
            }
            StatementKind::For {
                annotations,
                init,
                condition,
                update,
                body,
            } => {
                self.annotations(annotations);
                self.with_scope(|c| {
                    for s in init {
                        c.statement(s);
                    }
                    c.condition(condition, "for");
                    for s in update {
                        c.statement(s);
                    }
                    c.loop_body(body);
                });
            }
            StatementKind::ForIn {
                annotations,
                ty,
                variable,
                collection,
                body,
            } => {
                self.annotations(annotations);
                self.for_in(ty.as_ref(), variable, collection, body);
            }
            StatementKind::Declaration(declaration) => self.local_declaration(declaration),
        }
    }

    fn local_declaration(&mut self, declaration: &'a ast::Declaration) {
        self.annotations(&declaration.annotations);
        match &declaration.kind {
            DeclarationKind::Constant(_) | DeclarationKind::Variable(_) | DeclarationKind::Instantiation(_) => {
                self.declaration(declaration);
            }
            _ => self.error(
                "invalid",
                declaration.span,
                "only constants and variables may be declared among statements",
            ),
        }
    }

    fn loop_body(&mut self, body: &'a Statement) {
        self.context.loops += 1;
        self.with_scope(|c| c.statement(body));
        self.context.loops -= 1;
    }

    fn for_in(&mut self, ty: Option<&'a ast::Type>, variable: &'a Expr, collection: &'a Expr, body: &'a Statement) {
        self.with_scope(|c| {
            let given = c.expr(collection, None);
            let declared = ty.map(|t| c.resolve_type(t));
            let element = match c.kind(given) {
                TyKind::Set(inner) if matches!(collection.kind, ExprKind::Range(..)) => inner,
                TyKind::Stack(inner, _) | TyKind::List(inner) => inner,
                TyKind::Tuple(parts) | TyKind::Listed(parts) => {
                    let mut element = declared.unwrap_or(Types::UNKNOWN);
                    for &p in parts.iter() {
                        if declared.is_none() {
                            element = p;
                        } else if !c.coerces(p, element) {
                            let (a, b) = (c.show(p), c.show(element));
                            c.error(
                                "type-error",
                                collection.span,
                                format!("an element is {a}, but the loop variable is {b}"),
                            );
                            break;
                        }
                    }
                    element
                }
                TyKind::Unknown => Types::UNKNOWN,
                _ => {
                    let shown = c.show(given);
                    c.type_error(
                        collection.span,
                        format!("a loop goes over a range, a list or a stack, not over {shown}"),
                    )
                }
            };
            match (declared, &variable.kind) {
                (Some(declared), ExprKind::Name { name, .. }) => {
                    if !c.coerces(element, declared) {
                        let (a, b) = (c.show(element), c.show(declared));
                        c.error(
                            "type-error",
                            variable.span,
                            format!("the loop goes over {a}, but its variable is {b}"),
                        );
                    }
                    let id = c.declare(name, &[], DefKind::Variable { ty: declared });
                    c.info.names[variable.id.0 as usize] = Some(id);
                    c.info.expr_types[variable.id.0 as usize] = declared;
                }
                _ => {
                    let target = c.expr(variable, None);
                    c.check_l_value(variable);
                    if !c.coerces(element, target) {
                        let (a, b) = (c.show(element), c.show(target));
                        c.error(
                            "type-error",
                            variable.span,
                            format!("the loop goes over {a}, but its variable is {b}"),
                        );
                    }
                }
            }
            c.loop_body(body);
        });
    }

    fn condition(&mut self, condition: &'a Expr, what: &str) {
        let ty = self.expr(condition, Some(Types::BOOL));
        if !self.unify(ty, Types::BOOL) {
            let shown = self.show(ty);
            let mut diagnostic = Diagnostic::error(
                "type-error",
                condition.span,
                format!("the condition of `{what}` must be a bool, but it is {shown}"),
            );
            if matches!(self.kind(ty), TyKind::Bit(_) | TyKind::Int(_) | TyKind::Integer) {
                diagnostic = diagnostic.help("compare it with a number, e.g. `!= 0`");
            }
            self.report(diagnostic);
        }
    }

    fn assignment(&mut self, span: Span, target: &'a Expr, operator: Option<BinaryOp>, value: &'a Expr) {
        let ty = self.expr(target, None);
        self.check_l_value(target);
        match operator {
            None => {
                self.expr_as(value, ty, "the value");
            }
            Some(op) => {
                let given = self.expr(value, Some(ty));
                let result = self.binary_type(span, op, target, ty, value, given);
                if !self.is_unknown(result) && !self.coerces(result, ty) {
                    let (a, b) = (self.show(result), self.show(ty));
                    self.error("type-error", span, format!("the result is {a}, but the target is {b}"));
                }
            }
        }
    }

    fn return_statement(&mut self, span: Span, value: Option<&'a Expr>) {
        let Some(result) = self
            .context
            .result
            .filter(|_| !(self.context.in_parser && self.context.place == Place::ParserState))
        else {
            if let Some(value) = value {
                self.expr(value, None);
            }
            self.error("invalid", span, "`return` cannot stand in a parser");
            return;
        };
        match value {
            None if result == Types::VOID || self.is_unknown(result) => {}
            None => {
                let shown = self.show(result);
                self.error("type-error", span, format!("a value of type {shown} must be returned"));
            }
            Some(value) if result == Types::VOID => {
                self.expr(value, None);
                self.error(
                    "type-error",
                    span,
                    "there is no result type, so no value can be returned",
                );
            }
            Some(value) => {
                self.expr_as(value, result, "the returned value");
            }
        }
    }

    fn switch(&mut self, span: Span, expression: &'a Expr, cases: &'a [ast::SwitchCase]) {
        if self.context.in_parser {
            self.error("invalid", span, "`switch` cannot stand in a parser");
        }
        let outer = self.switch_expression.replace(expression.id);
        let ty = self.expr(expression, None);
        self.switch_expression = outer;
        if let TyKind::ActionRun(table) = self.kind(ty) {
            self.switch_on_action(table, cases);
        } else {
            self.switch_on_value(expression, ty, cases);
        }
        let defaults: Vec<Span> = cases
            .iter()
            .filter(|c| matches!(c.label.kind, ExprKind::Default))
            .map(|c| c.label.span)
            .collect();
        if let [first, second, ..] = defaults[..] {
            self.report(
                Diagnostic::error("invalid", second, "a switch has at most one default").label(first, "the first one"),
            );
        }
        if let Some(position) = cases.iter().position(|c| matches!(c.label.kind, ExprKind::Default))
            && let Some(after) = cases.get(position + 1)
        {
            self.error(
                "invalid",
                after.label.span,
                "nothing may follow the default of a switch",
            );
        }
        for case in cases {
            if let Some(body) = &case.body {
                self.block_in_new_scope(body);
            }
        }
    }

    fn switch_on_action(&mut self, table: DefId, cases: &'a [ast::SwitchCase]) {
        let mut seen: FxHashMap<DefId, Span> = FxHashMap::default();
        let actions: Vec<DefId> = match &self.def(table).kind {
            DefKind::Table { actions, .. } => actions.iter().map(|a| a.action).collect(),
            _ => return,
        };
        let positions = actions.iter().enumerate().rev();
        let positions: FxHashMap<DefId, usize> = positions.map(|(i, &a)| (a, i)).collect();
        let named = actions.iter().rev().map(|&a| (self.def(a).name.clone(), a));
        let named: FxHashMap<Name, DefId> = named.collect();
        for case in cases {
            match &case.label.kind {
                ExprKind::Default => {}
                ExprKind::Name { name, absolute } => {
                    let found = self.lookup(&name.name, *absolute);
                    let first = found.iter().filter_map(|a| positions.get(a)).min();
                    let action = match first {
                        Some(&position) => Some(actions[position]),
                        None => named.get(&name.name).copied(),
                    };
                    let Some(action) = action else {
                        self.error(
                            "type-error",
                            case.label.span,
                            format!("`{}` is not an action of the table", name.name),
                        );
                        continue;
                    };
                    self.info.names[case.label.id.0 as usize] = Some(action);
                    if let Some(before) = seen.insert(action, case.label.span) {
                        self.report(
                            Diagnostic::error(
                                "invalid",
                                case.label.span,
                                format!("the label `{}` stands twice", name.name),
                            )
                            .label(before, "the first one"),
                        );
                    }
                }
                _ => {
                    self.error(
                        "type-error",
                        case.label.span,
                        "a label of a switch on action_run is the name of an action or `default`",
                    );
                }
            }
        }
    }

    fn switch_on_value(&mut self, expression: &'a Expr, ty: Ty, cases: &'a [ast::SwitchCase]) {
        let good = matches!(
            self.kind(ty),
            TyKind::Bit(_)
                | TyKind::Int(_)
                | TyKind::Enum(_)
                | TyKind::Error
                | TyKind::Unknown
                | TyKind::Bool
                | TyKind::Integer
                | TyKind::New(_)
                | TyKind::Parameter(..)
        );
        if !good {
            let shown = self.show(ty);
            self.error(
                "type-error",
                expression.span,
                format!("a switch cannot be on {shown}: only on numbers, enums, errors and action_run"),
            );
        }
        let mut seen: FxHashMap<super::Const, Span> = FxHashMap::default();
        for case in cases {
            if matches!(case.label.kind, ExprKind::Default) {
                continue;
            }
            let given = if good {
                self.expr_as(&case.label, ty, "the label")
            } else {
                self.expr(&case.label, None)
            };
            if self.is_unknown(given) || !good {
                continue;
            }
            if !self.is_constant(&case.label) {
                self.error("type-error", case.label.span, "a label must be a constant");
                continue;
            }
            let Some(value) = self.eval(&case.label) else { continue };
            let Some(value) = self.convert(value, ty) else { continue };
            if let Some(&before) = seen.get(&value) {
                self.report(
                    Diagnostic::error("invalid", case.label.span, "the label stands twice")
                        .label(before, "the first one"),
                );
            }
            seen.entry(value).or_insert(case.label.span);
        }
    }

    // ----------------------------------------------------------------------------- annotations

    /// Structured annotations hold constants; the known ones have the arguments they need.
    pub(super) fn annotations(&mut self, list: &'a [ast::Annotation]) {
        let is_structured = |annotation: &ast::Annotation| {
            matches!(
                annotation.body,
                AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_)
            )
        };
        let plain = list.iter().filter(|a| !is_structured(a));
        let plain: FxHashSet<&str> = plain.map(|a| &*a.name.name).collect();
        let mut structured: FxHashMap<&str, Span> = FxHashMap::default();
        for annotation in list {
            let is_structured = is_structured(annotation);
            let previous = structured.get(&*annotation.name.name).copied();
            let mixed = is_structured && plain.contains(&*annotation.name.name);
            if let (true, Some(before)) = (is_structured, previous) {
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        annotation.name.span,
                        format!("the structured annotation @{} stands twice", annotation.name.name),
                    )
                    .label(before, "the first one"),
                );
            } else if mixed {
                self.error(
                    "duplicate",
                    annotation.name.span,
                    format!("@{} is used both with and without structure", annotation.name.name),
                );
            }
            if is_structured {
                structured.entry(&annotation.name.name).or_insert(annotation.name.span);
            }
            match &annotation.body {
                AnnotationBody::Empty | AnnotationBody::Unstructured(_) => self.known_annotation(annotation),
                AnnotationBody::Expressions(values) => {
                    for value in values {
                        self.annotation_value(value);
                    }
                }
                AnnotationBody::KeyValues(pairs) => {
                    let mut keys: FxHashSet<&str> = FxHashSet::default();
                    for (key, value) in pairs {
                        if !keys.insert(&key.name) {
                            self.error("duplicate", key.span, format!("the key `{}` stands twice", key.name));
                        }
                        self.annotation_value(value);
                    }
                }
            }
        }
    }

    fn known_annotation(&mut self, annotation: &'a ast::Annotation) {
        let name = &*annotation.name.name;
        let AnnotationBody::Unstructured(tokens) = &annotation.body else {
            if matches!(name, "name" | "deprecated") {
                self.error(
                    "invalid",
                    annotation.span,
                    format!("@{name} needs a string: @{name}(\"…\")"),
                );
            }
            return;
        };
        if matches!(name, "name" | "deprecated") {
            // A concatenation of strings by `++` is one string.
            let is_string = |t: &ast::AnnotationToken| t.kind == ast::AnnotationTokenKind::String;
            let mut expect_string = true;
            let mut good = !tokens.is_empty();
            for token in tokens {
                if is_string(token) {
                    good &= expect_string;
                    expect_string = false;
                } else {
                    good &= &*token.text == "++" || &*token.text == "+";
                    expect_string = true;
                }
            }
            if !good || expect_string {
                self.error(
                    "invalid",
                    annotation.span,
                    format!("@{name} needs a string: @{name}(\"…\")"),
                );
            }
        }
        if name == "match" {
            let kind = tokens.first().filter(|_| tokens.len() == 1);
            if !kind.is_some_and(|k| self.info.match_kind_positions.contains_key(&*k.text)) {
                self.error(
                    "type-error",
                    annotation.span,
                    "@match needs one match kind: @match(ternary)",
                );
            }
        }
        if name == "noWarn" && !tokens.iter().any(|t| t.kind == ast::AnnotationTokenKind::String) {
            self.error(
                "invalid",
                annotation.span,
                "@noWarn needs the name of a warning in quotes",
            );
        }
    }

    fn annotation_value(&mut self, value: &'a Expr) {
        let ty = self.expr(value, None);
        match self.kind(ty) {
            TyKind::Unknown => {}
            TyKind::Integer | TyKind::String | TyKind::Bool | TyKind::Bit(_) | TyKind::Int(_) => {
                if !self.is_constant(value) {
                    self.error(
                        "type-error",
                        value.span,
                        "the values of a structured annotation must be constants",
                    );
                }
            }
            _ => {
                let shown = self.show(ty);
                self.error(
                    "type-error",
                    value.span,
                    format!("a structured annotation holds numbers, strings and booleans, not {shown}"),
                );
            }
        }
    }
}
