//! The description of the Tofino architectures for the compiler. Source: the vendor's tna.p4 and
//! t2na.p4; the roles are ours.

use weir_ir::MatchKind;
use weir_ir::target::PropertyRole::{Attachment, IdleTimeout, Implementation, Other};
use weir_ir::target::PropertyValue::{Bool, Instance};
use weir_ir::target::{
    BlockSpec, ControlSpec, IgnoredAnnotation, OwnKind, PackageSpec, PortMetadataSpec, PropertySpec, ResourceKind,
    ResourceSpec, TableSpec, Target, block,
};

/// Files of both: a program of the first architecture may be built for the second chip.
const FILES: &[(&str, &str)] = &[
    ("tna.p4", include_str!("../../../../p4/include/tna.p4")),
    ("t2na.p4", include_str!("../../../../p4/include/t2na.p4")),
    (
        "weir/tofino_common.p4",
        include_str!("../../../../p4/include/weir/tofino_common.p4"),
    ),
    (
        "weir/tofino_widths.p4",
        include_str!("../../../../p4/include/weir/tofino_widths.p4"),
    ),
];

const TABLES: TableSpec = TableSpec {
    properties: &[
        PropertySpec::new(
            "implementation",
            Implementation,
            &[Instance(&["ActionProfile", "ActionSelector", "Atcam", "Alpm"])],
        ),
        PropertySpec::new("counters", Attachment, &[Instance(&["DirectCounter"])]),
        PropertySpec::new("meters", Attachment, &[Instance(&["DirectMeter"])]),
        PropertySpec::new("registers", Attachment, &[Instance(&["DirectRegister"])]),
        // Programs name arrays of filters here, too; only direct ones become the table's.
        PropertySpec::new(
            "filters",
            Attachment,
            &[Instance(&["DirectLpf", "DirectWred", "Lpf", "Wred"])],
        ),
        PropertySpec::new(
            "idle_timeout",
            IdleTimeout(Some("true")),
            &[Bool, Instance(&["IdleTimeout"])],
        ),
        // These are about memories of the chip: lookups find the same without them.
        PropertySpec::new("atcam", Other, &[Instance(&["Atcam"])]),
        PropertySpec::new("alpm", Other, &[Instance(&["Alpm"])]),
        PropertySpec::new("proxy_hash", Other, &[Instance(&["Hash"])]),
    ],
    own_kinds: &[OwnKind {
        name: "atcam_partition_index",
        matches: MatchKind::Exact,
        shown: "ATCAM",
    }],
    refused_kinds: &[(
        "dleft_hash",
        "what digest the hardware makes of a key is not published; a `RegisterAction` on a `Hash` does the same",
    )],
};

/// P4Info has no place for the last ones.
const CONTROL: ControlSpec = ControlSpec {
    resources: &[
        ResourceSpec::indexed("Counter", ResourceKind::Counter, 1),
        ResourceSpec::new("DirectCounter", ResourceKind::DirectCounter),
        ResourceSpec::indexed("Meter", ResourceKind::Meter, 0),
        ResourceSpec::new("DirectMeter", ResourceKind::DirectMeter),
        ResourceSpec::indexed("Register", ResourceKind::Register, 1),
        ResourceSpec::new("ActionProfile", ResourceKind::ActionProfile),
        ResourceSpec::new("ActionSelector", ResourceKind::ActionSelector),
        ResourceSpec::new("Digest", ResourceKind::Digest),
        ResourceSpec::new("DirectRegister", ResourceKind::DirectRegister),
        ResourceSpec::new("RegisterParam", ResourceKind::RegisterParameter),
        ResourceSpec::new("Lpf", ResourceKind::Filter),
        ResourceSpec::new("DirectLpf", ResourceKind::DirectFilter),
        ResourceSpec::new("Wred", ResourceKind::EarlyDrop),
        ResourceSpec::new("DirectWred", ResourceKind::DirectEarlyDrop),
    ],
    digest_function: None,
    port_metadata: Some(PORT_METADATA),
    custom_crcs: None,
};

/// Pipe by pipe; `MultiParserSwitch` has more parsers in each, which all read the same.
const PORT_METADATA: PortMetadataSpec = PortMetadataSpec {
    parsers: &[
        "pipe0.ingress_parser",
        "pipe1.ingress_parser",
        "pipe2.ingress_parser",
        "pipe3.ingress_parser",
    ],
    keys: &[
        "pipe0.ingress_intrinsic_metadata",
        "pipe1.ingress_intrinsic_metadata",
        "pipe2.ingress_intrinsic_metadata",
        "pipe3.ingress_intrinsic_metadata",
    ],
    function: "port_metadata_unpack",
    width: 64,
    port_width: 9,
    ports: 288,
};

const fn ignored(name: &'static str, instead: &'static str) -> IgnoredAnnotation {
    IgnoredAnnotation { name, instead }
}

