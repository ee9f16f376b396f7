#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> t; bit<8> x; }
header c_t { bit<3> p; bit<5> q; bit<16> v; }
header w_t { bit<128> big; bit<128> big2; bit<256> big3; bit<8> tail; }
header o_t { bit<8> len; varbit<64> opts; }
struct headers_t { a_t a; c_t c; a_t a2; c_t[3] cs; w_t w; o_t o; }
struct meta_t { bit<8> m1; bit<16> m2; }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
state start { b.extract(hdr.a); transition select(hdr.a.t) { 0: a2; 1: c; 2: st; 3: o; default: st; } }
state st { b.extract(hdr.cs.next); transition select(hdr.cs.last.p) { 0: st; 1: a2; 2: o; 3: c; default: c; } }
state o { b.extract(hdr.o, (bit<32>) (hdr.a.x & 3) << 3); transition select(hdr.o.len) { 0: c; 1: a2; default: c; } }
state c { b.extract(hdr.c); transition select(hdr.c.p) { 0: a2; default: a2; } }
state a2 { b.extract(hdr.a2); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {  } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { action set(bit<9> port) { sm.egress_spec = port; } action mt(bit<8> v) { meta.m1 = meta.m1 + v; } action inv() { hdr.a2.setInvalid(); } action mk(bit<8> v) { hdr.o.len = v; }
table t1 { key = { hdr.a2.t: exact; } actions = { set; mt; NoAction; } const default_action = mt(18); const entries = { 2: set(5); 0: mt(85);  } }
table t2 { key = { hdr.o.len: exact; } actions = { set; mt; NoAction; } const default_action = mt(13); const entries = { 0: mt(198); 1: set(7); 3: set(5); 2: mt(89);  } }
table t3 { key = { hdr.o.len: exact; hdr.a2.x: exact; } actions = { set; mt; NoAction; } const default_action = mt(70); const entries = { (0,0): set(4); (1,0): mt(101); (2,1): set(9); (1,2): mt(14);  } }
table t4 { key = { hdr.a.x: exact; hdr.o.len: exact; } actions = { set; mt; NoAction; } const default_action = mt(85); const entries = { (3,0): set(9); (3,3): mt(101); (0,2): set(7); (2,1): mt(71); (1,1): set(4); (0,3): set(9);  } }
table t5 { key = { hdr.c.q: exact; hdr.o.len: exact; } actions = { set; mt; NoAction; } const default_action = NoAction; const entries = { (0,2): mt(41); (1,2): mt(12); (0,0): mt(63); (0,3): mt(50); (2,1): set(9);  } }
 apply { sm.egress_spec = 2; if (hdr.a2.isValid()) { t1.apply(); if (hdr.o.isValid()) { t2.apply();  } if (sm.ingress_port < 2) { hdr.a2 = hdr.a; }t3.apply();    } } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {  apply {  } }
control C(inout headers_t hdr, inout meta_t meta) { apply {  } }
control D(packet_out b, in headers_t hdr) {  apply {  } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
