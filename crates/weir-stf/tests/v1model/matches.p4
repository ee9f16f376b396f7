// Every match kind, alone and mixed, with priorities from the program and from the control plane.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action go(bit<9> port) { sm.egress_spec = port; }
    table range_optional {
        key = { hdr.h.index : range; hdr.h.value : optional; }
        actions = { go; }
        const default_action = go(100);
    }
    table two_prefixes {
        key = { hdr.h.index : lpm; hdr.h.value : lpm; }
        actions = { go; }
        const default_action = go(100);
    }
    table prefix_and_mask {
        key = { hdr.h.index : lpm; hdr.h.value : ternary; }
        actions = { go; }
        const default_action = go(100);
    }
    table fixed {
        key = { hdr.h.value : ternary; }
        actions = { go; }
        const default_action = go(100);
        const entries = {
            0x1200 &&& 0xff00 : go(1);
            0x1234            : go(2);
            _                 : go(3);
        }
    }
    table own {
        key = { hdr.h.value : ternary; }
        actions = { go; }
        default_action = go(100);
        entries = {
            const priority = 10: 0x1200 &&& 0xff00 : go(1);
            priority = 20: 0x1234 : go(2);
        }
    }
    table prefixes {
        key = { hdr.h.value : lpm; }
        actions = { go; }
        const default_action = go(100);
        const entries = {
            0x1000 &&& 0xf000 : go(1);
            0x1200 &&& 0xff00 : go(2);
            _ : go(3);
        }
    }
    table keyless { actions = { go; } default_action = go(7); }
    apply {
        if (hdr.h.op == 0) { range_optional.apply(); }
        if (hdr.h.op == 1) { two_prefixes.apply(); }
        if (hdr.h.op == 2) { prefix_and_mask.apply(); }
        if (hdr.h.op == 3) { fixed.apply(); }
        if (hdr.h.op == 4) { own.apply(); }
        if (hdr.h.op == 5) { prefixes.apply(); }
        if (hdr.h.op == 6) { keyless.apply(); }
    }
}
#include "skeleton.p4i"
