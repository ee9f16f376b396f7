//! Calls of registered externs, for which packets may wait.

use super::model::{Model, Place, Scope, Ty};
use super::{Generator, program_of_model};
use crate::engines::{DECLARATIONS, IN_ORDER};
use crate::rng::Rng;

/// The program with this number, whose packets wait. One that is in order says so in a comment.
pub(crate) fn waiting_program(number: u64) -> String {
    let mut rng = Rng::new(number);
    let mut model = Model::new(&mut rng);
    model.judged = true;
    model.waiting = true;
    model.order = match rng.below(5) {
        0 => Some("port"),
        1 | 2 => Some("flow"),
        _ => None,
    };
    program_of_model(rng, model, Generator::program)
}

impl Generator {
    /// Declarations of the externs, some of them with an annotation.
    pub(super) fn registered_externs(&mut self) {
        if let Some(order) = self.model.order {
            self.line(&format!("{IN_ORDER}{order}"));
        }
        self.line("#include <weir/externs.p4>");
        for declaration in DECLARATIONS {
            let is_function = !declaration.contains('{');
            let annotation = match is_function && self.model.order.is_none() && self.rng.chance(20) {
                true => format!("{} ", self.annotation()),
                false => String::new(),
            };
            self.line(&format!("{annotation}{declaration}"));
        }
    }

    /// The payload in its types, and an object, of a control.
    pub(super) fn payloads(&mut self, scope: &mut Scope) {
        if !matches!(scope.place, Place::Ingress | Place::Egress | Place::Sub) {
            return;
        }
        self.instances();
        scope.may_wait = self.model.order.is_none();
    }

    fn instances(&mut self) {
        self.line("payload_read() view;");
        self.line("payload_write() data;");
        self.line("payload_resize() room;");
        let start = self.rng.below(1000);
        self.line(&format!("fuzz_box({start}) turning;"));
    }

    /// How packets wait.
    fn annotation(&mut self) -> String {
        let order = match self.model.order {
            Some(order) => Some(order),
            None => self.rng.one([None, Some("flow"), Some("port"), Some("none")]),
        };
        let full = match self.rng.below(20) {
            0..5 => Some("wait"),
            5..9 => Some("inline"),
            9 if self.model.order.is_none() => Some("drop"),
            _ => None,
        };
        let arguments = [("order", order), ("full", full)];
        let arguments = arguments
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", (*value)?)));
        match arguments.collect::<Vec<_>>() {
            all if all.is_empty() => "@async".to_owned(),
            all => format!("@async({})", all.join(", ")),
        }
    }

    /// A call, perhaps in a block with others.
    pub(super) fn registered_call(&mut self, scope: &mut Scope, depth: u32) {
        let call = self.prepared_call(scope);
        match self.rng.below(12) {
            0 => return self.line(&call),
            1 => self.open("@sync"),
            _ => {
                let annotation = self.annotation();
                self.open(&annotation);
            }
        }
        self.line(&call);
        // What else a block calls would be @async, too, which externs of v1model cannot be.
        if depth > 0 && self.rng.chance(25) {
            let mut inner = scope.clone();
            self.assignment(&inner);
            if self.rng.chance(50) {
                let more = self.prepared_call(&mut inner);
                self.line(&more);
            }
        }
        self.close();
    }

    /// The text of a call; its results are variables that the scope then knows.
    fn prepared_call(&mut self, scope: &mut Scope) -> String {
        let mut result = |generator: &mut Self, ty: Ty| {
            let name = generator.name("w");
            let value = generator.expression(scope, ty, 1);
            generator.line(&format!("{} {name} = {value};", ty.text()));
            scope.add(name.clone(), ty, true);
            name
        };
        match self.rng.below(8) {
            0 => {
                let (value, fold) = (result(self, Ty::Bit(48)), result(self, Ty::Bit(8)));
                let by = self.expression(scope, Ty::Bit(32), 2);
                format!("fuzz_mix({by}, {value}, {fold});")
            }
            1 => {
                let value = result(self, Ty::Bit(200));
                let (by, flip) = (self.expression(scope, Ty::Int(20), 1), self.condition(scope, 1));
                format!("fuzz_wide({by}, {flip}, {value});")
            }
            2 => {
                let sum = result(self, Ty::Bit(32));
                let start = self.expression(scope, Ty::Bit(32), 1);
                format!("{sum} = fuzz_sum(view, {start});")
            }
            3 | 4 => {
                let sum = result(self, Ty::Bit(32));
                let by = self.expression(scope, Ty::Bit(16), 2);
                format!("fuzz_scramble(data, {by}, {sum});")
            }
            5 => {
                let length = result(self, Ty::Bit(16));
                let by = self.expression(scope, Ty::Bit(8), 1);
                format!("fuzz_stretch(room, {by}, {length});")
            }
            6 => {
                let value = result(self, Ty::Bit(64));
                format!("turning.turn({value});")
            }
            _ => {
                let number = self.expression(scope, Ty::Bit(8), 1);
                format!("fuzz_gate({number});")
            }
        }
    }

    /// A control that all packets pass, with a call for which they wait.
    pub(super) fn held_control(&mut self) {
        self.open("control Held(inout headers_t hdr, inout meta_t meta)");
        self.instances();
        self.open("apply");
        let mut scope = self.model.scope(Place::Checksum);
        self.held_call(&mut scope);
        self.close();
        self.close();
    }

    /// An action that all packets execute, with a call for which they wait.
    pub(super) fn held_action(&mut self) {
        self.line("Held() held;");
        self.open("action hold()");
        let mut scope = self.model.scope(Place::Checksum);
        self.held_call(&mut scope);
        self.close();
    }

    fn held_call(&mut self, scope: &mut Scope) {
        let call = self.prepared_call(scope);
        let annotation = self.annotation();
        self.open(&annotation);
        self.line(&call);
        self.close();
    }

    /// Calls that all packets make.
    pub(super) fn held_calls(&mut self) {
        let mut scope = self.model.scope(Place::Checksum);
        self.held_call(&mut scope);
        for _ in 0..self.rng.below(3) {
            self.assignment(&scope);
            let way = self.rng.below(3);
            match way {
                0 => self.line("hold();"),
                1 => self.line("held.apply(hdr, meta);"),
                _ => self.held_call(&mut scope),
            }
        }
    }
}
