//! Statements of controls and actions.

use super::Generator;
use super::model::{HeaderRef, Place, Scope, Ty, width};

/// How deep expressions of statements are.
const DEPTH: u32 = 3;

impl Generator {
    /// Some statements.
    pub(super) fn statements(&mut self, scope: &Scope, count: usize, depth: u32) {
        let mut scope = scope.clone();
        for _ in 0..count {
            self.statement(&mut scope, depth);
        }
    }

    fn block(&mut self, scope: &Scope, depth: u32) {
        let count = self.rng.between(1, 3);
        self.statements(scope, count, depth.saturating_sub(1));
    }

    fn statement(&mut self, scope: &mut Scope, depth: u32) {
        if scope.place == Place::Deparser {
            return self.statement_of_deparser(scope, depth);
        }
        if scope.may_wait && self.rng.chance(18) {
            return self.registered_call(scope, depth);
        }
        if self.model.plain {
            return self.plain_statement(scope, depth);
        }
        if !scope.calls.is_empty() && self.rng.chance(25) {
            return self.call(scope);
        }
        match self.rng.below(100) {
            0..38 => self.assignment(scope),
            38..50 if depth > 0 => self.branch(scope, depth),
            50..56 => self.headers(scope),
            56..68 => self.apply(scope, depth),
            68..73 => self.declaration(scope),
            73..90 => self.extern_call(scope),
            90..92 if depth > 0 => self.switch(scope, depth),
            92..94 if depth > 0 => self.for_loop(scope, depth),
            94..97 => self.call_action(scope),
            97 if !matches!(scope.place, Place::Parser | Place::Function) => self.leave(scope),
            _ => self.assignment(scope),
        }
    }

    fn plain_statement(&mut self, scope: &mut Scope, depth: u32) {
        match self.rng.below(100) {
            0..40 => self.field_copy(scope),
            40..55 => self.assignment(scope),
            55..72 if depth > 0 => self.branch(scope, depth),
            72..94 => self.apply(scope, depth),
            94..96 => self.extern_call(scope),
            96..98 if scope.place != Place::Parser => self.leave(scope),
            _ => self.field_copy(scope),
        }
    }

    /// Gives a variable the value of another one as it is.
    fn field_copy(&mut self, scope: &Scope) {
        let Some((target, ty)) = self.target(scope) else { return };
        match self.variable(scope, ty) {
            Some(value) => self.line(&format!("{target} = {value};")),
            None => self.assignment(scope),
        }
    }

    pub(super) fn assignment(&mut self, scope: &Scope) {
        let Some((target, ty)) = self.target(scope) else { return };
        let wide = ty.width();
        if wide > 1 && ty != Ty::Bool && self.rng.chance(12) {
            let low = self.rng.below(wide as usize) as u32;
            let high = self.rng.between(low as usize, wide as usize - 1) as u32;
            let value = self.expression(scope, Ty::Bit(high - low + 1), DEPTH - 1);
            self.line(&format!("{target}[{high}:{low}] = {value};"));
            return;
        }
        let value = self.expression(scope, ty, DEPTH);
        self.line(&format!("{target} = {value};"));
    }

    pub(super) fn branch(&mut self, scope: &Scope, depth: u32) {
        let condition = match self.rng.chance(15) {
            true => self.called_condition(scope),
            false => None,
        };
        let condition = condition.unwrap_or_else(|| self.condition(scope, DEPTH - 1));
        self.open(&format!("if ({condition})"));
        self.block(scope, depth);
        self.close();
        if self.rng.chance(50) {
            self.open("else");
            self.block(scope, depth);
            self.close();
        }
    }

    pub(super) fn declaration(&mut self, scope: &mut Scope) {
        if self.rng.chance(20) && scope.place != Place::Parser {
            return self.local_header(scope);
        }
        let ty = super::model::ty(&mut self.rng, 100);
        let name = self.name("x");
        if self.rng.chance(85) {
            let value = self.expression(scope, ty, DEPTH - 1);
            self.line(&format!("{} {name} = {value};", ty.text()));
        } else {
            self.line(&format!("{} {name};", ty.text()));
        }
        scope.add(name, ty, true);
    }

