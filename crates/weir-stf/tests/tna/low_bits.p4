// Register actions on the low bits of wider cells: the other bits stay.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Register<bit<32>, bit<8>>(4, 0xaabbccfe) cells;
    RegisterAction<bit<8>, bit<8>, bit<16>>(cells) low = {
        void apply(inout bit<8> value, out bit<16> rv) { rv = 8w0 ++ value; value = value + 1; }
    };
    RegisterAction<bit<32>, bit<8>, bit<16>>(cells) high = {
        void apply(inout bit<32> value, out bit<16> rv) { rv = value[31:16]; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) half = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = value; }
    };
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { hdr.h.value = low.execute(hdr.h.index); }
        else if (hdr.h.op == 1) { hdr.h.value = high.execute(hdr.h.index); }
        else { hdr.h.value = half.execute(hdr.h.index); }
    }
}
#include "skeleton.p4i"
