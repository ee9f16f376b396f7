//! Egress of a packet for one port: its parser over what the ingress deparser has emitted, its
//! control, its deparser.

use super::super::driver::Tna;
use super::super::externs::{self, At, Op};
use super::super::fields::Pipe;
use super::{Builder, calls, exit};
use crate::emits::{self, Emit};
use crate::load::unit;
use crate::pipeline_builder::{PipelineBuilder, constant, endless};
use crate::reparse::{self, Emitted, Reparse};
use crate::state::Unit;
use std::sync::Arc;
use weir_ir::passes::{Renaming, read_by};
use weir_ir::{
    BinaryOp, BlockId, Body, Header, HeaderId, InstKind, Loc, Operand, Program, Rvalue, Terminator, VarId, VarKind,
};

/// A header in front of egress packets, which the parser finds before what ingress has emitted.
pub(super) struct Intrinsic {
    header: HeaderId,
}

/// What the ingress deparser emits, behind the intrinsic header; `None` where egress needs the
/// packet. `queued`: the block that makes it.
pub(super) fn plan(
    arch: &Tna,
    ingress: &Pipe,
    egress: &Pipe,
    parser: usize,
    queued: Option<BlockId>,
    builder: &mut PipelineBuilder,
) -> Option<(Intrinsic, Emitted)> {
    let program = arch.program();
    if !is_plain(arch, egress, parser) {
        return None;
    }
    let intrinsic = Intrinsic::new(program, egress, builder)?;
    let first = Emit {
        header: intrinsic.header,
        block: BlockId::new(0),
        always: true,
    };
    let deparser = &program.blocks[ingress.ingress.deparser].body;
    let mut emits = vec![first];
    emits.extend(emits::emits(program, deparser)?);
    let parser = &program.blocks[parser].body;
    if !reparse::is_affordable(parser, emits.len()) || !emits::is_repeatable(program, deparser) {
        return None;
    }
    let flags = emits
        .iter()
        .map(|e| (!e.always).then(|| builder.variable("$emitted", 1)));
    let mut emitted = Emitted {
        flags: flags.collect(),
        aliased: Vec::new(),
        renaming: Renaming::default(),
        hidden: 1,
        exit: exit::DRIVER,
        made_at: queued,
        emits,
    };
    let aliases = reparse::aliases(&builder.program, parser, &emitted.emits);
    emitted.alias(&builder.program, &aliases);
    Some((intrinsic, emitted))
}

/// Whether egress does nothing that needs the packet's bytes, its length, or the driver.
fn is_plain(arch: &Tna, pipe: &Pipe, parser: usize) -> bool {
    let program = arch.program();
    let gress = &pipe.egress;
    let [parser, control, deparser] = [parser, gress.control, gress.deparser].map(|b| &program.blocks[b].body);
    let is_call = |kind: &InstKind| matches!(kind, InstKind::Call(_));
    let length = gress.intrinsic.fields.iter().find(|(name, _)| name == "pkt_length");
    let length = length.map(|(_, var)| *var);
    let reads_length = |body: &Body| {
        let mut found = false;
        read_by(program, body, &mut |v| found |= Some(v) == length);
        found
    };
    endless(parser).is_empty()
        && !emits::any(parser, is_call)
        && !emits::any(deparser, |kind| is_call(kind) && !is_checksum(program, kind))
        && !reads_length(control)
        && !reads_length(deparser)
        && !emits::any(control, |kind| match kind {
            InstKind::Call(call) => !is_length_blind(program, call),
            _ => false,
        })
}

/// Whether an instruction sums up what it is given, and nothing else.
fn is_checksum(program: &Program, kind: &InstKind) -> bool {
    match kind {
        InstKind::Call(call) => {
            let op = externs::own(program, call, Loc::default());
            matches!(op, Ok(Some(Op::ChecksumUpdate { .. })))
        }
        _ => false,
    }
}

/// Whether a call can be made from code, and does not depend on the packet's length, which the host
/// does not know there.
fn is_length_blind(program: &Program, call: &weir_ir::Call) -> bool {
    match externs::own(program, call, Loc::default()) {
        Ok(Some(Op::Count {
            id,
            less: None,
            as_sent: false,
            ..
        })) => {
            let instance = &program.externs[id];
            unit(crate::load::argument(instance, "type", usize::MAX)) == Unit::Packets
        }
        Ok(Some(Op::Count { .. } | Op::Meter { .. })) => false,
        Ok(Some(Op::Register(_) | Op::Invalidate)) => true,
        Ok(Some(op)) => calls::is_fusible(&op) && !matches!(op, Op::Read { at: At::Entry, .. }),
        _ => false,
    }
}