    /// A header of its own, perhaps a copy of another one.
    fn local_header(&mut self, scope: &mut Scope) {
        let ty = self.rng.below(self.model.types.len());
        let name = self.name("own");
        let same: Vec<String> = scope
            .headers
            .iter()
            .filter(|h| h.ty == ty)
            .map(|h| h.path.clone())
            .collect();
        let of_type = self.model.types[ty].name.clone();
        match self.rng.pick(&same).cloned() {
            Some(other) if self.rng.chance(60) => self.line(&format!("{of_type} {name} = {other};")),
            _ => self.line(&format!("{of_type} {name};")),
        }
        scope.variables.extend(self.model.fields_of(&name, ty));
        scope.headers.push(HeaderRef { path: name, ty });
    }

    fn headers(&mut self, scope: &Scope) {
        let Some(header) = self.rng.pick(&scope.headers).cloned() else {
            return;
        };
        match self.rng.below(10) {
            0..3 => self.line(&format!("{}.setValid();", header.path)),
            3..5 => self.line(&format!("{}.setInvalid();", header.path)),
            5..7 => {
                let same: Vec<_> = scope.headers.iter().filter(|o| o.ty == header.ty).cloned().collect();
                if let Some(other) = self.rng.pick(&same).cloned() {
                    self.line(&format!("{} = {};", header.path, other.path));
                }
            }
            7..9 => {
                let Some((path, ty, n)) = self.rng.pick(&scope.stacks).cloned() else {
                    return;
                };
                let by = self.rng.between(1, n as usize + 1);
                match self.rng.below(4) {
                    0 => {
                        self.line(&format!("{path}.push_front({by});"));
                        if self.rng.chance(50) {
                            self.line(&format!("{path}[0].setValid();"));
                        }
                    }
                    1 => self.line(&format!("{path}.pop_front({by});")),
                    _ => self.dynamic(scope, &path, ty),
                }
            }
            _ => self.whole_header(scope, &header.path, header.ty),
        }
    }

    /// Gives a header all its fields at once.
    fn whole_header(&mut self, scope: &Scope, path: &str, ty: usize) {
        if self.model.types[ty].varbit.is_some() {
            return;
        }
        let types: Vec<Ty> = self.model.types[ty].fields.iter().map(|f| f.1).collect();
        let values: Vec<String> = types.into_iter().map(|t| self.expression(scope, t, 1)).collect();
        self.line(&format!("{path} = {{ {} }};", values.join(", ")));
    }

    /// An element of a stack that is chosen at run time.
    fn dynamic(&mut self, scope: &Scope, path: &str, ty: usize) {
        // A constant would be refused where it is too large.
        let variable = self.variable(scope, Ty::Bit(3));
        let Some(index) = variable.or_else(|| self.converted(scope, Ty::Bit(3))) else {
            return self.assignment(scope);
        };
        let element = format!("{path}[{index}]");
        let field = self.rng.pick(&self.model.types[ty].fields).cloned();
        let Some((name, field_ty)) = field else { return };
        match self.rng.below(3) {
            0 => {
                let value = self.expression(scope, field_ty, 2);
                self.line(&format!("{element}.{name} = {value};"));
            }
            1 => {
                let what = self.rng.one(["setValid", "setInvalid"]);
                self.line(&format!("{element}.{what}();"));
            }
            _ => {
                let fitting: Vec<String> = scope
                    .variables
                    .iter()
                    .filter(|v| v.writable && v.ty == field_ty)
                    .map(|v| v.path.clone())
                    .collect();
                if let Some(target) = self.rng.pick(&fitting).cloned() {
                    self.line(&format!("{target} = {element}.{name};"));
                }
            }
        }
    }

