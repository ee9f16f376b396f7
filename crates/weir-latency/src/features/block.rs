//! Which blocks of a package belong to a direction.

use super::FeatureError;
use serde::{Deserialize, Serialize};
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
    pub(super) parser: &'a Block,
    pub(super) control: &'a Block,
    pub(super) deparser: Option<&'a Block>,
}

/// The role without the pipe that it begins with: `pipe0.ingress_parser` is `ingress_parser`.
fn own_role(block: &Block) -> &str {
    block.role.rsplit('.').next().unwrap_or(&block.role)
}

impl<'a> Blocks<'a> {
    /// Finds them: those of the first pipe where there are several. In an architecture with one
    /// parser (v1model) it stands for both directions.
    pub(super) fn find(program: &'a Program, gress: Gress) -> Result<Self, FeatureError> {
        let word = gress.word();
        let missing = |what| FeatureError::NoBlock {
            gress,
            what,
            found: roles(program),
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
            parser: parser.ok_or_else(|| missing("parser"))?,
            control: control.ok_or_else(|| missing("control"))?,
            deparser: program.blocks.iter().find(deparser),
        })
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

/// Bytes over which the blocks besides a control verify or compute checksums, each call counted
/// once. v1model has blocks for that, PSA and TNA do it in deparsers and parsers.
pub(super) fn checksum_bytes(program: &Program, control: &Block) -> u32 {
    let others = program.blocks.iter().filter(|b| !std::ptr::eq(*b, control));
    let blocks = others.flat_map(|b| b.body.blocks.iter());
    let calls = blocks.flat_map(|(_, b)| b.insts.iter().filter_map(|inst| inst.kind.call()));
    let checksums = calls.filter(|call| is_checksum(program, call));
    checksums.map(|call| argument_bits(program, call).div_ceil(8)).sum()
}

/// Headers in which checksum calls of such blocks write a field.
pub(super) fn checksummed(program: &Program, control: &Block) -> Vec<String> {
    let others = program
        .blocks
        .iter()
        .filter(|b| !std::ptr::eq(*b, control) && b.kind == BlockKind::Control);
    let mut names: Vec<String> = Vec::new();
    for inst in others.flat_map(|b| b.body.blocks.iter()).flat_map(|(_, b)| &b.insts) {
        let Some(call) = inst.kind.call().filter(|call| is_checksum(program, call)) else {
            continue;
        };
        let outputs = (0..call.arguments.len()).flat_map(|i| call.outputs(i));
        for header in outputs.chain(&call.results).filter_map(|var| header_of(program, *var)) {
            let name = &program.headers[header].name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
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
