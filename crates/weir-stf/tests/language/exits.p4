// `return` and `exit`: what still happens after them, and what no longer does.
#include "plain.p4i"
bit<8> early(inout bit<8> x, in bit<8> limit) {
    x = x + 1;
    if (x > limit) { return 100; }
    x = x + 1;
    return 200;
}
control Sub(inout bit<8> x, out bit<8> y, in bit<8> what) {
    action leave() { x = 0x31; exit; }
    action back() { x = 0x41; return; }
    apply {
        y = 0x51;
        if (what == 1) { return; }
        if (what == 2) { x = 0x21; exit; }
        if (what == 3) { leave(); }
        if (what == 4) { back(); }
        y = 0x61;
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;
    action set(inout bit<8> x, bit<8> v) { x = v; if (v == 7) { exit; } x = x + 1; }
    action stop() { hdr.h.b = 0x77; exit; }
    action go() { hdr.h.b = 0x78; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { stop; go; set(hdr.h.c); NoAction; }
        const entries = { 1: stop(); 2: go(); 3: set(7); 4: set(8); }
        default_action = NoAction();
    }
    apply {
        if (hdr.h.op == 1) {
            hdr.h.r = (bit<32>)early(hdr.h.a, 5);
        } else if (hdr.h.op == 2) {
            // Copies out happen on exit too.
            sub.apply(hdr.h.b, hdr.h.c, hdr.h.a);
            hdr.h.r = 1;
        } else if (hdr.h.op == 3) {
            set(hdr.h.b, hdr.h.a);
            hdr.h.r = 1;
        } else if (hdr.h.op == 4) {
            t.apply();
            hdr.h.r = 1;
        } else if (hdr.h.op == 5) {
            // An exit in the table leaves the expression around it.
            if (t.apply().hit) { hdr.h.r = 1; } else { hdr.h.r = 2; }
        } else if (hdr.h.op == 6) {
            if (hdr.h.a == 1) { return; }
            hdr.h.r = 1;
            if (hdr.h.a == 2) { exit; }
            hdr.h.s = 1;
        }
        hdr.h.s = hdr.h.s + 16;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    // Exit ends the block, not the packet.
    apply { hdr.h.s = hdr.h.s + 256; }
}
#include "../v1model/skeleton.p4i"
