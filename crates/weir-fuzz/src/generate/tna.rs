//! Programs for the Tofino Native Architecture: a fixed frame around controls that keep state,
//! whose register actions see the parameters, variables and constants of their control.

use super::call::{Callable, Callee, Formal, Kind, Way};
use super::model::{Model, Place, Scope, Ty, Variable};
use super::{Generator, program_of_model};
use crate::rng::Rng;

/// What executes something: a register action or a hash.
#[derive(Debug, Clone)]
pub(super) struct Execute {
    name: String,
    /// Bits of the index; a hash has none.
    index: Option<u32>,
    result: Ty,
}

/// Ports that go to the outside.
const PORTS: [u32; 5] = [1, 2, 3, 7, 8];

/// The frame after ingress: nothing gets there.
const EGRESS: &str = "parser EgP(packet_in b, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start {
        b.extract(eg);
        transition accept;
    }
}
control Eg(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg, \
in egress_intrinsic_metadata_from_parser_t p, inout egress_intrinsic_metadata_for_deparser_t d, \
inout egress_intrinsic_metadata_for_output_port_t o) {
    apply {
    }
}
control EgD(packet_out b, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t d) {
    apply {
        b.emit(hdr);
    }
}
Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) pipe;
Switch(pipe) main;";

/// The program with this number.
pub(crate) fn tna_program(number: u64) -> String {
    let mut rng = Rng::new(number);
    let mut model = Model::new(&mut rng);
    model.tna = true;
    model.judged = true;
    model.plain = false;
    model.strict = false;
    model.shows = true;
    model.checked.clear();
    for ty in &mut model.types {
        ty.varbit = None;
    }
    program_of_model(rng, model, Generator::tna)
}

impl Generator {
    fn tna(&mut self) {
        self.line("#include <core.p4>");
        self.line("#include <tna.p4>");
        self.types();
        self.tna_subs();
        self.tna_parser();
        self.tna_ingress();
        self.open(
            "control IgD(packet_out b, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t d)",
        );
        self.open("apply");
        self.line("b.emit(hdr);");
        self.close();
        self.close();
        EGRESS.lines().for_each(|l| self.line(l));
    }

    fn tna_subs(&mut self) {
        for _ in 0..self.rng.below(2) {
            self.function();
        }
        for _ in 0..self.rng.between(1, 3) {
            self.sub_control();
        }
    }

    fn tna_parser(&mut self) {
        self.open("parser IgP(packet_in b, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig)");
        self.open("state start");
        self.line("b.extract(ig);");
        self.line("b.advance(PORT_METADATA_SIZE);");
        for instance in self.model.instances.clone() {
            match instance.stack {
                _ if instance.name != "first" && self.rng.chance(25) => {}
                Some(_) => self.line(&format!("b.extract(hdr.{}.next);", instance.name)),
                None => self.line(&format!("b.extract(hdr.{});", instance.name)),
            }
        }
        self.line("transition accept;");
        self.close();
        self.close();
    }

    fn tna_ingress(&mut self) {
        self.open(
            "control Ig(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig, \
             in ingress_intrinsic_metadata_from_parser_t p, inout ingress_intrinsic_metadata_for_deparser_t d, \
             inout ingress_intrinsic_metadata_for_tm_t tm)",
        );
        let formals = [("hdr", Kind::Headers), ("meta", Kind::Metadata)].map(|(name, kind)| Formal {
            name: name.to_owned(),
            way: Way::InOut,
            kind,
        });
        let mut scope = self.scope_of(Place::Sub, &formals);
        scope.add("ig.ingress_port", Ty::Bit(9), false);
        self.use_subs(&mut scope);
        self.state(&mut scope);
        self.tables(&mut scope);
        self.open("apply");
        let port = self.rng.one(PORTS);
        self.line(&format!("tm.ucast_egress_port = {port};"));
        self.line("tm.bypass_egress = 1;");
        self.line("hdr.shown.setValid();");
        let calls: Vec<Callable> = scope
            .calls
            .iter()
            .filter(|c| c.callee == Callee::Block)
            .cloned()
            .collect();
        for callable in calls {
            // Each instance at least once, on some packets.
            if let Some(arguments) = self.arguments(&scope, &callable.formals) {
                let condition = self.condition(&scope, 1);
                self.line(&format!("if ({condition}) {{ {}({arguments}); }}", callable.name));
            }
        }
        let count = self.rng.between(1, 5);
        self.statements(&scope, count, 2);
        for (name, _, value) in self.shown() {
            self.line(&format!("hdr.shown.{name} = {value};"));
        }
        self.close();
        self.close();
    }