    pub(super) fn apply(&mut self, scope: &mut Scope, depth: u32) {
        if scope.in_action || scope.tables.is_empty() {
            return self.assignment(scope);
        }
        let at = self.rng.below(scope.tables.len());
        let (table, actions) = scope.tables[at].clone();
        // Twice is seldom.
        if self.rng.chance(90) && !scope.in_loop {
            scope.tables.remove(at);
        }
        match self.rng.below(10) {
            0..5 => {
                self.line(&format!("{table}.apply();"));
                let routed = scope.routed.iter().find(|(name, ..)| *name == table).cloned();
                if let Some((_, path, ty)) = routed
                    && self.rng.chance(40)
                {
                    // Perhaps both lookups can be done at once.
                    let other = self.variable(scope, ty).filter(|_| self.rng.chance(60));
                    let other = other.unwrap_or_else(|| self.expression(scope, ty, 1));
                    self.line(&format!("{path} = {other};"));
                    self.line(&format!("{table}.apply();"));
                }
            }
            5..8 if depth > 0 => {
                let what = self.rng.one(["hit", "miss", "hit"]);
                let applied = format!("{table}.apply().{what}");
                let more = self.condition(scope, 1);
                let condition = match self.rng.below(6) {
                    0 => format!("{applied} && {more}"),
                    1 => format!("{more} || !{applied}"),
                    _ => applied,
                };
                self.open(&format!("if ({condition})"));
                self.block(scope, depth);
                self.close();
                if self.rng.chance(40) {
                    self.open("else");
                    self.block(scope, depth);
                    self.close();
                }
            }
            8.. if depth > 0 => {
                self.open(&format!("switch ({table}.apply().action_run)"));
                for action in &actions {
                    match self.rng.below(3) {
                        0 => {}
                        1 => self.line(&format!("{action}:")),
                        _ => {
                            self.open(&format!("{action}:"));
                            self.block(scope, depth);
                            self.close();
                        }
                    }
                }
                // Labels that fall through need something to fall to.
                self.open("default:");
                self.block(scope, depth);
                self.close();
                self.close();
            }
            _ => self.line(&format!("{table}.apply();")),
        }
    }

    fn switch(&mut self, scope: &Scope, depth: u32) {
        let w = width(&mut self.rng, 64);
        let value = self.expression(scope, Ty::Bit(w), 2);
        self.open(&format!("switch ({value})"));
        let mut seen = Vec::new();
        for _ in 0..self.rng.between(1, 4) {
            let label = self.number(w);
            if seen.contains(&label) {
                continue;
            }
            self.open(&format!("{w}w0x{:x}:", label.to_biguint()));
            self.block(scope, depth);
            self.close();
            seen.push(label);
        }
        if self.rng.chance(60) {
            self.open("default:");
            self.block(scope, depth);
            self.close();
        }
        self.close();
    }

    fn for_loop(&mut self, scope: &Scope, depth: u32) {
        let name = self.name("i");
        let most = self.rng.between(1, 4);
        let ty = self.rng.one([Ty::Bit(8), Ty::Bit(4)]);
        match ty {
            Ty::Bit(8) => self.open(&format!(
                "for (bit<8> {name} = 0; {name} < {most}; {name} = {name} + 1)"
            )),
            _ => self.open(&format!("for (bit<4> {name} in 0..{most})")),
        }
        let mut inner = scope.clone();
        inner.in_loop = true;
        inner.add(name, ty, false);
        self.block(&inner, depth);
        if self.rng.chance(30) {
            let condition = self.condition(scope, 2);
            let what = self.rng.one(["break", "continue"]);
            self.line(&format!("if ({condition}) {{ {what}; }}"));
            self.block(&inner, depth);
        }
        self.close();
    }

    fn call_action(&mut self, scope: &Scope) {
        let Some((name, parameters)) = self.rng.pick(&scope.actions).cloned() else {
            return self.assignment(scope);
        };
        let arguments: Vec<String> = parameters
            .into_iter()
            .map(|t| match t.width() {
                0 => self.literal(t),
                _ => self.expression(scope, t, 1),
            })
            .collect();
        self.line(&format!("{name}({});", arguments.join(", ")));
    }

    pub(super) fn leave(&mut self, scope: &Scope) {
        let what = self.rng.one(["exit", "return"]);
        let condition = self.condition(scope, 2);
        self.line(&format!("if ({condition}) {{ {what}; }}"));
    }
}
