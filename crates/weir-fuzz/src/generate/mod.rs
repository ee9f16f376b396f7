//! Random programs for v1model, well-typed by construction.
//!
//! A program is text from the start: what is kept beside it is only what can be named at a place,
//! and its type. The same number gives the same program.

mod call;
mod checksum;
mod deparser;
mod expression;
mod externs;
mod model;
mod parser;
mod registered;
mod statement;
mod sub;
mod table;
mod tna;

use crate::rng::Rng;
use call::Callable;
use model::{Model, Place, Ty};
pub(crate) use registered::waiting_program;
use std::fmt::Write;
use sub::{SubControl, SubParser};
pub(crate) use tna::tna_program;

/// Makes one program.
struct Generator {
    rng: Rng,
    model: Model,
    out: String,
    indent: usize,
    names: usize,
    functions: Vec<Callable>,
    sub_controls: Vec<SubControl>,
    sub_parsers: Vec<SubParser>,
}

/// The program with this number.
pub(crate) fn program(number: u64) -> String {
    program_of(number, false)
}

/// The program with this number for an oracle that runs no engine: it leaves nothing to chance
/// or time.
pub(crate) fn judged_program(number: u64) -> String {
    program_of(number, true)
}

fn program_of(number: u64, judged: bool) -> String {
    let mut rng = Rng::new(number);
    let mut model = Model::new(&mut rng);
    model.judged = judged;
    program_of_model(rng, model, Generator::program)
}

fn program_of_model(rng: Rng, model: Model, make: fn(&mut Generator)) -> String {
    let mut generator = Generator {
        rng,
        model,
        out: String::new(),
        indent: 0,
        names: 0,
        functions: Vec::new(),
        sub_controls: Vec::new(),
        sub_parsers: Vec::new(),
    };
    make(&mut generator);
    generator.out
}