    // -------------------------------------------------------------------------------------- state

    /// Registers with actions, and hashes.
    pub(super) fn tna_state(&mut self, scope: &mut Scope) {
        for _ in 0..self.rng.between(1, 2) {
            self.register_actions(scope);
        }
        if self.rng.chance(30) {
            let (name, width) = (self.name("hash"), self.rng.one([8, 16, 16, 12]));
            let algorithm = self.rng.one(["CRC16", "CRC32"]);
            self.line(&format!("Hash<bit<{width}>>(HashAlgorithm_t.{algorithm}) {name};"));
            scope.executes.push(Execute {
                name,
                index: None,
                result: Ty::Bit(width),
            });
        }
    }

    /// A register with one or two actions.
    fn register_actions(&mut self, scope: &mut Scope) {
        let register = self.name("register");
        let cell = Ty::Bit(self.rng.one([8, 16, 16, 32, 32]));
        let index = self.rng.between(1, 3) as u32;
        let initial = match self.rng.chance(30) {
            true => format!(", {}", self.literal(cell)),
            false => String::new(),
        };
        let size = 1 << index;
        self.line(&format!(
            "Register<{}, bit<{index}>>({size}{initial}) {register};",
            cell.text()
        ));
        for _ in 0..self.rng.between(1, 2) {
            let name = self.name("ra");
            let result = if self.rng.chance(80) {
                cell
            } else {
                Ty::Bit(self.rng.one([1, 8, 32]))
            };
            self.open(&format!(
                "RegisterAction<{}, bit<{index}>, {}>({register}) {name} =",
                cell.text(),
                result.text()
            ));
            let (value, given) = (self.name("value"), self.name("rv"));
            self.open(&format!(
                "void apply(inout {} {value}, out {} {given})",
                cell.text(),
                result.text()
            ));
            let mut inner = Scope::new(Place::Function);
            // It sees all of its control, and seldom changes more than the cell.
            inner.variables = scope
                .variables
                .iter()
                .map(|v| Variable {
                    writable: v.writable && self.rng.chance(10),
                    ..v.clone()
                })
                .collect();
            inner.in_action = true;
            inner.add(&value, cell, true);
            inner.add(&given, result, true);
            self.seen_by_register_action(&inner, &value, cell);
            let count = self.rng.below(3);
            self.statements(&inner, count, 1);
            if self.rng.chance(80) {
                let text = if result == cell {
                    value
                } else {
                    self.expression(&inner, result, 1)
                };
                self.line(&format!("{given} = {text};"));
            }
            self.close();
            self.indent -= 1;
            self.line("};");
            scope.executes.push(Execute {
                name,
                index: Some(index),
                result,
            });
        }
    }

    /// Makes the cell depend on something of the control.
    fn seen_by_register_action(&mut self, inner: &Scope, value: &str, cell: Ty) {
        let operator = self.rng.one(["+", "^", "|", "-"]);
        let other = self.variable(inner, cell).filter(|_| self.rng.chance(60));
        let other = other.unwrap_or_else(|| self.expression(inner, cell, 1));
        self.line(&format!("{value} = {value} {operator} {other};"));
    }

    /// Executes a register action, or hashes.
    pub(super) fn execute(&mut self, scope: &mut Scope) {
        let Some(execute) = self.rng.pick(&scope.executes).cloned() else {
            return self.assignment(scope);
        };
        let argument = match execute.index {
            Some(width) => self.expression(scope, Ty::Bit(width), 1),
            None => {
                let mut leaves = Vec::new();
                for _ in 0..self.rng.between(1, 3) {
                    let ty = Ty::Bit(self.rng.one([8, 16, 32, 5]));
                    leaves.push(self.expression(scope, ty, 1));
                }
                format!("{{ {} }}", leaves.join(", "))
            }
        };
        let method = if execute.index.is_some() { "execute" } else { "get" };
        let target = self.written_argument(scope, execute.result, &[]);
        self.line(&format!("{target} = {}.{method}({argument});", execute.name));
    }
}
