// Indexed and direct counters and meters.
#include "header.p4i"
struct meta_t { bit<16> color; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets_and_bytes) hits;
    meter(4, MeterType.packets) by_index;
    meter(1, MeterType.bytes) by_bytes;
    direct_meter<bit<16>>(MeterType.packets) by_entry;
    action go(bit<9> port) { sm.egress_spec = port; }
    action metered(bit<9> port) { sm.egress_spec = port; by_entry.read(hdr.h.value); }
    table t {
        key = { hdr.h.index : exact; }
        actions = { go; NoAction; }
        default_action = NoAction;
        counters = hits;
    }
    table m {
        key = { hdr.h.index : exact; }
        actions = { metered; NoAction; }
        default_action = NoAction;
        meters = by_entry;
    }
    direct_counter(CounterType.packets_and_bytes) route_hits;
    table routes {
        key = { hdr.h.value : lpm; }
        actions = { go; NoAction; }
        default_action = NoAction;
        counters = route_hits;
    }
    apply {
        if (hdr.h.op == 4) { routes.apply(); }
        if (hdr.h.op == 0) { seen.count((bit<32>)hdr.h.index); t.apply(); }
        if (hdr.h.op == 1) { by_index.execute_meter((bit<32>)hdr.h.index, hdr.h.value); }
        if (hdr.h.op == 2) { by_bytes.execute_meter(0, hdr.h.value); }
        if (hdr.h.op == 3) { m.apply(); }
    }
}
#include "skeleton.p4i"
