// Header stacks: next, last, push and pop, elements chosen at run time, in and out of range.
#include "frame.p4i"
header s_t { bit<8> x; }
header t_t { bit<8> x; bit<8> y; }
struct headers_t { h_t h; s_t[4] s; s_t[4] q; t_t[2] t; }
struct meta_t { bit<32> last; }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.c) { 0: done; default: more; } }
    state more {
        b.extract(hdr.s.next);
        // The bottom of the stack has its highest bit set.
        transition select(hdr.s.last.x) { 0x80 &&& 0x80: done; default: more; }
    }
    state done {
        meta.last = hdr.s.lastIndex;
        transition accept;
    }
}
void low_then_high(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 2; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<32> i = (bit<32>)hdr.h.a;
        if (hdr.h.op == 1) { hdr.h.r = meta.last; hdr.h.s = hdr.s.size; }
        else if (hdr.h.op == 2) { hdr.s.push_front(1); hdr.s[0].setValid(); hdr.s[0].x = hdr.h.a; }
        else if (hdr.h.op == 3) { hdr.s.push_front(3); }
        else if (hdr.h.op == 4) { hdr.s.pop_front(1); }
        else if (hdr.h.op == 5) { hdr.s.pop_front(9); }
        else if (hdr.h.op == 6) { hdr.s.push_front(9); }
        else if (hdr.h.op == 7) { hdr.h.r = (bit<32>)hdr.s[i].x; hdr.h.s = (bit<32>)(bit<1>)hdr.s[i].isValid(); }
        else if (hdr.h.op == 8) { hdr.s[i].x = 0x55; }
        else if (hdr.h.op == 9) { hdr.s[i].setInvalid(); }
        else if (hdr.h.op == 10) { hdr.s[i] = hdr.s[i + 1]; }
        else if (hdr.h.op == 11) { hdr.q = hdr.s; hdr.q[0].x = 0x77; }
        else if (hdr.h.op == 12) {
            hdr.q = hdr.s;
            hdr.h.r = hdr.q == hdr.s ? 32w1 : 0;
            hdr.q[i].x = hdr.q[i].x + 1;
            hdr.h.s = hdr.q == hdr.s ? 32w1 : 0;
            hdr.q[0].setInvalid(); hdr.q[1].setInvalid(); hdr.q[2].setInvalid(); hdr.q[3].setInvalid();
        }
        else if (hdr.h.op == 13) { hdr.s[i].x[3:0] = 0xf; }
        else if (hdr.h.op == 14) { s_t x = hdr.s[i]; hdr.s[i] = hdr.s[0]; hdr.s[0] = x; }
        else if (hdr.h.op == 15) { hdr.s = { { 1 }, { 2 }, {#}, { 4 } }; }
        else if (hdr.h.op == 16) { hdr.s[0] = { 1 }; hdr.s[0] = hdr.s[3]; }
        else if (hdr.h.op == 17) {
            // The index counts as it was when the statement began.
            i = 1;
            hdr.s[i].x = hdr.s[i].x + (bit<8>)i;
            hdr.h.a = 3;
        }
        else if (hdr.h.op == 18) {
            hdr.t[0] = { 1, 2 }; hdr.t[1] = { 3, 4 };
            hdr.h.r = hdr.t[i].x ++ hdr.t[i].y ++ hdr.t[1 - i].x ++ hdr.t[1 - i].y;
            hdr.t[0].setInvalid(); hdr.t[1].setInvalid();
        }
        else if (hdr.h.op == 20) { low_then_high(hdr.s[i].x, hdr.s[0].x); }
        else if (hdr.h.op == 21) { low_then_high(hdr.s[0].x, hdr.s[i].x); }
        else if (hdr.h.op == 22) { low_then_high(hdr.s[i].x, hdr.h.a); }
        else if (hdr.h.op == 19) {
            // In a control the stack's cursor is not to be had, but pushes after parsing work.
            hdr.s.push_front(1);
            hdr.s.push_front(1);
            hdr.s[1] = { 0x91 };
            hdr.s.pop_front(1);
        }
    }
}
#include "../v1model/skeleton.p4i"
