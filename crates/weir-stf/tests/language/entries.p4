// Entries in the source: which one wins.
#include "plain.p4i"
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<32> x) { hdr.h.r = x; }
    // const entries: the first that fits.
    table first {
        key = { hdr.h.a: ternary; hdr.h.b: exact; }
        actions = { set; }
        default_action = set(99);
        const entries = {
            (0x10 &&& 0xf0, 1): set(1);
            (0x12, 1): set(2);
            (_, 1): set(3);
            (0x20, 0): set(4);
        }
    }
    // The larger number wins unless the table says otherwise.
    table larger {
        key = { hdr.h.a: ternary; }
        actions = { set; }
        default_action = set(99);
        entries = {
            priority = 10: 0x10 &&& 0xf0: set(1);
            priority = 20: 0x12: set(2);
            priority = 5: _: set(3);
        }
    }
    table smaller {
        key = { hdr.h.a: ternary; }
        actions = { set; }
        default_action = set(99);
        largest_priority_wins = false;
        entries = {
            priority = 10: 0x10 &&& 0xf0: set(1);
            priority = 20: 0x12: set(2);
            const priority = 5: 0x13: set(3);
        }
    }
    table steps {
        key = { hdr.h.a: range; }
        actions = { set; }
        default_action = set(99);
        priority_delta = 10;
        entries = {
            priority = 100: 0..9: set(1);
            5..20: set(2);
            priority = 95: 5..30: set(3);
        }
    }
    table longest {
        key = { hdr.h.r: lpm; }
        actions = { set; }
        default_action = set(99);
        const entries = {
            0x0a000000 &&& 0xff000000: set(8);
            0x0a0b0000 &&& 0xffff0000: set(16);
            0x0a0b0c0d: set(32);
            _: set(0);
        }
    }
    table optional_key {
        key = { hdr.h.a: optional; hdr.h.b: range; }
        actions = { set; }
        default_action = set(99);
        const entries = { (5, 3..4): set(1); (_, 0..9): set(2); (7, _): set(3); }
    }
    table unnumbered {
        key = { hdr.h.a: ternary; }
        actions = { set; }
        default_action = set(99);
        entries = { 0x10 &&& 0xf0: set(1); 0x12: set(2); _: set(3); }
    }
    apply {
        if (hdr.h.op == 1) { first.apply(); }
        else if (hdr.h.op == 2) { larger.apply(); }
        else if (hdr.h.op == 3) { smaller.apply(); }
        else if (hdr.h.op == 4) { steps.apply(); }
        else if (hdr.h.op == 5) { longest.apply(); }
        else if (hdr.h.op == 6) { optional_key.apply(); }
        else if (hdr.h.op == 7) { unnumbered.apply(); }
    }
}
#include "../v1model/skeleton.p4i"
