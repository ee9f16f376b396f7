#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> t; bit<8> x; }
struct headers_t { a_t a; a_t o; a_t b; }
struct meta_t { }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { p.extract(hdr.a); transition select(hdr.a.t) { 0: b; default: o; } }
    state o { p.extract(hdr.o); transition b; }
    state b { p.extract(hdr.b); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<9> port) { sm.egress_spec = port; }
    table t1 { key = { hdr.a.x: exact; } actions = { set; NoAction; } const default_action = NoAction; const entries = { 9: set(4); } }
    table t2 { key = { hdr.a.t: exact; } actions = { set; NoAction; } const default_action = NoAction; const entries = { 9: set(4); } }
    table t3 { key = { hdr.b.x: exact; } actions = { set; NoAction; } const default_action = NoAction; const entries = { 7: set(5); 0: set(6); 8: set(7); } }
    apply {
        sm.egress_spec = 2;
        if (hdr.b.isValid()) {
            if (t1.apply().miss) {
              if (hdr.o.isValid()) { t2.apply(); }
              if (sm.ingress_port == 1) { hdr.b.x = hdr.a.x; }
              t3.apply();
            }
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.a); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
