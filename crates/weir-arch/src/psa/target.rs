//! The description of PSA for the compiler. Source: `psa.p4` of p4c; the roles are ours.

use super::externs::EMPTY_GROUP;
use weir_ir::target::PropertyRole::{Attachment, IdleTimeout, Implementation, Other};
use weir_ir::target::PropertyValue::{Action, Instance, Member};
use weir_ir::target::{ControlSpec, PackageSpec, PropertySpec, ResourceKind, ResourceSpec, TableSpec, Target, block};

/// `PSA_Switch(IngressPipeline(ip, ig, id), pre, EgressPipeline(ep, eg, ed), bqe)` of psa.p4.
///
/// Metadata that the ingress deparser writes for a later parser (resubmit, clone, normal and
/// recirculate metadata) is one group for the writer and the reader: the architecture carries its
/// values over.
pub(crate) const TARGET: Target = Target {
    name: "psa",
    files: &[
        ("psa.p4", include_str!("../../../../p4/include/psa.p4")),
        ("bmv2/psa.p4", include_str!("../../../../p4/include/bmv2/psa.p4")),
    ],
    packages: &[PackageSpec {
        name: "PSA_Switch",
        blocks: &[
            block(
                &["ingress", "ip"],
                "ingress_parser",
                &[
                    "",
                    "ingress_headers",
                    "ingress_metadata",
                    "ingress_parser_input_metadata",
                    "resubmit_metadata",
                    "recirculate_metadata",
                ],
            ),
            block(
                &["ingress", "ig"],
                "ingress",
                &[
                    "ingress_headers",
                    "ingress_metadata",
                    "ingress_input_metadata",
                    "ingress_output_metadata",
                ],
            ),
            block(
                &["ingress", "id"],
                "ingress_deparser",
                &[
                    "",
                    "clone_i2e_metadata",
                    "resubmit_metadata",
                    "normal_metadata",
                    "ingress_headers",
                    "ingress_metadata",
                    "ingress_output_metadata",
                ],
            ),
            block(
                &["egress", "ep"],
                "egress_parser",
                &[
                    "",
                    "egress_headers",
                    "egress_metadata",
                    "egress_parser_input_metadata",
                    "normal_metadata",
                    "clone_i2e_metadata",
                    "clone_e2e_metadata",
                ],
            ),
            block(
                &["egress", "eg"],
                "egress",
                &[
                    "egress_headers",
                    "egress_metadata",
                    "egress_input_metadata",
                    "egress_output_metadata",
                ],
            ),
            block(
                &["egress", "ed"],
                "egress_deparser",
                &[
                    "",
                    "clone_e2e_metadata",
                    "recirculate_metadata",
                    "egress_headers",
                    "egress_metadata",
                    "egress_output_metadata",
                    "egress_deparser_input_metadata",
                ],
            ),
        ],
        pipelines: &[],
    }],
    customary: &[],
    macros: &[],
    without_effect: &[],
    expansions: &[],
    tables: TableSpec {
        properties: &[
            PropertySpec::new(
                "psa_implementation",
                Implementation,
                &[Instance(&["ActionProfile", "ActionSelector"])],
            ),
            PropertySpec::new("psa_direct_counter", Attachment, &[Instance(&["DirectCounter"])]),
            PropertySpec::new("psa_direct_meter", Attachment, &[Instance(&["DirectMeter"])]),
            PropertySpec::new(
                "psa_idle_timeout",
                IdleTimeout(Some("PSA_IdleTimeout_t.NOTIFY_CONTROL")),
                &[Member("PSA_IdleTimeout_t")],
            ),
            PropertySpec::new(EMPTY_GROUP, Other, &[Action]),
        ],
        own_kinds: &[],
        refused_kinds: &[],
    },
    control: ControlSpec {
        resources: &[
            ResourceSpec::indexed("Counter", ResourceKind::Counter, 1),
            ResourceSpec::new("DirectCounter", ResourceKind::DirectCounter),
            ResourceSpec::indexed("Meter", ResourceKind::Meter, 0),
            ResourceSpec::new("DirectMeter", ResourceKind::DirectMeter),
            ResourceSpec::indexed("Register", ResourceKind::Register, 1),
            ResourceSpec::new("ActionProfile", ResourceKind::ActionProfile),
            ResourceSpec::new("ActionSelector", ResourceKind::ActionSelector),
            ResourceSpec::new("Digest", ResourceKind::Digest),
        ],
        digest_function: None,
        port_metadata: None,
        custom_crcs: Some(crate::custom_crc::SPEC),
    },
};