/// Annotations of the vendor's compiler that change what packets or control planes see. Others
/// place things in the chip, or are implemented: `flexible`, `padding`, `symmetric`.
const IGNORED: &[IgnoredAnnotation] = &[
    ignored(
        "adjust_byte_count",
        "bytes are counted without the adjustment; `count` takes one as an argument",
    ),
    ignored("algorithm", "the hash is the one that its constructor names"),
    ignored("byte_pack", "fields lie as the header declares them"),
    ignored("chain_address", "each table has its own addresses"),
    ignored("chain_total_size", "each table has its own size"),
    ignored("default_portmap", "ports belong to parsers as the package says"),
    ignored(
        "dynamic_table_key_masks",
        "control planes cannot mask keys of the whole table",
    ),
    ignored("force_shift", "the parser takes what the program extracts"),
    ignored("hash_mask", "all bits of the hash are used"),
    ignored("meter_profile", "meters have two rates and three colors"),
    ignored("not_deparsed", "the deparser emits the header if it is valid"),
    ignored(
        "not_extracted_in_egress",
        "the egress parser extracts what the program says",
    ),
    ignored("not_parsed", "the parser extracts the header"),
    ignored(
        "override_phase0_action_name",
        "the table of port metadata has its usual name",
    ),
    ignored(
        "override_phase0_table_name",
        "the table of port metadata has its usual name",
    ),
    ignored("packet_entry", "parsing begins at `start`"),
    ignored("phase0", "data of ports are read by `port_metadata_unpack`"),
    ignored("pre_color", "the meter gets a color only as an argument of `execute`"),
    ignored("proxy_hash_algorithm", "the whole key is compared"),
    ignored("proxy_hash_width", "the whole key is compared"),
    ignored("random_seed", "the hash has no seed"),
    ignored("red", "colors have the values of MeterColor_t"),
    ignored(
        "reduction_or_group",
        "results of register actions are assigned, not combined by or",
    ),
    ignored("selector_enable_scramble", "members are chosen by the hash as it is"),
    ignored("terminate_parsing", "the parser goes on as the program says"),
    ignored(
        "true_egress_accounting",
        "egress counts packets as they leave the deparser",
    ),
    ignored("yellow", "colors have the values of MeterColor_t"),
    ignored("green", "colors have the values of MeterColor_t"),
];

/// Parameters of the switches.
const PIPE_PARAMETERS: &[&str] = &["pipe0", "pipe1", "pipe2", "pipe3"];

/// tna.p4: one parser per gress, or one for each of 18 groups of ports.
pub(crate) const TNA: Target = Target {
    name: "tna",
    packages: &[
        PackageSpec {
            name: "Switch",
            blocks: &SWITCH,
            pipelines: PIPE_PARAMETERS,
        },
        PackageSpec {
            name: "MultiParserSwitch",
            blocks: &MULTI_PARSER_SWITCH,
            pipelines: PIPE_PARAMETERS,
        },
    ],
    files: FILES,
    customary: &[],
    macros: &[("__TARGET_TOFINO__", "1")],
    without_effect: IGNORED,
    expansions: &[],
    tables: TABLES,
    control: CONTROL,
};

/// t2na.p4: what it adds is at the end of each list.
pub(crate) const T2NA: Target = Target {
    name: "t2na",
    packages: &[PackageSpec {
        name: "Switch",
        blocks: &SWITCH,
        pipelines: PIPE_PARAMETERS,
    }],
    macros: &[("__TARGET_TOFINO__", "2")],
    control: ControlSpec {
        port_metadata: Some(PortMetadataSpec {
            width: 192,
            ports: 544,
            ..PORT_METADATA
        }),
        ..CONTROL
    },
    ..TNA
};

/// An optional programmable block: only the first pipe must be there, all of it but the ghost
/// control. The package's type ensures that, too.
const fn optional(path: &'static [&'static str], role: &'static str, bindings: &'static [&'static str]) -> BlockSpec {
    BlockSpec {
        optional: true,
        ..block(path, role, bindings)
    }
}

/// The variables of a pipe are its own: each pipe has its own packets, and may have its own types.
macro_rules! parser {
    ($make:ident, $pipe:literal, "ingress", $path:expr, $name:expr) => {
        $make(
            $path,
            $name,
            &[
                "",
                concat!($pipe, ".ingress_headers"),
                concat!($pipe, ".ingress_metadata"),
                concat!($pipe, ".ingress_intrinsic_metadata"),
                concat!($pipe, ".ingress_intrinsic_metadata_for_tm"),
                concat!($pipe, ".ingress_intrinsic_metadata_from_parser"),
            ],
        )
    };
    ($make:ident, $pipe:literal, "egress", $path:expr, $name:expr) => {
        $make(
            $path,
            $name,
            &[
                "",
                concat!($pipe, ".egress_headers"),
                concat!($pipe, ".egress_metadata"),
                concat!($pipe, ".egress_intrinsic_metadata"),
                concat!($pipe, ".egress_intrinsic_metadata_from_parser"),
                concat!($pipe, ".egress_intrinsic_metadata_for_deparser"),
            ],
        )
    };
}

