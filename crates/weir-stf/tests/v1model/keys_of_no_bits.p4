// A field of no bits as a part of keys, beside others in a word of the key and behind the last one.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<16> first; bit<0> nothing; bit<16> second; bit<64> whole; }
struct headers_t { h_t h; }
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action go(bit<9> port) { sm.egress_spec = port; }
    action more(bit<9> by) { sm.egress_spec = sm.egress_spec + by + (hdr.h.nothing ++ 9w1); }
    table by_first {
        key = { hdr.h.first : exact; }
        actions = { go; NoAction; }
        const default_action = NoAction;
    }
    table beside {
        key = { hdr.h.whole : exact; hdr.h.nothing : exact; hdr.h.second : exact; }
        actions = { more; NoAction; }
        const default_action = more(1);
    }
    table behind {
        key = { hdr.h.whole : exact; hdr.h.nothing : exact; }
        actions = { more; NoAction; }
        const default_action = more(2);
    }
    apply {
        if (!hdr.h.isValid()) {
            mark_to_drop(sm);
            return;
        }
        by_first.apply();
        beside.apply();
        behind.apply();
        if ((hdr.h.nothing ++ hdr.h.first) == 0x1234) { sm.egress_spec = sm.egress_spec + 16; }
        if (hdr.h.second == 5) { sm.egress_spec = sm.egress_spec + 32; }
    }
}
#include "skeleton.p4i"
