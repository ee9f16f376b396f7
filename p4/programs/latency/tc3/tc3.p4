// Test case 3, the edge of a provider network: Ethernet over MPLS.
// See ../README.md.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header mpls_t {
    bit<20> label;
    bit<3> tc;
    bit<1> bottom;
    bit<8> ttl;
}

struct headers_t {
    ethernet_t ethernet;
    mpls_t[4] mpls;
    ethernet_t inner_ethernet;
}

struct none_t { }

parser CaseIngressParser(packet_in packet, out headers_t hdr, out none_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x8847: parse_mpls;
            default: accept;
        }
    }

    state parse_mpls {
        packet.extract(hdr.mpls.next);
        transition select(hdr.mpls.last.bottom) {
            0: parse_mpls;
            1: parse_mpls_end;
        }
    }

    state parse_mpls_end {
        transition parse_inner_ethernet;
    }

    state parse_inner_ethernet {
        packet.extract(hdr.inner_ethernet);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t intrinsic,
                    in ingress_intrinsic_metadata_from_parser_t from_parser,
                    inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                    inout ingress_intrinsic_metadata_for_tm_t tm) {
    action forward_and_swap(PortId_t port, bit<20> label) {
        tm.ucast_egress_port = port;
        hdr.mpls[0].label = label;
    }

    table labels {
        key = {
            hdr.mpls[0].label: exact;
        }
        actions = { forward_and_swap; NoAction; }
        default_action = NoAction;
        size = 20000;
    }

    apply {
        tm.bypass_egress = 1;
        if (hdr.inner_ethernet.isValid()) {
            labels.apply();
        }
    }
}

control CaseIngressDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

parser CaseEgressParser(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control CaseEgress(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
                   in egress_intrinsic_metadata_from_parser_t from_parser,
                   inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control CaseEgressDeparser(packet_out packet, inout none_t hdr, in none_t meta,
                           in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { }
}

Pipeline(CaseIngressParser(), CaseIngress(), CaseIngressDeparser(), CaseEgressParser(), CaseEgress(), CaseEgressDeparser()) pipe;

Switch(pipe) main;
