//! Egress after ingress in one body, for a packet to one port.
//!
//! The egress parser runs at compile time over the headers that the ingress deparser emits
//! ([`crate::reparse`]), so that the packet is neither deparsed nor parsed in between. Its control
//! and deparser follow. Egress that needs the packet's bytes or length is not supported here: those
//! packets are queued (`queued`) or punted.

use super::super::driver::Tna;
use super::super::externs::{self, ExternOp, IndexSource};
use super::super::fields::Pipe;
use super::{Builder, calls, exit};
use crate::emits::{self, Emit};
use crate::load::unit;
use crate::pipeline_builder::{PipelineBuilder, constant, non_consuming_loops};
use crate::reparse::{self, Emitted, Reparse};
use crate::state::Unit;
use std::sync::Arc;
use weir_ir::passes::{Renaming, read_by};
use weir_ir::{
    BinaryOp, BlockId, Body, Header, HeaderId, InstKind, Loc, Operand, Program, Rvalue, Terminator, VarId, VarKind,
};

/// The egress intrinsic header, which the parser reads before the headers that ingress has emitted.
pub(super) struct EgressIntrinsicHeader {
    /// The header in the pipeline's program.
    header: HeaderId,
}

/// Plans the reparse: the intrinsic header, and the headers that the egress parser reads. `None`:
/// egress cannot be fused after ingress. `queue_block`: the basic block that deparses it for the
/// queue.
pub(super) fn plan_reparse(
    arch: &Tna,
    ingress: &Pipe,
    egress: &Pipe,
    parser: usize,
    queue_block: Option<BlockId>,
    builder: &mut PipelineBuilder,
) -> Option<(EgressIntrinsicHeader, Emitted)> {
    let program = arch.program();
    if !is_reparsable(arch, egress, parser) {
        return None;
    }
    let intrinsic = EgressIntrinsicHeader::new(program, egress, builder)?;
    let first = Emit {
        header: intrinsic.header,
        block: BlockId::new(0),
        always: true,
    };
    let deparser = &program.blocks[ingress.ingress.deparser].body;
    let mut emits = vec![first];
    emits.extend(emits::emits(program, deparser)?);
    let parser = &program.blocks[parser].body;
    if !reparse::is_affordable(parser, emits.len())
        || !reparse::are_whole_bytes(&builder.program, &emits)
        || !emits::may_rerun(program, deparser)
    {
        return None;
    }
    let flags = emits
        .iter()
        .map(|e| (!e.always).then(|| builder.variable("$emitted", 1)));
    let mut emitted = Emitted {
        flags: flags.collect(),
        aliased: Vec::new(),
        renaming: Renaming::default(),
        leading_headers: 1,
        punt_exit: exit::PUNT_AFTER_CONTROL,
        deparse_block: queue_block,
        emits,
    };
    let aliases = reparse::aliases(&builder.program, parser, &emitted.emits);
    emitted.alias(&builder.program, &aliases);
    Some((intrinsic, emitted))
}

/// Whether egress needs neither the packet's bytes, nor its length, nor the driver.
fn is_reparsable(arch: &Tna, pipe: &Pipe, parser: usize) -> bool {
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
    non_consuming_loops(parser).is_empty()
        && !emits::any(parser, is_call)
        && !emits::any(deparser, |kind| is_call(kind) && !is_checksum_update(program, kind))
        && !reads_length(control)
        && !reads_length(deparser)
        && !emits::any(control, |kind| match kind {
            InstKind::Call(call) => !ignores_length(program, call),
            _ => false,
        })
}

/// Whether an instruction computes a checksum over its arguments only.
fn is_checksum_update(program: &Program, kind: &InstKind) -> bool {
    match kind {
        InstKind::Call(call) => {
            let op = externs::own(program, call, Loc::default());
            matches!(op, Ok(Some(ExternOp::ChecksumUpdate { .. })))
        }
        _ => false,
    }
}

/// Whether compiled code can make a call that does not depend on the packet's length. The host does
/// not know the length before the packet is deparsed.
fn ignores_length(program: &Program, call: &weir_ir::Call) -> bool {
    match externs::own(program, call, Loc::default()) {
        Ok(Some(ExternOp::Count {
            id,
            byte_adjustment: None,
            uses_sent_length: false,
            ..
        })) => {
            let instance = &program.externs[id];
            unit(crate::load::argument(instance, "type", usize::MAX)) == Unit::Packets
        }
        Ok(Some(ExternOp::Count { .. } | ExternOp::Meter { .. })) => false,
        Ok(Some(ExternOp::Register(_) | ExternOp::Invalidate)) => true,
        Ok(Some(op)) => {
            calls::is_fusible(&op)
                && !matches!(
                    op,
                    ExternOp::Read {
                        index_source: IndexSource::Entry,
                        ..
                    }
                )
        }
        _ => false,
    }
}

impl EgressIntrinsicHeader {
    /// Adds a header of the program's egress intrinsic type, with new variables.
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
        Some(EgressIntrinsicHeader { header })
    }
}

impl Builder<'_> {
    /// Appends the ingress deparser, and egress up to the transmit exit.
    pub(super) fn append_egress(&mut self, intrinsic: &EgressIntrinsicHeader, parser: usize) -> Option<()> {
        let gress = &self.egress.egress;
        self.appends_emits = false;
        self.append_programmable_block(self.ingress.ingress.deparser);
        self.appends_emits = true;
        self.is_in_egress = true;
        self.set_intrinsic(intrinsic);
        for (var, value) in &gress.unset_values {
            self.set(Some(*var), *value);
        }
        let extended = Arc::new(self.program.clone());
        let parser = &extended.blocks[parser].body;
        let (accepted, rejected) = self.reparse(&extended, parser);
        self.append_parser_outcome(gress, accepted, rejected, parser.error?);
        self.copy_intrinsic_if_unparsed(intrinsic);
        let now_ns = self.now_ns;
        self.copy(gress.timestamp, now_ns);
        self.append_programmable_block(gress.control);
        if let Some(drop) = gress.drop {
            let dropped = self.lowest_bit(drop);
            self.leave_if(dropped, exit::EGRESS_DROP);
        }
        self.append_programmable_block(gress.deparser);
        self.emit_unparsed();
        self.append_transmit();
        self.is_in_egress = false;
        Some(())
    }

    /// Ends the pipeline after the egress deparser.
    pub(super) fn append_transmit(&mut self) {
        if let Some(delay) = self.egress.update_delay {
            let is_stamped = self.test(BinaryOp::Ne, delay, 0);
            self.leave_if(is_stamped, exit::STAMP_AND_TRANSMIT);
        }
        self.transmit_or_recirculate();
    }

    /// Sets the intrinsic header as the traffic manager does for a packet that finds its queue
    /// empty.
    fn set_intrinsic(&mut self, intrinsic: &EgressIntrinsicHeader) {
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

    /// Copies the intrinsic header to the control's if the parser has not extracted it.
    fn copy_intrinsic_if_unparsed(&mut self, intrinsic: &EgressIntrinsicHeader) {
        let known = &self.egress.egress.intrinsic;
        let Some(valid) = known.valid.map(|v| self.emitted().renaming.var(v)) else {
            return;
        };
        let extracted = self.temporary(1);
        self.assign(
            extracted,
            Rvalue::Binary(BinaryOp::Ne, Operand::Var(valid), constant(1, 0)),
        );
        let absent = self.branch(Operand::Var(extracted));
        let join = self.new_basic_block();
        self.terminate(Terminator::Goto(join));
        self.cursor = absent;
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
        self.terminate(Terminator::Goto(join));
        self.cursor = join;
    }
}
