// Slices: `[hi:lo]` and `[lo+:width]`, read and written, also of signed numbers and of slices.
#include "plain.p4i"
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 1) { hdr.h.s[15:8] = hdr.h.r[31:24]; hdr.h.s[0:0] = hdr.h.r[0:0]; }
        else if (hdr.h.op == 2) { hdr.h.s[11:4] = 0xff; }
        else if (hdr.h.op == 3) { hdr.h.s = (bit<32>)hdr.h.r[8+:12]; }
        else if (hdr.h.op == 4) { hdr.h.s[8+:12] = 0xabc; }
        else if (hdr.h.op == 5) { hdr.h.r[31:16] = hdr.h.r[15:0]; }
        else if (hdr.h.op == 6) { hdr.h.r[23:0] = hdr.h.r[31:8]; }
        else if (hdr.h.op == 7) { int<32> x = (int<32>)hdr.h.r; hdr.h.s = (bit<32>)x[31:28]; }
        else if (hdr.h.op == 8) { int<32> x = (int<32>)hdr.h.r; x[31:31] = 1; hdr.h.s = (bit<32>)(x >> 31); }
        else if (hdr.h.op == 9) { hdr.h.s = (bit<32>)hdr.h.r[23:8][11:4]; }
        else if (hdr.h.op == 10) { hdr.h.r[23:8][11:4] = 0; }
        else if (hdr.h.op == 11) { hdr.h.r[31:0] = hdr.h.s; hdr.h.a[7:0] = hdr.h.b[7:0]; }
        else if (hdr.h.op == 12) { hdr.h.r[15:8] += 0x80; hdr.h.r[7:0] |= 0xf0; }
        else if (hdr.h.op == 13) { hdr.h.a[3:0] = hdr.h.a[7:4]; hdr.h.a[7:4] = hdr.h.a[3:0] + 1; }
        else if (hdr.h.op == 15) { hdr.h.s = (bit<32>)(hdr.h.a ++ hdr.h.b)[11:4]; }
    }
}
#include "../v1model/skeleton.p4i"
