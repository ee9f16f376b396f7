// Without v1model.p4: one error for everything that it declares.
header h_t { bit<8> x; bit<8> y; }
struct headers { h_t a; }
struct meta { }
parser P(packet_in p, out headers hd, inout meta m, inout standard_metadata_t sm) {
    //~^ error[not-found] `#include <v1model.p4>` is missing: it declares `packet_in`, `standard_metadata_t`, `mark_to_drop` and 4 more names that it uses = help: write it at the top of the program
    state start { p.extract(hd.a); transition accept; }
}
control I(inout headers h, inout meta m, inout standard_metadata_t sm) {
    action discard() { mark_to_drop(sm); }
    table t {
        key = { h.a.x: exact; h.a.y: lpn; } //~ error[not-found] there is no match kind `lpn`
        actions = { discard; NoAction; }
    }
    apply { t.apply(); }
}
control V(inout headers h, inout meta m) { apply { } }
control E(inout headers h, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
