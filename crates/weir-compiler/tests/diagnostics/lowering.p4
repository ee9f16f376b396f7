// What the checker accepts and weir cannot do, or only sees once everything is instantiated.
#include <core.p4>
#include <v1model.p4>
match_kind { fuzzy }
header h_t { bit<8> a; bit<8> b; }
header v_t { varbit<8> v; }
struct inner_t { h_t[2] s; }
struct mixed_t { h_t h; bit<8> x; }
struct headers_t { h_t h; v_t v; h_t[2] s; }
struct meta_t { mixed_t mixed; tuple<bit<8>, bit<8>> pair; bit<8> m; }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control Twice(inout headers_t hdr) {
    action one() { }
    @name(".shared") table t { key = { hdr.h.a: exact; } actions = { one; } default_action = one(); }
    apply { t.apply(); }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Twice() first;
    Twice() second;
    action one() { }
    action takes(mixed_t m) { } //~ error[unsupported] the control plane cannot set the parameter `m` of type struct mixed_t
    @name("same") action x1() { }
    @name("same") action x2() { }
    table t1 { key = { hdr.h.a + hdr.h.b: exact; } actions = { one; } default_action = one(); } //~ error[expected] the control plane cannot name this key
    table t2 { key = { hdr.h.a: fuzzy; } actions = { one; } default_action = one(); } //~ error[unsupported] weir has no tables with the match kind `fuzzy`
    table t3 { key = { hdr.v.v: exact; } actions = { one; } default_action = one(); } //~ error[unsupported] weir has no table keys of type varbit<8>
    table t4 { key = { hdr.h.a: exact; } actions = { takes; one; } default_action = one(); }
    table t5 { key = { hdr.h.a: exact; } actions = { x1; x2; one; } default_action = one(); }
    table t6 { key = { hdr.h.a: exact; } actions = { one; } default_action = one(); counters = 5; } //~ error[type-error] the property `counters` takes an instance of `direct_counter`, but this is the number 5
    table t7 { key = { hdr.h.a: exact; } actions = { one; } default_action = one(); const entries = { 1 &&& 3: one(); } } //~ error[invalid] a key of kind exact needs one value
    table t8 { key = { hdr.h.a: ternary; } actions = { one; } default_action = one(); //~ error[overlimit] the priorities of the entries of `t8` would become negative
        priority_delta = 10; entries = { priority = 5: 1: one(); 2: one(); } }
    apply {
        first.apply(hdr); second.apply(hdr);
        t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) {
    mixed_t m = { hdr.h, 1 };
    apply { b.emit(m); b.emit(hdr); } //~ error[unsupported] only headers can be emitted; this struct holds other fields too
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
