//! The variables of a program that the architecture reads and writes.

use crate::load::enum_index;
use std::sync::Arc;
use weir_interp::Frame;
use weir_ir::{Bits, Program, Type, VarId};

/// How a packet came to a parser: `PSA_PacketPath_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Normal,
    NormalUnicast,
    NormalMulticast,
    CloneI2e,
    CloneE2e,
    Resubmit,
    Recirculate,
}

impl Path {
    /// All, in the order of psa.p4.
    const ALL: [(Path, &'static str); 7] = [
        (Path::Normal, "NORMAL"),
        (Path::NormalUnicast, "NORMAL_UNICAST"),
        (Path::NormalMulticast, "NORMAL_MULTICAST"),
        (Path::CloneI2e, "CLONE_I2E"),
        (Path::CloneE2e, "CLONE_E2E"),
        (Path::Resubmit, "RESUBMIT"),
        (Path::Recirculate, "RECIRCULATE"),
    ];
}

/// Metadata that a packet carries from one programmable block to another: the variables of a group.
pub(crate) type Carried = Arc<[VarId]>;

/// The variables; `None` where a program does not have one.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// `ingress_port` and `packet_path` of the ingress parser's and of the ingress control's input.
    pub ingress_port: [Option<VarId>; 2],
    pub ingress_path: [Option<VarId>; 2],
    pub ingress_timestamp: Option<VarId>,
    pub ingress_error: Option<VarId>,
    pub ingress: IngressOutput,
    /// `egress_port` of the egress parser's, of the control's and of the deparser's input.
    pub egress_port: [Option<VarId>; 3],
    pub egress_path: [Option<VarId>; 2],
    pub egress_class: Option<VarId>,
    pub instance: Option<VarId>,
    pub egress_timestamp: Option<VarId>,
    pub egress_error: Option<VarId>,
    pub egress: EgressOutput,
    /// Metadata of the program's own.
    pub resubmit: Carried,
    pub recirculate: Carried,
    pub normal: Carried,
    pub clone_i2e: Carried,
    pub clone_e2e: Carried,
    /// Values of `PSA_PacketPath_t`, in the order of [`Path::ALL`].
    paths: [u64; 7],
}

/// `psa_ingress_output_metadata_t`
#[derive(Debug, Clone, Copy)]
pub(crate) struct IngressOutput {
    pub class_of_service: Option<VarId>,
    pub clone: Option<VarId>,
    pub clone_session: Option<VarId>,
    pub drop: Option<VarId>,
    pub resubmit: Option<VarId>,
    pub group: Option<VarId>,
    pub port: Option<VarId>,
}

/// `psa_egress_output_metadata_t`
#[derive(Debug, Clone, Copy)]
pub(crate) struct EgressOutput {
    pub clone: Option<VarId>,
    pub clone_session: Option<VarId>,
    pub drop: Option<VarId>,
}

impl Fields {
    pub(crate) fn new(program: &Program) -> Self {
        let var = |role: &str, path: &str| program.shared_var(role, path);
        let of_ingress = |path| {
            ["ingress_parser_input_metadata", "ingress_input_metadata"].map(|role| program.shared_var(role, path))
        };
        let of_egress =
            |path| ["egress_parser_input_metadata", "egress_input_metadata"].map(|role| program.shared_var(role, path));
        let carried = |role: &str| -> Carried {
            let leaves = program.shared_group(role).map_or(&[][..], |g| g.leaves.as_slice());
            leaves.iter().map(|l| l.var).collect()
        };
        let [parser_port, control_port] = of_egress("egress_port");
        let (ingress, egress) = ("ingress_output_metadata", "egress_output_metadata");
        let mut paths = [0; 7];
        for ((index, (_, name)), value) in Path::ALL.iter().enumerate().zip(&mut paths) {
            *value = enum_index(program, "PSA_PacketPath_t", name).unwrap_or(index as u64);
        }
        Fields {
            ingress_port: of_ingress("ingress_port"),
            ingress_path: of_ingress("packet_path"),
            ingress_timestamp: var("ingress_input_metadata", "ingress_timestamp"),
            ingress_error: var("ingress_input_metadata", "parser_error"),
            ingress: IngressOutput {
                class_of_service: var(ingress, "class_of_service"),
                clone: var(ingress, "clone"),
                clone_session: var(ingress, "clone_session_id"),
                drop: var(ingress, "drop"),
                resubmit: var(ingress, "resubmit"),
                group: var(ingress, "multicast_group"),
                port: var(ingress, "egress_port"),
            },
            egress_port: [
                parser_port,
                control_port,
                var("egress_deparser_input_metadata", "egress_port"),
            ],
            egress_path: of_egress("packet_path"),
            egress_class: var("egress_input_metadata", "class_of_service"),
            instance: var("egress_input_metadata", "instance"),
            egress_timestamp: var("egress_input_metadata", "egress_timestamp"),
            egress_error: var("egress_input_metadata", "parser_error"),
            egress: EgressOutput {
                clone: var(egress, "clone"),
                clone_session: var(egress, "clone_session_id"),
                drop: var(egress, "drop"),
            },
            resubmit: carried("resubmit_metadata"),
            recirculate: carried("recirculate_metadata"),
            normal: carried("normal_metadata"),
            clone_i2e: carried("clone_i2e_metadata"),
            clone_e2e: carried("clone_e2e_metadata"),
            paths,
        }
    }

    /// The value of a `PSA_PacketPath_t`.
    pub(crate) fn path(&self, path: Path) -> u64 {
        let index = Path::ALL.iter().position(|(p, _)| *p == path);
        index.map_or(0, |index| self.paths[index])
    }
}

/// Sets variables that the program has, modulo their widths.
pub(crate) fn set(frame: &mut Frame, vars: &[Option<VarId>], value: u64) {
    for &var in vars.iter().flatten() {
        frame.set_u64(var, value);
    }
}

/// A variable's value; 0 if the program does not have it.
pub(crate) fn get(frame: &Frame, var: Option<VarId>) -> u64 {
    var.map_or(0, |v| frame.get_u64(v))
}

/// Sets variables to zero: headers among them become invalid.
pub(crate) fn clear(program: &Program, frame: &mut Frame, vars: &[VarId]) {
    for &var in vars {
        let zero = match program.vars[var].ty {
            Type::Bits(width) => Bits::zero(width),
            Type::Varbit(_) => Bits::zero(0),
        };
        frame.set(var, zero);
    }
}

/// The values of variables, to be set in another pass.
pub(crate) fn take(frame: &Frame, vars: &[VarId]) -> Vec<(VarId, Bits)> {
    vars.iter().map(|&v| (v, frame.get(v).clone())).collect()
}
