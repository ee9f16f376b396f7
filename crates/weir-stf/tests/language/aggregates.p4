// Structs, tuples, lists and headers as values.
#include "frame.p4i"
header b_t { bit<8> x; bit<8> y; }
struct pair_t { bit<8> x; bit<8> y; }
struct nested_t { pair_t p; bit<8> z; }
struct headers_t { h_t h; b_t b; b_t c; }
struct meta_t { pair_t p; nested_t n; }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.c) { 1: one; 2: two; default: accept; } }
    state one { b.extract(hdr.b); transition accept; }
    state two { b.extract(hdr.b); b.extract(hdr.c); transition accept; }
}
const pair_t FIXED = { y = 0x22, x = 0x11 };
pair_t make(in bit<8> x) { return { x, x + 1 }; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        pair_t p = { hdr.h.a, hdr.h.b };
        pair_t q;
        nested_t n;
        if (hdr.h.op == 1) {
            // All of the right side is read before anything is written.
            p = { p.y, p.x };
            hdr.h.a = p.x; hdr.h.b = p.y;
        } else if (hdr.h.op == 2) {
            p = { y = p.x, x = p.y };
            hdr.h.a = p.x; hdr.h.b = p.y;
        } else if (hdr.h.op == 3) {
            q = FIXED; hdr.h.a = q.x; hdr.h.b = q.y; hdr.h.c = FIXED.y;
        } else if (hdr.h.op == 4) {
            n = { p, 3 };
            n.p = { n.z, n.p.x };
            hdr.h.r = 8w0 ++ n.p.x ++ n.p.y ++ n.z;
        } else if (hdr.h.op == 5) {
            n = { z = 5, ... };
            q = { 7, ... };
            hdr.h.r = n.z ++ n.p.x ++ q.x ++ q.y;
        } else if (hdr.h.op == 6) {
            q = { ... };
            hdr.h.r = p == q ? 32w1 : 2;
            hdr.h.s = p == { 1, 2 } ? 32w1 : 2;
        } else if (hdr.h.op == 7) {
            tuple<bit<8>, pair_t, bool> t = { 9, p, true };
            hdr.h.r = t[0] ++ t[1].x ++ t[1].y ++ (bit<8>)(bit<1>)t[2];
            tuple<bit<8>, pair_t, bool> u = t;
            hdr.h.s = u == t ? 32w1 : 2;
        } else if (hdr.h.op == 8) {
            hdr.h.a = make(hdr.h.a).y; hdr.h.b = make(hdr.h.b).x;
        } else if (hdr.h.op == 9) {
            meta.n = { make(1), 3 };
            n = meta.n;
            meta.n.p.x = 0;
            hdr.h.r = 8w0 ++ n.p.x ++ n.p.y ++ n.z;
        } else if (hdr.h.op == 10) {
            n.p = (pair_t){ 1, 2 };
            n.p.x = n.p.x + ((pair_t){ x = 5, y = 6 }).y;
            hdr.h.r = (bit<32>)n.p.x;
        } else if (hdr.h.op == 11) {
            q = hdr.h.a == 1 ? p : make(7);
            hdr.h.r = (bit<32>)(q.x ++ q.y);
        } else if (hdr.h.op == 20) {
            hdr.c = hdr.b;
        } else if (hdr.h.op == 21) {
            hdr.b = { 1, 2 };
        } else if (hdr.h.op == 22) {
            hdr.b = { hdr.b.y, hdr.b.x };
        } else if (hdr.h.op == 23) {
            hdr.b = {#};
        } else if (hdr.h.op == 24) {
            hdr.h.r = hdr.b == {#} ? 32w1 : 2;
            hdr.h.s = hdr.b == (b_t){#} ? 32w1 : 2;
        } else if (hdr.h.op == 25) {
            hdr.h.r = hdr.b == hdr.c ? 32w1 : 2;
            hdr.h.s = hdr.b != hdr.c ? 32w1 : 2;
        } else if (hdr.h.op == 26) {
            hdr.b.x = 0xee;
            hdr.h.r = hdr.b == hdr.c ? 32w1 : 2;
        } else if (hdr.h.op == 27) {
            b_t t = hdr.b;
            hdr.b = hdr.c;
            hdr.c = t;
        } else if (hdr.h.op == 28) {
            hdr.b = { x = 4, ... };
        } else if (hdr.h.op == 29) {
            headers_t all = hdr;
            all.h.op = 0;
            all.b.setInvalid();
            hdr.h.r = all.h.isValid() && hdr.b.isValid() ? 32w1 : 2;
            all = { hdr.h, hdr.c, hdr.b };
            hdr = all;
        } else if (hdr.h.op == 30) {
            hdr.h.r = hdr.b == { 1, 2 } ? 32w1 : 2;
        }
    }
}
#include "../v1model/skeleton.p4i"
