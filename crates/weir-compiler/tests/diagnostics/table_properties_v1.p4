// Values of table properties that the architecture does not take there.
#include <v1model.p4>

header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct meta_t { bit<2> color; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<8>>(16) reg;
    counter(16, CounterType.packets) array;
    direct_counter(CounterType.packets) direct;
    direct_counter(CounterType.packets) nowhere; //~ warning[unattached] the direct_counter `I.nowhere` is attached to no table
    direct_meter<bit<2>>(MeterType.packets) lost;

    action measure() { lost.read(meta.color); } //~ warning[no-entry] `I.lost` is attached to no table: this does nothing
    table t1 { key = { hdr.h.x : exact; } actions = { NoAction; } implementation = reg; } //~ error[type-error] the property `implementation` takes an instance of `action_profile`, `action_selector`, but this is an instance of `register`
    table t2 { key = { hdr.h.x : exact; } actions = { NoAction; } counters = array; } //~ error[type-error] the property `counters` takes an instance of `direct_counter`, but this is an instance of `counter`
    table t3 { key = { hdr.h.x : exact; } actions = { NoAction; } meters = direct; } //~ error[type-error] the property `meters` takes an instance of `direct_meter`, but this is an instance of `direct_counter`
    table t4 { key = { hdr.h.x : exact; } actions = { NoAction; } support_timeout = 1; } //~ error[type-error] the property `support_timeout` takes `true` or `false`, but this is the number 1
    table t5 { key = { hdr.h.x : exact; } actions = { NoAction; } idle_timeout = true; } //~ warning[unknown-property] v1model has no table property `idle_timeout`: it has no effect
    table t6 { key = { hdr.h.x : exact; } actions = { NoAction; measure; } counters = direct; }
    table t7 { key = { hdr.h.x : exact; } actions = { NoAction; } counters = direct; } //~ error[invalid] `I.direct` is attached to two tables: a direct_counter has a value per entry of one table
    apply {
        t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply();
        reg.write(0, 1);
        array.count(0);
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
