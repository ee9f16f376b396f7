// Action profiles and selectors.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action go(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action_profile(8) shared;
    action_selector(HashAlgorithm.identity, 8, 16) ecmp;
    table p {
        key = { hdr.h.index : exact; }
        actions = { drop; go; NoAction; }
        implementation = shared;
    }
    table q {
        key = { hdr.h.index : ternary; }
        actions = { go; drop; NoAction; }
        implementation = shared;
    }
    table s {
        key = { hdr.h.index : exact; hdr.h.value : selector; }
        actions = { NoAction; go; }
        implementation = ecmp;
    }
    apply {
        sm.egress_spec = 100;
        if (hdr.h.op == 0) { p.apply(); }
        if (hdr.h.op == 1) { q.apply(); }
        if (hdr.h.op == 2) { s.apply(); }
    }
}
#include "skeleton.p4i"
