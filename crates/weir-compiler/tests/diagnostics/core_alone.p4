// With core.p4, but without v1model.p4.
#include <core.p4>
header h_t { bit<8> x; bit<8> y; }
struct headers { h_t a; }
struct meta { }
parser P(packet_in p, out headers hd, inout meta m, inout standard_metadata_t sm) {
    //~^ error[not-found] `#include <v1model.p4>` is missing: it declares `standard_metadata_t` and `V1Switch`
    state start { p.extract(hd.a); transition accept; }
}
control I(inout headers h, inout meta m, inout standard_metadata_t sm) { apply { } }
control V(inout headers h, inout meta m) { apply { } }
control E(inout headers h, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