impl Intrinsic {
    /// A header of the program's type, of variables of its own.
    fn new(program: &Program, pipe: &Pipe, builder: &mut PipelineBuilder) -> Option<Self> {
        let valid = pipe.egress.intrinsic.valid?;
        let (_, known) = program.headers.iter().find(|(_, h)| h.valid == valid)?;
        let ty = known.ty;
        let widths: Vec<u32> = known.fields.iter().map(|f| program.vars[*f].ty.width()).collect();
        let header = HeaderId::new(builder.program.headers.len());
        let variable = |builder: &mut PipelineBuilder, name, width, kind| {
            let var = builder.variable(name, width);
            builder.program.vars[var].kind = kind;
            var
        };
        let valid = variable(builder, "$intrinsic.$valid$", 1, VarKind::Valid { header });
        let fields = widths.iter().zip(0..).map(|(width, field)| {
            let kind = VarKind::Field { header, index: field };
            variable(builder, "$intrinsic", *width, kind)
        });
        let fields = fields.collect();
        builder.program.headers.push(Header {
            name: "$intrinsic".to_owned(),
            ty,
            valid,
            fields,
        });
        Some(Intrinsic { header })
    }
}

impl Builder<'_> {
    /// Egress, from the ingress deparser to the wire.
    pub(super) fn egress(&mut self, intrinsic: &Intrinsic, parser: usize) -> Option<()> {
        let gress = &self.egress.egress;
        self.is_emitting = false;
        self.block_of(self.ingress.ingress.deparser);
        self.is_emitting = true;
        self.is_egress = true;
        self.fill(intrinsic);
        for (var, value) in &gress.unset {
            self.set(Some(*var), *value);
        }
        let extended = Arc::new(self.program.clone());
        let parser = &extended.blocks[parser].body;
        let (accepted, rejected) = self.reparse(&extended, parser);
        self.after_parser(gress, accepted, rejected, parser.error?);
        self.fill_fields(intrinsic);
        let now_ns = self.now_ns;
        self.copy(gress.timestamp, now_ns);
        self.block_of(gress.control);
        if let Some(drop) = gress.drop {
            let dropped = self.lowest_bit(drop);
            self.leave_if(dropped, exit::EGRESS_DROP);
        }
        self.block_of(gress.deparser);
        self.emit_rest();
        self.finish_and_send();
        self.is_egress = false;
        Some(())
    }

    /// The packet has gone through the egress deparser.
    pub(super) fn finish_and_send(&mut self) {
        if let Some(delay) = self.egress.update_delay {
            let is_stamped = self.test(BinaryOp::Ne, delay, 0);
            self.leave_if(is_stamped, exit::FINISH);
        }
        self.send();
    }

    /// What the traffic manager says of a packet for one port whose queue is empty.
    fn fill(&mut self, intrinsic: &Intrinsic) {
        let tm = &self.ingress.tm;
        let (valid, fields) = {
            let header = self.header(intrinsic.header);
            (header.valid, header.fields.clone())
        };
        self.set(Some(valid), 1);
        let names = self
            .egress
            .egress
            .intrinsic
            .fields
            .iter()
            .map(|(name, _)| name.as_str());
        for (field, name) in fields.into_iter().zip(names) {
            let from = match name {
                "egress_port" => tm.port,
                "enq_tstamp" => Some(self.now_ns),
                "egress_rid" => tm.rid,
                "egress_qid" => tm.queue,
                "egress_cos" => tm.class,
                _ => None,
            };
            match from {
                Some(from) => self.copy(Some(field), from),
                None => self.set(Some(field), 0),
            }
        }
    }

    /// Gives the control the fields of the intrinsic header where its parser has not taken it.
    fn fill_fields(&mut self, intrinsic: &Intrinsic) {
        let known = &self.egress.egress.intrinsic;
        let Some(valid) = known.valid.map(|v| self.emitted().renaming.var(v)) else {
            return;
        };
        let taken = self.temporary(1);
        self.assign(taken, Rvalue::Binary(BinaryOp::Ne, Operand::Var(valid), constant(1, 0)));
        let absent = self.branch(Operand::Var(taken));
        let join = self.block();
        self.end(Terminator::Goto(join));
        self.at = absent;
        let from = self.header(intrinsic.header).fields.clone();
        let to: Vec<VarId> = known
            .fields
            .iter()
            .map(|(_, v)| self.emitted().renaming.var(*v))
            .collect();
        for (to, from) in to.into_iter().zip(from) {
            if to != from {
                self.assign(to, Rvalue::Use(Operand::Var(from)));
            }
        }
        self.end(Terminator::Goto(join));
        self.at = join;
    }
}
