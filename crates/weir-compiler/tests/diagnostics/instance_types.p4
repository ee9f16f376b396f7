// Macros that programs for v1model define themselves: one error for each, and for a tuple in place of a value.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> y; }
struct headers { h_t a; }
struct meta { }
parser P(packet_in p, out headers hd, inout meta m, inout standard_metadata_t sm) {
    state start {
        p.extract(hd.a);
        transition select(hd.a.x) {
            (1, 2): accept; //~ error[type-error] this keyset is { int, int }, but it is compared with bit<8> = help: one value is compared here: give each of these a case of its own
            default: reject;
        }
    }
}
control I(inout headers h, inout meta m, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == PKT_INSTANCE_TYPE_INGRESS_CLONE) { h.a.x = 1; }
        //~^ error[not-found] `PKT_INSTANCE_TYPE_INGRESS_CLONE` is not defined: v1model.p4 does not have it = help: define it: `#define PKT_INSTANCE_TYPE_INGRESS_CLONE 1`
        if (sm.instance_type == PKT_INSTANCE_TYPE_INGRESS_CLONE) { h.a.x = 2; }
        if (sm.instance_type == PKT_INSTANCE_TYPE_RESUBMIT) { h.a.x = 3; }
        //~^ error[not-found] `PKT_INSTANCE_TYPE_RESUBMIT` is not defined: v1model.p4 does not have it = help: define it: `#define PKT_INSTANCE_TYPE_RESUBMIT 6`
    }
}
control V(inout headers h, inout meta m) { apply { } }
control E(inout headers h, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
