// Objects with one control-plane name, and direct counters without entries: legal, as nothing here needs the names.
#include "header.p4i"
struct meta_t { }
control Twice(inout headers_t hdr) {
    @name(".add") action add() { hdr.h.value = hdr.h.value + 1; }
    @name(".shared") table t { actions = { add; } default_action = add(); }
    apply { t.apply(); }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Twice() first;
    Twice() second;
    @name(".add") action add_two() { hdr.h.value = hdr.h.value + 2; }
    @name(".add") action add_more(bit<16> n) { hdr.h.value = hdr.h.value + n; }
    @name(".cells") register<bit<16>>(4) one;
    @name(".cells") register<bit<16>>(4) other;
    direct_counter(CounterType.packets) of_no_table;
    direct_counter(CounterType.packets) of_another_table;
    action counts() { hdr.h.value = hdr.h.value + 4; of_no_table.count(); of_another_table.count(); }
    table t1 { actions = { add_two; } default_action = add_two(); }
    table t2 { actions = { add_more; } default_action = add_more(0x100); }
    table t3 { actions = { counts; } default_action = counts(); }
    table never { key = { hdr.h.op : exact; } actions = { counts; } counters = of_another_table; }
    apply {
        sm.egress_spec = 1;
        first.apply(hdr);
        second.apply(hdr);
        t1.apply();
        t2.apply();
        t3.apply();
        bit<16> was;
        one.read(was, 0);
        hdr.h.index = was[7:0];
        one.write(0, 7);
        other.read(was, 0);
        if (was != 0) { hdr.h.op = 0xff; }
    }
}
#include "skeleton.p4i"
