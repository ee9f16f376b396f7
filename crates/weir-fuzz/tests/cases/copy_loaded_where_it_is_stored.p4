#include <core.p4>
#include <v1model.p4>
header p_t { bit<8> kind; bit<8> op; bit<16> key; }
header b_t { bit<8> x; bit<8> w; bit<16> v; }
header f_t { bit<32> f; }
header r_t { bit<8> y; bit<8> z1; bit<8> z2; bit<8> z3; }
struct headers_t { p_t p; f_t f2; b_t b; f_t f1; r_t r; }
struct meta_t { bit<8> n; }
parser P(packet_in k, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { k.extract(hdr.p); transition select(hdr.p.kind) { 1: one; default: two; } }
    state one { k.extract(hdr.b); k.extract(hdr.f1); transition last; }
    state two { k.extract(hdr.f2); k.extract(hdr.b); transition last; }
    state last { k.extract(hdr.r); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action go(bit<9> port) { sm.egress_spec = port; }
    table t { key = { hdr.p.key : exact; } actions = { go; NoAction; } const default_action = NoAction; }
    apply {
        hdr.b.x = hdr.r.y;
        sm.egress_spec = 3;
        if (hdr.p.op == 7) {
            hdr.r.z1 = 0x11;
            hdr.r.z3 = 0x33;
        } else {
            t.apply();
            hdr.b.x = 0x55;
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out k, in headers_t hdr) { apply { k.emit(hdr.p); k.emit(hdr.f2); k.emit(hdr.b); k.emit(hdr.f1); k.emit(hdr.r);} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
