// Values wider than any machine word.
#include "frame.p4i"
header w_t { bit<256> x; bit<200> y; }
struct headers_t { h_t h; w_t w; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); b.extract(hdr.w); transition accept; }
}
const bit<256> ONES = 0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff;
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<256> y = (bit<256>)hdr.w.y;
        bit<32> n = (bit<32>)hdr.h.a;
        if (hdr.h.op == 1) { hdr.w.x = hdr.w.x + y; }
        else if (hdr.h.op == 2) { hdr.w.x = hdr.w.x - y; }
        else if (hdr.h.op == 3) { hdr.w.x = hdr.w.x * y; }
        else if (hdr.h.op == 4) { hdr.w.x = hdr.w.x << n; }
        else if (hdr.h.op == 5) { hdr.w.x = hdr.w.x >> n; }
        else if (hdr.h.op == 6) { hdr.w.x = (bit<256>)((int<256>)hdr.w.x >> n); }
        else if (hdr.h.op == 7) { hdr.w.y = (bit<200>)hdr.w.x; }
        else if (hdr.h.op == 8) { hdr.w.x[199:100] = hdr.w.x[99:0]; }
        else if (hdr.h.op == 9) { hdr.h.r = hdr.w.x[159:128]; hdr.h.s = hdr.w.x[143:112]; }
        else if (hdr.h.op == 10) { hdr.w.x = hdr.w.x |+| ONES; hdr.w.y = hdr.w.y |-| 1; }
        else if (hdr.h.op == 11) { hdr.h.r = hdr.w.x > y ? 32w1 : 0; hdr.h.s = (int<256>)hdr.w.x > (int<256>)y ? 32w1 : 0; }
        else if (hdr.h.op == 12) { hdr.w.x = ~hdr.w.x ^ (y & ONES); }
        else if (hdr.h.op == 13) { hdr.w.x = (bit<256>)(hdr.w.y ++ hdr.w.y[55:0]); }
        else if (hdr.h.op == 14) { hdr.w.x = (bit<256>)(int<256>)(int<200>)hdr.w.y; }
        else if (hdr.h.op == 15) { hdr.w.x = -hdr.w.x; }
        else if (hdr.h.op == 16) { if (hdr.w.x == ONES) { hdr.h.r = 1; } if (hdr.w.x != y) { hdr.h.s = 1; } }
    }
}
#include "../v1model/skeleton.p4i"
