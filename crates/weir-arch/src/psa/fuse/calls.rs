//! What the extern calls of the pipeline are, and what the driver is handed where packets leave it.

use super::super::driver::Psa;
use super::super::externs::{self, Op};
use super::emits::Emit;
use super::{exit, handed_over};
use crate::weave::{Pseudo, RANDOM, host};
use std::collections::HashSet;
use weir_ir::passes::{VarSet, read_by};
use weir_ir::pipeline::{CallKind, Exit, Touched};
use weir_ir::{Call, InstKind, Loc, Program, Terminator, VarId};

/// What a call of the pipeline is.
pub(crate) enum FusedCall {
    /// An extern of the architecture.
    Op(Op, Loc),
    /// What the pipeline brings along.
    Pseudo(Pseudo),
}

/// Externs that the host can do for compiled code.
pub(super) trait Fusible {
    fn is_fusible(&self) -> bool;
}

impl Fusible for Op {
    fn is_fusible(&self) -> bool {
        matches!(
            self,
            Op::Hash(_)
                | Op::HashRange(_)
                | Op::Count(_)
                | Op::Meter(_)
                | Op::DirectMeter(_)
                | Op::RegisterRead(_)
                | Op::RegisterWrite(_)
                | Op::Random { .. }
        )
    }
}

/// What a call is; `None`: nothing that can be called from a pipeline.
pub(super) fn call_kind(arch: &Psa, call: &Call, loc: Loc) -> Option<(FusedCall, CallKind)> {
    if let Some((pseudo, kind)) = Pseudo::of(&call.function) {
        return Some((FusedCall::Pseudo(pseudo), kind));
    }
    // A direct counter is given its index here.
    let op = match call.instance {
        Some(id) if arch.program.externs[id].type_name == "DirectCounter" => Op::Count(id),
        _ => externs::own(&arch.program, call)?,
    };
    let kind = kind_of(&op)?;
    Some((FusedCall::Op(op, loc), kind))
}

fn kind_of(op: &Op) -> Option<CallKind> {
    Some(match op {
        Op::Count(id) => CallKind::Count(id.index()),
        Op::Hash(_) | Op::HashRange(_) => host(None),
        Op::Meter(id) | Op::DirectMeter(id) | Op::RegisterRead(id) | Op::RegisterWrite(id) => {
            host(Some(id.index() as u32))
        }
        Op::Random { .. } => host(Some(RANDOM)),
        Op::Assert(_) => CallKind::Host {
            reads: Vec::new(),
            writes: Vec::new(),
            state: None,
            abort: Some(exit::ASSERT),
        },
        _ => return None,
    })
}

/// The exits, with what the driver reads of a packet that leaves by them.
pub(super) fn exits(arch: &Psa, program: &Program, emits: &[Emit], port: VarId) -> Vec<Exit> {
    let blocks = arch.blocks;
    let exit = |name, live, deparsed, touches| Exit {
        name,
        live,
        deparsed,
        touches,
    };
    let everything = touched(arch, &(0..arch.program.blocks.len()).collect::<Vec<_>>());
    let egress = touched(
        arch,
        &[blocks.egress.parser, blocks.egress.control, blocks.egress.deparser],
    );
    // What the deparser reads, and where the packet is to go.
    let mut read = VarSet::new(program.vars.len());
    let deparser = &arch.program.blocks[blocks.ingress.deparser].body;
    read_by(&arch.program, deparser, &mut |v| read.insert(v));
    for leaf in arch
        .program
        .shared_group("ingress_output_metadata")
        .iter()
        .flat_map(|g| &g.leaves)
    {
        read.insert(leaf.var);
    }
    let shared: HashSet<VarId> = program
        .shared
        .iter()
        .flat_map(|g| g.leaves.iter().map(|l| l.var))
        .collect();
    let after_ingress = read.iter().filter(|v| shared.contains(v)).collect();
    let mut deparsed = vec![port];
    deparsed.extend(arch.fields.normal.iter().copied());
    for (at, emit) in emits.iter().enumerate() {
        if !emit.always {
            deparsed.push(handed_over(&arch.program, 1 + at));
        }
        let header = &program.headers[emit.header];
        deparsed.push(header.valid);
        deparsed.extend(header.fields.iter().copied());
    }
    vec![
        exit("transmit", vec![port], true, None),
        exit("ingress-drop", Vec::new(), false, None),
        exit("egress-drop", Vec::new(), false, None),
        exit("end-of-ingress", after_ingress, false, Some(everything.clone())),
        exit("deparsed", deparsed, false, Some(egress)),
        exit("assert", Vec::new(), false, None),
        exit("instruction-budget", Vec::new(), false, None),
        exit("restart", Vec::new(), false, Some(everything)),
        exit("egress-clone", Vec::new(), false, None),
    ]
}

/// What blocks of the program look up and what state they come to.
fn touched(arch: &Psa, blocks: &[usize]) -> Touched {
    let mut touched = Touched::default();
    for &block in blocks {
        let body = &arch.program.blocks[block].body;
        for (_, block) in body.blocks.iter() {
            if let Terminator::Lookup(lookup) = &block.terminator {
                touched.tables.insert(lookup.table);
            }
            for inst in &block.insts {
                if let InstKind::Call(call) = &inst.kind
                    && let Some(CallKind::Host { state: Some(state), .. }) =
                        externs::own(&arch.program, call).as_ref().and_then(kind_of)
                {
                    touched.states.insert(state);
                }
            }
        }
    }
    touched
}
