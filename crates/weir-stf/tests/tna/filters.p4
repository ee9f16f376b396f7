// Arrays of filters.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Lpf<bit<16>, bit<8>>(4) smooth;
    Wred<bit<16>, bit<8>>(4, 0xd, 0xf) early;
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { hdr.h.value = smooth.execute(hdr.h.value, hdr.h.index); }
        if (hdr.h.op == 1) { hdr.h.value = (bit<16>)early.execute(hdr.h.value, hdr.h.index); }
    }
}
#include "skeleton.p4i"
