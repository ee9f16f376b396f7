//! Calls of v1model's externs.

use super::Generator;
use super::model::{Place, Scope, Ty, width};
use weir_arch::hash::Algorithm;

impl Generator {
    pub(super) fn extern_call(&mut self, scope: &mut Scope) {
        match scope.place {
            Place::Sub if self.model.tna => return self.execute(scope),
            Place::Sub => return self.extern_call_of_deparser(scope),
            Place::Function => return self.assignment(scope),
            _ => {}
        }
        match self.rng.below(40) {
            0..5 => self.count(scope),
            5..10 => self.register(scope),
            10..13 => self.meter(scope),
            13..17 => self.hash(scope),
            17..20 => {
                self.guarded(scope, "mark_to_drop(sm);");
            }
            20..24 => self.send(scope),
            24..26 => self.digest(scope),
            // Copies would not be in order with their packets.
            26..31 if self.model.order.is_some() => self.count(scope),
            26..29 => self.copy(scope),
            29..31 => self.again(scope),
            31 if !self.model.judged => self.random(scope),
            32 => {
                let value = self.expression(scope, Ty::Bit(6), 1);
                let call = format!("truncate((bit<32>){value});");
                self.guarded(scope, &call);
            }
            33 => {
                let ty = Ty::Bit(width(&mut self.rng, 64));
                let value = self.expression(scope, ty, 1);
                let other = self.literal(ty);
                let what = self.rng.one(["assert", "assume"]);
                self.line(&format!("{what}({value} != {other});"));
            }
            34 => {
                let ty = Ty::Bit(width(&mut self.rng, 64));
                let value = self.expression(scope, ty, 1);
                self.line(&format!("log_msg(\"it is {{}}\", {{ {value} }});"));
            }
            _ => self.count(scope),
        }
    }

    /// A call of what a deparser may call: it has nothing to do with where packets go.
    pub(super) fn extern_call_of_deparser(&mut self, scope: &mut Scope) {
        match self.rng.below(8) {
            0..3 => self.count(scope),
            3 | 4 => self.register(scope),
            5 => self.meter(scope),
            7 if !self.model.judged => self.random(scope),
            _ => self.hash(scope),
        }
    }

    /// A call that only some packets make.
    fn guarded(&mut self, scope: &Scope, call: &str) {
        let condition = self.condition(scope, 2);
        self.line(&format!("if ({condition}) {{ {call} }}"));
    }

    /// A small number in 32 bits, a little too large now and then.
    fn index(&mut self, scope: &Scope) -> String {
        match self.rng.below(4) {
            0 => self.rng.below(18).to_string(),
            1 => {
                let w = self.rng.between(1, 5) as u32;
                format!("(bit<32>){}", self.expression(scope, Ty::Bit(w), 1))
            }
            2 if !matches!(scope.place, Place::Deparser | Place::Sub) => "(bit<32>)sm.ingress_port[3:0]".to_owned(),
            _ => format!("(bit<32>){}", self.expression(scope, Ty::Bit(4), 1)),
        }
    }

    fn count(&mut self, scope: &Scope) {
        if let Some(counter) = self.rng.pick(&scope.counters).cloned() {
            let index = self.index(scope);
            self.line(&format!("{counter}.count({index});"));
        }
    }

    fn register(&mut self, scope: &mut Scope) {
        let Some((register, ty)) = self.rng.pick(&scope.registers).cloned() else {
            return;
        };
        let index = self.index(scope);
        if self.rng.chance(60) {
            let name = self.name("r");
            let start = self.literal(ty);
            self.line(&format!("{} {name} = {start};", ty.text()));
            self.line(&format!("{register}.read({name}, {index});"));
            scope.add(name, ty, true);
        }
        if self.rng.chance(60) {
            let value = self.expression(scope, ty, 2);
            self.line(&format!("{register}.write({index}, {value});"));
        }
    }

    fn meter(&mut self, scope: &mut Scope) {
        let Some(meter) = self.rng.pick(&scope.meters).cloned() else {
            return;
        };
        let index = self.index(scope);
        let name = self.name("c");
        let w = self.rng.one([2, 8, 32]);
        self.line(&format!("bit<{w}> {name} = 0;"));
        self.line(&format!("{meter}.execute_meter({index}, {name});"));
        scope.add(name, Ty::Bit(w), true);
    }

