//! The egress pipeline: egress of packets that ingress has deparsed and the traffic manager has
//! dequeued.
//!
//! Unlike egress after ingress in one body (`egress`), it has the packet's bytes and length, so
//! that it supports whatever ingress supports. Packets whose control has set a mirror type are
//! punted, as at the end of ingress.

use super::super::driver::Tna;
use super::super::headers;
use super::dispatch::ParserErrorPath;
use super::intrinsic::IntrinsicPrefix;
use super::{Builder, ReachableExits, exit, with_punt_fallback};
use crate::error::{LeftOut, NotCompiled};
use crate::fused::{EgressMetadata, Fused, Input};
use crate::pipeline_builder::constant;
use weir_ir::{BinaryOp, Bits, Operand, Terminator, Type, VarId};

/// Fields of the egress intrinsic header that the traffic manager supplies, with their bits.
const TM_FIELDS: [(&str, u32, EgressMetadata); 5] = [
    ("egress_rid", 16, EgressMetadata::Rid),
    ("egress_qid", 8, EgressMetadata::Queue),
    ("egress_cos", 8, EgressMetadata::Class),
    ("egress_rid_first", 1, EgressMetadata::IsFirstCopy),
    ("deflection_flag", 1, EgressMetadata::IsDeflected),
];

/// Makes the egress pipeline.
///
/// # Errors
/// A construct that every packet executes has no compiled form.
pub(super) fn fuse(arch: &Tna) -> Result<Fused, NotCompiled> {
    let made = with_punt_fallback("requests that egress makes for every packet", |punts_all| {
        make(arch, punts_all)
    });
    let (mut fused, exits) = made?;
    let punt_reason = exits
        .punt_reason
        .map(|why| LeftOut::new("egress of packets that get there", &why));
    fused.left_out.extend(punt_reason);
    Ok(fused)
}

/// Makes the pipeline once; `punts_all` as in [`Builder`].
fn make(arch: &Tna, punts_all: bool) -> Result<(Fused, ReachableExits), NotCompiled> {
    let mut builder = Builder::new(arch)?;
    (builder.is_egress_pipeline, builder.is_in_egress) = (true, true);
    builder.punts_all = punts_all;
    let (port, now_ns) = (builder.egress_port, builder.now_ns);
    let length = builder.variable("$length", 16);
    let mut inputs = vec![(port, Input::Port), (now_ns, Input::NowNs), (length, Input::Length)];
    builder.tm_metadata = vec![("egress_port", port), ("enq_tstamp", now_ns), ("pkt_length", length)];
    for (name, width, what) in TM_FIELDS {
        let var = builder.variable("$tm_metadata", width);
        inputs.push((var, Input::FromTrafficManager(what)));
        builder.tm_metadata.push((name, var));
    }
    builder.finish(inputs)
}

impl Builder<'_> {
    /// Sets the variables for the traffic manager, deparses the packet, and leaves by the queue
    /// exit.
    pub(super) fn append_queue_exit(&mut self) {
        let (tm, to) = (&self.ingress.tm, self.queueing);
        let [first, second] = to.groups;
        let assignments = [
            (first, tm.groups[0]),
            (second, tm.groups[1]),
            (to.exclude_node, tm.exclude_node),
            (to.exclude_ports, tm.exclude_ports),
            (to.rid, tm.rid),
            (to.queue, tm.queue),
            (to.class, tm.class),
            (to.deflects, tm.deflect),
        ];
        for (to, from) in assignments {
            match from {
                Some(from) => self.copy(Some(to), from),
                None => self.set(Some(to), 0),
            }
        }
        match tm.port {
            Some(port) => self.copy(Some(to.port), port),
            None => self.set(Some(to.port), to.no_port),
        }
        match tm.bypass {
            Some(bypass) => {
                let is_set = self.test(BinaryOp::Ne, bypass, 0);
                self.copy(Some(to.bypasses), is_set);
            }
            None => self.set(Some(to.bypasses), 0),
        }
        self.append_programmable_block(self.ingress.ingress.deparser);
        self.terminate(Terminator::Exit(exit::QUEUE));
    }

    /// The variable with a field of the egress intrinsic header, if the traffic manager supplies
    /// it.
    fn tm_metadata(&self, name: &str) -> Option<VarId> {
        self.tm_metadata
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, var)| *var)
    }

    /// The egress intrinsic header, which the parser reads before the packet.
    fn egress_prefix(&mut self) -> IntrinsicPrefix {
        let program = self.arch.program();
        let Some((_, ty)) = program
            .header_types
            .iter()
            .find(|(_, t)| t.name == headers::EGRESS_TYPE)
        else {
            let bits = self.arch.chip().egress_header as u32 * 8;
            return IntrinsicPrefix::of(vec![(bits, Operand::Const(Bits::zero(bits)))]);
        };
        let mut pieces = Vec::new();
        for field in &ty.fields {
            let Type::Bits(width) = field.ty else { continue };
            let operand = match self.tm_metadata(&field.name) {
                Some(from) => {
                    let var = self.temporary(width);
                    self.copy(Some(var), from);
                    Operand::Var(var)
                }
                None => constant(width, 0),
            };
            pieces.push((width, operand));
        }
        IntrinsicPrefix::of(pieces)
    }

    /// Appends egress of the current pipe, from the traffic manager to the transmit exit.
    pub(super) fn append_queued_egress(
        &mut self,
        parser_number: Option<VarId>,
        error: VarId,
        error_paths: &mut Vec<ParserErrorPath>,
    ) -> Option<()> {
        let gress = &self.egress.egress;
        let prefix = self.egress_prefix();
        self.append_parsers(&prefix, parser_number, error, error_paths)?;
        self.set_unparsed_intrinsic(gress, |builder, name| builder.tm_metadata(name));
        let now_ns = self.now_ns;
        self.copy(gress.timestamp, now_ns);
        self.append_programmable_block(gress.control);
        self.punt_requests();
        if let Some(drop) = gress.drop {
            let dropped = self.lowest_bit(drop);
            self.leave_if(dropped, exit::EGRESS_DROP);
        }
        self.append_programmable_block(gress.deparser);
        self.append_transmit();
        Some(())
    }
}
