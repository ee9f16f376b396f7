// A program for it: a table says where packets of a type go.
#include <core.p4>
#include <hub.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

parser P(packet_in packet, out headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control C(inout headers_t hdr, inout hub_t hub) {
    Tally(16) seen;

    action relay(bit<8> port) {
        hub.out_port = port;
    }

    table by_type {
        key = { hdr.ethernet.ether_type: exact; }
        actions = { relay; NoAction; }
    }

    apply {
        if (by_type.apply().hit) {
            seen.note((bit<32>) hub.in_port, 1);
        } else {
            seen.note(0, 1);
        }
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

Hub(P(), C(), D()) main;
