// Actions that take members of a selector out of the choice, and put them back.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Hash<bit<14>>(HashAlgorithm_t.IDENTITY) hash;
    ActionProfile(16) members;
    ActionSelector(members, hash, SelectorMode_t.FAIR, 8, 4) selector;
    SelectorAction(selector) die = {
        void apply(inout bit<1> value, out bit<1> rv) { rv = value; value = 0; }
    };
    SelectorAction(selector) revive = { void apply(inout bit<1> value) { value = 1; } };
    action set(bit<16> value) { hdr.h.value = value; }
    table chosen {
        key = { hdr.h.index: exact; hdr.h.value: selector; }
        actions = { set; }
        implementation = selector;
        size = 16;
    }
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { chosen.apply(); }
        else if (hdr.h.op == 1) { hdr.h.value = 15w0 ++ die.execute((bit<32>)hdr.h.index); }
        else { revive.execute((bit<32>)hdr.h.index); }
    }
}
#include "skeleton.p4i"
