//! The Tofino Native Architecture, as far as packets go to one port past egress.

use super::instance::{Package, Part};
use super::machine::Machine;
use super::marks::Marks;
use super::packet::{Packet, Written};
use super::replication::Replication;
use super::stop::{Eval, Stop, unknown};
use super::v1model::Outputs;
use super::value::{Object, Value};
use weir_stf::Directive;

/// Bytes of the intrinsic header and of what the device says of the port, in front of a packet.
const IN_FRONT: usize = 16;

/// The switch.
pub(super) struct Tna<'a> {
    machine: Machine<'a>,
    parser: usize,
    ingress: usize,
    deparser: usize,
    replication: Replication,
    /// The program may look at errors of the parser, which then drop no packet but for `NoMatch`.
    sees_errors: bool,
}

impl<'a> Tna<'a> {
    /// The switch of a program with one pipeline.
    pub fn new(machine: Machine<'a>, main: &Package, sees_errors: bool) -> Eval<Self> {
        let [(_, Part::Package(pipeline))] = main.as_slice() else {
            return unknown("a switch of several pipelines");
        };
        let block = |at: usize| match pipeline.get(at) {
            Some((_, Part::Value(Value::Object(Object::Block(block))))) => Ok(*block),
            _ => unknown("a pipeline with other blocks"),
        };
        Ok(Tna {
            parser: block(0)?,
            ingress: block(1)?,
            deparser: block(2)?,
            replication: Replication::default(),
            sees_errors,
            machine,
        })
    }

    /// Does what a directive says that the switch has accepted.
    pub fn directive(&mut self, directive: &Directive) -> Eval<()> {
        if self.replication.directive(directive) {
            return Ok(());
        }
        self.machine.directive(directive)
    }

    fn zero(&mut self, block: usize, param: usize) -> Eval<Value> {
        let params = self.machine.block_params(self.machine.blocks[block].def)?;
        match params.get(param) {
            Some(param) => self.machine.zero(param.ty),
            None => unknown("a block with other parameters"),
        }
    }

    /// Runs a block; what its parameters are afterwards.
    fn run(&mut self, block: usize, values: Vec<Value>) -> Eval<Vec<Value>> {
        match self.machine.run_top(block, values)? {
            (after, None | Some(Stop::Exit)) => Ok(after),
            (_, Some(Stop::Reject(_))) => unknown("an error of the parser"),
            (_, Some(Stop::Abort | Stop::Unknown(_))) => unknown("an end before the end"),
        }
    }

    /// What a packet becomes.
    pub fn inject(&mut self, port: u32, bytes: &[u8]) -> Eval<Outputs> {
        self.machine.marks = Marks::default();
        if !self.replication.is_up(port) {
            return Ok(Vec::new());
        }
        // Resubmit flag, version and time stamp are zero; no test states the time stamp.
        let mut front = vec![0; IN_FRONT];
        front[0] = (port >> 8) as u8 & 1;
        front[1] = port as u8;
        front.extend(bytes);
        self.machine.packet = Packet::new(front);
        let parsed = match self
            .machine
            .run_top(self.parser, vec![Value::Object(Object::Packet); 4])?
        {
            (parsed, None) => parsed,
            (_, Some(Stop::Reject(_))) if !self.sees_errors => return Ok(Vec::new()),
            (_, Some(_)) => return unknown("an error of the parser"),
        };
        if self.machine.packet.at < 8 * IN_FRONT {
            return unknown("a parser that leaves what is in front of the packet");
        }
        let [_, headers, metadata, intrinsic] = parsed.as_slice() else {
            return unknown("a parser with other parameters");
        };
        let mut values = vec![headers.clone(), metadata.clone(), intrinsic.clone()];
        for at in 3..6 {
            values.push(self.zero(self.ingress, at)?);
        }
        let after = self.run(self.ingress, values)?;
        let [headers, metadata, _, _, for_deparser, for_tm] = after.as_slice() else {
            return unknown("an ingress with other parameters");
        };
        let number = |value: &Value, field: &str| value.field(field).and_then(Value::small).unwrap_or(0);
        let others = ["digest_type", "resubmit_type", "mirror_type"];
        let of_tm = ["mcast_grp_a", "mcast_grp_b", "copy_to_cpu", "deflect_on_drop"];
        let is_plain =
            others.iter().all(|f| number(for_deparser, f) == 0) && of_tm.iter().all(|f| number(for_tm, f) == 0);
        if !is_plain || number(for_tm, "bypass_egress") == 0 {
            return unknown("a packet that does not go to one port past egress");
        }
        let drop = number(for_deparser, "drop_ctl");
        self.machine.written = Written::default();
        let values = vec![
            Value::Object(Object::Packet),
            headers.clone(),
            metadata.clone(),
            for_deparser.clone(),
        ];
        let port = number(for_tm, "ucast_egress_port") as u32;
        if port == 0 && drop & 1 == 0 {
            return unknown("a packet whose port may never have been assigned");
        }
        self.run(self.deparser, values)?;
        let written = std::mem::take(&mut self.machine.written);
        let bytes = written.finish(&self.machine.packet);
        Ok(if drop & 1 == 1 || !self.replication.is_up(port) {
            Vec::new()
        } else {
            vec![(port, bytes)]
        })
    }
}
