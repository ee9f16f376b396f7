// A firewall between two ports for TNA, with one table: an exact match on the IPv4 source and destination addresses.
// See README.md beside this file.
#include <core.p4>
#include <tna.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> header_checksum;
    Ipv4Address src_addr;
    Ipv4Address dst_addr;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct none_t {
}

parser FirewallIngressParser(packet_in packet, out headers_t hdr, out none_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Another version has no way on: the device drops such packets by itself.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version) {
            4: accept;
        }
    }
}

control FirewallIngress(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t intrinsic,
                        in ingress_intrinsic_metadata_from_parser_t from_parser,
                        inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                        inout ingress_intrinsic_metadata_for_tm_t tm) {
    // 0: too short, 1: no entry, whatever the default action did, 2: neither IPv4 nor ARP.
    Counter<bit<64>, bit<2>>(3, CounterType_t.PACKETS_AND_BYTES) not_matched;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) pair_packets;

    // Ports 0 and 1 are the two sides of the firewall, 2 and 3 those of a second one, and so on.
    action pass() {
        tm.ucast_egress_port = intrinsic.ingress_port ^ 1;
    }

    action allow() {
        pair_packets.count();
        pass();
    }

    action deny() {
        pair_packets.count();
        for_deparser.drop_ctl = 1;
    }

    table address_pairs {
        key = {
            hdr.ipv4.src_addr: exact;
            hdr.ipv4.dst_addr: exact;
        }
        actions = { allow; deny; }
        default_action = deny;
        counters = pair_packets;
        size = 1048576;
    }

    apply {
        tm.bypass_egress = 1;
        if (from_parser.parser_err != PARSER_ERROR_OK) {
            not_matched.count(0);
            for_deparser.drop_ctl = 1;
        } else if (hdr.ipv4.isValid()) {
            if (!address_pairs.apply().hit) {
                not_matched.count(1);
            }
        } else if (hdr.ethernet.ether_type == ETHERTYPE_ARP) {
            // Without ARP the two sides do not find each other.
            pass();
        } else {
            not_matched.count(2);
            for_deparser.drop_ctl = 1;
        }
    }
}

control FirewallIngressDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                                in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

parser FirewallEgressParser(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control FirewallEgress(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
                       in egress_intrinsic_metadata_from_parser_t from_parser,
                       inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                       inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control FirewallEgressDeparser(packet_out packet, inout none_t hdr, in none_t meta,
                               in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { }
}

Pipeline(FirewallIngressParser(), FirewallIngress(), FirewallIngressDeparser(), FirewallEgressParser(), FirewallEgress(), FirewallEgressDeparser()) pipe;

Switch(pipe) main;
