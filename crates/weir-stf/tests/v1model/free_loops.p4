// A loop of a parser that takes nothing from the packet, and need not end.
#include "header.p4i"
struct meta_t { bit<8> before; }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        meta.before = 5;
        transition select(hdr.h.op) { 1: once; 2: again; 5: step; default: accept; }
    }
    // Two basic blocks each time, so that 32,768 times are too many.
    state step { hdr.h.value = hdr.h.value - 1; transition select(hdr.h.value) { 0: accept; default: back; } }
    state back { transition select(hdr.h.index) { 0: step; default: accept; } }
    state once { meta.before = 6; hdr.h.op = hdr.h.op + 1; transition select(hdr.h.op) { 4: accept; default: once; } }
    state again { meta.before = hdr.h.index; transition select(hdr.h.op) { 2: other; default: accept; } }
    state other { transition select(hdr.h.index) { 0 .. 127: again; default: accept; } }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (sm.parser_error == error.ParserTimeout) { sm.egress_spec = 15; }
        if (hdr.h.op != 5) { hdr.h.value = (bit<16>)meta.before; }
    }
}
#include "skeleton.p4i"
