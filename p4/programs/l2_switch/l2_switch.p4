// A learning Ethernet switch: a table of source addresses, a table of destination addresses, and
// digests by which the control plane fills both. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<9> Port;

// The multicast group with all ports.
const bit<16> FLOOD_GROUP = 1;

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

// What the control plane learns: this address is behind this port.
struct learned_t {
    MacAddress mac;
    Port port;
}

parser SwitchParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control SwitchVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: too short, 1: group address as source, 2: link-local destination, 3: back where it came from.
    counter(4, CounterType.packets_and_bytes) refused;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action learn() {
        digest<learned_t>(1, { hdr.ethernet.src_addr, standard_metadata.ingress_port });
    }

    // A station that shows up at another port has moved: it is learned again.
    action known(Port port) {
        if (standard_metadata.ingress_port != port) {
            learn();
        }
    }

    action forward(Port port) {
        standard_metadata.egress_spec = port;
    }

    action flood() {
        standard_metadata.mcast_grp = FLOOD_GROUP;
    }

    // An address that has not been heard for a while is forgotten: every hit restarts the entry's
    // idle timeout, and the control plane is told when it runs out.
    table source_macs {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { known; learn; }
        const default_action = learn;
        support_timeout = true;
        size = 1048576;
    }

    table destination_macs {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; flood; drop; }
        default_action = flood;
        size = 1048576;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            refused.count(0);
            drop();
        } else if (hdr.ethernet.src_addr[40:40] == 1) {
            // Nobody's own address is a group address.
            refused.count(1);
            drop();
        } else if (hdr.ethernet.dst_addr[47:4] == 0x0180C200000) {
            // 01-80-C2-00-00-0X is for the link (pause, LLDP, spanning tree); no bridge forwards it.
            refused.count(2);
            drop();
        } else {
            source_macs.apply();
            switch (destination_macs.apply().action_run) {
                forward: {
                    if (standard_metadata.egress_spec == standard_metadata.ingress_port) {
                        refused.count(3);
                        drop();
                    }
                }
                default: { }
            }
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        // A flooded frame does not go back to where it came from.
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control SwitchComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(SwitchParser(), SwitchVerifyChecksum(), SwitchIngress(), SwitchEgress(), SwitchComputeChecksum(), SwitchDeparser()) main;
