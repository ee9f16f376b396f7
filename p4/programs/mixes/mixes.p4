// Decisions that a processor cannot foresee: a table of four actions, and a second table for some of the
// packets. For measuring; see README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<9> Port;

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
}

parser MixParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MixVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MixIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets_and_bytes) too_short;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(Port port) {
        standard_metadata.egress_spec = port;
    }

    action forward_to(Port port, MacAddress mac) {
        hdr.ethernet.dst_addr = mac;
        standard_metadata.egress_spec = port;
    }

    action mark(Port port, bit<16> ether_type) {
        hdr.ethernet.ether_type = ether_type;
        standard_metadata.egress_spec = port;
    }

    action swap(Port port) {
        MacAddress dst_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
        hdr.ethernet.src_addr = dst_addr;
        standard_metadata.egress_spec = port;
    }

    action set_source(MacAddress mac) {
        hdr.ethernet.src_addr = mac;
    }

    table destinations {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; forward_to; mark; swap; drop; }
        const default_action = drop;
        size = 1048576;
    }

    // Only for sources with an odd address.
    table odd_sources {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { set_source; NoAction; }
        const default_action = NoAction;
        size = 1048576;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            too_short.count(0);
            drop();
        } else {
            if (hdr.ethernet.src_addr[0:0] == 1) {
                odd_sources.apply();
            }
            destinations.apply();
        }
    }
}

control MixEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control MixComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MixDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(MixParser(), MixVerifyChecksum(), MixIngress(), MixEgress(), MixComputeChecksum(), MixDeparser()) main;
