// Tables of keys of few bits are arrays that code looks into where it gets to them, before a lookup and after it.
#include "header.p4i"
struct meta_t { bit<8> class; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets) routed;
    direct_counter(CounterType.packets) classified;
    action go(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action set_class(bit<8> class) { meta.class = class; }
    // Who is not known here does not get to the next one.
    table known {
        key = { hdr.h.op : exact; }
        actions = { NoAction; }
        const default_action = NoAction;
    }
    table routes {
        key = { hdr.h.value : lpm; }
        actions = { go; drop; }
        const default_action = drop;
        counters = routed;
    }
    // All that were routed get here; it looks at what was there before.
    table classes {
        key = { hdr.h.index : exact; }
        actions = { set_class; NoAction; }
        const default_action = NoAction;
        counters = classified;
    }
    // Its key is known only here.
    table by_class {
        key = { meta.class : exact; }
        actions = { go; NoAction; }
        const default_action = NoAction;
    }
    apply {
        meta.class = 0;
        if (!known.apply().hit) {
            drop();
        } else {
            routes.apply();
            classes.apply();
            by_class.apply();
            hdr.h.index = meta.class;
        }
    }
}
#include "skeleton.p4i"
