// Test case 1, an enterprise network: VLAN in VLAN, IPv6, UDP.
// See ../README.md.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header vlan_t {
    bit<3> pcp;
    bit<1> dei;
    bit<12> vid;
    bit<16> ether_type;
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
    vlan_t[2] vlan;
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
            0x8100: parse_vlan;
            0x88a8: parse_vlan;
            0x86dd: parse_ipv6;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan.next);
        transition select(hdr.vlan.last.ether_type) {
            0x8100: parse_vlan;
            0x86dd: parse_ipv6;
            default: accept;
        }
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

    action forward_and_mark(PortId_t port, bit<8> traffic_class) {
        tm.ucast_egress_port = port;
        hdr.ipv6.traffic_class = traffic_class;
    }

    table members {
        key = {
            hdr.ethernet.dst_addr: exact;
            hdr.vlan[0].vid: exact;
        }
        actions = { forward; NoAction; }
        default_action = NoAction;
        size = 64;
    }

    table pairs {
        key = {
            hdr.ipv6.src_addr: exact;
            hdr.ipv6.dst_addr: exact;
        }
        actions = { NoAction; }
        default_action = NoAction;
        size = 10000;
    }

    table services {
        key = {
            hdr.ipv6.dst_addr: lpm;
            hdr.udp.dst_port: exact;
        }
        actions = { forward_and_mark; NoAction; }
        default_action = NoAction;
        size = 1000;
    }

    apply {
        tm.bypass_egress = 1;
        if (hdr.udp.isValid()) {
            members.apply();
            pairs.apply();
            services.apply();
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
