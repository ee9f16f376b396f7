// Loops: both forms, what `break`, `continue`, `return` and `exit` leave, ranges up to the type's end.
#include "frame.p4i"
header s_t { bit<8> x; }
struct headers_t { h_t h; s_t[3] s; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) { 20..29: stack; default: accept; }
    }
    state stack { b.extract(hdr.s.next); b.extract(hdr.s.next); transition accept; }
}
bit<32> first_above(in bit<8> limit, in bit<8> last) {
    for (bit<8> i in 0..last) {
        for (bit<8> j in 0..last) {
            if (i + j > limit) { return (bit<32>)(i ++ j); }
        }
    }
    return 0xffff;
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action count_down() {
        for (bit<8> i = hdr.h.a; i != 0; i = i - 1) {
            if (i == hdr.h.b) { return; }
            hdr.h.r = hdr.h.r + 1;
        }
        hdr.h.s = 1;
    }
    apply {
        if (hdr.h.op == 1) {
            for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
                if (i == hdr.h.b) { continue; }
                if (i == hdr.h.c) { break; }
                hdr.h.r = hdr.h.r + (bit<32>)i;
                hdr.h.s = hdr.h.s + 1;
            }
        } else if (hdr.h.op == 2) {
            for (bit<8> i in hdr.h.a..hdr.h.b) {
                hdr.h.r = hdr.h.r + 1;
                hdr.h.s = (bit<32>)i;
            }
        } else if (hdr.h.op == 3) {
            // The range is computed once.
            bit<8> n = hdr.h.a;
            for (bit<8> i in 0..n) { n = 0; hdr.h.r = hdr.h.r + 1; }
            hdr.h.s = (bit<32>)n;
        } else if (hdr.h.op == 4) {
            for (bit<8> i = 0, bit<8> j = hdr.h.a; i < j; i = i + 1, j = j - 1) {
                hdr.h.r = hdr.h.r + 1;
                hdr.h.s = (bit<32>)(i ++ j);
            }
        } else if (hdr.h.op == 5) {
            // `break` and `continue` belong to the innermost loop; `continue` runs the update.
            for (bit<8> i = 0; i < 4; i = i + 1) {
                for (bit<8> j = 0; j < 4; j = j + 1) {
                    if (j == 2) { break; }
                    hdr.h.r = hdr.h.r + 1;
                }
                if (i == 1) { continue; }
                hdr.h.s = hdr.h.s + 1;
            }
        } else if (hdr.h.op == 6) {
            hdr.h.r = first_above(hdr.h.a, hdr.h.b);
        } else if (hdr.h.op == 7) {
            count_down();
            hdr.h.c = 9;
        } else if (hdr.h.op == 8) {
            for (bit<8> i in (list<bit<8>>){ 7, hdr.h.a, 9 }) {
                hdr.h.r = (hdr.h.r << 8) + (bit<32>)i;
            }
        } else if (hdr.h.op == 9) {
            for (int<4> i in -8..7) {
                hdr.h.r = hdr.h.r + 1;
                hdr.h.s = (bit<32>)(bit<4>)i;
            }
        } else if (hdr.h.op == 10) {
            for (;hdr.h.a != 0;) { hdr.h.a = hdr.h.a >> 1; hdr.h.r = hdr.h.r + 1; }
        } else if (hdr.h.op == 11) {
            for (bit<8> i in 0..9) { if (i == hdr.h.a) { hdr.h.r = 5; exit; } }
            hdr.h.s = 6;
        } else if (hdr.h.op == 20) {
            // Every element, valid or not.
            for (s_t e in hdr.s) {
                hdr.h.r = hdr.h.r + 1;
                if (e.isValid()) { hdr.h.s = (hdr.h.s << 8) + (bit<32>)e.x; }
            }
        } else if (hdr.h.op == 21) {
            // The variable is a copy.
            for (s_t e in hdr.s) { e.x = 0; }
        }
    }
}
#include "../v1model/skeleton.p4i"
