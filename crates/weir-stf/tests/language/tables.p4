// Tables: hit and miss in expressions, arguments of actions, several tables and applications.
#include "plain.p4i"
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<8> scratch = 0;
    action set(bit<32> x, bit<32> y) { hdr.h.r = x; hdr.h.s = y; }
    action add(in bit<8> by, inout bit<8> to, bit<8> more) { to = to + by + more; }
    action give(out bit<8> to) { to = 0x5a; }
    action note(bit<8> x) { scratch = x; }
    action flag(bool b, int<8> i) { hdr.h.r = b ? 32w1 : 2; hdr.h.s = (bit<32>)(int<32>)i; }
    action inner(in bit<8> x) { hdr.h.c = x; }
    action outer(bit<8> x) { inner(x + 1); inner(hdr.h.c + 1); }
    table exact_t { key = { hdr.h.a: exact; } actions = { set; NoAction; } default_action = set(0x11, 0x22); }
    table bound { key = { hdr.h.a: exact; } actions = { add(hdr.h.b, hdr.h.c); give(hdr.h.b); } default_action = add(hdr.h.b, hdr.h.c, 1); }
    table keyless { actions = { note; } default_action = note(7); }
    table computed { key = { hdr.h.a + hdr.h.b: exact @name("sum"); hdr.h.c[3:0]: exact @name("low"); hdr.h.isValid(): exact; } actions = { note; NoAction; } default_action = NoAction; }
    table typed { key = { hdr.h.a: exact; } actions = { flag; outer; } default_action = flag(true, -1); }
    table fixed { key = { hdr.h.a: exact; } actions = { note; @defaultonly NoAction; } const default_action = NoAction(); const entries = { 1: note(9); } }
    apply {
        if (hdr.h.op == 1) { exact_t.apply(); }
        else if (hdr.h.op == 2) { if (exact_t.apply().hit) { hdr.h.c = 1; } else { hdr.h.c = 2; } }
        else if (hdr.h.op == 3) { if (exact_t.apply().miss) { hdr.h.c = 1; } else { hdr.h.c = 2; } }
        else if (hdr.h.op == 4) { bool both = fixed.apply().hit && exact_t.apply().hit; hdr.h.c = both ? scratch : 0x80; }
        else if (hdr.h.op == 5) { bool either = fixed.apply().hit || exact_t.apply().hit; hdr.h.c = either ? scratch : 0x80; }
        else if (hdr.h.op == 6) { bound.apply(); }
        else if (hdr.h.op == 7) { keyless.apply(); hdr.h.a = scratch; if (keyless.apply().hit) { hdr.h.b = 1; } }
        else if (hdr.h.op == 8) { computed.apply(); hdr.h.a = scratch; }
        else if (hdr.h.op == 9) { typed.apply(); }
        else if (hdr.h.op == 10) {
            // The same table twice: the key is read anew.
            exact_t.apply(); bit<32> first = hdr.h.r;
            hdr.h.a = hdr.h.b;
            exact_t.apply(); hdr.h.s = first;
        }
        else if (hdr.h.op == 11) { add(1, hdr.h.a, 2); set(3, 4); }
        else if (hdr.h.op == 12) { if (!fixed.apply().hit && hdr.h.b == 1) { hdr.h.c = 3; } }
        else if (hdr.h.op == 13) { switch (fixed.apply().action_run) { note: { hdr.h.c = scratch; } default: { hdr.h.c = 1; } } }
    }
}
#include "../v1model/skeleton.p4i"
