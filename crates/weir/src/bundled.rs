//! Programs that come with weir, so that an installed binary needs no path.

use weir_extern_api::{Files, NoFiles, ProgramFileError};
use weir_syntax::preprocess::MemoryLoader;

/// Name and text of each bundled program.
pub const PROGRAMS: &[(&str, &str)] = &[
    (
        "anomaly_filter.p4",
        include_str!("../../../p4/programs/anomaly_filter/anomaly_filter.p4"),
    ),
    (
        "acl_firewall.p4",
        include_str!("../../../p4/programs/acl_firewall/acl_firewall.p4"),
    ),
    (
        "acl_firewall_tna.p4",
        include_str!("../../../p4/programs/acl_firewall_tna/acl_firewall_tna.p4"),
    ),
    (
        "acl_firewall_ternary.p4",
        include_str!("../../../p4/programs/acl_firewall_ternary/acl_firewall_ternary.p4"),
    ),
    (
        "heartbeat_tna.p4",
        include_str!("../../../p4/programs/heartbeat_tna/heartbeat_tna.p4"),
    ),
    (
        "heavy_hitter_tna.p4",
        include_str!("../../../p4/programs/heavy_hitter_tna/heavy_hitter_tna.p4"),
    ),
    ("int_lab.p4", include_str!("../../../p4/programs/int_lab/int_lab.p4")),
    (
        "int_lab_tna.p4",
        include_str!("../../../p4/programs/int_lab_tna/int_lab_tna.p4"),
    ),
    ("int_md.p4", include_str!("../../../p4/programs/int_md/int_md.p4")),
    (
        "ipsec_gateway.p4",
        include_str!("../../../p4/programs/ipsec_gateway/ipsec_gateway.p4"),
    ),
    (
        "ipv4_router.p4",
        include_str!("../../../p4/programs/ipv4_router/ipv4_router.p4"),
    ),
    (
        "ipv4_router_psa.p4",
        include_str!("../../../p4/programs/ipv4_router_psa/ipv4_router_psa.p4"),
    ),
    ("l2_async.p4", include_str!("../../../p4/programs/l2_async/l2_async.p4")),
    (
        "l2_switch.p4",
        include_str!("../../../p4/programs/l2_switch/l2_switch.p4"),
    ),
    (
        "l2_switch_tna.p4",
        include_str!("../../../p4/programs/l2_switch_tna/l2_switch_tna.p4"),
    ),
    ("mixes.p4", include_str!("../../../p4/programs/mixes/mixes.p4")),
    (
        "rina_router.p4",
        include_str!("../../../p4/programs/rina_router/rina_router.p4"),
    ),
    ("tc1.p4", include_str!("../../../p4/programs/latency/tc1/tc1.p4")),
    ("tc2.p4", include_str!("../../../p4/programs/latency/tc2/tc2.p4")),
    ("tc3.p4", include_str!("../../../p4/programs/latency/tc3/tc3.p4")),
    ("tc4.p4", include_str!("../../../p4/programs/latency/tc4/tc4.p4")),
    ("tc5.p4", include_str!("../../../p4/programs/latency/tc5/tc5.p4")),
    ("tc6a.p4", include_str!("../../../p4/programs/latency/tc6a/tc6a.p4")),
    ("tc6b.p4", include_str!("../../../p4/programs/latency/tc6b/tc6b.p4")),
];

/// Name and text of each file that a bundled program includes.
const INCLUDED: &[(&str, &str)] = &[
    ("headers.p4i", include_str!("../../../p4/programs/int_md/headers.p4i")),
    ("parser.p4i", include_str!("../../../p4/programs/int_md/parser.p4i")),
    ("state.p4i", include_str!("../../../p4/programs/int_md/state.p4i")),
    ("ingress.p4i", include_str!("../../../p4/programs/int_md/ingress.p4i")),
    ("source.p4i", include_str!("../../../p4/programs/int_md/source.p4i")),
    ("hop.p4i", include_str!("../../../p4/programs/int_md/hop.p4i")),
    ("sink.p4i", include_str!("../../../p4/programs/int_md/sink.p4i")),
    ("events.p4i", include_str!("../../../p4/programs/int_md/events.p4i")),
    ("report.p4i", include_str!("../../../p4/programs/int_md/report.p4i")),
    ("egress.p4i", include_str!("../../../p4/programs/int_md/egress.p4i")),
    ("deparser.p4i", include_str!("../../../p4/programs/int_md/deparser.p4i")),
];

/// The files that bundled programs include.
pub fn included() -> MemoryLoader {
    INCLUDED.iter().copied().collect()
}

/// Name and content of each file that a bundled program names.
const FILES: &[(&str, &[u8])] = &[(
    "anomaly_filter.onnx",
    include_bytes!("../../../p4/programs/anomaly_filter/anomaly_filter.onnx"),
)];

/// Name and content of everything that bundled programs are made of.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "a lab writes them"))]
pub fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let texts = PROGRAMS
        .iter()
        .chain(INCLUDED)
        .map(|(name, text)| (*name, text.as_bytes()));
    texts.chain(FILES.iter().copied())
}

/// The files that bundled programs name.
#[derive(Debug, Clone, Copy)]
pub struct BundledFiles;

impl Files for BundledFiles {
    fn read(&self, name: &str, limit: usize) -> Result<Vec<u8>, ProgramFileError> {
        match FILES
            .iter()
            .find(|(known, bytes)| *known == name && bytes.len() <= limit)
        {
            Some((_, bytes)) => Ok(bytes.to_vec()),
            None => NoFiles.read(name, limit),
        }
    }
}

/// Control-plane state of the demo.
pub const DEMO_ENTRIES: &str = include_str!("../../../p4/programs/ipv4_router/demo.entries");

/// What came to each port of the demo's router: captured on veth pairs, where ping, curl and iperf3
/// ran between two hosts (network namespaces) with a router between them.
pub const DEMO_CAPTURES: &[(u32, &[u8])] = &[
    (1, include_bytes!("../../../p4/programs/ipv4_router/demo-port1.pcap")),
    (2, include_bytes!("../../../p4/programs/ipv4_router/demo-port2.pcap")),
];
