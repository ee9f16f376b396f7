// Actions on values that are made of several cells.
#include "header.p4i"
struct meta_t { }
struct pair_t { bit<16> first; bit<16> second; }
INGRESS(I) {
    Register<bit<16>, bit<8>>(8) cells;
    RegisterAction<bit<32>, bit<8>, bit<16>>(cells) wide = {
        void apply(inout bit<32> value, out bit<16> rv) { value = value + 0x00010002; rv = value[31:16]; }
    };
    RegisterAction<pair_t, bit<8>, bit<16>>(cells) pair = {
        void apply(inout pair_t value, out bit<16> rv) { rv = value.first; value.second = 0x7777; }
    };
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { hdr.h.value = wide.execute(hdr.h.index); }
        else { hdr.h.value = pair.execute(hdr.h.index); }
    }
}
#include "skeleton.p4i"
