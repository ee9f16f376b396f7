#include <core.p4>
#include <v1model.p4>
header first_t { bit<8> more; }
header step_t { bit<8> more; bit<16> value; }
header last_t { bit<8> k; bit<8> j; }
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
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<9> port) { sm.egress_spec = port; }
    action mark(bit<16> m) { sm.mcast_grp = m; hdr.first.more = m[7:0]; }
    table t1 { key = { hdr.first.more: exact; } actions = { mark; NoAction; } default_action = NoAction; }
    table t2 { key = { hdr.first.more: exact; } actions = { mark; NoAction; } default_action = NoAction; }
    table t3 { key = { hdr.last.k: exact; } actions = { set; NoAction; } default_action = NoAction; const entries = { 0xaa: set(5); 0x02: set(6); 0x01: set(7); 0: set(8);} }
    apply {
      if (hdr.last.isValid()) {
        t1.apply();
        if (t2.apply().hit) {} 
        if (sm.ingress_port == 0) hdr.last.setInvalid();
        t3.apply();
      }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.first); b.emit(hdr.steps); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
