// A switch without a program: every packet is dropped.
#include <core.p4>
#include <v1model.p4>

struct headers {}
struct metadata {}

parser Parse(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers hdr, inout metadata meta) {
    apply {}
}

control Drop(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {
        mark_to_drop(standard);
    }
}

control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {}
}

control Emit(packet_out packet, in headers hdr) {
    apply {}
}

V1Switch(Parse(), Nothing(), Drop(), NoEgress(), Nothing(), Emit()) main;
