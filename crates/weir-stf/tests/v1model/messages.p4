// What a program tells the control plane, and what it leaves to chance or to the end.
#include "header.p4i"
struct learn_t { bit<8> index; bit<16> value; bit<9> port; }
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 0) { digest<learn_t>(1, { hdr.h.index, hdr.h.value, sm.ingress_port }); }
        if (hdr.h.op == 1) { random(hdr.h.value, 16w3, 16w5); }
        if (hdr.h.op == 2) { random(hdr.h.value, 16w5, 16w3); }
        if (hdr.h.op == 3) { truncate(3); }
        if (hdr.h.op == 4) { log_msg("index {} and value {}", { hdr.h.index, hdr.h.value }); }
        if (hdr.h.op == 5) { assert(hdr.h.value == 1); }
        if (hdr.h.op == 6) { assume(hdr.h.value == 1); }
        if (hdr.h.op == 7) { random(hdr.h.value, 16w0, 16w0xffff); hdr.h.value = 0; }
        hdr.h.index = 0xff;
    }
}
#include "skeleton.p4i"
