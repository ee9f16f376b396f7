//! The description of v1model for the compiler. Source: `v1model.p4` of p4c; the roles are ours.

use weir_ir::target::PropertyRole::{Attachment, IdleTimeout, Implementation};
use weir_ir::target::PropertyValue::{Bool, Instance};
use weir_ir::target::{
    ControlSpec, Expansion, PackageSpec, PropertySpec, ResourceKind, ResourceSpec, TableSpec, Target, block,
};

/// The names that p4lang's tutorials and tests give the values of
/// `standard_metadata.instance_type`.
const INSTANCE_TYPES: &[(&str, &str)] = &[
    ("PKT_INSTANCE_TYPE_NORMAL", "0"),
    ("PKT_INSTANCE_TYPE_INGRESS_CLONE", "1"),
    ("PKT_INSTANCE_TYPE_EGRESS_CLONE", "2"),
    ("PKT_INSTANCE_TYPE_COALESCED", "3"),
    ("PKT_INSTANCE_TYPE_INGRESS_RECIRC", "4"),
    ("PKT_INSTANCE_TYPE_REPLICATION", "5"),
    ("PKT_INSTANCE_TYPE_RESUBMIT", "6"),
    ("BMV2_V1MODEL_INSTANCE_TYPE_NORMAL", "0"),
    ("BMV2_V1MODEL_INSTANCE_TYPE_INGRESS_CLONE", "1"),
    ("BMV2_V1MODEL_INSTANCE_TYPE_EGRESS_CLONE", "2"),
    ("BMV2_V1MODEL_INSTANCE_TYPE_COALESCED", "3"),
    ("BMV2_V1MODEL_INSTANCE_TYPE_RECIRC", "4"),
    ("BMV2_V1MODEL_INSTANCE_TYPE_REPLICATION", "5"),
    ("BMV2_V1MODEL_INSTANCE_TYPE_RESUBMIT", "6"),
];

/// `V1Switch(p, vr, ig, eg, ck, dep)` of v1model.p4.
pub(crate) const TARGET: Target = Target {
    name: "v1model",
    files: &[("v1model.p4", include_str!("../../../../p4/include/v1model.p4"))],
    packages: &[PackageSpec {
        name: "V1Switch",
        blocks: &[
            block(&["p"], "parser", &["", "headers", "metadata", "standard_metadata"]),
            block(&["vr"], "verify_checksum", &["headers", "metadata"]),
            block(&["ig"], "ingress", &["headers", "metadata", "standard_metadata"]),
            block(&["eg"], "egress", &["headers", "metadata", "standard_metadata"]),
            block(&["ck"], "compute_checksum", &["headers", "metadata"]),
            block(&["dep"], "deparser", &["", "headers"]),
        ],
        pipelines: &[],
    }],
    macros: &[],
    customary: INSTANCE_TYPES,
    without_effect: &[],
    expansions: &[Expansion {
        function: "mark_to_drop",
        assignments: &[
            ("standard_metadata", "egress_spec", 511),
            ("standard_metadata", "mcast_grp", 0),
        ],
    }],
    tables: TableSpec {
        properties: &[
            PropertySpec::new(
                "implementation",
                Implementation,
                &[Instance(&["action_profile", "action_selector"])],
            ),
            PropertySpec::new("counters", Attachment, &[Instance(&["direct_counter"])]),
            PropertySpec::new("meters", Attachment, &[Instance(&["direct_meter"])]),
            PropertySpec::new("support_timeout", IdleTimeout(Some("true")), &[Bool]),
        ],
        own_kinds: &[],
        refused_kinds: &[],
    },
    control: ControlSpec {
        resources: &[
            ResourceSpec::indexed("counter", ResourceKind::Counter, 0),
            ResourceSpec::on_every_hit("direct_counter", ResourceKind::DirectCounter),
            ResourceSpec::indexed("meter", ResourceKind::Meter, 0),
            ResourceSpec::on_every_hit("direct_meter", ResourceKind::DirectMeter),
            ResourceSpec::indexed("register", ResourceKind::Register, 1),
            ResourceSpec::new("action_profile", ResourceKind::ActionProfile),
            ResourceSpec::new("action_selector", ResourceKind::ActionSelector),
        ],
        digest_function: Some("digest"),
        port_metadata: None,
        custom_crcs: Some(crate::custom_crc::SPEC),
    },
};
