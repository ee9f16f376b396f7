//! Tables: keys, actions, entries and the other properties.

use super::{Checker, Const, DefKind, Param, Place, TableActionDef};
use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use weir_syntax::ast::{self, ActionReference, Argument, Direction, ExprKind, TablePropertyValue};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

impl<'a> Checker<'a> {
    pub(super) fn table(&mut self, table: &'a ast::Table, annotations: &'a [ast::Annotation]) {
        let id = self.new_def(
            &table.name,
            annotations,
            DefKind::Table {
                ast: table,
                actions: Vec::new(),
            },
        );
        let outer = self.current_table.replace(id);
        self.bind(id);
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        let mut keys: Option<Vec<(Ty, &'a ast::Ident)>> = None;
        let mut has_actions = false;
        let mut default: Option<&'a ast::TableProperty> = None;
        let mut of_actions: Vec<&'a ast::TableProperty> = Vec::new();
        for property in &table.properties {
            self.annotations(&property.annotations);
            if let Some(&before) = seen.get(&*property.name.name) {
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        property.name.span,
                        format!("the property `{}` is given twice", property.name.name),
                    )
                    .label(before, "first given here"),
                );
                continue;
            }
            seen.insert(&property.name.name, property.name.span);
            match &property.value {
                TablePropertyValue::Key(elements) => {
                    keys = Some(self.with_place(Place::TableKey, |c| c.table_key(elements)));
                }
                TablePropertyValue::Actions(references) => {
                    has_actions = true;
                    self.with_place(Place::TableActions, |c| c.table_actions(id, references));
                }
                TablePropertyValue::Entries(entries) => self.table_entries(id, property, entries, keys.as_deref()),
                TablePropertyValue::Expression(e) if &*property.name.name == "default_action" => {
                    default = Some(property);
                    let _ = e;
                }
                TablePropertyValue::Expression(e) if self.names_action(e) => of_actions.push(property),
                TablePropertyValue::Expression(e) => self.table_property(property, e),
            }
        }
        if !has_actions {
            self.error(
                "expected",
                table.name.span,
                format!("the table `{}` has no `actions` property", table.name.name),
            );
        }
        match default {
            Some(property) => {
                let position = |name: &str| table.properties.iter().position(|p| &*p.name.name == name);
                if position("actions") > position("default_action") {
                    self.error(
                        "type-error",
                        property.span,
                        "the default action must come after the `actions`",
                    );
                } else {
                    self.default_action(id, property);
                }
            }
            None if has_actions => self.implied_default_action(id, table),
            None => {}
        }
        // What they name may be the default action that the source leaves out.
        for property in of_actions {
            self.default_action(id, property);
        }
        self.current_table = outer;
    }

    fn table_key(&mut self, elements: &'a [ast::KeyElement]) -> Vec<(Ty, &'a ast::Ident)> {
        elements
            .iter()
            .map(|element| {
                self.annotations(&element.annotations);
                let ty = self.expr(&element.expression, None);
                if !self.info.match_kind_positions.contains_key(&element.match_kind.name) {
                    let kind = &element.match_kind;
                    self.info.missing.push((kind.name.clone(), kind.span));
                    let known: Vec<&str> = self.info.match_kinds.iter().map(|m| &*m.name).collect();
                    let like = self.similar(&element.match_kind.name, known.iter().copied());
                    let help = match like {
                        Some(like) => format!("did you mean `{like}`?"),
                        None if known.is_empty() => {
                            "match kinds are declared in core.p4: add `#include <core.p4>`".into()
                        }
                        None => format!("the match kinds here are {}", known.join(", ")),
                    };
                    self.report(
                        Diagnostic::error(
                            "not-found",
                            element.match_kind.span,
                            format!("there is no match kind `{}`", element.match_kind.name),
                        )
                        .help(help),
                    );
                }
                let good = match self.kind(ty) {
                    TyKind::Bit(_)
                    | TyKind::Int(_)
                    | TyKind::Bool
                    | TyKind::Enum(_)
                    | TyKind::Error
                    | TyKind::New(_)
                    | TyKind::Unknown
                    | TyKind::Varbit(_)
                    | TyKind::Parameter(..) => true,
                    TyKind::Integer => {
                        self.error(
                            "type-error",
                            element.expression.span,
                            "a table key needs a width; this is an int",
                        );
                        true
                    }
                    _ => false,
                };
                if !good {
                    let shown = self.show(ty);
                    self.error(
                        "type-error",
                        element.expression.span,
                        format!("a table key cannot have the type {shown}"),
                    );
                }
                (ty, &element.match_kind)
            })
            .collect()
    }

    fn find_action(&mut self, reference: &'a ActionReference) -> Option<DefId> {
        let defs = self.lookup(&reference.name.name, reference.absolute);
        let Some(&def) = defs.first() else {
            self.not_found("action", &reference.name);
            return None;
        };
        match &self.def(def).kind {
            DefKind::Action { .. } => {
                self.info.action_references.insert(std::ptr::from_ref(reference), def);
                Some(def)
            }
            DefKind::Broken => None,
            _ => {
                self.error(
                    "type-error",
                    reference.name.span,
                    format!("`{}` is not an action", reference.name.name),
                );
                None
            }
        }
    }

    fn table_actions(&mut self, table: DefId, references: &'a [ActionReference]) {
        let mut actions: Vec<TableActionDef<'a>> = Vec::new();
        let mut seen: FxHashMap<DefId, Span> = FxHashMap::default();
        for reference in references {
            self.annotations(&reference.annotations);
            let Some(action) = self.find_action(reference) else {
                for argument in reference.arguments.iter().flatten() {
                    self.expr(&argument.value, None);
                }
                continue;
            };
            if let Some(&before) = seen.get(&action) {
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        reference.span,
                        format!("the action `{}` is listed twice", reference.name.name),
                    )
                    .label(before, "first listed here"),
                );
                continue;
            }
            let DefKind::Action { signature, .. } = &self.def(action).kind else {
                continue;
            };
            let params = signature.params.clone();
            let bound: Vec<&Param<'a>> = params.iter().filter(|p| p.direction != Direction::None).collect();
            let given = reference.arguments.as_deref().unwrap_or_default();
            if given.len() > bound.len() {
                if let Some(parameter) = params.iter().find(|p| p.direction == Direction::None) {
                    let message = format!(
                        "the parameter `{}` is set by the control plane and cannot be given here",
                        parameter.name.name
                    );
                    self.error("type-error", reference.span, message);
                } else {
                    self.error(
                        "type-error",
                        reference.span,
                        format!(
                            "the action `{}` has only {} parameter(s)",
                            reference.name.name,
                            params.len()
                        ),
                    );
                }
            }
            self.bind_action_arguments(given, &bound, reference);
            seen.insert(action, reference.span);
            actions.push(TableActionDef {
                action,
                reference: Some(reference),
            });
        }
        if let DefKind::Table { actions: a, .. } = &mut self.def_mut(table).kind {
            *a = actions;
        }
    }

    /// Checks the arguments that a reference to an action gives its parameters with direction.
    fn bind_action_arguments(&mut self, given: &'a [Argument], params: &[&Param<'a>], reference: &'a ActionReference) {
        for (index, argument) in given.iter().enumerate() {
            let parameter = match &argument.name {
                Some(name) => params.iter().find(|p| p.name.name == name.name),
                None => params.get(index),
            };
            let Some(parameter) = parameter else {
                self.expr(&argument.value, None);
                continue;
            };
            self.argument(argument, parameter, parameter.ty, false);
            self.check_no_table_apply(&argument.value);
        }
        for (index, parameter) in params.iter().enumerate() {
            let named = given
                .iter()
                .any(|a| a.name.as_ref().is_some_and(|n| n.name == parameter.name.name));
            let positional = index < given.len() && given.iter().all(|a| a.name.is_none());
            if !named && !positional && !parameter.may_be_omitted() {
                let before = parameter.name.span;
                let code = if reference.arguments.is_some() {
                    "type-error"
                } else {
                    "uninitialized"
                };
                self.report(
                    Diagnostic::error(
                        code,
                        reference.span,
                        format!(
                            "the parameter `{}` of the action `{}` must be given here",
                            parameter.name.name, reference.name.name
                        ),
                    )
                    .label(before, "it has a direction, so the control plane cannot set it"),
                );
            }
        }
    }

    fn check_no_table_apply(&mut self, expr: &'a ast::Expr) {
        if let ExprKind::Call { .. } = &expr.kind
            && let Some(info) = self.info.calls.get(&expr.id)
            && matches!(info.callee, super::Callee::TableApply(_))
        {
            self.error(
                "unsupported",
                expr.span,
                "a table cannot be applied in an argument of an action",
            );
        }
    }

    /// Whether the value of a property is an action, with or without arguments.
    fn names_action(&self, value: &ast::Expr) -> bool {
        let callee = match &value.kind {
            ExprKind::Call { callee, .. } => callee,
            _ => value,
        };
        let ExprKind::Name { absolute, name } = &callee.kind else {
            return false;
        };
        let found = self.lookup(&name.name, *absolute);
        found
            .first()
            .is_some_and(|d| matches!(self.def(*d).kind, DefKind::Action { .. }))
    }

    /// `default_action = a;` or `a(args)`, and any other property whose value is an action.
    fn default_action(&mut self, table: DefId, property: &'a ast::TableProperty) {
        let TablePropertyValue::Expression(value) = &property.value else {
            return;
        };
        let (callee, arguments): (&'a ast::Expr, &'a [Argument]) = match &value.kind {
            ExprKind::Call { callee, arguments, .. } => (callee, arguments),
            _ => (value, &[]),
        };
        let ExprKind::Name { absolute, name } = &callee.kind else {
            self.error(
                "type-error",
                value.span,
                "the default action must be one of the table's actions",
            );
            return;
        };
        let Some(&action) = self.lookup(&name.name, *absolute).first() else {
            self.not_found("action", name);
            return;
        };
        if !matches!(self.def(action).kind, DefKind::Action { .. }) {
            self.error("type-error", value.span, format!("`{}` is not an action", name.name));
            return;
        }
        self.info.names[callee.id.0 as usize] = Some(action);
        self.call_of_listed_action(table, action, arguments, value.span, true);
    }

    /// Arguments of a listed action in an entry or as default: those with direction must repeat
    /// what the list says, the others are constants.
    fn call_of_listed_action(
        &mut self,
        table: DefId,
        action: DefId,
        arguments: &'a [Argument],
        span: Span,
        is_default: bool,
    ) {
        let DefKind::Table { actions, ast } = &self.def(table).kind else {
            return;
        };
        let listed = actions.iter().find(|a| a.action == action).copied();
        let table_name = ast.name.name.clone();
        let action_name = self.def(action).name.clone();
        let Some(listed) = listed else {
            let same_name = match &self.def(table).kind {
                DefKind::Table { actions, .. } => actions.iter().any(|a| self.def(a.action).name == action_name),
                _ => false,
            };
            let message = if same_name {
                format!("this `{action_name}` is not the action of that name that the table lists")
            } else {
                format!("`{action_name}` is not in the actions of the table `{table_name}`")
            };
            self.error("type-error", span, message);
            for argument in arguments {
                self.expr(&argument.value, None);
            }
            return;
        };
        let only = |annotation: &str| {
            listed
                .reference
                .is_some_and(|r| r.annotations.iter().any(|a| &*a.name.name == annotation))
        };
        if is_default && only("tableonly") {
            self.error(
                "type-error",
                span,
                format!("`{action_name}` is @tableonly and cannot be the default action"),
            );
        }
        if !is_default && only("defaultonly") {
            self.error(
                "type-error",
                span,
                format!("`{action_name}` is @defaultonly and cannot be the action of an entry"),
            );
        }
        let DefKind::Action { signature, .. } = &self.def(action).kind else {
            return;
        };
        let params = signature.params.clone();
        let bound = listed
            .reference
            .and_then(|r| r.arguments.as_deref())
            .unwrap_or_default();
        let all: Vec<&Param<'a>> = params.iter().collect();
        let directionless: Vec<&Param<'a>> = params.iter().filter(|p| p.direction == Direction::None).collect();
        let named = arguments.iter().any(|a| a.name.is_some());
        let targets: Vec<&Param<'a>> =
            if named || arguments.len() > directionless.len() || bound.is_empty() && all.len() != directionless.len() {
                all
            } else {
                directionless.clone()
            };
        if arguments.len() > params.len() {
            self.error(
                "type-error",
                span,
                format!(
                    "`{action_name}` has {} parameter(s), but {} argument(s) are given",
                    params.len(),
                    arguments.len()
                ),
            );
        }
        let mut given: Vec<&str> = Vec::new();
        for (index, argument) in arguments.iter().enumerate() {
            let parameter = match &argument.name {
                Some(name) => targets.iter().find(|p| p.name.name == name.name),
                None => targets.get(index),
            };
            let Some(parameter) = parameter else {
                self.expr(&argument.value, None);
                continue;
            };
            given.push(&parameter.name.name);
            if parameter.direction == Direction::None {
                let ty = self.expr_as(&argument.value, parameter.ty, "the argument");
                if !self.is_unknown(ty) && !self.is_constant(&argument.value) {
                    self.error("type-error", argument.span, "data of an action must be a constant here");
                }
            } else {
                self.argument(argument, parameter, parameter.ty, false);
                let position = params
                    .iter()
                    .filter(|p| p.direction != Direction::None)
                    .position(|p| p.def == parameter.def);
                let same = position
                    .and_then(|i| bound.get(i))
                    .is_some_and(|b| same_expression(&b.value, &argument.value));
                if !same {
                    self.error(
                        "type-error",
                        argument.span,
                        "this argument does not agree with the one in the list of actions",
                    );
                }
            }
        }
        for parameter in &directionless {
            if !given.contains(&&*parameter.name.name) && !parameter.may_be_omitted() {
                let before = parameter.name.span;
                self.report(
                    Diagnostic::error(
                        "type-error",
                        span,
                        format!(
                            "the parameter `{}` of `{action_name}` is not given",
                            parameter.name.name
                        ),
                    )
                    .label(before, "declared here"),
                );
            }
        }
        if arguments.len() > directionless.len() || named {
            for parameter in params.iter().filter(|p| p.direction != Direction::None) {
                if !given.contains(&&*parameter.name.name) && arguments.len() > directionless.len() {
                    self.error(
                        "type-error",
                        span,
                        format!(
                            "the parameter `{}` of `{action_name}` is not given",
                            parameter.name.name
                        ),
                    );
                }
            }
        }
    }

    /// A table without a default action runs NoAction, which core.p4 declares.
    fn implied_default_action(&mut self, id: DefId, table: &'a ast::Table) {
        let Some(&no_action) = self.lookup("NoAction", true).first() else {
            let listed = table.properties.iter().any(|p| {
                matches!(&p.value, TablePropertyValue::Actions(list) if list.iter().any(|r| &*r.name.name == "NoAction"))
            });
            if listed {
                return;
            }
            self.info.missing.push(("NoAction".into(), table.name.span));
            self.report(
                Diagnostic::error(
                    "not-found",
                    table.name.span,
                    format!(
                        "the table `{}` has no default action, and there is no `NoAction`",
                        table.name.name
                    ),
                )
                .help("add `#include <core.p4>`, which declares NoAction, or a `default_action`"),
            );
            return;
        };
        let fits =
            matches!(&self.def(no_action).kind, DefKind::Action { signature, .. } if signature.params.is_empty());
        if !fits {
            let span = self.def(no_action).span;
            self.error(
                "type-error",
                span,
                "`NoAction` must be an action without parameters; core.p4 declares it",
            );
            return;
        }
        let is_action = |a: &TableActionDef<'_>| a.action == no_action;
        if let DefKind::Table { actions, .. } = &mut self.def_mut(id).kind
            && !actions.iter().any(is_action)
        {
            actions.push(TableActionDef {
                action: no_action,
                reference: None,
            });
        }
    }

    fn table_property(&mut self, property: &'a ast::TableProperty, value: &'a ast::Expr) {
        let place = Place::TableProperty;
        let ty = self.with_place(place, |c| c.expr(value, None));
        if &*property.name.name == "size" {
            match self.kind(ty) {
                TyKind::Integer | TyKind::Bit(_) | TyKind::Int(_) | TyKind::Unknown => {}
                _ => {
                    let shown = self.show(ty);
                    self.error(
                        "type-error",
                        value.span,
                        format!("the size of a table is a number, not {shown}"),
                    );
                }
            }
            if let Some(Const::Int(n)) = self.eval(value) {
                if num_traits::Signed::is_negative(&n) {
                    self.error("invalid", value.span, "the size of a table cannot be negative");
                }
            } else if !self.is_constant(value) && !self.is_unknown(ty) {
                self.error("expected", value.span, "the size of a table must be a constant");
            }
        }
        if matches!(&*property.name.name, "key" | "actions" | "entries") {
            self.error(
                "expected",
                value.span,
                format!("`{}` needs a list in braces", property.name.name),
            );
        }
        if &*property.name.name == "largest_priority_wins" && ty != Types::BOOL && !self.is_unknown(ty) {
            self.error("type-error", value.span, "`largest_priority_wins` is true or false");
        }
    }

    fn table_entries(
        &mut self,
        table: DefId,
        property: &'a ast::TableProperty,
        entries: &'a [ast::TableEntry],
        keys: Option<&[(Ty, &'a ast::Ident)]>,
    ) {
        if entries.is_empty() {
            return;
        }
        let Some(keys) = keys.filter(|k| !k.is_empty()) else {
            let DefKind::Table { ast, .. } = &self.def(table).kind else {
                return;
            };
            let later = ast
                .properties
                .iter()
                .any(|p| matches!(p.value, TablePropertyValue::Key(_)));
            let message = if later {
                "the entries must come after the `key`".to_string()
            } else {
                format!("the table `{}` has no key, so it cannot have entries", ast.name.name)
            };
            self.error("type-error", property.span, message);
            return;
        };
        let DefKind::Table { ast, actions } = &self.def(table).kind else {
            return;
        };
        let actions_come_later = actions.is_empty()
            && ast
                .properties
                .iter()
                .any(|p| matches!(p.value, TablePropertyValue::Actions(_)));
        if actions_come_later {
            self.error("type-error", property.span, "the entries must come after the `actions`");
            return;
        }
        let types: Vec<Ty> = keys
            .iter()
            .filter(|(_, kind)| &*kind.name != "selector")
            .map(|(t, _)| *t)
            .collect();
        let kinds: Vec<&str> = keys
            .iter()
            .filter(|(_, kind)| &*kind.name != "selector")
            .map(|(_, kind)| &*kind.name)
            .collect();
        let prioritised = kinds.iter().any(|k| matches!(*k, "ternary" | "range" | "optional"));
        let all_exact = kinds.iter().all(|k| *k == "exact");
        let mut seen: FxHashMap<Vec<Const>, Span> = FxHashMap::default();
        for (index, entry) in entries.iter().enumerate() {
            self.annotations(&entry.annotations);
            if let Some(priority) = &entry.priority {
                self.expr(priority, None);
                if property.is_const {
                    self.error(
                        "invalid",
                        priority.span,
                        "`const entries` are matched in the order they are written and have no priorities",
                    );
                } else if !prioritised {
                    self.report(
                        Diagnostic::error(
                            "unsupported",
                            priority.span,
                            "no key of this table is matched in a way that needs priorities",
                        )
                        .help("ternary, range and optional keys do; exact and lpm keys do not"),
                    );
                } else if self.eval_int(priority).is_none() && !self.is_constant(priority) {
                    self.error("expected", priority.span, "a priority must be a constant");
                }
                if index > 0 && entries[0].priority.is_none() && !property.is_const {
                    self.error(
                        "invalid",
                        priority.span,
                        "where one entry has a priority, the first one must have one",
                    );
                }
            }
            let before = self.diagnostics.list().len();
            self.entry_keyset(entry, &types, &kinds);
            if all_exact && self.diagnostics.list().len() == before {
                self.check_distinct(entry, &types, &mut seen);
            }
            if let Some(action) = self.find_action(&entry.action) {
                let arguments = entry.action.arguments.as_deref().unwrap_or_default();
                self.call_of_listed_action(table, action, arguments, entry.action.span, false);
            }
        }
    }

    /// Two entries of a table with only exact keys must differ.
    fn check_distinct(&mut self, entry: &'a ast::TableEntry, types: &[Ty], seen: &mut FxHashMap<Vec<Const>, Span>) {
        let elements: Vec<&'a ast::Expr> = match &entry.keyset.kind {
            ExprKind::List(elements) if elements.len() == types.len() => elements.iter().collect(),
            _ if types.len() == 1 => vec![&entry.keyset],
            _ => return,
        };
        let mut values = Vec::new();
        for (element, &ty) in elements.into_iter().zip(types) {
            let Some(value) = self.eval(element).and_then(|v| self.convert(v, ty)) else {
                return;
            };
            values.push(value);
        }
        if let Some(&before) = seen.get(&values) {
            self.report(
                Diagnostic::error("keys", entry.keyset.span, "an entry with this key stands before")
                    .label(before, "the other entry"),
            );
        }
        seen.entry(values).or_insert(entry.keyset.span);
    }

    fn entry_keyset(&mut self, entry: &'a ast::TableEntry, types: &[Ty], kinds: &[&str]) {
        let before = self.diagnostics.list().len();
        let elements: Vec<&'a ast::Expr> = match &entry.keyset.kind {
            ExprKind::List(elements) if types.len() != 1 || elements.len() == 1 => elements.iter().collect(),
            ExprKind::Default | ExprKind::DontCare if types.len() > 1 => return,
            _ => vec![&entry.keyset],
        };
        if elements.len() != types.len() {
            self.error(
                "type-error",
                entry.keyset.span,
                format!(
                    "the table has {} key(s), but this entry has {}",
                    types.len(),
                    elements.len()
                ),
            );
            return;
        }
        for (element, (&ty, kind)) in elements.iter().zip(types.iter().zip(kinds)) {
            self.keyset_element(element, ty);
            if self.diagnostics.list().len() != before {
                continue;
            }
            let wildcard = matches!(element.kind, ExprKind::Default | ExprKind::DontCare);
            match &element.kind {
                ExprKind::Mask(value, mask) => match *kind {
                    "optional" | "range" => {
                        self.error(
                            "invalid",
                            element.span,
                            format!("a mask cannot be matched by a key of kind {kind}"),
                        );
                    }
                    "lpm" => {
                        if let (Some(m), TyKind::Bit(w)) = (self.eval_int(mask), self.kind(ty)) {
                            let m = super::constant::wrap(&m, &TyKind::Bit(w));
                            let one = num_bigint::BigInt::from(1);
                            let inverted: num_bigint::BigInt = (&one << w) - &one - &m;
                            let above: num_bigint::BigInt = &inverted + &one;
                            if inverted & above != num_bigint::BigInt::from(0) {
                                self.error(
                                    "invalid",
                                    element.span,
                                    "the mask of an lpm key must be ones followed by zeros",
                                );
                            }
                        }
                        let _ = value;
                    }
                    _ => {}
                },
                ExprKind::Range(..) if *kind != "range" => {
                    self.error(
                        "invalid",
                        element.span,
                        format!("a range cannot be matched by a key of kind {kind}"),
                    );
                }
                _ if wildcard && *kind == "exact" => {
                    self.error("invalid", element.span, "an exact key needs a value");
                }
                _ => {}
            }
            if !wildcard && !self.is_constant(element) {
                self.error("invalid", element.span, "the key of an entry must be a constant");
            }
        }
    }
}

