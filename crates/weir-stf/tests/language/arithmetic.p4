// Numbers: wrapping, saturating, signed; shifts; casts; comparisons; compound assignments.
#include "plain.p4i"
const int HUGE = 1 << 100;
const bit<8> CUT = (bit<8>)(HUGE / 3);
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        int<8> x = (int<8>)hdr.h.a;
        int<8> y = (int<8>)hdr.h.b;
        if (hdr.h.op == 1) {
            hdr.h.r = (hdr.h.a + hdr.h.b) ++ (hdr.h.a - hdr.h.b) ++ (hdr.h.a * hdr.h.b) ++ (-hdr.h.a);
            hdr.h.s = (hdr.h.a & hdr.h.b) ++ (hdr.h.a | hdr.h.b) ++ (hdr.h.a ^ hdr.h.b) ++ (~hdr.h.a);
        } else if (hdr.h.op == 2) {
            hdr.h.r = (hdr.h.a |+| hdr.h.b) ++ (hdr.h.a |-| hdr.h.b) ++ (bit<8>)(x |+| y) ++ (bit<8>)(x |-| y);
        } else if (hdr.h.op == 3) {
            hdr.h.r = (hdr.h.a << hdr.h.b) ++ (hdr.h.a >> hdr.h.b) ++ (bit<8>)(x << hdr.h.b) ++ (bit<8>)(x >> hdr.h.b);
        } else if (hdr.h.op == 4) {
            hdr.h.r = (bit<8>)(bit<1>)(x < y) ++ (bit<8>)(bit<1>)(hdr.h.a < hdr.h.b)
                ++ (bit<8>)(bit<1>)(x >= y) ++ (bit<8>)(bit<1>)(hdr.h.a >= hdr.h.b);
            hdr.h.s = (bit<8>)(bit<1>)(x > y) ++ (bit<8>)(bit<1>)(x <= y)
                ++ (bit<8>)(bit<1>)(x == y) ++ (bit<8>)(bit<1>)(x != y);
        } else if (hdr.h.op == 5) {
            hdr.h.r = (bit<32>)(int<32>)x;
            hdr.h.s = (bit<32>)hdr.h.a;
        } else if (hdr.h.op == 6) {
            hdr.h.r = (bit<32>)(bit<4>)hdr.h.a;
            hdr.h.s = (bit<32>)(int<32>)(int<4>)x;
        } else if (hdr.h.op == 7) {
            bit<8> v = hdr.h.a;
            v += hdr.h.b; hdr.h.r[31:24] = v;
            v -= 1; hdr.h.r[23:16] = v;
            v *= 3; hdr.h.r[15:8] = v;
            v <<= 1; hdr.h.r[7:0] = v;
            v >>= 2; hdr.h.s[31:24] = v;
            v &= 0x3c; v |= 0x81; hdr.h.s[23:16] = v;
            v ^= 0xff; hdr.h.s[15:8] = v;
            v |+|= 200; v |-|= 1; hdr.h.s[7:0] = v;
        } else if (hdr.h.op == 8) {
            // Constants are computed exactly before they get a width.
            hdr.h.r = (bit<32>)CUT;
            hdr.h.s = (bit<32>)(bit<8>)((HUGE + 0x7f) / HUGE * 77);
        } else if (hdr.h.op == 9) {
            hdr.h.r = (bit<32>)(hdr.h.a ++ (bit<4>)hdr.h.b ++ 4w9);
            hdr.h.s = (bit<32>)(bit<16>)((int<8>)hdr.h.a ++ (int<8>)hdr.h.b);
        } else if (hdr.h.op == 10) {
            bool p = hdr.h.a == 1;
            bool q = hdr.h.b == 1;
            hdr.h.r = (bit<8>)(bit<1>)(p && q) ++ (bit<8>)(bit<1>)(p || q) ++ (bit<8>)(bit<1>)!p ++ (bit<8>)(bit<1>)(p != q);
            hdr.h.s = (bit<32>)(bit<1>)((bool)hdr.h.a[0:0] == p);
        } else if (hdr.h.op == 11) {
            hdr.h.r = hdr.h.a / 7 ++ hdr.h.a % 7 ++ hdr.h.b / 1 ++ hdr.h.b % 1;
        } else if (hdr.h.op == 12) {
            int<1> z = (int<1>)hdr.h.a[0:0];
            hdr.h.r = (bit<32>)(int<32>)z;
            hdr.h.s = (bit<32>)(bit<1>)(z < 0);
        } else if (hdr.h.op == 13) {
            // The distance of a shift may be wider than what is shifted.
            hdr.h.r = (bit<32>)(hdr.h.a << hdr.h.r);
            hdr.h.s = (bit<32>)(int<32>)(x >> hdr.h.s);
        } else if (hdr.h.op == 14) {
            hdr.h.r = (bit<32>)(int<32>)(-x);
            hdr.h.s = (bit<32>)(int<32>)(x * y);
        }
    }
}
#include "../v1model/skeleton.p4i"
