//! Tables.

use super::annotation::has_annotation;
use super::value::{Entity, Object, Place, TableState, Val};
use super::{Lowerer, constant};
use crate::check::{DefKind, Param};
use crate::types::{DefId, Ty, TyKind, Types};
use num_traits::ToPrimitive;
use std::rc::Rc;
use weir_ir::{
    ActionCall, ActionId, ActionParameter, Bits, Display, InstKind, Key, Lookup, Mark, MatchKind, Operand, Table,
    TableAction, Terminator, Type, Var, VarKind,
};
use weir_syntax::ast::{self, Direction, Expr, ExprKind, TablePropertyValue};

pub(super) fn property<'p>(table: &'p ast::Table, name: &str) -> Option<&'p ast::TableProperty> {
    table.properties.iter().find(|p| &*p.name.name == name)
}

impl<'a> Lowerer<'a, '_> {
    /// The table an expression names, made when it is first met.
    pub(super) fn table_of(&mut self, expr: &'a Expr) -> Option<Rc<TableState>> {
        let def = self.checked.names[expr.id.0 as usize]?;
        self.table(def)
    }

    fn table(&mut self, def: DefId) -> Option<Rc<TableState>> {
        if let Some(Entity::Value(Val::Object(Object::Table(table)))) = self.bindings.get(&def) {
            return Some(table.clone());
        }
        let DefKind::Table { ast, .. } = self.def_kind(def) else {
            return None;
        };
        let ast = *ast;
        let state = Rc::new(self.make_table(def, ast));
        self.bindings
            .insert(def, Entity::Value(Val::Object(Object::Table(state.clone()))));
        Some(state)
    }

    fn make_table(&mut self, def: DefId, ast: &'a ast::Table) -> TableState {
        let annotations = self.checked.defs[def.0 as usize].annotations;
        let name = self.control_name(&ast.name.name, annotations);
        let loc = self.locate(ast.name.span);
        let mut flag = |suffix: &str, width: u32, display: Display| {
            self.program.vars.push(Var {
                name: format!("{name}.{suffix}"),
                ty: Type::Bits(width),
                display,
                kind: VarKind::Local,
            })
        };
        let (hit, action, entry) = (
            flag("$hit$", 1, Display::Bool),
            flag("$action$", 32, Display::Unsigned),
            flag("$entry$", 32, Display::Unsigned),
        );
        let DefKind::Table { actions, .. } = self.def_kind(def) else {
            return TableState {
                def,
                id: weir_ir::TableId::new(0),
                hit,
                action,
                entry,
                actions: Vec::new(),
            };
        };
        let listed = actions.clone();
        let keys = self.table_keys(ast);
        let table_actions: Vec<TableAction> = listed
            .iter()
            .map(|a| self.table_action(a.action, a.reference, &name))
            .collect();
        let ir_annotations = self.annotations(annotations);
        let id = self.program.tables.push(Table {
            keys,
            actions: table_actions,
            annotations: ir_annotations,
            loc,
            ..Table::new(name)
        });
        let action_defs: Vec<DefId> = listed.iter().map(|a| a.action).collect();
        let state = TableState {
            def,
            id,
            hit,
            action,
            entry,
            actions: action_defs,
        };
        self.table_default(&state, ast);
        self.table_properties(&state, ast);
        self.table_entries(&state, ast);
        state
    }

    fn table_keys(&mut self, ast: &'a ast::Table) -> Vec<Key> {
        let Some(TablePropertyValue::Key(elements)) = property(ast, "key").map(|p| &p.value) else {
            return Vec::new();
        };
        elements.iter().map(|e| self.table_key(e)).collect()
    }

    fn table_key(&mut self, element: &'a ast::KeyElement) -> Key {
        let ty = self.ty(&element.expression);
        let (match_kind, own_kind) = self.match_kind(&element.match_kind);
        let name =
            super::annotation::name_annotation(&element.annotations).or_else(|| self.key_name(&element.expression));
        let name = name.unwrap_or_else(|| {
            self.diagnostics.push(
                weir_syntax::diagnostic::Diagnostic::error(
                    "expected",
                    element.expression.span,
                    "the control plane cannot name this key",
                )
                .help("give it a name: `@name(\"…\")` after the match kind"),
            );
            String::new()
        });
        let width = self.scalar_width(ty).unwrap_or_else(|| {
            let shown = self.checked.show(ty);
            self.error(
                "unsupported",
                element.expression.span,
                format!("weir has no table keys of type {shown}"),
            );
            0
        });
        Key {
            name,
            width,
            match_kind,
            own_kind,
            display: self.display(ty),
            control: self.control_type(ty),
            annotations: self.annotations(&element.annotations),
            loc: self.locate(element.span),
        }
    }

    /// How keys of a kind match, and the architecture's name for it if it is one of its own.
    pub(super) fn match_kind(&mut self, name: &ast::Ident) -> (MatchKind, Option<String>) {
        let kind = &*name.name;
        if let Some(known) = MatchKind::from_name(kind) {
            return (known, None);
        }
        let mut own = self.target.tables.own_kinds.iter();
        if let Some(own) = own.find(|own| own.name == kind) {
            return (own.matches, Some(own.shown.to_owned()));
        }
        let mut diagnostic = weir_syntax::diagnostic::Diagnostic::error(
            "unsupported",
            name.span,
            format!("weir has no tables with the match kind `{kind}`"),
        );
        if let Some((_, why)) = self.target.tables.refused_kinds.iter().find(|(k, _)| *k == kind) {
            diagnostic.message = format!("{}: {why}", diagnostic.message);
        }
        self.diagnostics.push(diagnostic);
        (MatchKind::Exact, None)
    }

    /// The name the control plane has for a key: the expression as P4Info writes it.
    fn key_name(&mut self, expr: &'a Expr) -> Option<String> {
        Some(match &expr.kind {
            ExprKind::Name { name, .. } => name.name.to_string(),
            ExprKind::Member(base, member) => self.member_name(base, &member.name)?,
            ExprKind::Index(base, index) => {
                let index_name = match self.constant_name(index) {
                    Some(constant) => constant,
                    None => self.key_name(index)?,
                };
                format!("{}[{index_name}]", self.key_name(base)?)
            }
            ExprKind::Slice(base, hi, lo) => format!(
                "{}[{}:{}]",
                self.key_name(base)?,
                self.constant_name(hi)?,
                self.constant_name(lo)?
            ),
            ExprKind::Call { callee, .. } => match &callee.kind {
                ExprKind::Member(base, member) if &*member.name == "isValid" => {
                    format!("{}.$valid$", self.key_name(base)?)
                }
                _ => return None,
            },
            ExprKind::Binary(ast::BinaryOp::BitAnd, a, b) => format!("{} & {}", self.key_name(a)?, self.key_name(b)?),
            ExprKind::Int { .. } => self.constant_name(expr)?,
            ExprKind::Bool(b) => b.to_string(),
            _ => return None,
        })
    }

    /// The name of a field: its `@name` where it has one; one with a leading dot stands alone.
    fn member_name(&mut self, base: &'a Expr, member: &str) -> Option<String> {
        let ty = self.ty(base);
        let renamed = match self.kind(ty) {
            TyKind::Struct(def, _) => match self.def_kind(def) {
                DefKind::Struct { fields, .. } => fields
                    .iter()
                    .find(|f| &*f.name.name == member)
                    .and_then(|f| super::annotation::name_annotation(f.annotations)),
                _ => None,
            },
            _ => None,
        };
        let name = renamed.unwrap_or_else(|| member.to_string());
        match name.strip_prefix('.') {
            Some(absolute) => Some(absolute.to_string()),
            None => Some(format!("{}.{name}", self.key_name(base)?)),
        }
    }

    fn constant_name(&mut self, expr: &'a Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Int { value, base, .. } => Some(if *base == 16 {
                format!("{value:#X}").replace("0X", "0x")
            } else {
                value.to_string()
            }),
            _ => match self.expr(expr) {
                Val::Int(v) => Some(v.to_string()),
                Val::Scalar(Operand::Const(c)) => Some(c.to_string()),
                _ => None,
            },
        }
    }

    // --------------------------------------------------------------------------------- actions

    /// The action as the control plane knows it.
    pub(super) fn action_id(&mut self, def: DefId) -> ActionId {
        let declaration = &self.checked.defs[def.0 as usize];
        let (declared, annotations) = (declaration.name.clone(), declaration.annotations);
        let DefKind::Action { signature, ast } = &declaration.kind else {
            return ActionId::new(0);
        };
        let (params, span) = (signature.params.clone(), ast.name.span);
        let name = if self.globals.contains(&def) {
            let local = super::annotation::name_annotation(annotations).unwrap_or_else(|| declared.to_string());
            local.strip_prefix('.').map_or(local.clone(), str::to_string)
        } else {
            // An action is the same in all pipelines: they share its description, not the tables.
            let name = self.control_name(&declared, annotations);
            let of_all = name.strip_prefix(&self.pipeline).and_then(|n| n.strip_prefix('.'));
            of_all
                .filter(|_| !self.pipeline.is_empty())
                .map_or(name.clone(), str::to_string)
        };
        let key = (name.clone(), def);
        if let Some(&id) = self.actions.get(&key) {
            return id;
        }
        let parameters = params
            .iter()
            .filter(|p| p.direction == Direction::None)
            .map(|p| {
                let ty = self.concrete(p.ty);
                ActionParameter {
                    name: super::annotation::name_annotation(p.annotations).unwrap_or_else(|| p.name.name.to_string()),
                    width: self.scalar_width(ty).unwrap_or(0),
                    display: self.display(ty),
                    control: self.control_type(ty),
                    annotations: self.annotations(p.annotations),
                }
            })
            .collect();
        let annotations = self.annotations(annotations);
        let loc = self.locate(span);
        let id = self.program.actions.push(weir_ir::Action {
            name,
            parameters,
            annotations,
            loc,
        });
        self.actions.insert(key, id);
        id
    }

    fn table_action(&mut self, def: DefId, reference: Option<&'a ast::ActionReference>, table: &str) -> TableAction {
        let action = self.action_id(def);
        let DefKind::Action { signature, .. } = self.def_kind(def) else {
            return TableAction {
                action,
                parameters: Vec::new(),
                default_only: false,
                table_only: false,
                executes: Vec::new(),
                annotations: Vec::new(),
            };
        };
        let params: Vec<Param<'a>> = signature
            .params
            .iter()
            .filter(|p| p.direction == Direction::None)
            .cloned()
            .collect();
        let mut parameters = Vec::new();
        for p in &params {
            let ty = self.concrete(p.ty);
            let Some(width) = self.scalar_width(ty) else {
                let shown = self.checked.show(ty);
                self.error(
                    "unsupported",
                    p.name.span,
                    format!(
                        "the control plane cannot set the parameter `{}` of type {shown}",
                        p.name.name
                    ),
                );
                continue;
            };
            let display = self.display(ty);
            parameters.push(self.program.vars.push(Var {
                name: format!("{table}.{}.{}", self.checked.defs[def.0 as usize].name, p.name.name),
                ty: Type::Bits(width),
                display,
                kind: VarKind::ActionParameter,
            }));
        }
        let list = reference.map_or(&[][..], |r| &r.annotations);
        TableAction {
            action,
            parameters,
            default_only: reference.is_none() || has_annotation(list, "defaultonly"),
            table_only: has_annotation(list, "tableonly"),
            executes: Vec::new(),
            annotations: self.annotations(list),
        }
    }

    /// An action with constant arguments: of an entry or as default.
    pub(super) fn action_call(
        &mut self,
        state: &TableState,
        action: DefId,
        arguments: &'a [ast::Argument],
    ) -> ActionCall {
        let index = state.actions.iter().position(|&a| a == action).unwrap_or(0);
        let DefKind::Action { signature, .. } = self.def_kind(action) else {
            return ActionCall {
                action: index,
                arguments: Vec::new(),
            };
        };
        let params = signature.params.clone();
        let free: Vec<&Param<'a>> = params.iter().filter(|p| p.direction == Direction::None).collect();
        // Arguments for parameters with a direction repeat what the list of actions says.
        let skip = if arguments.iter().all(|a| a.name.is_none()) {
            arguments.len().saturating_sub(free.len())
        } else {
            0
        };
        let mut values = Vec::new();
        for (i, param) in free.iter().enumerate() {
            let ty = self.concrete(param.ty);
            let argument = arguments
                .iter()
                .find(|a| a.name.as_ref().is_some_and(|n| n.name == param.name.name))
                .or_else(|| arguments.get(skip + i).filter(|a| a.name.is_none()))
                .map(|a| &a.value)
                .or(param.default);
            let width = self.scalar_width(ty).unwrap_or(0);
            let value = argument.map(|e| self.expr_as(e, ty));
            values.push(match value {
                Some(Val::Scalar(Operand::Const(bits))) => bits,
                _ => Bits::zero(width),
            });
        }
        ActionCall {
            action: index,
            arguments: values,
        }
    }

    /// The action that the value of a property names, with its arguments.
    pub(super) fn named_action(&mut self, state: &TableState, value: &'a Expr) -> Option<ActionCall> {
        let (callee, arguments): (&'a Expr, &'a [ast::Argument]) = match &value.kind {
            ExprKind::Call { callee, arguments, .. } => (callee, arguments),
            _ => (value, &[]),
        };
        let action = self.checked.names[callee.id.0 as usize]?;
        matches!(self.def_kind(action), DefKind::Action { .. }).then(|| self.action_call(state, action, arguments))
    }

    fn table_default(&mut self, state: &TableState, ast: &'a ast::Table) {
        let (call, is_const) = match property(ast, "default_action") {
            Some(p) => {
                let TablePropertyValue::Expression(value) = &p.value else {
                    return;
                };
                let Some(call) = self.named_action(state, value) else {
                    return;
                };
                (call, p.is_const)
            }
            None => {
                let index = state
                    .actions
                    .iter()
                    .position(|&a| &*self.checked.defs[a.0 as usize].name == "NoAction" && self.globals.contains(&a));
                (
                    ActionCall {
                        action: index.unwrap_or(0),
                        arguments: Vec::new(),
                    },
                    false,
                )
            }
        };
        let table = &mut self.program.tables[state.id];
        table.default_action = call;
        table.const_default = is_const;
    }

    // -------------------------------------------------------------------------------- applying

    /// A lookup, then the bodies of the table's actions.
    pub(super) fn apply_table(&mut self, table: &Rc<TableState>) {
        let DefKind::Table { ast, actions } = self.def_kind(table.def) else {
            return;
        };
        let (ast, actions) = (*ast, actions.clone());
        let mut keys = Vec::new();
        if let Some(TablePropertyValue::Key(elements)) = property(ast, "key").map(|p| &p.value) {
            let effects = elements.iter().rposition(|e| self.has_effects(&e.expression));
            for (i, element) in elements.iter().enumerate() {
                let value = match self.expr(&element.expression) {
                    Val::Scalar(operand) => operand,
                    _ => constant(0, 0),
                };
                let later = effects.is_some_and(|last| last > i);
                keys.push(if later { self.copy(value) } else { value });
            }
        }
        let next = self.new_block();
        let lookup = Lookup {
            table: table.id,
            keys,
            hit: table.hit,
            action: table.action,
            entry: table.entry,
            next,
        };
        self.terminate_to(Terminator::Lookup(lookup), next);
        let done = self.new_block();
        let blocks: Vec<_> = actions.iter().map(|_| self.new_block()).collect();
        let after = self.new_block();
        match &blocks[..] {
            [] => {
                self.goto(done);
                return;
            }
            [only] => self.terminate_to(Terminator::Goto(*only), after),
            [first, rest @ ..] => {
                let cases = rest
                    .iter()
                    .enumerate()
                    .map(|(i, &b)| (Bits::new(32, i as u128 + 1), b))
                    .collect();
                self.terminate_to(
                    Terminator::Switch {
                        value: Operand::Var(table.action),
                        cases,
                        default: *first,
                    },
                    after,
                );
            }
        }
        for (i, (listed, block)) in actions.iter().zip(blocks).enumerate() {
            self.current = block;
            let outer = self.current_table.replace((table.clone(), i));
            self.table_action_body(table, i, listed.action, listed.reference);
            self.current_table = outer;
            self.terminate_to(Terminator::Goto(done), after);
        }
        self.current = done;
    }

    fn table_action_body(
        &mut self,
        table: &TableState,
        index: usize,
        action: DefId,
        reference: Option<&'a ast::ActionReference>,
    ) {
        let DefKind::Action { signature, ast } = self.def_kind(action) else {
            return;
        };
        let (params, ast) = (signature.params.clone(), *ast);
        let given = reference.and_then(|r| r.arguments.as_deref()).unwrap_or_default();
        let mut data = self.program.tables[table.id].actions[index]
            .parameters
            .clone()
            .into_iter();
        let mut passed = Vec::new();
        let mut free = Vec::new();
        let directed: Vec<&Param<'a>> = params.iter().filter(|p| p.direction != Direction::None).collect();
        let mut bound = Vec::new();
        let mut positions = Vec::new();
        for param in &params {
            if param.direction == Direction::None {
                if let Some(var) = data.next() {
                    free.push((param.def, Entity::Place(Place::Var(var))));
                }
                continue;
            }
            let place = directed.iter().position(|p| p.def == param.def).unwrap_or(0);
            let argument = given
                .iter()
                .find(|a| a.name.as_ref().is_some_and(|n| n.name == param.name.name))
                .or_else(|| given.get(place).filter(|a| a.name.is_none()));
            let position = argument.and_then(|a| given.iter().position(|g| std::ptr::eq(g, a)));
            let argument = argument.map(|a| &a.value).or(param.default);
            let ty = self.concrete(param.ty);
            bound.push(param.clone());
            positions.push(position.unwrap_or(place));
            passed.push(match argument {
                None => super::call::Passed::Omitted,
                Some(e) if param.direction == Direction::In => super::call::Passed::In(self.expr_as(e, ty)),
                Some(e) => super::call::Passed::Out(self.place(e)),
            });
        }
        let id = self.program.tables[table.id].actions[index].action;
        let outer_loc = self.loc;
        self.loc = self.locate(ast.name.span);
        self.emit(InstKind::Mark(Mark::EnterAction(id)));
        let back = self.bind_parameters(&bound, super::call::Arguments { passed, positions }, false);
        self.bindings.extend(free);
        self.run_inlined(back, None, Types::VOID, |s| s.block(&ast.body));
        self.emit(InstKind::Mark(Mark::Leave));
        self.loc = outer_loc;
    }

    /// A parser value set.
    pub(super) fn make_value_set(
        &mut self,
        ast: &'a ast::ValueSet,
        annotations: &'a [ast::Annotation],
    ) -> weir_ir::ValueSetId {
        let ty = self.written(&ast.element);
        let name = self.control_name(&ast.name.name, annotations);
        let loc = self.locate(ast.name.span);
        let fields = match self.kind(ty) {
            TyKind::Struct(def, arguments) => {
                let types = self.checked.fields_of(def, &arguments);
                types
                    .into_iter()
                    .map(|(n, t)| self.value_set_field(def, &n, t, loc))
                    .collect()
            }
            TyKind::Tuple(parts) => parts
                .iter()
                .enumerate()
                .map(|(i, &t)| self.plain_key(&format!("f{i}"), t, loc))
                .collect(),
            _ => vec![self.plain_key("", ty, loc)],
        };
        let size = self.constant_int(&ast.size).to_u64().unwrap_or(0);
        let annotations = self.annotations(annotations);
        self.program.value_sets.push(weir_ir::ValueSet {
            name,
            fields,
            size,
            annotations,
            loc,
        })
    }

    fn plain_key(&mut self, name: &str, ty: Ty, loc: weir_ir::Loc) -> Key {
        Key {
            name: name.to_string(),
            width: self.scalar_width(ty).unwrap_or(0),
            match_kind: MatchKind::Exact,
            own_kind: None,
            display: self.display(ty),
            control: self.control_type(ty),
            annotations: Vec::new(),
            loc,
        }
    }

    fn value_set_field(&mut self, def: DefId, name: &str, ty: Ty, loc: weir_ir::Loc) -> Key {
        let mut key = self.plain_key(name, ty, loc);
        let DefKind::Struct { fields, .. } = self.def_kind(def) else {
            return key;
        };
        let list = fields
            .iter()
            .find(|f| &*f.name.name == name)
            .map_or(&[][..], |f| f.annotations);
        if let Some(annotation) = list.iter().find(|a| &*a.name.name == "match")
            && let ast::AnnotationBody::Unstructured(tokens) = &annotation.body
            && let Some(token) = tokens.first()
        {
            let ident = ast::Ident {
                name: token.text.clone(),
                span: token.span,
            };
            (key.match_kind, key.own_kind) = self.match_kind(&ident);
        }
        key.annotations = self.annotations(list);
        key
    }
}
