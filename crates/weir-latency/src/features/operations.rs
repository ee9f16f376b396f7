//! What code does, counted.

use super::tables::StatefulKind;
use serde::{Deserialize, Serialize};
use weir_ir::{BinaryOp, Call, InstKind, Operand, Program, Rvalue, UnaryOp, VarId, VarKind};

/// Operations of an action or of statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operations {
    /// Fields of headers that are written, validities included.
    pub header_writes: u32,
    /// Fields of intrinsic metadata that are written: the output port among them.
    pub intrinsic_writes: u32,
    /// Other variables of the program that are written.
    pub metadata_writes: u32,
    /// Additions, subtractions, shifts, logic on more than one bit, and the like.
    pub arithmetic: u32,
    /// Divisions, remainders and products.
    pub divisions: u32,
    /// Calls that read or write registers.
    pub register_accesses: u32,
    /// Calls of meters that colour packets.
    pub meter_calls: u32,
    /// Calls of low-pass filters and of weighted random early detection.
    pub filter_calls: u32,
    /// Calls of counters.
    pub counter_calls: u32,
    /// Hashes, checksums and random numbers.
    pub hashes: u32,
    /// Calls of other externs.
    pub other_calls: u32,
}

impl Operations {
    /// Adds an instruction.
    pub(super) fn add(&mut self, program: &Program, inst: &InstKind) {
        match inst {
            InstKind::Assign { dst, value } => {
                self.add_write(program, *dst);
                self.add_arithmetic(program, value);
            }
            InstKind::Call(call) => self.add_call(program, call),
            InstKind::Extract { .. }
            | InstKind::Lookahead { .. }
            | InstKind::Advance { .. }
            | InstKind::PacketLength { .. }
            | InstKind::Emit { .. }
            | InstKind::Mark(_) => {}
        }
    }

    fn add_write(&mut self, program: &Program, var: VarId) {
        match program.vars[var].kind {
            VarKind::Field { .. } | VarKind::Valid { .. } => self.header_writes += 1,
            VarKind::Shared if is_intrinsic(program, var) => self.intrinsic_writes += 1,
            VarKind::Shared | VarKind::Local => self.metadata_writes += 1,
            VarKind::Temporary | VarKind::FieldCopy { .. } | VarKind::ActionParameter => {}
        }
    }

    fn add_arithmetic(&mut self, program: &Program, value: &Rvalue) {
        let width = |operand: &Operand| match operand {
            Operand::Var(var) => program.vars[*var].ty.width(),
            Operand::Const(value) => value.width(),
        };
        let (op, width) = match value {
            Rvalue::Binary(op, a, _) => (op, width(a)),
            Rvalue::Unary(UnaryOp::Neg, _) => return self.arithmetic += 1,
            Rvalue::Unary(UnaryOp::Not, a) => return self.arithmetic += u32::from(width(a) > 1),
            Rvalue::Use(_)
            | Rvalue::Slice { .. }
            | Rvalue::Insert { .. }
            | Rvalue::ZeroExtend(_)
            | Rvalue::SignExtend(_)
            | Rvalue::Mux { .. }
            | Rvalue::VarbitEq(..) => return,
        };
        match op {
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => self.divisions += 1,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::AddSat
            | BinaryOp::SubSat
            | BinaryOp::AddSatSigned
            | BinaryOp::SubSatSigned
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::ShrSigned => self.arithmetic += 1,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => self.arithmetic += u32::from(width > 1),
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::LtSigned
            | BinaryOp::LeSigned
            | BinaryOp::Concat => {}
        }
    }

    fn add_call(&mut self, program: &Program, call: &Call) {
        let name = call
            .instance
            .map_or(call.function.as_str(), |x| program.externs[x].type_name.as_str());
        match StatefulKind::of(name) {
            Some(StatefulKind::Register) => self.register_accesses += 1,
            Some(StatefulKind::Meter) => self.meter_calls += 1,
            Some(StatefulKind::LowPassFilter) => self.filter_calls += 1,
            Some(StatefulKind::Counter) => self.counter_calls += 1,
            None if is_hash(name) => self.hashes += 1,
            None => self.other_calls += 1,
        }
        for result in &call.results {
            self.add_write(program, *result);
        }
        for i in 0..call.arguments.len() {
            call.outputs(i).iter().for_each(|var| self.add_write(program, *var));
        }
    }

    /// Adds what other code does.
    pub fn merge(&mut self, other: &Operations) {
        self.header_writes += other.header_writes;
        self.intrinsic_writes += other.intrinsic_writes;
        self.metadata_writes += other.metadata_writes;
        self.arithmetic += other.arithmetic;
        self.divisions += other.divisions;
        self.register_accesses += other.register_accesses;
        self.meter_calls += other.meter_calls;
        self.filter_calls += other.filter_calls;
        self.counter_calls += other.counter_calls;
        self.hashes += other.hashes;
        self.other_calls += other.other_calls;
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.counts().iter().map(|(count, ..)| count).sum()
    }

    /// Each count with its name in singular and plural.
    fn counts(&self) -> [(u32, &'static str, &'static str); 11] {
        [
            (self.header_writes, "header write", "header writes"),
            (self.intrinsic_writes, "intrinsic write", "intrinsic writes"),
            (self.metadata_writes, "metadata write", "metadata writes"),
            (self.arithmetic, "arithmetic operation", "arithmetic operations"),
            (self.divisions, "product or division", "products and divisions"),
            (self.register_accesses, "register access", "register accesses"),
            (self.meter_calls, "meter call", "meter calls"),
            (self.filter_calls, "filter call", "filter calls"),
            (self.counter_calls, "counter call", "counter calls"),
            (self.hashes, "hash", "hashes"),
            (self.other_calls, "other call", "other calls"),
        ]
    }

    /// Each count with its name, those that are 0 left out.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, u32)> {
        let named = |(count, one, many): (u32, &'static str, &'static str)| match count {
            0 => None,
            1 => Some((one, count)),
            _ => Some((many, count)),
        };
        self.counts().into_iter().filter_map(named).collect()
    }
}

/// Whether a value takes more than moving and comparing bits: a Tofino's match and its gateways
/// cannot compute.
pub(super) fn is_computed(program: &Program, value: &Rvalue) -> bool {
    let mut operations = Operations::default();
    operations.add_arithmetic(program, value);
    operations.arithmetic + operations.divisions > 0
}

fn is_hash(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["hash", "checksum", "crc", "random"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether the architecture declares the variable.
fn is_intrinsic(program: &Program, var: VarId) -> bool {
    let architecture = |role: &str| {
        let own = role.rsplit('.').next().unwrap_or(role);
        own.contains("intrinsic")
            || own.contains("standard")
            || own.contains("input_metadata")
            || own.contains("output_metadata")
    };
    let groups = program.shared.iter().filter(|group| architecture(&group.role));
    groups.flat_map(|group| &group.leaves).any(|leaf| leaf.var == var)
}
