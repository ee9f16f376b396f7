//! Parsers: states in order, with loops over stacks.

use super::Generator;
use super::model::{Instance, Place, Scope, Ty, width};

/// What the states of a parser extract.
#[derive(Clone)]
struct State {
    name: String,
    takes: Vec<Instance>,
}

impl Generator {
    pub(super) fn parser(&mut self) {
        self.open("parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm)");
        let sets: Vec<(String, u32)> = (0..self.rng.below(4) / 2)
            .map(|_| (self.name("set"), width(&mut self.rng, 64)))
            .collect();
        for (name, width) in &sets {
            self.line(&format!("value_set<bit<{width}>>(4) {name};"));
        }
        for part in self.sub_parsers.clone() {
            self.line(&format!("{}() {};", part.name, part.name.to_lowercase()));
        }
        let states = self.states();
        for at in 0..states.len() {
            self.state_of(&states, at, &sets);
        }
        self.close();
    }

    fn states(&mut self) -> Vec<State> {
        let mut rest: Vec<Instance> = self.model.instances[1..].to_vec();
        let mut states = vec![State {
            name: "start".to_owned(),
            takes: vec![self.model.instances[0].clone()],
        }];
        while !rest.is_empty() {
            // Plain programs mostly have them in the order in which they are emitted.
            let at = match self.model.plain && self.rng.chance(80) {
                true => 0,
                false => self.rng.below(rest.len()),
            };
            let mut takes = vec![rest.remove(at)];
            if takes[0].stack.is_none() && !rest.is_empty() && self.rng.chance(25) {
                takes.push(rest.remove(0));
            }
            // A header may be left to be made by code.
            if self.rng.chance(if self.model.plain { 3 } else { 15 }) {
                continue;
            }
            states.push(State {
                name: format!("s{}", states.len()),
                takes,
            });
        }
        states
    }

    fn state_of(&mut self, states: &[State], at: usize, sets: &[(String, u32)]) {
        let state = &states[at];
        let mut scope = Scope::new(Place::Parser);
        let first = self.model.instances[0].clone();
        scope.variables = self.model.fields_of(&format!("hdr.{}", first.name), first.ty);
        for (path, ty, _) in &self.model.metadata {
            scope.add(format!("meta.{path}"), *ty, true);
        }
        scope.add("sm.ingress_port", Ty::Bit(9), false);
        if self.rng.chance(50) {
            scope.add("sm.egress_spec", Ty::Bit(9), true);
        }
        self.open(&format!("state {}", state.name));
        if at == 0 && self.rng.chance(8) {
            self.line("b.advance(8);");
        }
        let mut again = None;
        for instance in &state.takes {
            let known = self.extract(&mut scope, instance);
            if known && instance.stack.is_some() {
                again = Some(state.name.clone());
            }
        }
        for _ in 0..self.rng.below(if self.model.plain { 2 } else { 5 }) / 2 {
            self.aside(&mut scope);
        }
        self.transition(&scope, states, at, again, sets);
        self.close();
    }

    /// Whether the header was taken in a way that its fields can be read.
    fn extract(&mut self, scope: &mut Scope, instance: &Instance) -> bool {
        let ty = self.model.types[instance.ty].clone();
        let path = format!("hdr.{}", instance.name);
        let target = match instance.stack {
            Some(_) => format!("{path}.next"),
            None => path.clone(),
        };
        match ty.varbit {
            Some((_, most)) => {
                let length = self.varbit_length(scope, most);
                self.line(&format!("b.extract({target}, {length});"));
            }
            None if instance.stack.is_none() && self.extract_by_part(scope, &target, instance.ty) => {}
            None => self.line(&format!("b.extract({target});")),
        }
        let read = match instance.stack {
            Some(_) => format!("{path}.last"),
            None => path,
        };
        let writable = instance.stack.is_none();
        for mut variable in self.model.fields_of(&read, instance.ty) {
            variable.writable = writable && self.rng.chance(20);
            scope.variables.push(variable);
        }
        true
    }

    /// Bits of a varbit: whole bytes more often than not, too many now and then.
    fn varbit_length(&mut self, scope: &Scope, most: u32) -> String {
        match self.rng.below(10) {
            0 => (8 * self.rng.between(0, most as usize / 8)).to_string(),
            1 => {
                let w = self.rng.between(1, 8) as u32;
                format!("(bit<32>){}", self.expression(scope, Ty::Bit(w), 1))
            }
            2 => "(bit<32>)b.lookahead<bit<8>>()".to_owned(),
            _ => {
                let w = 32 - (most / 8).leading_zeros();
                format!("((bit<32>){} << 3)", self.expression(scope, Ty::Bit(w), 1))
            }
        }
    }

