//! The variables of a program that the architecture reads and writes, and the pipes they belong to.

use crate::calls;
use crate::error::LoadError;
use weir_interp::Frame;
use weir_ir::passes::read_by;
use weir_ir::{BinaryOp, Bits, Body, InstKind, Operand, Program, Rvalue, Terminator, VarId};

/// Pipes of the chip.
pub(crate) const PIPE_COUNT: usize = 4;
/// Parsers of a gress, where programs have more than one.
const PARSERS: usize = 18;
/// The value of an unset port: no port of any device has this number.
pub(crate) const NO_PORT: u64 = 511;

/// The direction in which packets pass a pipe: the two kinds of gress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ingress,
    Egress,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        }
    }
}

/// The variables and programmable blocks of a pipe.
#[derive(Debug, Clone)]
pub(crate) struct Pipe {
    pub ingress: Gress,
    pub tm: TmFields,
    pub egress: Gress,
    /// `update_delay_on_tx`
    pub update_delay: Option<VarId>,
    pub ghost: Option<Ghost>,
}

/// The ghost control, which receives queue events, and its metadata.
#[derive(Debug, Clone)]
pub(crate) struct Ghost {
    /// The control, by its index in [`Program::blocks`].
    pub control: usize,
    pub valid: Option<VarId>,
    pub length: Option<VarId>,
    pub queue: Option<VarId>,
    pub pipe: Option<VarId>,
}

impl Ghost {
    fn new(program: &Program, number: usize) -> Option<Self> {
        let control_role = role(number, "ghost");
        let metadata = |path| program.shared_var(&role(number, "ghost_intrinsic_metadata"), path);
        Some(Ghost {
            control: program.blocks.iter().position(|b| b.role == control_role)?,
            valid: metadata("$valid$"),
            length: metadata("qlength"),
            queue: metadata("qid"),
            pipe: metadata("pipe_id"),
        })
    }
}

/// A parser, a control and a deparser, and what they share.
#[derive(Debug, Clone)]
pub(crate) struct Gress {
    pub direction: Direction,
    /// One, or one for each group of four ports.
    pub parsers: Vec<usize>,
    pub control: usize,
    pub deparser: usize,
    pub intrinsic: Intrinsic,
    pub timestamp: Option<VarId>,
    pub error: Option<VarId>,
    /// The control or the deparser reads `parser_err`.
    pub reads_error: bool,
    pub drop: Option<VarId>,
    pub digest_type: Option<VarId>,
    pub resubmit_type: Option<VarId>,
    pub mirror_type: Option<VarId>,
    /// Of the second chip: whether mirrors copy what leaves the gress, not what came.
    pub mirror_leaving: Option<VarId>,
    /// Of the second chip: the packet generator is to send something.
    pub generate: Option<VarId>,
    /// The bytes of its buffer: where they begin, in units of 16, and how many.
    pub generate_from: [Option<VarId>; 2],
    /// Variables with the value by which the deparser knows that they are unset.
    pub unset_values: Vec<(VarId, u64)>,
}

/// The header in front of packets: its validity, and its fields by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Intrinsic {
    pub valid: Option<VarId>,
    pub fields: Vec<(String, VarId)>,
}

/// `ingress_intrinsic_metadata_for_tm_t`
#[derive(Debug, Clone)]
pub(crate) struct TmFields {
    pub port: Option<VarId>,
    pub bypass: Option<VarId>,
    pub deflect: Option<VarId>,
    pub class: Option<VarId>,
    pub queue: Option<VarId>,
    pub class_of_copy: Option<VarId>,
    pub copy_to_cpu: Option<VarId>,
    pub groups: [Option<VarId>; 2],
    pub exclude_node: Option<VarId>,
    pub exclude_ports: Option<VarId>,
    pub rid: Option<VarId>,
}

