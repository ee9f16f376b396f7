// A clone takes fields over that still lie in the packet, at a place that depends on it.
#include <core.p4>
#include <v1model.p4>
header first_t { bit<8> more; }
header step_t { bit<8> more; bit<16> value; }
header last_t { bit<4> low; bit<4> high; bit<16> value; }
struct headers_t { first_t first; step_t[3] steps; last_t last; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.first);
        transition select(hdr.first.more) { 0: end; default: step; }
    }
    state step {
        b.extract(hdr.steps.next);
        transition select(hdr.steps.last.more) { 0: end; default: step; }
    }
    state end { b.extract(hdr.last); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { sm.egress_spec = 2; } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> value) { hdr.last.value[11:4] = value; }
    table first { actions = { set; NoAction; } default_action = NoAction; }
    table by_port { key = { sm.ingress_port: exact; } actions = { set; NoAction; } default_action = NoAction; }
    apply {
        if (first.apply().hit) {
            by_port.apply();
        }
        if (sm.instance_type == 0 && hdr.first.isValid()) {
            clone(CloneType.E2E, 1);
        }
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.last); b.emit(hdr.steps); b.emit(hdr.first); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
