// Calls: the order of evaluation, copies in and out, one variable given twice.
#include "plain.p4i"
bit<8> next(inout bit<8> x) { x = x + 1; return x; }
bit<32> three(in bit<8> x, in bit<8> y, in bit<8> z) { return 8w0 ++ x ++ y ++ z; }
void both(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 2; }
void outs(out bit<8> x, out bit<8> y) { x = 1; y = 2; }
void mixed(in bit<8> x, out bit<8> y) { y = 9; y = x; }
bool yes(inout bit<8> x) { x = x + 1; return true; }
bool no(inout bit<8> x) { x = x + 1; return false; }
void nibbles(inout bit<4> x, inout bit<4> y) { x = 1; y = 2; }
void swap(inout bit<8> x, inout bit<8> y) { bit<8> t = x; x = y; y = t; }
void low_and_all(inout bit<4> low, inout bit<8> all) { low = 1; all = 0xff; }
void all_and_low(inout bit<8> all, inout bit<4> low) { all = 0xff; low = 1; }
bit<8> seen_by(inout bit<4> low, in bit<8> all) { low = 1; return all; }
void add_to(inout bit<8> x, in bit<8> y) { x = x + y; }
bit<8> dflt(in bit<8> x, in bit<8> y = 5) { return x - y; }
void fresh(out bit<8> x, in bool write) { if (write) { x = 3; } }
void head(out h_t h, in bit<8> a) { if (a == 1) { h.setValid(); h.a = 0xaa; h.op = 22; } }
bit<8> pick(in bit<8> x) { return x; }
bit<16> pick(in bit<8> x, in bit<8> y) { return x ++ y; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action add(in bit<8> x, inout bit<8> y) { y = y + x; y = y + x; }
    apply {
        if (hdr.h.op == 1) { hdr.h.r = three(next(hdr.h.a), next(hdr.h.a), next(hdr.h.a)); }
        else if (hdr.h.op == 2) { hdr.h.r = three(hdr.h.a, next(hdr.h.a), hdr.h.a); }
        else if (hdr.h.op == 3) { hdr.h.b = hdr.h.a + next(hdr.h.a) + hdr.h.a; }
        else if (hdr.h.op == 4) { both(hdr.h.a, hdr.h.a); }
        else if (hdr.h.op == 5) { outs(hdr.h.a, hdr.h.a); }
        else if (hdr.h.op == 6) { mixed(hdr.h.a, hdr.h.a); }
        else if (hdr.h.op == 7) {
            // What is decided already is not evaluated.
            bool x = no(hdr.h.a) && yes(hdr.h.a);
            bool y = yes(hdr.h.b) || yes(hdr.h.b);
            hdr.h.r = (x ? 32w1 : 0) + (y ? 32w2 : 0);
        }
        else if (hdr.h.op == 8) { hdr.h.b = hdr.h.a > 5 ? next(hdr.h.a) : next(hdr.h.c); }
        else if (hdr.h.op == 9) { nibbles(hdr.h.a[7:4], hdr.h.a[3:0]); }
        else if (hdr.h.op == 10) { nibbles(hdr.h.a[5:2], hdr.h.a[3:0]); }
        else if (hdr.h.op == 11) { swap(hdr.h.a, hdr.h.b); }
        else if (hdr.h.op == 12) { add(hdr.h.a, hdr.h.a); }
        else if (hdr.h.op == 13) { hdr.h.b = dflt(hdr.h.a); hdr.h.c = dflt(y = hdr.h.a, x = 20); }
        else if (hdr.h.op == 14) { fresh(hdr.h.a, hdr.h.b == 1); }
        else if (hdr.h.op == 15) { head(hdr.h, hdr.h.a); if (!hdr.h.isValid()) { hdr.h.setValid(); hdr.h.op = 33; } }
        else if (hdr.h.op == 16) { hdr.h.r = (bit<32>)pick(hdr.h.a); hdr.h.s = (bit<32>)pick(hdr.h.a, hdr.h.b); }
        else if (hdr.h.op == 17) { hdr.h.r = three(z = next(hdr.h.a), x = next(hdr.h.a), y = hdr.h.a); }
        else if (hdr.h.op == 18) {
            // The value first, then the target: the same field.
            hdr.h.a = next(hdr.h.a) + 16;
        }
        else if (hdr.h.op == 19) { swap(hdr.h.r[7:0], hdr.h.r[15:8]); }
        else if (hdr.h.op == 20) { next(hdr.h.a); outs(hdr.h.b, _); }
        else if (hdr.h.op == 21) { hdr.h.b = next(hdr.h.a) - next(hdr.h.a); }
        else if (hdr.h.op == 22) {
            tuple<bit<8>, bit<8>> p = { next(hdr.h.a), next(hdr.h.a) };
            hdr.h.r = (bit<32>)(p[0] ++ p[1]);
        }
        else if (hdr.h.op == 23) { low_and_all(hdr.h.a[3:0], hdr.h.a); }
        else if (hdr.h.op == 24) { all_and_low(hdr.h.a, hdr.h.a[3:0]); }
        // `inout` takes the value the variable had when its turn came.
        else if (hdr.h.op == 27) { add_to(hdr.h.a, next(hdr.h.a)); }
        else if (hdr.h.op == 28) { add_to(y = next(hdr.h.a), x = hdr.h.a); }
        else if (hdr.h.op == 29) { hdr.h.b = hdr.h.a; add_to(hdr.h.b, hdr.h.b); hdr.h.a = next(hdr.h.a) + next(hdr.h.b) + hdr.h.a; }
        else if (hdr.h.op == 25) { hdr.h.b = seen_by(hdr.h.a[3:0], hdr.h.a); }
        else if (hdr.h.op == 26) { hdr.h.b = seen_by(all = hdr.h.a, low = hdr.h.a[3:0]); }
    }
}
#include "../v1model/skeleton.p4i"
