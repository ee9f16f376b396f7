//! Egress as a pipeline of its own: of packets that ingress has deparsed, as the traffic manager
//! hands them on.
//!
//! Unlike egress behind ingress in one pipeline, it has the packet's bytes and length, so that it
//! supports whatever ingress supports. Packets whose control has set a mirror type are punted, as
//! at the end of ingress.

use super::super::driver::Tna;
use super::super::headers;
use super::dispatch::Failure;
use super::intrinsic::IntrinsicPrefix;
use super::{Builder, Exits, exit, with_requests};
use crate::error::{LeftOut, NotCompiled};
use crate::fused::{EgressMetadata, Fused, Input};
use crate::pipeline_builder::constant;
use weir_ir::{BinaryOp, Bits, Operand, Terminator, Type, VarId};

/// Fields of the egress header that the traffic manager knows, with their bits.
const METADATA: [(&str, u32, EgressMetadata); 5] = [
    ("egress_rid", 16, EgressMetadata::Rid),
    ("egress_qid", 8, EgressMetadata::Queue),
    ("egress_cos", 8, EgressMetadata::Class),
    ("egress_rid_first", 1, EgressMetadata::IsFirstCopy),
    ("deflection_flag", 1, EgressMetadata::IsDeflected),
];

/// The pipeline.
///
/// # Errors
/// Something in it needs the driver at every step.
pub(super) fn fuse(arch: &Tna) -> Result<Fused, NotCompiled> {
    let made = with_requests("what egress deparsers make of all packets", |drives_all| {
        make(arch, drives_all)
    });
    let (mut fused, exits) = made?;
    let lost = exits
        .lost
        .map(|why| LeftOut::new("egress of packets that get there", &why));
    fused.left_out.extend(lost);
    Ok(fused)
}

fn make(arch: &Tna, drives_all: bool) -> Result<(Fused, Exits), NotCompiled> {
    let mut builder = Builder::new(arch)?;
    (builder.is_egress, builder.drives_all) = (true, drives_all);
    let (port, now_ns) = (builder.port, builder.now_ns);
    let length = builder.variable("$length", 16);
    let mut inputs = vec![(port, Input::Port), (now_ns, Input::NowNs), (length, Input::Length)];
    builder.tm_metadata = vec![("egress_port", port), ("enq_tstamp", now_ns), ("pkt_length", length)];
    for (name, width, what) in METADATA {
        let var = builder.variable("$told", width);
        inputs.push((var, Input::FromTrafficManager(what)));
        builder.tm_metadata.push((name, var));
    }
    builder.finish(inputs)
}

impl Builder<'_> {
    /// Sets the variables for the traffic manager, deparses the packet, and leaves by the queue
    /// exit.
    pub(super) fn give_to_queue(&mut self) {
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
        self.block_of(self.ingress.ingress.deparser);
        self.end(Terminator::Exit(exit::QUEUE));
    }

    /// What stands for a field of the egress header.
    fn tm_metadata(&self, name: &str) -> Option<VarId> {
        self.tm_metadata
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, var)| *var)
    }

    /// The header in front of egress packets.
    fn egress_front(&mut self) -> IntrinsicPrefix {
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

    /// Egress of the present pipe, from the traffic manager to the wire.
    pub(super) fn egress_alone(
        &mut self,
        which: Option<VarId>,
        error: VarId,
        failures: &mut Vec<Failure>,
    ) -> Option<()> {
        let gress = &self.egress.egress;
        let prefix = self.egress_front();
        self.parsed_by(&prefix, which, error, failures)?;
        self.fill_intrinsic(gress, |builder, name| builder.tm_metadata(name));
        let now_ns = self.now_ns;
        self.copy(gress.timestamp, now_ns);
        self.block_of(gress.control);
        self.leave_with_requests();
        if let Some(drop) = gress.drop {
            let dropped = self.lowest_bit(drop);
            self.leave_if(dropped, exit::EGRESS_DROP);
        }
        self.block_of(gress.deparser);
        self.finish_and_send();
        Some(())
    }
}