impl Pipe {
    /// The pipe with this number; `None` if the program has none of its own.
    fn new(program: &Program, effective: &Program, number: usize) -> Result<Option<Self>, LoadError> {
        if !program.blocks.iter().any(|b| b.role == role(number, "ingress")) {
            return Ok(None);
        }
        let tm = |path| program.shared_var(&role(number, "ingress_intrinsic_metadata_for_tm"), path);
        let output_port = role(number, "egress_intrinsic_metadata_for_output_port");
        let mut ingress = Gress::new(program, effective, number, Direction::Ingress)?;
        ingress
            .unset_values
            .extend(tm("ucast_egress_port").map(|port| (port, NO_PORT)));
        Ok(Some(Pipe {
            ingress,
            tm: TmFields {
                port: tm("ucast_egress_port"),
                bypass: tm("bypass_egress"),
                deflect: tm("deflect_on_drop"),
                class: tm("ingress_cos"),
                queue: tm("qid"),
                class_of_copy: tm("icos_for_copy_to_cpu"),
                copy_to_cpu: tm("copy_to_cpu"),
                groups: [tm("mcast_grp_a"), tm("mcast_grp_b")],
                exclude_node: tm("level1_exclusion_id"),
                exclude_ports: tm("level2_exclusion_id"),
                rid: tm("rid"),
            },
            egress: Gress::new(program, effective, number, Direction::Egress)?,
            update_delay: program.shared_var(&output_port, "update_delay_on_tx"),
            ghost: Ghost::new(program, number),
        }))
    }
}

impl Gress {
    /// `effective`: the program without what has no effect.
    fn new(program: &Program, effective: &Program, pipe: usize, direction: Direction) -> Result<Self, LoadError> {
        let name_of_direction = direction.name();
        let block = |name: &str| -> Result<usize, LoadError> {
            let programmable_block_role = role(pipe, &format!("{name_of_direction}{name}"));
            let found = program.blocks.iter().position(|b| b.role == programmable_block_role);
            found.ok_or(LoadError::MissingBlock {
                role: missing(direction, name),
                target: "tna",
            })
        };
        let parsers = match block("_parser") {
            Ok(one) => vec![one],
            Err(_) => {
                let first = block("_parser0")?;
                let other = |n: usize| block(&format!("_parser{n}")).unwrap_or(first);
                (0..PARSERS).map(other).collect()
            }
        };
        let (control, deparser) = (block("")?, block("_deparser")?);
        let group = |name: &str| role(pipe, &format!("{name_of_direction}_intrinsic_metadata{name}"));
        let var = |name: &str, path: &str| program.shared_var(&group(name), path);
        let for_deparser = |path| var("_for_deparser", path);
        let error = var("_from_parser", "parser_err");
        let bodies = [control, deparser].map(|b| &effective.blocks[b].body);
        let types = ["digest_type", "resubmit_type", "mirror_type"].map(for_deparser);
        let unset_values = types
            .iter()
            .flatten()
            .map(|v| (*v, never_compared(program, *v, bodies[1])));
        Ok(Gress {
            direction,
            parsers,
            control,
            deparser,
            intrinsic: Intrinsic::new(program, &group("")),
            timestamp: var("_from_parser", "global_tstamp"),
            error,
            reads_error: error.is_some_and(|e| bodies.iter().any(|b| reads(effective, b, e))),
            drop: for_deparser("drop_ctl"),
            digest_type: types[0],
            resubmit_type: types[1],
            mirror_type: types[2],
            mirror_leaving: for_deparser("mirror_io_select"),
            generate: for_deparser("pktgen"),
            generate_from: ["pktgen_address", "pktgen_length"].map(for_deparser),
            unset_values: unset_values.collect(),
        })
    }

    /// Of egress: the variables by which a program can read how long a packet waited in its queue.
    pub(crate) fn queue_measurements(&self) -> impl Iterator<Item = VarId> {
        const NAMES: [&str; 4] = ["enq_qdepth", "enq_tstamp", "deq_qdepth", "deq_timedelta"];
        let fields = self.intrinsic.fields.iter();
        let named = fields.filter(|(name, _)| NAMES.contains(&name.as_str()));
        named.map(|(_, var)| *var).chain(self.timestamp)
    }

    /// The parser for packets of a port.
    pub(crate) fn parser(&self, port: u32) -> usize {
        let port_group = (port as usize & 0x7f) / 4;
        let parser = self.parsers.get(port_group).or(self.parsers.first());
        parser.copied().unwrap_or_default()
    }
}

