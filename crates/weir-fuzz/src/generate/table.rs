//! Actions and tables of a control, and its state.

use super::Generator;
use super::call::{Callee, Formal, Kind, Way};
use super::model::{Place, Scope, Ty, width};

/// A key of a table.
struct Key {
    ty: Ty,
    kind: &'static str,
}

/// An action.
#[derive(Clone)]
struct Action {
    name: String,
    /// What the list of actions gives for parameters with a direction.
    bound: String,
    /// Types of the data of entries.
    parameters: Vec<Ty>,
}

impl Generator {
    /// Counters, meters and registers, which the scope then knows.
    pub(super) fn state(&mut self, scope: &mut Scope) {
        if self.model.tna {
            return self.tna_state(scope);
        }
        let index = if self.model.version_2020 {
            ("<bit<32>>", ", bit<32>")
        } else {
            ("", "")
        };
        for _ in 0..self.rng.below(3) {
            let name = self.name("counter");
            let unit = self.rng.one(["packets", "bytes", "packets_and_bytes"]);
            let size = self.rng.one([1, 4, 16, 300]);
            self.line(&format!("counter{}({size}, CounterType.{unit}) {name};", index.0));
            scope.counters.push(name);
        }
        let meters = self.rng.below(4) / 2;
        for _ in 0..if self.model.judged { 0 } else { meters } {
            let name = self.name("meter");
            let unit = self.rng.one(["packets", "bytes"]);
            let size = self.rng.one([1, 4, 16]);
            self.line(&format!("meter{}({size}, MeterType.{unit}) {name};", index.0));
            scope.meters.push(name);
        }
        if self.model.waiting {
            return self.payloads(scope);
        }
        for _ in 0..self.rng.below(5) / 2 {
            let name = self.name("register");
            let ty = match super::model::ty(&mut self.rng, 150) {
                Ty::Bool => Ty::Bit(1),
                other => other,
            };
            let size = self.rng.one([1, 4, 16, 1000]);
            self.line(&format!("register<{}{}>({size}) {name};", ty.text(), index.1));
            scope.registers.push((name, ty));
        }
    }

    /// Actions and tables, which the scope then knows.
    pub(super) fn tables(&mut self, scope: &mut Scope) {
        let mut actions = Vec::new();
        for _ in 0..self.rng.between(1, 5) {
            actions.push(self.action(scope, None));
        }
        for action in actions.iter().filter(|a| a.bound.is_empty()) {
            scope.actions.push((action.name.clone(), action.parameters.clone()));
        }
        let count = match self.rng.below(10) {
            _ if scope.place == Place::Deparser => self.rng.between(1, 3),
            _ if scope.place == Place::Sub => self.rng.below(3),
            0 => 0,
            1..8 => self.rng.between(1, 4),
            _ => self.rng.between(3, 8),
        };
        for _ in 0..count {
            self.table(scope, &actions);
        }
        if matches!(scope.place, Place::Ingress | Place::Egress)
            && self.rng.chance(60)
            && let Some((name, parameters)) = self.rewrite(scope)
        {
            let bound = String::new();
            self.table(
                scope,
                &[Action {
                    name,
                    bound,
                    parameters,
                }],
            );
        }
        // Actions that are tables' alone read meters, which a control cannot; a control calls its
        // own.
        if self.rng.chance(50) {
            scope.actions.clear();
        }
    }

    fn action(&mut self, scope: &Scope, meter: Option<(&str, u32)>) -> Action {
        let name = self.name("act");
        let parameters = self.parameters();
        let mut inner = scope.clone();
        inner.in_action = true;
        inner.tables.clear();
        inner.actions.clear();
        inner.calls.retain(|c| c.callee != Callee::Block);
        let formals = self.bound_formals(scope, meter.is_some());
        inner.variables.extend(self.scope_of(scope.place, &formals).variables);
        let names: Vec<String> = (0..parameters.len()).map(|i| format!("p{i}")).collect();
        let list = parameters
            .iter()
            .zip(&names)
            .map(|(ty, name)| format!("{} {name}", ty.text()));
        let list: Vec<String> = formals.iter().map(|f| self.formal_text(f)).chain(list).collect();
        self.open(&format!("action {name}({})", list.join(", ")));
        for (ty, name) in parameters.iter().zip(&names) {
            match ty.width() {
                0 => self.nothing(&inner, name),
                _ => inner.add(name.clone(), *ty, false),
            }
        }
        if let Some((meter, width)) = meter {
            let color = self.name("c");
            self.line(&format!("bit<{width}> {color} = 0;"));
            self.line(&format!("{meter}.read({color});"));
            inner.add(color, Ty::Bit(width), true);
        }
        let first = parameters.iter().position(|t| t.width() > 0);
        if let Some(at) = first
            && scope.place == Place::Ingress
            && parameters[at] == Ty::Bit(9)
            && self.rng.chance(80)
        {
            self.line(&format!("sm.egress_spec = p{at};"));
        }
        let count = self.rng.between(0, 3);
        self.statements(&inner, count, 1);
        self.close();
        let bound = self.bound_arguments(scope, &formals);
        Action {
            name,
            bound,
            parameters,
        }
    }