macro_rules! controls {
    ($make:ident, $pipe:literal) => {
        [
            $make(
                &[$pipe, "ingress"],
                concat!($pipe, ".ingress"),
                &[
                    concat!($pipe, ".ingress_headers"),
                    concat!($pipe, ".ingress_metadata"),
                    concat!($pipe, ".ingress_intrinsic_metadata"),
                    concat!($pipe, ".ingress_intrinsic_metadata_from_parser"),
                    concat!($pipe, ".ingress_intrinsic_metadata_for_deparser"),
                    concat!($pipe, ".ingress_intrinsic_metadata_for_tm"),
                    concat!($pipe, ".ghost_intrinsic_metadata"),
                ],
            ),
            $make(
                &[$pipe, "ingress_deparser"],
                concat!($pipe, ".ingress_deparser"),
                &[
                    "",
                    concat!($pipe, ".ingress_headers"),
                    concat!($pipe, ".ingress_metadata"),
                    concat!($pipe, ".ingress_intrinsic_metadata_for_deparser"),
                    concat!($pipe, ".ingress_intrinsic_metadata"),
                ],
            ),
            $make(
                &[$pipe, "egress"],
                concat!($pipe, ".egress"),
                &[
                    concat!($pipe, ".egress_headers"),
                    concat!($pipe, ".egress_metadata"),
                    concat!($pipe, ".egress_intrinsic_metadata"),
                    concat!($pipe, ".egress_intrinsic_metadata_from_parser"),
                    concat!($pipe, ".egress_intrinsic_metadata_for_deparser"),
                    concat!($pipe, ".egress_intrinsic_metadata_for_output_port"),
                ],
            ),
            $make(
                &[$pipe, "egress_deparser"],
                concat!($pipe, ".egress_deparser"),
                &[
                    "",
                    concat!($pipe, ".egress_headers"),
                    concat!($pipe, ".egress_metadata"),
                    concat!($pipe, ".egress_intrinsic_metadata_for_deparser"),
                    concat!($pipe, ".egress_intrinsic_metadata"),
                    concat!($pipe, ".egress_intrinsic_metadata_from_parser"),
                ],
            ),
            optional(
                &[$pipe, "ghost"],
                concat!($pipe, ".ghost"),
                &[concat!($pipe, ".ghost_intrinsic_metadata")],
            ),
        ]
    };
}

macro_rules! pipe {
    ($make:ident, $pipe:literal) => {
        join::<7, _>([
            &[
                parser!(
                    $make,
                    $pipe,
                    "ingress",
                    &[$pipe, "ingress_parser"],
                    concat!($pipe, ".ingress_parser")
                ),
                parser!(
                    $make,
                    $pipe,
                    "egress",
                    &[$pipe, "egress_parser"],
                    concat!($pipe, ".egress_parser")
                ),
            ],
            &controls!($make, $pipe),
        ])
    };
}

/// The parsers of a gress, `prsr0` to `prsr17`: the first is there in each pipe that is.
macro_rules! parsers {
    ($make:ident, $pipe:literal, $gress:tt, $list:literal: $($n:literal)*) => {
        [
            parser!($make, $pipe, $gress, &[$pipe, $list, "prsr0"], concat!($pipe, ".", $gress, "_parser0")),
            $(parser!(
                optional,
                $pipe,
                $gress,
                &[$pipe, $list, concat!("prsr", $n)],
                concat!($pipe, ".", $gress, "_parser", $n)
            ),)*
        ]
    };
}

macro_rules! multi_parser_pipe {
    ($make:ident, $pipe:literal) => {
        join::<41, _>([
            &parsers!($make, $pipe, "ingress", "ig_prsr": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17),
            &parsers!($make, $pipe, "egress", "eg_prsr": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17),
            &controls!($make, $pipe),
        ])
    };
}

const SWITCH: [BlockSpec; 28] = join([
    &pipe!(block, "pipe0"),
    &pipe!(optional, "pipe1"),
    &pipe!(optional, "pipe2"),
    &pipe!(optional, "pipe3"),
]);

const MULTI_PARSER_SWITCH: [BlockSpec; 164] = join([
    &multi_parser_pipe!(block, "pipe0"),
    &multi_parser_pipe!(optional, "pipe1"),
    &multi_parser_pipe!(optional, "pipe2"),
    &multi_parser_pipe!(optional, "pipe3"),
]);

/// The concatenated lists, `N` programmable blocks in all.
const fn join<const N: usize, const LISTS: usize>(lists: [&[BlockSpec]; LISTS]) -> [BlockSpec; N] {
    let mut all = [block(&[], "", &[]); N];
    let (mut list, mut next) = (0, 0);
    while list < LISTS {
        let mut i = 0;
        while i < lists[list].len() {
            all[next] = lists[list][i];
            next += 1;
            i += 1;
        }
        list += 1;
    }
    assert!(next == N, "the lists have another length");
    all
}
