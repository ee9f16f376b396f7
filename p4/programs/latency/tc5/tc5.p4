// Test case 5, in-band telemetry: INT over TCP.
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

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4> data_offset;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header int_shim_t {
    bit<8> type;
    bit<8> reserved;
    bit<8> length;
    bit<6> dscp;
    bit<2> reserved2;
}

header int_header_t {
    bit<4> version;
    bit<12> flags;
    bit<8> hop_length;
    bit<8> remaining_hops;
    bit<16> instructions;
    bit<16> domain;
    bit<16> domain_instructions;
    bit<16> domain_flags;
}

header int_metadata_t {
    bit<32> switch_id;
    bit<32> hop_latency;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tcp_t tcp;
    int_shim_t int_shim;
    int_header_t int_header;
    int_metadata_t[2] int_metadata;
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
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            6: parse_tcp;
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        transition select(hdr.ipv4.tos) {
            0x5c: parse_int_shim;
            default: accept;
        }
    }

    state parse_int_shim {
        packet.extract(hdr.int_shim);
        transition parse_int_header;
    }

    state parse_int_header {
        packet.extract(hdr.int_header);
        transition select(hdr.int_shim.length) {
            5: parse_int_first;
            7: parse_int_second;
            default: accept;
        }
    }

    state parse_int_second {
        packet.extract(hdr.int_metadata.next);
        transition parse_int_first;
    }

    state parse_int_first {
        packet.extract(hdr.int_metadata.next);
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

    action mark_low() {
        hdr.ipv4.tos = 0x10;
    }

    action mark_middle() {
        hdr.ipv4.tos = 0x20;
    }

    action mark_high() {
        hdr.ipv4.tos = 0x30;
    }

    table pairs {
        key = {
            hdr.ipv4.src_addr: exact;
            hdr.ipv4.dst_addr: exact;
        }
        actions = { forward; NoAction; }
        default_action = NoAction;
        size = 50;
    }

    table versions {
        key = {
            hdr.int_header.version: exact;
        }
        actions = { mark_low; mark_middle; mark_high; }
        default_action = mark_low;
        const entries = {
            1: mark_middle();
            2: mark_high();
        }
        size = 2;
    }

    apply {
        tm.bypass_egress = 1;
        if (hdr.int_metadata[1].isValid()) {
            pairs.apply();
            versions.apply();
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
