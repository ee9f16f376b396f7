// Every packet makes a call for which it may wait, and leaves at port 2.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

struct headers { }
struct meta { }

parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers h, inout meta m) { apply { } }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 2;
        @async { busy_cycles(600); }
    }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
