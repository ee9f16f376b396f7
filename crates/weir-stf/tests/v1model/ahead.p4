// Lookups whose keys are known before the lookup that comes first: nobody may notice that they are done together.
#include "header.p4i"
struct meta_t { bit<16> class; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets) routed;
    direct_counter(CounterType.packets) classified;
    action go(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action set_class(bit<16> class) { meta.class = class; }
    // Who is not known here does not get to the next one.
    table known {
        // Sixteen bits, so that it is no array.
        key = { 8w0 ++ hdr.h.op : exact @name("h.op"); }
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
        key = { hdr.h.index : exact; hdr.h.value : exact; }
        actions = { set_class; NoAction; }
        const default_action = NoAction;
        counters = classified;
    }
    // This one has to wait.
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
            hdr.h.index = meta.class[7:0];
        }
    }
}
#include "skeleton.p4i"
