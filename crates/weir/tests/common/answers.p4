// Answers keys with values, for tests of what a switch keeps.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> key; bit<32> value; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout headers h, inout meta m) { apply { } }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets) hits;
    action answer(bit<32> value) { h.h.value = value; s.egress_spec = s.ingress_port; }
    table t {
        key = { h.h.key : exact @name("key"); }
        actions = { answer; NoAction; }
        counters = hits;
        size = 1000000;
    }
    apply { t.apply(); }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