impl Intrinsic {
    fn new(program: &Program, role: &str) -> Self {
        let leaves = program.shared_group(role).map_or(&[][..], |g| g.leaves.as_slice());
        let fields = leaves.iter().filter(|l| l.path != "$valid$");
        Intrinsic {
            valid: program.shared_var(role, "$valid$"),
            fields: fields.map(|l| (l.path.clone(), l.var)).collect(),
        }
    }
}

/// The role of something in a pipe.
fn role(pipe: usize, name: &str) -> String {
    format!("pipe{pipe}.{name}")
}

/// A missing programmable block's name, for messages.
fn missing(direction: Direction, name: &str) -> &'static str {
    match (direction, name) {
        (Direction::Ingress, "") => "ingress",
        (Direction::Ingress, "_deparser") => "ingress_deparser",
        (Direction::Ingress, _) => "ingress_parser",
        (Direction::Egress, "") => "egress",
        (Direction::Egress, "_deparser") => "egress_deparser",
        (Direction::Egress, _) => "egress_parser",
    }
}

fn reads(program: &Program, body: &Body, var: VarId) -> bool {
    let mut found = false;
    read_by(program, body, &mut |v| found |= v == var);
    found
}

/// The least value that the deparser does not compare the variable to. On the devices an
/// unset field has no value at all; a program may well request type 0.
fn never_compared(program: &Program, var: VarId, deparser: &Body) -> u64 {
    let mut compared: Vec<u64> = Vec::new();
    let mut note = |value: &Bits| compared.extend(value.to_u64());
    for (_, block) in deparser.blocks.iter() {
        for inst in &block.insts {
            if let InstKind::Assign {
                value: Rvalue::Binary(BinaryOp::Eq | BinaryOp::Ne, a, b),
                ..
            } = &inst.kind
            {
                match (a, b) {
                    (Operand::Var(v), Operand::Const(c)) | (Operand::Const(c), Operand::Var(v)) if *v == var => note(c),
                    _ => {}
                }
            }
        }
        if let Terminator::Switch {
            value: Operand::Var(v),
            cases,
            ..
        } = &block.terminator
            && *v == var
        {
            cases.iter().for_each(|(value, _)| note(value));
        }
    }
    // Externs that are made for a type compare, too.
    for (_, instance) in program.externs.iter() {
        if matches!(instance.type_name.as_str(), "Digest" | "Resubmit" | "Mirror") {
            compared.extend(instance.arguments.iter().filter_map(|(_, value)| match value {
                weir_ir::ConstValue::Bits(bits) => bits.to_u64(),
                _ => None,
            }));
        }
    }
    let values = 1u64 << program.vars[var].ty.width().min(16);
    (0..values).find(|v| !compared.contains(v)).unwrap_or(0)
}

/// The pipes of a program, each port's by its number: those that a program does not have are the
/// first two alternately.
pub(crate) fn pipes(program: &Program) -> Result<Vec<Pipe>, Vec<LoadError>> {
    // Some rules depend on what the code reads. Reads without effect do not count: passes may have
    // removed them.
    let mut effective = program.clone();
    let observes = crate::observes(&effective);
    weir_ir::passes::optimize(&mut effective, &observes);
    let mut own: Vec<Option<Pipe>> = Vec::new();
    let mut errors = Vec::new();
    for number in 0..PIPE_COUNT {
        match Pipe::new(program, &effective, number) {
            Ok(pipe) => own.push(pipe),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let Some(first) = own.first().cloned().flatten() else {
        calls::block_with_role(program, "pipe0.ingress", "tna").map_err(|e| vec![e])?;
        return Ok(Vec::new());
    };
    let of = |number: usize| own[number].clone().or_else(|| own[number % 2].clone());
    Ok((0..PIPE_COUNT)
        .map(|n| of(n).unwrap_or_else(|| first.clone()))
        .collect())
}

/// Sets a variable that the program has, modulo its width.
pub(crate) fn set(frame: &mut Frame, var: Option<VarId>, value: u64) {
    if let Some(var) = var {
        frame.set_u64(var, value);
    }
}

/// A variable's value; 0 if the program does not have it.
pub(crate) fn get(frame: &Frame, var: Option<VarId>) -> u64 {
    var.map_or(0, |v| frame.get_u64(v))
}