    /// Fields, expressions and headers that are summed up.
    pub(super) fn data(&mut self, scope: &Scope, headers: bool) -> String {
        let mut leaves = Vec::new();
        for _ in 0..self.rng.between(1, 5) {
            let header = self.rng.pick(&scope.headers).cloned();
            match header {
                Some(header) if headers && self.rng.chance(20) => leaves.push(header.path),
                Some(header) if self.rng.chance(40) => {
                    // All of a header, as checksums are over.
                    let ty = &self.model.types[header.ty];
                    let fields = ty.fields.iter().filter(|f| f.1 != Ty::Bool);
                    leaves.extend(fields.map(|(name, _)| format!("{}.{name}", header.path)));
                    leaves.extend(ty.varbit.iter().map(|(name, _)| format!("{}.{name}", header.path)));
                }
                _ => {
                    let ty = match self.rng.pick(&scope.variables) {
                        Some(v) if v.ty != Ty::Bool => v.ty,
                        _ => Ty::Bit(16),
                    };
                    leaves.push(self.expression(scope, ty, 1));
                }
            }
        }
        format!("{{ {} }}", leaves.join(", "))
    }

    fn hash(&mut self, scope: &mut Scope) {
        let w = self.rng.one([8, 16, 16, 32, 32, 64, 10]);
        let name = self.name("h");
        let algorithm = match self.rng.one(Algorithm::ALL).name() {
            "random" if self.model.judged => "crc16",
            other => other,
        };
        let data = self.data(scope, true);
        let base = match self.rng.chance(60) {
            true => format!("{w}w0"),
            false => self.expression(scope, Ty::Bit(w), 1),
        };
        let most = match self.rng.below(4) {
            0 => "32w0x10000".to_owned(),
            1 => "64w0x100000000".to_owned(),
            2 => format!("32w{}", self.rng.below(20)),
            _ => self.expression(scope, Ty::Bit(32), 1),
        };
        self.line(&format!("bit<{w}> {name} = 0;"));
        self.line(&format!(
            "hash({name}, HashAlgorithm.{algorithm}, {base}, {data}, {most});"
        ));
        if algorithm == "random" {
            // Hashes are pure, so one whose result is not read may be left out. Then others get
            // other numbers, unless this is read.
            self.line(&format!("log_msg(\"{name} {{}}\", {{ {name} }});"));
        }
        scope.add(name, Ty::Bit(w), true);
    }

    fn random(&mut self, scope: &mut Scope) {
        let w = width(&mut self.rng, 64);
        let name = self.name("n");
        let (low, high) = (self.literal(Ty::Bit(w)), self.literal(Ty::Bit(w)));
        self.line(&format!("bit<{w}> {name} = 0;"));
        self.line(&format!("random({name}, {low}, {high});"));
        scope.add(name, Ty::Bit(w), true);
    }

    /// Says where the packet goes.
    pub(super) fn send(&mut self, scope: &Scope) {
        if scope.place != Place::Ingress {
            return self.count(scope);
        }
        match self.rng.below(12) {
            0..5 => {
                let port = self.rng.one([0, 1, 2, 3, 4, 7, 8, 100, 510, 511]);
                self.line(&format!("sm.egress_spec = {port};"));
            }
            5..7 => self.line("sm.egress_spec = sm.ingress_port;"),
            7..9 => {
                let value = self.expression(scope, Ty::Bit(9), 2);
                self.line(&format!("sm.egress_spec = {value};"));
            }
            9..11 => {
                let group = self.rng.below(5);
                self.guarded(scope, &format!("sm.mcast_grp = {group};"));
            }
            _ => {
                let priority = self.rng.below(8);
                self.guarded(scope, &format!("sm.priority = {priority};"));
            }
        }
    }

    fn digest(&mut self, scope: &Scope) {
        let types = self.model.digest.clone();
        let values: Vec<String> = types.into_iter().map(|t| self.expression(scope, t, 1)).collect();
        let call = format!("digest<digest_t>(1, {{ {} }});", values.join(", "));
        self.guarded(scope, &call);
    }

    /// A call that makes a packet from a packet. With the given probability, in percent, the new
    /// packet does not make the call again, because clones of clones take long.
    fn multiplying(&mut self, scope: &Scope, as_a_rule: usize, call: &str) {
        let guard = if self.rng.chance(as_a_rule) {
            "sm.instance_type == 0"
        } else {
            "true"
        };
        let condition = self.condition(scope, 1);
        self.line(&format!("if ({guard} && {condition}) {{ {call} }}"));
    }

    fn copy(&mut self, scope: &Scope) {
        let kind = match scope.place {
            Place::Egress => "E2E",
            _ => "I2E",
        };
        let session = self.rng.below(5);
        let call = match self.rng.below(4) {
            0..2 => format!("clone(CloneType.{kind}, {session});"),
            _ => format!(
                "clone_preserving_field_list(CloneType.{kind}, {session}, {});",
                self.rng.between(1, 2)
            ),
        };
        self.multiplying(scope, 90, &call);
    }

    fn again(&mut self, scope: &Scope) {
        let what = match scope.place {
            Place::Egress => "recirculate",
            _ => "resubmit",
        };
        let list = self.rng.between(0, 2);
        self.multiplying(scope, 95, &format!("{what}_preserving_field_list({list});"));
    }
}