impl Generator {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:indent$}{text}", "", indent = 4 * self.indent);
    }

    fn open(&mut self, text: &str) {
        self.line(&format!("{text} {{"));
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    /// A name that nothing else has.
    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}_{}", self.names)
    }

    fn program(&mut self) {
        if self.model.version_2020 {
            self.line("#define V1MODEL_VERSION 20200408");
        }
        if self.rng.chance(10) {
            self.line("error { Early, Earlier }");
        }
        self.line("#include <core.p4>");
        self.line("#include <v1model.p4>");
        self.line("error { Strange, Odd }");
        if self.model.waiting {
            self.registered_externs();
        }
        self.types();
        self.subs();
        if self.model.order.is_some() {
            self.held_control();
        }
        self.parser();
        self.verify();
        self.control("I", Place::Ingress);
        self.control("E", Place::Egress);
        self.compute();
        self.deparser();
        self.line("V1Switch(P(), V(), I(), E(), C(), D()) main;");
    }

    fn types(&mut self) {
        for ty in self.model.types.clone() {
            self.open(&format!("header {}", ty.name));
            for (name, ty) in &ty.fields {
                self.line(&format!("{} {name};", ty.text()));
            }
            if let Some((name, most)) = &ty.varbit {
                self.line(&format!("varbit<{most}> {name};"));
            }
            self.close();
        }
        if self.model.shows {
            self.shown_type();
        }
        self.open("struct headers_t");
        if self.model.shows {
            self.line("shown_t shown;");
        }
        for instance in self.model.instances.clone() {
            let ty = self.model.types[instance.ty].name.clone();
            match instance.stack {
                Some(n) => self.line(&format!("{ty}[{n}] {};", instance.name)),
                None => self.line(&format!("{ty} {};", instance.name)),
            }
        }
        self.close();
        let metadata = self.model.metadata.clone();
        self.open("struct inner_t");
        for (path, ty, _) in &metadata {
            if let Some(name) = path.strip_prefix("inner.") {
                self.line(&format!("{} {name};", ty.text()));
            }
        }
        self.close();
        self.open("struct meta_t");
        for (path, ty, kept) in &metadata {
            if !path.starts_with("inner.") {
                let list = if *kept { "@field_list(1) " } else { "" };
                self.line(&format!("{list}{} {path};", ty.text()));
            }
        }
        self.line("inner_t inner;");
        self.close();
        self.open("struct digest_t");
        for (i, ty) in self.model.digest.clone().iter().enumerate() {
            self.line(&format!("{} d{i};", ty.text()));
        }
        self.close();
    }

    /// What the header that shows everything is made of: name, type, what it shows.
    fn shown(&self) -> Vec<(String, u32, String)> {
        let metadata = self.model.metadata.iter().map(|(path, ty, _)| {
            let path = format!("meta.{path}");
            let value = match ty {
                Ty::Bit(_) => path,
                Ty::Int(w) => format!("(bit<{w}>){path}"),
                Ty::Bool => format!("(bit<1>){path}"),
            };
            (ty.width(), value)
        });
        let standard = [
            ("ingress_port", 9),
            ("egress_port", 9),
            ("checksum_error", 1),
            ("egress_rid", 16),
        ];
        let standard = standard.map(|(name, width)| (width, format!("sm.{name}")));
        let all = metadata
            .chain(standard.into_iter().filter(|_| !self.model.tna))
            .enumerate();
        all.map(|(i, (width, value))| (format!("v{i}"), width, value)).collect()
    }

    fn shown_type(&mut self) {
        let shown = self.shown();
        self.open("header shown_t");
        for (name, width, _) in &shown {
            self.line(&format!("bit<{width}> {name};"));
        }
        let bits: u32 = shown.iter().map(|s| s.1).sum();
        let missing = (8 - bits % 8) % 8;
        if missing > 0 {
            self.line(&format!("bit<{missing}> rest;"));
        }
        self.close();
    }

    fn control(&mut self, name: &str, place: Place) {
        self.open(&format!(
            "control {name}(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm)"
        ));
        let mut scope = self.model.scope(place);
        let seldom = self.model.strict || self.model.plain;
        let busy = place == Place::Ingress || self.rng.chance(if seldom { 10 } else { 60 });
        if busy {
            self.use_subs(&mut scope);
            self.state(&mut scope);
            self.tables(&mut scope);
            if !scope.calls.is_empty() && self.rng.chance(40) {
                self.directed_action(&mut scope);
            }
        }
        let is_held = self.model.order.is_some() && busy && (place == Place::Ingress || self.rng.chance(50));
        if is_held {
            self.held_action();
        }
        self.open("apply");
        if is_held {
            self.held_calls();
        }
        if place == Place::Ingress && self.rng.chance(80) {
            self.send(&scope);
        }
        self.checked_packets(&scope);
        if busy {
            let count = match self.model.strict {
                true => self.rng.below(5) / 3,
                false => self.rng.between(1, 8),
            };
            let is_guarded = self.model.plain && self.rng.chance(70);
            if is_guarded {
                self.open_guard();
            }
            self.statements(&scope, count, 3);
            if is_guarded {
                self.close();
            }
        }
        if place == Place::Egress && self.model.shows {
            self.line("hdr.shown.setValid();");
            for (name, _, value) in self.shown() {
                self.line(&format!("hdr.shown.{name} = {value};"));
            }
        }
        self.close();
        self.close();
    }

    /// Begins a block for packets that have some of the headers.
    fn open_guard(&mut self) {
        let names: Vec<String> = self.model.instances.iter().map(|i| i.name.clone()).collect();
        let some: Vec<String> = names.into_iter().filter(|_| self.rng.chance(60)).collect();
        let all: Vec<String> = some.iter().map(|name| format!("hdr.{name}.isValid()")).collect();
        let condition = if all.is_empty() {
            "true".to_owned()
        } else {
            all.join(" && ")
        };
        self.open(&format!("if ({condition})"));
    }
}
