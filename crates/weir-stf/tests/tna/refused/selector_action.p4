// An action on the bits of a selector's members.
#include "../header.p4i"
struct meta_t { }
INGRESS(I) {
    Register<bit<1>, bit<8>>(16) alive;
    Hash<bit<14>>(HashAlgorithm_t.CRC16) hash;
    ActionProfile(16) members;
    ActionSelector(members, hash, SelectorMode_t.FAIR, alive, 8, 4) selector;
    SelectorAction(selector) change = { void apply(inout bit<1> value) { value = 0; } };
    action set(bit<16> value) { hdr.h.value = value; }
    table chosen {
        key = { hdr.h.index: exact; hdr.h.value: selector; }
        actions = { set; }
        implementation = selector;
        size = 16;
    }
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { chosen.apply(); } else { change.execute((bit<32>)hdr.h.index); }
    }
}
#include "../skeleton.p4i"
