// Fields that are read after lookups that they are the keys of: they need not be taken from the packet a second time.
#include "header.p4i"
struct meta_t { bit<16> sum; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action add(bit<16> more) { meta.sum = hdr.h.value + more; }
    action only_index() { meta.sum = (bit<16>) hdr.h.index; }
    // Who is not known here does not get to the next one.
    table known {
        // Sixteen bits, so that it is no array.
        key = { 8w0 ++ hdr.h.op : exact @name("h.op"); }
        actions = { NoAction; }
        const default_action = NoAction;
    }
    // Both fields are in one word of the key.
    table pairs {
        key = { hdr.h.index : exact; hdr.h.value : exact; }
        actions = { add; only_index; }
        const default_action = only_index;
    }
    apply {
        meta.sum = 7;
        if (!hdr.h.isValid()) {
            mark_to_drop(sm);
            return;
        }
        if (known.apply().hit) {
            pairs.apply();
        } else if (hdr.h.value[15:8] == 0xff) {
            // Nobody has looked this packet up for good, but the key is there.
            meta.sum = hdr.h.value + 1;
        }
        sm.egress_spec = meta.sum[8:0];
    }
}
#include "skeleton.p4i"