/// Whether two expressions are written the same way.
fn same_expression(a: &ast::Expr, b: &ast::Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Name { name: x, absolute: i }, ExprKind::Name { name: y, absolute: j }) => {
            x.name == y.name && i == j
        }
        (ExprKind::Member(x, m), ExprKind::Member(y, n)) => m.name == n.name && same_expression(x, y),
        (ExprKind::Index(x, i), ExprKind::Index(y, j)) => same_expression(x, y) && same_expression(i, j),
        (ExprKind::Int { value: x, width: v, .. }, ExprKind::Int { value: y, width: w, .. }) => x == y && v == w,
        (ExprKind::Bool(x), ExprKind::Bool(y)) => x == y,
        (ExprKind::Slice(x, h, l), ExprKind::Slice(y, i, m))
        | (ExprKind::PlusSlice(x, h, l), ExprKind::PlusSlice(y, i, m)) => {
            same_expression(x, y) && same_expression(h, i) && same_expression(l, m)
        }
        (ExprKind::Unary(o, x), ExprKind::Unary(p, y)) => o == p && same_expression(x, y),
        (ExprKind::Binary(o, x, s), ExprKind::Binary(p, y, t)) => {
            o == p && same_expression(x, y) && same_expression(s, t)
        }
        (ExprKind::Cast(_, x), ExprKind::Cast(_, y)) => same_expression(x, y),
        (ExprKind::List(x), ExprKind::List(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same_expression(a, b))
        }
        (ExprKind::Struct(x, i), ExprKind::Struct(y, j)) => {
            i == j
                && x.len() == y.len()
                && x.iter()
                    .all(|(m, a)| y.iter().any(|(n, b)| m.name == n.name && same_expression(a, b)))
        }
        (
            ExprKind::Call {
                callee: f,
                arguments: x,
                ..
            },
            ExprKind::Call {
                callee: g,
                arguments: y,
                ..
            },
        ) => {
            same_expression(f, g)
                && x.len() == y.len()
                && x.iter().zip(y).all(|(a, b)| same_expression(&a.value, &b.value))
        }
        _ => false,
    }
}
