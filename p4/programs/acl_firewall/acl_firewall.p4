// A firewall between two ports with one table: an exact match on the IPv4 source and destination
// addresses. It is the program whose table RBFRT's evaluation fills. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<9> Port;

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

struct metadata_t {
}

error {
    Ipv4VersionWrong
}

parser FirewallParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.Ipv4VersionWrong);
        transition accept;
    }
}

control FirewallVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FirewallIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: not parsed, 1: no entry, whatever the default action did, 2: neither IPv4 nor ARP.
    counter(3, CounterType.packets_and_bytes) not_matched;
    direct_counter(CounterType.packets_and_bytes) pair_packets;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // Ports 0 and 1 are the two sides of the firewall, 2 and 3 those of a second one, and so on.
    action allow() {
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
    }

    action deny() {
        drop();
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
        if (standard_metadata.parser_error != error.NoError) {
            not_matched.count(0);
            drop();
        } else if (hdr.ipv4.isValid()) {
            if (!address_pairs.apply().hit) {
                not_matched.count(1);
            }
        } else if (hdr.ethernet.ether_type == ETHERTYPE_ARP) {
            // Without ARP the two sides do not find each other.
            allow();
        } else {
            not_matched.count(2);
            drop();
        }
    }
}

control FirewallEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FirewallComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FirewallParser(), FirewallVerifyChecksum(), FirewallIngress(), FirewallEgress(), FirewallComputeChecksum(), FirewallDeparser()) main;
