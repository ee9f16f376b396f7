//! The exits of a pipeline.

use crate::driver::DropReason;
use crate::fused::FusedExit;
use weir_ir::VarId;
use weir_ir::pipeline::{Exit, Touched};

/// The exits of a pipeline.
pub(crate) struct ExitTable {
    /// Exits by number, each with its meaning for the driver.
    pub exits: Vec<(Exit, FusedExit)>,
    /// The exit of packets that have exceeded their instruction budget.
    pub instruction_budget_drop: u32,
    /// The exit by which the driver runs the packet from the start.
    pub punt_from_start: u32,
}

/// Transmits the deparsed packet by the port that a variable holds.
pub(crate) fn transmit(port: VarId) -> (Exit, FusedExit) {
    let exit = Exit {
        name: "transmit",
        live: vec![port],
        deparsed: true,
        touches: None,
    };
    (exit, FusedExit::Transmit(port))
}

/// As [`transmit`], after the driver has finished the packet for its port.
pub(crate) fn stamp_and_transmit(port: VarId) -> (Exit, FusedExit) {
    let (exit, _) = transmit(port);
    let exit = Exit {
        name: "stamp-and-transmit",
        ..exit
    };
    (exit, FusedExit::StampAndTransmit(port))
}

/// As [`transmit`], to a port that leads back to ingress.
pub(crate) fn recirculate(port: VarId) -> (Exit, FusedExit) {
    let (exit, _) = transmit(port);
    let exit = Exit {
        name: "recirculate",
        ..exit
    };
    (exit, FusedExit::Recirculate(port))
}

/// Hands the packet, as the ingress deparser built it, to the traffic manager, which reads the
/// `live` variables.
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
pub(crate) fn drop_exit(name: &'static str, reason: DropReason) -> (Exit, FusedExit) {
    let exit = Exit {
        name,
        live: Vec::new(),
        deparsed: false,
        touches: None,
    };
    (exit, FusedExit::Drop(reason))
}

/// Punts to the driver, which receives the `live` variables and accesses the tables and state in
/// `touches`.
pub(crate) fn punt_exit(
    name: &'static str,
    live: Vec<VarId>,
    touches: Touched,
    after_egress: bool,
) -> (Exit, FusedExit) {
    let exit = Exit {
        name,
        live,
        deparsed: false,
        touches: Some(touches),
    };
    (exit, FusedExit::Punt { after_egress })
}
