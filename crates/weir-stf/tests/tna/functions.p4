// Functions, and numbers by chance.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Random<bit<4>>() random;
    apply {
        tm.ucast_egress_port = 1;
        bit<8> other = hdr.h.value[7:0];
        if (hdr.h.op == 0) { hdr.h.index = max(hdr.h.index, other); }
        if (hdr.h.op == 1) { hdr.h.index = min(hdr.h.index, other); }
        if (hdr.h.op == 2) { hdr.h.index = (bit<8>)max((int<8>)hdr.h.index, (int<8>)other); }
        if (hdr.h.op == 3) { funnel_shift_right(hdr.h.index, hdr.h.index, other, 4); }
        if (hdr.h.op == 4) { hdr.h.value = sizeInBits(hdr.h)[15:0]; hdr.h.index = sizeInBytes(hdr.h)[7:0]; }
        if (hdr.h.op == 5) { hdr.h.index[3:0] = random.get(); hdr.h.index[7:4] = 0; }
        if (hdr.h.op == 6) { invalidate(hdr.h.index); }
    }
}
#include "skeleton.p4i"
