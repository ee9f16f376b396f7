// A payload that an extern changes before the packet is cloned, replicated, resubmitted or put into
// another queue. `op` says which of these, `how` what the extern does.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>
extern void change(payload_resize data, in bit<8> how);
header h_t { bit<8> op; bit<8> how; bit<16> length; }
header more_t { bit<16> value; }
struct headers_t { h_t h; more_t more; }
struct meta_t { @field_list(1) bit<8> unused; }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        transition select(b.lookahead<bit<16>>()) { 0xabcd: more; default: accept; }
    }
    state more { b.extract(hdr.more); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    payload_resize() data;
    apply {
        sm.egress_spec = 1;
        if (sm.instance_type == 0) {
            change(data, hdr.h.how);
            if (hdr.h.op == 1) { sm.mcast_grp = 1; }
            if (hdr.h.op == 2) { clone_preserving_field_list(CloneType.I2E, 7, 1); }
            if (hdr.h.op == 3) { resubmit_preserving_field_list(1); }
            if (hdr.h.op == 4) { sm.priority = 2; }
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    payload_resize() data;
    apply {
        hdr.h.length = (bit<16>) sm.packet_length;
        if (hdr.h.op == 5 && sm.instance_type == 0) {
            change(data, hdr.h.how);
            clone_preserving_field_list(CloneType.E2E, 7, 1);
        }
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
