// The benchmark of the asynchronous-extern paper: Ethernet forwarding by two exact tables, and a
// call of an extern of known cost for some of the packets. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

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
    bit<1> do_extern;
    bit<32> cycles;
}

// What the control plane learns: this address is behind this port.
struct learned_t {
    MacAddress mac;
    Port port;
}

parser L2Parser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control L2VerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control L2Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action known() { }

    action learn() {
        digest<learned_t>(1, { hdr.ethernet.src_addr, standard_metadata.ingress_port });
    }

    // The entry of a destination says whether its packets meet the extern, and what that costs: the
    // share of such entries is the share of packets that wait.
    action forward(Port port, bit<1> do_extern, bit<32> cycles) {
        standard_metadata.egress_spec = port;
        meta.do_extern = do_extern;
        meta.cycles = cycles;
    }

    table smac {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { known; learn; }
        const default_action = learn;
        size = 1048576;
    }

    table dmac {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; drop; }
        const default_action = drop;
        size = 1048576;
    }

    apply {
        smac.apply();
        dmac.apply();
        if (meta.do_extern == 1) {
            @async(order=flow) {
                busy_cycles(meta.cycles);
            }
        }
    }
}

control L2Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control L2ComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control L2Deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(L2Parser(), L2VerifyChecksum(), L2Ingress(), L2Egress(), L2ComputeChecksum(), L2Deparser()) main;
