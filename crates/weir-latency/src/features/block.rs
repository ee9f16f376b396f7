//! Which blocks of a package belong to a direction.

use super::FeatureError;
use serde::{Deserialize, Serialize};
use weir_ir::passes::VarSet;
use weir_ir::{Block, BlockKind, Call, HeaderId, InLeaf, InstKind, Operand, Program, Type, VarId, VarKind};

/// A direction through a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gress {
    /// From the port to the traffic manager.
    Ingress,
    /// From the traffic manager to the port.
    Egress,
}

impl std::fmt::Display for Gress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl Gress {
    /// Its word in roles.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Gress::Ingress => "ingress",
            Gress::Egress => "egress",
        }
    }
}

/// The blocks of a direction.
pub(super) struct Blocks<'a> {
    pub(super) gress: Gress,
    /// The pipe with a dot after it; empty in a package without pipes.
    pipe: String,
    pub(super) parser: &'a Block,
    pub(super) control: &'a Block,
    pub(super) deparser: Option<&'a Block>,
}

/// A role as its pipe and the rest: `pipe0.ingress_parser` is `pipe0` and `ingress_parser`.
fn split_role(role: &str) -> (&str, &str) {
    role.rsplit_once('.').unwrap_or(("", role))
}

/// The pipes of a package, in order; none where it has no pipes.
pub(super) fn pipes(program: &Program) -> Vec<String> {
    let mut pipes: Vec<String> = Vec::new();
    for (pipe, _) in program.blocks.iter().map(|block| split_role(&block.role)) {
        if !pipe.is_empty() && !pipes.iter().any(|known| known == pipe) {
            pipes.push(pipe.to_owned());
        }
    }
    pipes
}

impl<'a> Blocks<'a> {
    /// Finds those of a pipe, or of the first. In an architecture with one parser (v1model) it
    /// stands for both directions.
    pub(super) fn find(program: &'a Program, gress: Gress, pipe: Option<&str>) -> Result<Self, FeatureError> {
        let pipes = pipes(program);
        if let Some(wanted) = pipe.filter(|wanted| !pipes.iter().any(|known| known == wanted)) {
            return Err(FeatureError::NoPipe {
                wanted: wanted.to_owned(),
                found: if pipes.is_empty() {
                    "none".to_owned()
                } else {
                    pipes.join(", ")
                },
            });
        }
        let pipe = pipe.or(pipes.first().map(String::as_str)).unwrap_or_default();
        let word = gress.word();
        let missing = |what| FeatureError::NoBlock {
            gress,
            what,
            found: roles(program),
        };
        let own_role = |b: &Block| {
            let (of, role) = split_role(&b.role);
            if of == pipe { role.to_owned() } else { String::new() }
        };
        let is_parser = |b: &&Block| b.kind == BlockKind::Parser;
        let mut parsers = program.blocks.iter().filter(is_parser);
        let parser = parsers
            .clone()
            .find(|b| own_role(b).starts_with(word))
            .or_else(|| parsers.find(|b| own_role(b) == "parser"));
        let control = program
            .blocks
            .iter()
            .find(|b| b.kind == BlockKind::Control && own_role(b) == word);
        let deparser = |b: &&Block| own_role(b) == format!("{word}_deparser") || own_role(b) == "deparser";
        Ok(Blocks {
            gress,
            pipe: if pipe.is_empty() {
                String::new()
            } else {
                format!("{pipe}.")
            },
            parser: parser.ok_or_else(|| missing("parser"))?,
            control: control.ok_or_else(|| missing("control"))?,
            deparser: program.blocks.iter().find(deparser),
        })
    }

    /// The role of this name in the pipe.
    fn role(&self, name: &str) -> String {
        format!("{}{name}", self.pipe)
    }

