// Direct counters without entries: legal, without effect, and the warning says which kind it is.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets) of_none;
    direct_counter(CounterType.packets) of_never;
    direct_counter(CounterType.packets) of_other;
    direct_counter(CounterType.packets) alone; //~ warning[unattached] the direct_counter `I.alone` is attached to `never_too`, which is never applied
    action counts() {
        of_none.count(); //~ warning[no-entry] `I.of_none` is attached to no table: this does nothing
        of_never.count(); //~ warning[no-entry] `I.of_never` is attached to `never`, which is never applied: this does nothing
        of_other.count(); //~ warning[no-entry] this is in no action of the table that `I.of_other` is attached to: it does nothing
    }
    table never { key = { hdr.h.a: exact; } actions = { counts; NoAction; } counters = of_never; default_action = NoAction; }
    table never_too { key = { hdr.h.a: exact; } actions = { NoAction; } counters = alone; default_action = NoAction; }
    table other { key = { hdr.h.a: exact; } actions = { NoAction; } counters = of_other; default_action = NoAction; }
    table t { key = { hdr.h.a: exact; } actions = { counts; NoAction; } default_action = NoAction; }
    apply { t.apply(); other.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
