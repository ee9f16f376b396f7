//! Deparsers: headers in order, some with tables before, between and after them.

use super::Generator;
use super::model::{Place, Scope, Ty, width};

impl Generator {
    pub(super) fn deparser(&mut self) {
        self.open("control D(packet_out b, in headers_t hdr)");
        let mut scope = self.model.scope(Place::Deparser);
        let busy = self.rng.chance(if self.model.plain { 0 } else { 20 });
        if busy {
            self.locals(&mut scope);
            self.state(&mut scope);
            self.tables(&mut scope);
        }
        self.open("apply");
        if self.model.shows {
            self.line("b.emit(hdr.shown);");
        }
        for emitted in self.emitted() {
            if busy && self.rng.chance(35) {
                self.between_emits(&mut scope);
            }
            self.line(&format!("b.emit({emitted});"));
        }
        if busy && self.rng.chance(60) {
            self.between_emits(&mut scope);
        }
        self.close();
        self.close();
    }

    /// What is emitted, in order.
    fn emitted(&mut self) -> Vec<String> {
        let mut names: Vec<String> = self.model.instances.iter().map(|i| i.name.clone()).collect();
        if self.model.plain {
            return names.into_iter().map(|name| format!("hdr.{name}")).collect();
        }
        if self.rng.chance(15) {
            let (i, j) = (self.rng.below(names.len()), self.rng.below(names.len()));
            names.swap(i, j);
        }
        if self.rng.chance(15) {
            names.remove(self.rng.below(names.len()));
        }
        if !self.model.shows && self.rng.chance(20) {
            return vec!["hdr".to_owned()];
        }
        names.into_iter().map(|name| format!("hdr.{name}")).collect()
    }

    /// Variables of the control, because it can write no others.
    fn locals(&mut self, scope: &mut Scope) {
        for _ in 0..self.rng.between(1, 3) {
            let (name, ty) = (self.name("x"), Ty::Bit(width(&mut self.rng, 64)));
            let value = self.literal(ty);
            self.line(&format!("{} {name} = {value};", ty.text()));
            scope.add(name, ty, true);
        }
    }

    fn between_emits(&mut self, scope: &mut Scope) {
        match self.rng.chance(75) {
            true => self.apply(scope, 1),
            false => self.statement_of_deparser(scope, 1),
        }
    }

    pub(super) fn statement_of_deparser(&mut self, scope: &mut Scope, depth: u32) {
        match self.rng.below(20) {
            0..7 => self.emit(scope),
            7..10 => self.assignment(scope),
            10..12 if depth > 0 => self.branch(scope, depth),
            12..15 => self.apply(scope, depth),
            15 => self.declaration(scope),
            16 => self.leave(scope),
            _ => self.extern_call_of_deparser(scope),
        }
    }

    fn emit(&mut self, scope: &Scope) {
        let stacks = scope.stacks.iter().map(|s| s.0.clone());
        let headers = scope.headers.iter().map(|h| h.path.clone());
        let all: Vec<String> = headers.chain(stacks).collect();
        if let Some(path) = self.rng.pick(&all).cloned() {
            self.line(&format!("b.emit({path});"));
        }
    }
}