    /// Parameters that a table gives an action whatever the entry.
    fn bound_formals(&mut self, scope: &Scope, metered: bool) -> Vec<Formal> {
        let is_wanted = !metered && scope.variables.iter().any(|v| v.writable) && !scope.calls.is_empty();
        match is_wanted && self.rng.chance(25) {
            true => self.formals(2, false),
            false => Vec::new(),
        }
    }

    /// Arguments for them: expressions and variables of the control.
    fn bound_arguments(&mut self, scope: &Scope, formals: &[Formal]) -> String {
        let mut all = Vec::new();
        for formal in formals {
            let Kind::Scalar(ty) = formal.kind else { continue };
            all.push(match formal.way {
                Way::In => self.variable(scope, ty).unwrap_or_else(|| self.literal(ty)),
                Way::Out | Way::InOut => self.written_argument(scope, ty, &[]),
            });
        }
        all.join(", ")
    }

    /// Types of action data.
    fn parameters(&mut self) -> Vec<Ty> {
        let mut parameters = Vec::new();
        if self.rng.chance(40) {
            parameters.push(Ty::Bit(9));
        }
        if self.rng.chance(20) {
            self.whole_words(&mut parameters);
        } else {
            for _ in 0..self.rng.below(3) {
                parameters.push(super::model::ty(&mut self.rng, 100));
            }
        }
        if self.rng.chance(15) {
            for _ in 0..self.rng.between(1, 2) {
                let at = self.rng.below(parameters.len() + 1);
                parameters.insert(at, Ty::Bit(0));
            }
        }
        parameters
    }

    /// Fills a word of 64 bits, or some more: to the last bit, or with one too few or too many.
    fn whole_words(&mut self, parameters: &mut Vec<Ty>) {
        let before: u32 = parameters.iter().map(|t| t.width()).sum();
        let mut left = self.rng.one([64, 64, 64, 64, 63, 65, 128, 128, 127, 129]) - before;
        for last in [false, false, self.rng.chance(50), true] {
            let width = match last {
                // Bits of a parameter may lie in two words.
                false => self.rng.between(1, left.min(70) as usize) as u32,
                true => left,
            };
            parameters.push(match self.rng.chance(15) && width > 1 {
                true => Ty::Int(width),
                false => Ty::Bit(width),
            });
            left -= width;
            if left == 0 {
                return;
            }
        }
    }

    /// Perhaps uses a parameter of no bits.
    fn nothing(&mut self, scope: &Scope, name: &str) {
        if let Some((target, ty @ Ty::Bit(_))) = self.target(scope)
            && self.rng.chance(60)
        {
            let value = self.expression(scope, ty, 1);
            let value = match self.rng.chance(50) {
                true => format!("({name} ++ {value})"),
                false => format!("({value} ++ {name})"),
            };
            self.line(&format!("{target} = {value};"));
        }
    }

