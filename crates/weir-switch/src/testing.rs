//! Programs made by hand, for tests of whoever uses a switch.

use weir_interp::testing::{BodyBuilder, ProgramBuilder};
use weir_ir::{Operand, Program, Terminator, VarId};

/// Variables of `standard_metadata_t` in the order of v1model.p4.
pub const STANDARD_METADATA: [(&str, u32); 16] = [
    ("ingress_port", 9),
    ("egress_spec", 9),
    ("egress_port", 9),
    ("instance_type", 32),
    ("packet_length", 32),
    ("enq_timestamp", 32),
    ("enq_qdepth", 19),
    ("deq_timedelta", 32),
    ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48),
    ("egress_global_timestamp", 48),
    ("mcast_grp", 16),
    ("egress_rid", 16),
    ("checksum_error", 1),
    ("parser_error", 32),
    ("priority", 3),
];

/// A program of v1model in the making: the blocks that were not given do nothing.
#[derive(Debug)]
pub struct V1Builder {
    /// The program; blocks are added by [`V1Builder::parser`] and [`V1Builder::control`].
    pub program: ProgramBuilder,
    standard: Vec<VarId>,
    given: Vec<String>,
}

impl Default for V1Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl V1Builder {
    /// A program with standard metadata and nothing else.
    #[must_use]
    pub fn new() -> Self {
        let mut program = ProgramBuilder::new("v1model");
        let standard = program.shared("standard_metadata", &STANDARD_METADATA);
        V1Builder {
            program,
            standard,
            given: Vec::new(),
        }
    }

    /// A field of standard metadata.
    ///
    /// # Panics
    /// There is no such field.
    #[must_use]
    pub fn standard(&self, name: &str) -> VarId {
        let position = STANDARD_METADATA.iter().position(|(n, _)| *n == name);
        self.standard[position.unwrap_or_else(|| panic!("standard_metadata_t has no field {name}"))]
    }

    /// The parser.
    pub fn parser(&mut self, build: impl FnOnce(BodyBuilder) -> BodyBuilder) {
        self.program.parser("parser", build);
        self.given.push("parser".to_owned());
    }

    /// A control by its role.
    pub fn control(&mut self, role: &str, build: impl FnOnce(BodyBuilder) -> BodyBuilder) {
        self.program.control(role, build);
        self.given.push(role.to_owned());
    }

    /// The program, with the missing blocks.
    #[must_use]
    pub fn finish(mut self) -> Program {
        if !self.given.iter().any(|g| g == "parser") {
            self.parser(|b| b.block(|b| b.end(Terminator::Accept)));
        }
        for role in ["verify_checksum", "ingress", "egress", "compute_checksum", "deparser"] {
            if !self.given.iter().any(|g| g == role) {
                self.program.control(role, |b| b.block(|b| b.end(Terminator::Return)));
            }
        }
        self.program.finish()
    }
}

/// A program that sends every packet back where it came from.
#[must_use]
pub fn reflector() -> Program {
    let mut v1 = V1Builder::new();
    let (from, to) = (v1.standard("ingress_port"), v1.standard("egress_spec"));
    v1.control("ingress", |b| {
        b.block(|b| b.set(to, Operand::Var(from)).end(Terminator::Return))
    });
    v1.finish()
}