    /// What a state does besides.
    fn aside(&mut self, scope: &mut Scope) {
        match self.rng.below(12) {
            0..4 => {
                if let Some((target, ty)) = self.target(scope) {
                    let value = self.expression(scope, ty, 2);
                    self.line(&format!("{target} = {value};"));
                }
            }
            4..6 => {
                let ty = Ty::Bit(width(&mut self.rng, 64));
                let name = self.name("x");
                let value = self.expression(scope, ty, 2);
                self.line(&format!("{} {name} = {value};", ty.text()));
                scope.add(name, ty, true);
            }
            6 | 7 => {
                let ty = Ty::Bit(width(&mut self.rng, 100));
                let name = self.name("ahead");
                self.line(&format!("{0} {name} = b.lookahead<{0}>();", ty.text()));
                scope.add(name, ty, true);
            }
            8 => {
                let bytes = self.rng.below(4);
                self.line(&format!("b.advance({});", 8 * bytes));
            }
            9 if self.rng.chance(30) => {
                let value = self.expression(scope, Ty::Bit(2), 1);
                self.line(&format!("b.advance((bit<32>){value} << 3);"));
            }
            10 => {
                let condition = self.condition(scope, 2);
                self.open(&format!("if ({condition})"));
                if let Some((target, ty)) = self.target(scope) {
                    let value = self.expression(scope, ty, 1);
                    self.line(&format!("{target} = {value};"));
                }
                self.close();
            }
            _ => {
                let error = self.rng.one(["NoMatch", "Strange", "Odd", "PacketTooShort"]);
                // Most packets go on.
                let ty = Ty::Bit(width(&mut self.rng, 64));
                let (value, other) = (self.expression(scope, ty, 1), self.literal(ty));
                self.line(&format!("verify({value} != {other}, error.{error});"));
            }
        }
    }

    fn destination(&mut self, states: &[State], at: usize, again: Option<&str>) -> String {
        if let Some(again) = again
            && self.rng.chance(50)
        {
            return again.to_owned();
        }
        let later = &states[at + 1..];
        match self.rng.below(20) {
            0..3 => "accept".to_owned(),
            3 => "reject".to_owned(),
            _ => match later.first() {
                Some(next) if self.rng.chance(50) => next.name.clone(),
                _ => self
                    .rng
                    .pick(later)
                    .map_or_else(|| "accept".to_owned(), |s| s.name.clone()),
            },
        }
    }

    fn transition(
        &mut self,
        scope: &Scope,
        states: &[State],
        at: usize,
        again: Option<String>,
        sets: &[(String, u32)],
    ) {
        if again.is_none() && self.rng.chance(15) {
            let to = self.destination(states, at, None);
            self.line(&format!("transition {to};"));
            return;
        }
        let (mut keys, mut types) = (Vec::new(), Vec::new());
        for _ in 0..self.rng.one([1, 1, 1, 2, 3]) {
            let (text, ty) = self.key(scope, sets);
            keys.push(text);
            types.push(ty);
        }
        self.open(&format!("transition select({})", keys.join(", ")));
        // Whether a case leads out of the loop: a parser must be able to end.
        let mut leaves = again.is_none();
        for _ in 0..self.rng.between(1, 5) {
            let patterns: Vec<String> = types.iter().map(|t| self.select_pattern(*t, sets)).collect();
            let to = self.destination(states, at, again.as_deref());
            leaves |= again.as_ref() != Some(&to);
            let text = patterns.join(", ");
            let text = if types.len() == 1 { text } else { format!("({text})") };
            self.line(&format!("{text}: {to};"));
        }
        if self.rng.chance(75) || !leaves {
            let to = match self.rng.chance(70) || !leaves {
                true => self.destination(states, at, None),
                false => self.destination(states, at, again.as_deref()),
            };
            self.line(&format!("default: {to};"));
        }
        self.close();
    }

    fn key(&mut self, scope: &Scope, sets: &[(String, u32)]) -> (String, Ty) {
        // What was added last is what was extracted last.
        let recent = scope.variables.len().saturating_sub(1 + self.rng.below(5));
        match self.rng.below(12) {
            0..7 => match scope.variables.get(recent) {
                Some(v) if v.ty != Ty::Bool => (v.path.clone(), v.ty),
                _ => ("sm.ingress_port".to_owned(), Ty::Bit(9)),
            },
            7 | 8 => {
                let w = self.rng.one([1, 4, 8, 16, 3]);
                (format!("b.lookahead<bit<{w}>>()"), Ty::Bit(w))
            }
            9 if !sets.is_empty() => {
                let w = sets[self.rng.below(sets.len())].1;
                (self.expression(scope, Ty::Bit(w), 1), Ty::Bit(w))
            }
            _ => {
                let w = self.rng.between(1, 16) as u32;
                (self.expression(scope, Ty::Bit(w), 2), Ty::Bit(w))
            }
        }
    }

    fn select_pattern(&mut self, ty: Ty, sets: &[(String, u32)]) -> String {
        let w = ty.width();
        let set = sets.iter().find(|s| Ty::Bit(s.1) == ty).map(|s| s.0.clone());
        match self.rng.below(10) {
            0 => "_".to_owned(),
            1..4 if ty == Ty::Bit(w) => {
                let mask = self.number(w);
                let value = self.number(w);
                format!("{w}w0x{:x} &&& {w}w0x{:x}", value.to_biguint(), mask.to_biguint())
            }
            4 | 5 if ty == Ty::Bit(w) => {
                let (a, b) = (self.number(w), self.number(w));
                let (a, b) = if a.cmp_unsigned(&b).is_gt() { (b, a) } else { (a, b) };
                format!("{w}w0x{:x} .. {w}w0x{:x}", a.to_biguint(), b.to_biguint())
            }
            6..8 if set.is_some() => set.unwrap_or_default(),
            _ => self.literal(ty),
        }
    }
}