    fn table(&mut self, scope: &mut Scope, actions: &[Action]) {
        let name = self.name("table");
        let mut chosen: Vec<Action> = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            if let Some(action) = self.rng.pick(actions).cloned()
                && chosen.iter().all(|c| c.name != action.name)
            {
                chosen.push(action);
            }
        }
        let mut properties = Vec::new();
        if self.rng.chance(20) && !self.model.tna {
            let counter = self.name("hits");
            let unit = self.rng.one(["packets", "bytes", "packets_and_bytes"]);
            self.line(&format!("direct_counter(CounterType.{unit}) {counter};"));
            properties.push(format!("counters = {counter};"));
        }
        let metered = self.rng.chance(10) && !self.model.judged;
        if metered {
            let meter = self.name("rates");
            let width = self.rng.one([2, 8, 32]);
            let unit = self.rng.one(["packets", "bytes"]);
            self.line(&format!("direct_meter<bit<{width}>>(MeterType.{unit}) {meter};"));
            properties.push(format!("meters = {meter};"));
            chosen = vec![self.action(scope, Some((&meter, width)))];
        }
        let profile = match self.rng.below(12) {
            0 if !metered && !self.model.tna => Some("action_profile"),
            1 if !metered && !self.model.tna => Some("action_selector"),
            _ => None,
        };
        self.open(&format!("table {name}"));
        let selector = profile == Some("action_selector");
        let keys = match self.rng.chance(12) && !selector {
            true => self.one_prefix(scope, &name),
            false => self.keys(scope, selector),
        };
        let with_nothing = self.rng.chance(70);
        let listed = |a: &Action| match a.bound.is_empty() {
            true => format!("{};", a.name),
            false => format!("{}({});", a.name, a.bound),
        };
        let mut list: Vec<String> = chosen.iter().map(listed).collect();
        if with_nothing {
            list.push("NoAction;".to_owned());
        }
        self.line(&format!("actions = {{ {} }}", list.join(" ")));
        match profile {
            Some("action_profile") => {
                let size = self.rng.one([8, 16]);
                self.line(&format!("implementation = action_profile({size});"));
            }
            Some(_) => {
                let algorithm = self.rng.one(["crc32", "crc16", "identity", "csum16", "xor16"]);
                let bits = self.rng.one([4, 14, 16]);
                self.line(&format!(
                    "implementation = action_selector(HashAlgorithm.{algorithm}, 16, {bits});"
                ));
            }
            None => {
                if !keys.is_empty() && self.rng.chance(30) {
                    self.entries(&keys, &chosen);
                }
                self.default(&chosen, with_nothing);
            }
        }
        if self.rng.chance(40) {
            let size = self.rng.one([4, 64, 1024, 1 << 17]);
            self.line(&format!("size = {size};"));
        }
        for property in properties {
            self.line(&property);
        }
        self.close();
        let mut names: Vec<String> = chosen.into_iter().map(|a| a.name).collect();
        if with_nothing {
            names.push("NoAction".to_owned());
        }
        scope.tables.push((name, names));
    }

    fn default(&mut self, actions: &[Action], with_nothing: bool) {
        let constant = if self.rng.chance(20) { "const " } else { "" };
        match self.rng.below(3) {
            0 => {}
            1 if with_nothing => self.line(&format!("{constant}default_action = NoAction;")),
            _ => {
                if let Some(action) = self.rng.pick(actions).cloned() {
                    let call = self.constant_call(&action);
                    self.line(&format!("{constant}default_action = {call};"));
                }
            }
        }
    }

    fn constant_call(&mut self, action: &Action) -> String {
        let literals: Vec<String> = action.parameters.iter().map(|t| self.literal(*t)).collect();
        let bound = Some(action.bound.clone()).filter(|b| !b.is_empty());
        let arguments: Vec<String> = bound.into_iter().chain(literals).collect();
        format!("{}({})", action.name, arguments.join(", "))
    }

    fn keys(&mut self, scope: &Scope, selector: bool) -> Vec<Key> {
        if !selector && self.rng.chance(20) {
            return self.few_bits(scope);
        }
        let mut keys = Vec::new();
        let count = match self.rng.below(10) {
            0 => 0,
            1..6 => 1,
            6..9 => self.rng.between(2, 3),
            _ => self.rng.between(3, 7),
        };
        // Half of all tables have exact keys alone.
        let exact = self.rng.chance(50);
        let mut lines = Vec::new();
        for _ in 0..count {
            let (path, ty) = match self.rng.below(10) {
                0..7 => match self.rng.pick(&scope.variables) {
                    Some(v) => (v.path.clone(), v.ty),
                    None => continue,
                },
                7 => match self.rng.pick(&scope.headers) {
                    Some(h) => (format!("{}.isValid()", h.path), Ty::Bool),
                    None => continue,
                },
                _ => {
                    let ty = Ty::Bit(width(&mut self.rng, 150));
                    (self.expression(scope, ty, 2), ty)
                }
            };
            let has_prefix = keys.iter().any(|k: &Key| k.kind == "lpm");
            let kind = match (exact, ty) {
                (true, _) => "exact",
                (_, Ty::Bool) => self.rng.one(["exact", "ternary", "optional"]),
                (_, Ty::Int(_)) => self.rng.one(["exact", "ternary"]),
                _ => self
                    .rng
                    .one(["exact", "lpm", "ternary", "range", "optional", "ternary", "lpm"]),
            };
            let kind = match kind {
                "lpm" if has_prefix => "ternary",
                // There is no such kind.
                "optional" if self.model.tna => "ternary",
                kind => kind,
            };
            lines.push(format!("{path} : {kind} @name(\"k{}\");", lines.len()));
            keys.push(Key { ty, kind });
        }
        if selector {
            for _ in 0..self.rng.between(1, 2) {
                let Some(v) = self.rng.pick(&scope.variables).cloned() else {
                    continue;
                };
                lines.push(format!("{} : selector @name(\"k{}\");", v.path, lines.len()));
            }
        }
        if !lines.is_empty() {
            self.line(&format!("key = {{ {} }}", lines.join(" ")));
        }
        keys
    }

    /// Exact keys of at most twelve bits in all, or of sixteen, which are the numbers of places in
    /// an array.
    fn few_bits(&mut self, scope: &Scope) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut lines = Vec::new();
        let mut left = self
            .rng
            .one([1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 11, 12, 12, 13, 16, 16]);
        while left > 0 && keys.len() < 4 {
            let header = self.rng.pick(&scope.headers).cloned();
            let (text, ty) = match header {
                Some(header) if self.rng.chance(10) => (format!("{}.isValid()", header.path), Ty::Bool),
                _ => {
                    let width = match self.rng.chance(50) {
                        true => left,
                        false => self.rng.between(1, left as usize) as u32,
                    };
                    let ty = Ty::Bit(width);
                    let whole = self.variable(scope, ty).filter(|_| self.rng.chance(60));
                    let part = whole.or_else(|| self.converted(scope, ty));
                    (part.unwrap_or_else(|| self.literal(ty)), ty)
                }
            };
            left -= ty.width();
            lines.push(format!("{text} : exact @name(\"k{}\");", lines.len()));
            keys.push(Key { ty, kind: "exact" });
            if self.rng.chance(20) {
                break;
            }
        }
        self.line(&format!("key = {{ {} }}", lines.join(" ")));
        keys
    }

    /// A key as of routes, whose tables are large ones: mostly a variable that can be written.
    fn one_prefix(&mut self, scope: &mut Scope, table: &str) -> Vec<Key> {
        let is_long = |ty: Ty| matches!(ty, Ty::Bit(24..=32));
        let writable = scope.variables.iter().filter(|v| v.writable && is_long(v.ty));
        let writable: Vec<(String, Ty)> = writable.map(|v| (v.path.clone(), v.ty)).collect();
        let (text, ty) = match self.rng.pick(&writable).cloned() {
            Some((path, ty)) => {
                scope.routed.push((table.to_owned(), path.clone(), ty));
                (path, ty)
            }
            None => {
                let ty = Ty::Bit(self.rng.one([24, 25, 31, 32]));
                let part = self.converted(scope, ty);
                (part.unwrap_or_else(|| self.literal(ty)), ty)
            }
        };
        self.line(&format!("key = {{ {text} : lpm @name(\"k0\"); }}"));
        vec![Key { ty, kind: "lpm" }]
    }

    fn entries(&mut self, keys: &[Key], actions: &[Action]) {
        self.open("const entries =");
        let mut seen = Vec::new();
        for _ in 0..self.rng.between(1, 6) {
            let patterns: Vec<String> = keys.iter().map(|k| self.pattern(k)).collect();
            let text = patterns.join(", ");
            // The same key twice is an error.
            if seen.contains(&text) {
                continue;
            }
            let Some(action) = self.rng.pick(actions).cloned() else {
                break;
            };
            let call = self.constant_call(&action);
            let open = if keys.len() == 1 {
                text.clone()
            } else {
                format!("({text})")
            };
            self.line(&format!("{open} : {call};"));
            seen.push(text);
        }
        self.close();
    }

    fn pattern(&mut self, key: &Key) -> String {
        let value = self.literal(key.ty);
        let w = key.ty.width();
        match (key.kind, key.ty) {
            ("exact", _) => value,
            (_, Ty::Bool) | ("optional", _) => match self.rng.chance(40) {
                true => "_".to_owned(),
                false => value,
            },
            (_, Ty::Int(_)) => value,
            ("lpm", _) => {
                let length = self.rng.below(w as usize + 1) as u32;
                let mask = weir_ir::Bits::prefix_mask(w, length);
                let value = self.number(w).and(&mask);
                format!("{w}w0x{:x} &&& {w}w0x{:x}", value.to_biguint(), mask.to_biguint())
            }
            ("range", _) => {
                let (a, b) = (self.number(w), self.number(w));
                let (a, b) = if a.cmp_unsigned(&b).is_gt() { (b, a) } else { (a, b) };
                format!("{w}w0x{:x} .. {w}w0x{:x}", a.to_biguint(), b.to_biguint())
            }
            _ if self.rng.chance(20) => "_".to_owned(),
            _ => {
                let mask = self.number(w);
                let value = self.number(w).and(&mask);
                format!("{w}w0x{:x} &&& {w}w0x{:x}", value.to_biguint(), mask.to_biguint())
            }
        }
    }
}
