//! What the compiler must know of each architecture, as data (`weir_ir::target`).
//!
//! Sources: `v1model.p4` and `psa.p4` of p4c; the roles are ours.

use weir_ir::target::{BlockSpec, Expansion, TableSpec, Target};

/// Every architecture that programs can be compiled for.
///
/// ```
/// let names: Vec<_> = weir_arch::targets().iter().map(|t| t.package).collect();
/// assert_eq!(names, ["V1Switch", "PSA_Switch"]);
/// ```
#[must_use]
pub fn targets() -> &'static [Target] {
    TARGETS
}

static TARGETS: &[Target] = &[V1MODEL, PSA];

/// A block at `path` of the package, not optional.
const fn block(path: &'static [&'static str], role: &'static str, bindings: &'static [&'static str]) -> BlockSpec {
    BlockSpec {
        path,
        role,
        bindings,
        optional: false,
    }
}

/// `V1Switch(p, vr, ig, eg, ck, dep)` of v1model.p4.
pub const V1MODEL: Target = Target {
    name: "v1model",
    package: "V1Switch",
    blocks: &[
        block(&["p"], "parser", &["", "headers", "metadata", "standard_metadata"]),
        block(&["vr"], "verify_checksum", &["headers", "metadata"]),
        block(&["ig"], "ingress", &["headers", "metadata", "standard_metadata"]),
        block(&["eg"], "egress", &["headers", "metadata", "standard_metadata"]),
        block(&["ck"], "compute_checksum", &["headers", "metadata"]),
        block(&["dep"], "deparser", &["", "headers"]),
    ],
    expansions: &[Expansion {
        function: "mark_to_drop",
        assignments: &[
            ("standard_metadata", "egress_spec", 511),
            ("standard_metadata", "mcast_grp", 0),
        ],
    }],
    tables: TableSpec {
        implementation: &["implementation"],
        direct: &["counters", "meters"],
        idle_timeout: &[("support_timeout", Some("true"))],
    },
};

/// `PSA_Switch(IngressPipeline(ip, ig, id), pre, EgressPipeline(ep, eg, ed), bqe)` of psa.p4.
///
/// What the ingress deparser writes for a later parser (resubmit, clone, normal and recirculate
/// metadata) is one group for the writer and the reader: the architecture carries its values over.
pub const PSA: Target = Target {
    name: "psa",
    package: "PSA_Switch",
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
    expansions: &[],
    tables: TableSpec {
        implementation: &["psa_implementation"],
        direct: &["psa_direct_counter", "psa_direct_meter"],
        idle_timeout: &[("psa_idle_timeout", Some("PSA_IdleTimeout_t.NOTIFY_CONTROL"))],
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_unique_within_a_target() {
        for target in targets() {
            let mut roles: Vec<_> = target.blocks.iter().map(|b| b.role).collect();
            roles.sort_unstable();
            roles.dedup();
            assert_eq!(roles.len(), target.blocks.len(), "{}", target.name);
        }
    }
}
