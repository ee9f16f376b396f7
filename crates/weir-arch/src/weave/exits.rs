//! The exits of a pipeline.

use crate::driver::DropReason;
use crate::fused::FusedExit;
use weir_ir::VarId;
use weir_ir::pipeline::{Exit, Touched};

/// The exits of a pipeline.
pub(crate) struct Ends {
    /// By number, with what they mean.
    pub exits: Vec<(Exit, FusedExit)>,
    pub overrun: u32,
    pub restart: u32,
}

/// The packet, as the deparser made it, leaves by the port that a variable holds.
pub(crate) fn transmit(port: VarId) -> (Exit, FusedExit) {
    let exit = Exit {
        name: "transmit",
        live: vec![port],
        deparsed: true,
        touches: None,
    };
    (exit, FusedExit::Transmit(port))
}

/// The same, after its port has done something to it.
pub(crate) fn finish(port: VarId) -> (Exit, FusedExit) {
    let (exit, _) = transmit(port);
    let exit = Exit { name: "finish", ..exit };
    (exit, FusedExit::Finish(port))
}

/// The same, to a port that leads back to ingress.
pub(crate) fn recirculate(port: VarId) -> (Exit, FusedExit) {
    let (exit, _) = transmit(port);
    let exit = Exit {
        name: "recirculate",
        ..exit
    };
    (exit, FusedExit::Recirculate(port))
}

/// The packet, as the ingress deparser made it, goes to the traffic manager, which reads these
/// variables.
pub(crate) fn queue(live: Vec<VarId>) -> (Exit, FusedExit) {
    let exit = Exit {
        name: "queue",
        live,
        deparsed: true,
        touches: None,
    };
    (exit, FusedExit::Queue)
}

/// The packet is dropped.
pub(crate) fn drop(name: &'static str, reason: DropReason) -> (Exit, FusedExit) {
    let exit = Exit {
        name,
        live: Vec::new(),
        deparsed: false,
        touches: None,
    };
    (exit, FusedExit::Drop(reason))
}

/// The exit to the driver: it receives variables and touches what else the pipeline touches.
pub(crate) fn driver(name: &'static str, live: Vec<VarId>, touches: Touched, after_egress: bool) -> (Exit, FusedExit) {
    let exit = Exit {
        name,
        live,
        deparsed: false,
        touches: Some(touches),
    };
    (exit, FusedExit::Driver { after_egress })
}
