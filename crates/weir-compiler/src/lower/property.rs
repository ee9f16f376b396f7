//! Table properties of the architecture: what their values may be, and what they make of the table.

use super::Lowerer;
use super::value::{Object, TableState, Val};
use crate::check::DefKind;
use num_traits::ToPrimitive;
use weir_ir::target::{PropertyRole, PropertySpec, PropertyValue};
use weir_ir::{ConstValue, ExternId, TableId};
use weir_syntax::ast::{self, Expr, ExprKind, TablePropertyValue};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

/// Those that the language has for every table.
const OF_THE_LANGUAGE: [&str; 7] = [
    "key",
    "actions",
    "entries",
    "default_action",
    "size",
    "largest_priority_wins",
    "priority_delta",
];

/// A call of an instance that has a value per table entry.
pub(super) struct DirectCall {
    id: ExternId,
    span: Span,
    /// It is in an action of the instance's table.
    has_entry: bool,
}

impl<'a> Lowerer<'a, '_> {
    pub(super) fn table_properties(&mut self, state: &TableState, ast: &'a ast::Table) {
        let spec = self.target.tables;
        for p in &ast.properties {
            let TablePropertyValue::Expression(value) = &p.value else {
                continue;
            };
            match (&*p.name.name, spec.property(&p.name.name)) {
                ("default_action", _) => {}
                ("size", _) => {
                    let size = self.constant_int(value);
                    // A size beyond 64 bits is as good as the largest one.
                    let beyond = (size > u64::MAX.into()).then_some(u64::MAX);
                    self.program.tables[state.id].size = size.to_u64().or(beyond);
                }
                (name, spec) => {
                    if spec.is_none() && !OF_THE_LANGUAGE.contains(&name) {
                        self.unknown_property(p);
                    }
                    self.table_property(state, ast, p, value, spec);
                }
            }
        }
    }

    /// A property that neither the language nor the architecture has is for tools, or a slip of the
    /// pen: who annotates it means it.
    fn unknown_property(&mut self, property: &'a ast::TableProperty) {
        if !property.annotations.is_empty() {
            return;
        }
        let name = &*property.name.name;
        let own = self.target.tables.properties.iter().map(|p| p.name);
        let known: Vec<&str> = own.chain(OF_THE_LANGUAGE).collect();
        let help = match crate::check::closest(name, known.iter().copied()) {
            Some(like) => format!("did you mean `{like}`?"),
            None => format!("the properties here are {}", known.join(", ")),
        };
        self.diagnostics.push(
            Diagnostic::warning(
                "unknown-property",
                property.name.span,
                format!("{} has no table property `{name}`: it has no effect", self.target.name),
            )
            .help(help),
        );
    }

    fn table_property(
        &mut self,
        state: &TableState,
        ast: &'a ast::Table,
        property: &'a ast::TableProperty,
        value: &'a Expr,
        spec: Option<&'static PropertySpec>,
    ) {
        let constant = match self.named_action(state, value) {
            // An action is its position in the table, and its data.
            Some(call) => {
                if spec.is_some_and(|s| !s.takes.contains(&PropertyValue::Action)) {
                    self.wrong_value(property, value, spec, "an action");
                    return;
                }
                let data = call.arguments.into_iter().map(ConstValue::Bits);
                let parts = std::iter::once(ConstValue::Int(call.action.into())).chain(data);
                ConstValue::List(parts.collect())
            }
            None => {
                let ty = self.ty(value);
                let known = self.expr(value);
                let constant = self.const_value(&known, ty);
                if let Some(Err(found)) = spec.map(|s| self.takes(s, &known, &constant)) {
                    self.wrong_value(property, value, spec, &found);
                    return;
                }
                constant
            }
        };
        if let ConstValue::Extern(id) = &constant
            && matches!(value.kind, ExprKind::Call { .. })
            && self.resource_kind(*id).is_some()
        {
            self.name_after(*id, ast, &property.annotations);
        }
        match (spec.map(|s| s.role), &constant) {
            (Some(PropertyRole::Implementation), ConstValue::Extern(id)) if self.resource_kind(*id).is_some() => {
                self.program.tables[state.id].implementation = Some(*id);
            }
            (Some(PropertyRole::Attachment), ConstValue::Extern(id)) => {
                self.attach(state, *id, property);
            }
            (Some(PropertyRole::IdleTimeout(wanted)), _) => {
                let on = match (wanted, &constant) {
                    // An extern that stands for it says all there is to say.
                    (None, _) | (_, ConstValue::Extern(_)) => true,
                    (Some(w), ConstValue::Bool(b)) => *w == *b.to_string(),
                    (Some(w), ConstValue::Enum { enum_name, member }) => *w == format!("{enum_name}.{member}"),
                    _ => false,
                };
                let table = &mut self.program.tables[state.id];
                table.idle_timeout = on;
                table.properties.push((property.name.name.to_string(), constant));
            }
            _ => {
                let table = &mut self.program.tables[state.id];
                table.properties.push((property.name.name.to_string(), constant));
            }
        }
    }

    /// Whether a property may have a value; else what the value is.
    fn takes(&self, spec: &PropertySpec, known: &Val, constant: &ConstValue) -> Result<(), String> {
        let takes = |what: &PropertyValue| match (what, constant) {
            (PropertyValue::Instance(types), ConstValue::Extern(id)) => {
                types.contains(&self.program.externs[*id].type_name.as_str())
            }
            (PropertyValue::Member(of), ConstValue::Enum { enum_name, .. }) => of == enum_name,
            (PropertyValue::Bool, ConstValue::Bool(_)) => true,
            _ => false,
        };
        if spec.takes.iter().any(takes) {
            return Ok(());
        }
        Err(match (known, constant) {
            (Val::Object(Object::Extern(id)), _) => format!("an instance of `{}`", self.program.externs[*id].type_name),
            (_, ConstValue::Bool(b)) => format!("`{b}`"),
            (_, ConstValue::Int(n)) => format!("the number {n}"),
            (_, ConstValue::Bits(b)) => format!("the number {b}"),
            (_, ConstValue::String(_)) => "a string".into(),
            (_, ConstValue::Enum { enum_name, member }) => format!("`{enum_name}.{member}`"),
            _ => "something else".into(),
        })
    }

    fn wrong_value(&mut self, property: &ast::TableProperty, value: &Expr, spec: Option<&PropertySpec>, found: &str) {
        let takes = spec.map_or(&[][..], |s| s.takes);
        let wanted: Vec<String> = takes.iter().map(|t| describe(*t)).collect();
        self.error(
            "type-error",
            value.span,
            format!(
                "the property `{}` takes {}, but this is {found}",
                property.name.name,
                wanted.join(" or ")
            ),
        );
    }

    /// What an extern instance is to control planes, by the architecture's description.
    fn resource_kind(&self, id: ExternId) -> Option<weir_ir::target::ResourceKind> {
        let name = &self.program.externs[id].type_name;
        self.target.control.resource(name).map(|r| r.kind)
    }

    fn is_direct(&self, id: ExternId) -> bool {
        self.resource_kind(id)
            .is_some_and(weir_ir::target::ResourceKind::is_direct)
    }

    /// A resource with a value per entry belongs to one table; others are arrays all the same.
    fn attach(&mut self, state: &TableState, id: ExternId, property: &ast::TableProperty) {
        if !self.is_direct(id) {
            return;
        }
        if let Some(before) = self.attached.insert(id, property.span) {
            let name = self.program.externs[id].name.clone();
            let kind = self.program.externs[id].type_name.clone();
            self.diagnostics.push(
                Diagnostic::error(
                    "invalid",
                    property.span,
                    format!("`{name}` is attached to two tables: a {kind} has a value per entry of one table"),
                )
                .label(before, "the other one"),
            );
            return;
        }
        self.program.tables[state.id].direct.push(id);
    }

    /// An instance constructed in place has the name that the property gives it (as it stands, no
    /// path before it), else the table's name.
    fn name_after(&mut self, id: ExternId, ast: &'a ast::Table, property: &'a [ast::Annotation]) {
        let annotations = self
            .checked
            .defs
            .iter()
            .find(|d| d.span == ast.name.span)
            .map_or(&[][..], |d| d.annotations);
        let given = super::annotation::name_annotation(property);
        let given = given.map(|n| n.strip_prefix('.').map_or(n.clone(), str::to_string));
        self.program.externs[id].name = given.unwrap_or_else(|| self.control_name(&ast.name.name, annotations));
        let annotations = self.annotations(property);
        self.program.externs[id].annotations.extend(annotations);
    }

    // ----------------------------------------------------------------------- values per entry

    /// Takes note of a call of an instance that has a value per entry, or was made of one.
    pub(super) fn note_direct_call(&mut self, id: ExternId, span: Span, has_entry: bool) {
        let made_of = self.program.externs[id]
            .arguments
            .iter()
            .filter_map(|(_, value)| match value {
                ConstValue::Extern(other) => Some(*other),
                _ => None,
            });
        if let Some(id) = made_of.chain([id]).find(|&id| self.is_direct(id)) {
            self.direct_calls.push(DirectCall { id, span, has_entry });
            if let Some((table, action)) = self.current_table.as_ref().filter(|_| has_entry) {
                let table = table.id;
                self.executes(table, *action, id);
            }
        }
    }

    /// An action of a table executes one of the table's direct resources.
    fn executes(&mut self, table: TableId, action: usize, id: ExternId) {
        if let Some(action) = self.program.tables[table].actions.get_mut(action)
            && !action.executes.contains(&id)
        {
            action.executes.push(id);
        }
    }

    /// Notes that all actions of a table execute what runs on every hit.
    fn note_what_hits_execute(&mut self) {
        let tables = self.program.tables.iter();
        let direct: Vec<_> = tables
            .flat_map(|(t, table)| table.direct.iter().map(move |d| (t, *d)))
            .collect();
        for (table, id) in direct {
            let name = &self.program.externs[id].type_name;
            if self.target.control.resource(name).is_some_and(|r| r.on_every_hit) {
                (0..self.program.tables[table].actions.len()).for_each(|action| self.executes(table, action, id));
            }
        }
    }

    /// Reports, when every table is known, instances with a value per entry that have no entries,
    /// and calls that have none.
    pub(super) fn check_direct(&mut self) {
        self.note_what_hits_execute();
        let calls = std::mem::take(&mut self.direct_calls);
        for call in &calls {
            let instance = &self.program.externs[call.id];
            let (name, kind) = (instance.name.clone(), instance.type_name.clone());
            match self.attached.get(&call.id) {
                None => {
                    let warning = match self.unapplied_table(call.id) {
                        Some((table, span)) => {
                            let text =
                                format!("`{name}` is attached to `{table}`, which is never applied: this does nothing");
                            Diagnostic::warning("no-entry", call.span, text).label(span, "attached here")
                        }
                        None => {
                            let text = format!("`{name}` is attached to no table: this does nothing");
                            Diagnostic::warning("no-entry", call.span, text).help(self.help_to_attach(&kind))
                        }
                    };
                    self.diagnostics.push(warning);
                }
                Some(&table) if !call.has_entry => {
                    self.diagnostics.push(
                        Diagnostic::warning(
                            "no-entry",
                            call.span,
                            format!("this is in no action of the table that `{name}` is attached to: it does nothing"),
                        )
                        .label(table, "attached here"),
                    );
                }
                Some(_) => {}
            }
        }
        for (i, span) in self.extern_spans.clone().into_iter().enumerate() {
            let id = ExternId::new(i);
            let instance = &self.program.externs[id];
            let is_called = || calls.iter().any(|c| c.id == id);
            if self.is_direct(id) && !self.attached.contains_key(&id) && !is_called() {
                let (name, kind) = (instance.name.clone(), instance.type_name.clone());
                let warning = match self.unapplied_table(id) {
                    Some((table, attached)) => {
                        let text = format!("the {kind} `{name}` is attached to `{table}`, which is never applied");
                        Diagnostic::warning("unattached", span, text).label(attached, "attached here")
                    }
                    None => {
                        let text = format!("the {kind} `{name}` is attached to no table");
                        Diagnostic::warning("unattached", span, text).help(self.help_to_attach(&kind))
                    }
                };
                self.diagnostics.push(warning);
            }
        }
    }

    /// A table that a property attaches an instance to, of those that are never applied, and the
    /// place in it.
    fn unapplied_table(&self, id: ExternId) -> Option<(String, Span)> {
        let declared = self.extern_spans[id.index()];
        let names_it = |value: &Expr| {
            let def = self.checked.names[value.id.0 as usize];
            def.is_some_and(|def| self.checked.defs[def.0 as usize].span == declared)
        };
        self.checked.defs.iter().find_map(|def| {
            let DefKind::Table { ast, .. } = &def.kind else {
                return None;
            };
            let properties = ast.properties.iter().filter_map(|p| match &p.value {
                TablePropertyValue::Expression(value) => Some(value),
                _ => None,
            });
            let value = properties.into_iter().find(|value| names_it(value))?;
            Some((ast.name.name.to_string(), value.span))
        })
    }

    fn help_to_attach(&self, kind: &str) -> String {
        let takes = |p: &&PropertySpec| {
            let of = |t: &PropertyValue| matches!(t, PropertyValue::Instance(types) if types.contains(&kind));
            p.takes.iter().any(of)
        };
        match self.target.tables.properties.iter().find(takes) {
            Some(p) => format!("name it as the `{}` of a table", p.name),
            None => "name it in a property of a table".into(),
        }
    }
}

/// A kind of value in words.
fn describe(value: PropertyValue) -> String {
    match value {
        PropertyValue::Instance(types) => {
            let names: Vec<String> = types.iter().map(|t| format!("`{t}`")).collect();
            format!("an instance of {}", names.join(", "))
        }
        PropertyValue::Bool => "`true` or `false`".into(),
        PropertyValue::Member(of) => format!("a member of `{of}`"),
        PropertyValue::Action => "an action of the table".into(),
    }
}
