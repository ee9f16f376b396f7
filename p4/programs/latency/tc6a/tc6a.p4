// Test case 6A, the union of several networks: NVGRE.
// See ../README.md.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> header_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header gre_t {
    bit<16> flags;
    bit<16> protocol;
}

header nvgre_t {
    bit<24> vsid;
    bit<8> flow_id;
}

header ipv6_t {
    bit<4> version;
    bit<8> traffic_class;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> src_addr;
    bit<128> dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    gre_t gre;
    nvgre_t nvgre;
    ethernet_t inner_ethernet;
    ipv6_t ipv6;
    udp_t udp;
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
            0x0800: parse_ipv4;
            0x86dd: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            47: parse_gre;
            17: parse_udp;
            default: accept;
        }
    }

    state parse_gre {
        packet.extract(hdr.gre);
        transition select(hdr.gre.protocol) {
            0x6558: parse_nvgre;
            default: accept;
        }
    }

    state parse_nvgre {
        packet.extract(hdr.nvgre);
        transition parse_inner_ethernet;
    }

    state parse_inner_ethernet {
        packet.extract(hdr.inner_ethernet);
        transition accept;
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            17: parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t intrinsic,
                    in ingress_intrinsic_metadata_from_parser_t from_parser,
                    inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                    inout ingress_intrinsic_metadata_for_tm_t tm) {
    action forward(PortId_t port) {
        tm.ucast_egress_port = port;
    }

    table hosts {
        key = {
            hdr.ethernet.dst_addr: exact;
            hdr.ethernet.src_addr: exact;
        }
        actions = { NoAction; }
        default_action = NoAction;
        size = 5000;
    }

    table segments {
        key = {
            hdr.ipv4.dst_addr: exact;
            hdr.nvgre.vsid: exact;
        }
        actions = { forward; NoAction; }
        default_action = NoAction;
        size = 1000;
    }

    apply {
        tm.bypass_egress = 1;
        if (hdr.inner_ethernet.isValid()) {
            hosts.apply();
            segments.apply();
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