    /// The blocks of the pipe besides the control.
    fn others(&self, program: &'a Program) -> impl Iterator<Item = &'a Block> {
        let (pipe, control): (String, &Block) = (self.pipe.clone(), self.control);
        let blocks = program.blocks.iter();
        blocks.filter(move |b| b.role.starts_with(&pipe) && !std::ptr::eq(*b, control))
    }
}

fn roles(program: &Program) -> String {
    if program.blocks.is_empty() {
        return "none".to_owned();
    }
    let roles: Vec<&str> = program.blocks.iter().map(|b| b.role.as_str()).collect();
    roles.join(", ")
}

/// Headers that the architecture puts before a packet: those of groups of intrinsic metadata.
pub(super) fn intrinsic_headers(program: &Program) -> Vec<HeaderId> {
    let groups = program.shared.iter().filter(|group| group.role.contains("intrinsic"));
    groups.flat_map(|group| group.headers.iter().copied()).collect()
}

/// Bits of metadata in front of a packet in the parser of a direction: intrinsic metadata, and the
/// port metadata of a Tofino's ingress or what a resubmitted packet has in their place.
pub(super) fn metadata_bits(program: &Program, blocks: &Blocks<'_>) -> u32 {
    let port = match (program.target.as_str(), blocks.gress) {
        ("tna", Gress::Ingress) => 64,
        ("t2na", Gress::Ingress) => 192,
        _ => return 0,
    };
    let role = blocks.role(&format!("{}_intrinsic_metadata", blocks.gress));
    let group = program.shared.iter().find(|group| group.role == role);
    let headers = group.into_iter().flat_map(|group| &group.headers);
    port + headers.map(|h| header_bits(program, *h).0).sum::<u32>()
}

/// Whether a header is Ethernet's: 48, 48 and 16 bits, or a name that says so and its 14 bytes.
pub(super) fn is_ethernet(program: &Program, header: HeaderId) -> bool {
    let (header, (least, most)) = (&program.headers[header], header_bits(program, header));
    let ty = &program.header_types[header.ty];
    let widths: Vec<u32> = ty.fields.iter().map(|field| field.ty.width()).collect();
    let own = header.name.rsplit('.').next().unwrap_or(&header.name);
    let says_so = |name: &str| name.to_ascii_lowercase().starts_with("eth");
    widths == [48, 48, 16] || (least, most) == (112, 112) && (says_so(own) || says_so(&ty.name))
}

/// Bytes of all headers that a deparser may emit, each counted once.
pub(super) fn emitted_bytes(program: &Program, deparser: Option<&Block>) -> u32 {
    let mut emitted: Vec<HeaderId> = Vec::new();
    for (_, block) in deparser.iter().flat_map(|b| b.body.blocks.iter()) {
        for inst in &block.insts {
            if let InstKind::Emit { header } = inst.kind
                && !emitted.contains(&header)
            {
                emitted.push(header);
            }
        }
    }
    emitted.iter().map(|h| header_bits(program, *h).1.div_ceil(8)).sum()
}

/// The least and the most bits of a header: they differ where it has a varbit.
pub(super) fn header_bits(program: &Program, header: HeaderId) -> (u32, u32) {
    let ty = &program.header_types[program.headers[header].ty];
    let fixed = ty.fixed_width();
    let variable: u32 = ty.varbit_field().map_or(0, |at| ty.fields[at].ty.width());
    (fixed, fixed + variable)
}

/// Bytes over which the blocks besides the control verify or compute checksums, each call counted
/// once. v1model has blocks for that, PSA and TNA do it in deparsers and parsers.
pub(super) fn checksum_bytes(program: &Program, own: &Blocks<'_>) -> u32 {
    let blocks = own.others(program).flat_map(|b| b.body.blocks.iter());
    let calls = blocks.flat_map(|(_, b)| b.insts.iter().filter_map(|inst| inst.kind.call()));
    let checksums = calls.filter(|call| is_checksum(program, call));
    checksums.map(|call| argument_bits(program, call).div_ceil(8)).sum()
}

/// Headers of which such controls write a field with a checksum: by the call itself, or by copies
/// of its result.
pub(super) fn checksummed(program: &Program, own: &Blocks<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for block in own.others(program).filter(|b| b.kind == BlockKind::Control) {
        let mut sums = VarSet::new(program.vars.len());
        for (_, block) in block.body.blocks.iter() {
            for inst in &block.insts {
                note_checksums(program, &inst.kind, &mut sums);
            }
        }
        let written = program
            .vars
            .iter()
            .map(|(var, _)| var)
            .filter(|var| sums.contains(*var));
        for header in written.filter_map(|var| header_of(program, var)) {
            let name = &program.headers[header].name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

/// Adds the variables that an instruction gives a checksum.
fn note_checksums(program: &Program, inst: &InstKind, sums: &mut VarSet) {
    if let Some(call) = inst.call().filter(|call| is_checksum(program, call)) {
        let outputs = (0..call.arguments.len()).flat_map(|i| call.outputs(i));
        outputs.chain(&call.results).for_each(|var| sums.insert(*var));
    }
    if let InstKind::Assign { dst, value } = inst
        && value
            .operands()
            .into_iter()
            .any(|o| matches!(o, Operand::Var(var) if sums.contains(*var)))
    {
        sums.insert(*dst);
    }
}

/// The header that a variable is a field or the validity of.
pub(super) fn header_of(program: &Program, var: VarId) -> Option<HeaderId> {
    match program.vars[var].kind {
        VarKind::Field { header, .. } | VarKind::Valid { header } => Some(header),
        VarKind::Shared
        | VarKind::Local
        | VarKind::Temporary
        | VarKind::FieldCopy { .. }
        | VarKind::ActionParameter => None,
    }
}

fn is_checksum(program: &Program, call: &Call) -> bool {
    let name = call
        .instance
        .map_or(call.function.as_str(), |x| program.externs[x].type_name.as_str());
    name.to_ascii_lowercase().contains("checksum")
}

fn argument_bits(program: &Program, call: &Call) -> u32 {
    let leaves = (0..call.arguments.len()).flat_map(|i| call.inputs(i));
    let bits = |leaf: &InLeaf| match leaf {
        InLeaf::Value(Operand::Var(var)) => match program.vars[*var].ty {
            Type::Bits(width) => width,
            // Options are mostly absent.
            Type::Varbit(_) => 0,
        },
        InLeaf::Value(Operand::Const(value)) => value.width(),
        InLeaf::Header(header) => header_bits(program, *header).0,
    };
    leaves.map(bits).sum()
}
