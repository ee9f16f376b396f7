// varbit: its length travels with it.
#include "frame.p4i"
header v_t { bit<8> len; varbit<64> data; bit<8> tail; }
struct headers_t { h_t h; v_t v; v_t w; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.c) { 0: accept; 1: one; default: two; } }
    state one { b.extract(hdr.v, (bit<32>)b.lookahead<bit<8>>()); transition accept; }
    state two {
        b.extract(hdr.v, (bit<32>)b.lookahead<bit<8>>());
        b.extract(hdr.w, (bit<32>)b.lookahead<bit<8>>());
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 1) { }
        else if (hdr.h.op == 2) { hdr.w = hdr.v; hdr.w.tail = 0x99; }
        else if (hdr.h.op == 3) { v_t t = hdr.v; hdr.v = hdr.w; hdr.w = t; }
        else if (hdr.h.op == 4) { hdr.h.r = hdr.v == hdr.w ? 32w1 : 2; hdr.h.s = hdr.v.data == hdr.w.data ? 32w1 : 2; }
        else if (hdr.h.op == 5) { hdr.w.data = hdr.v.data; }
        else if (hdr.h.op == 6) { hdr.v.setInvalid(); }
        else if (hdr.h.op == 7) { hdr.v.setInvalid(); hdr.v.setValid(); hdr.v.len = 0x42; hdr.v.tail = 0x43; }
        else if (hdr.h.op == 8) { hdr.h.r = hdr.v.data != hdr.w.data ? 32w1 : 2; }
    }
}
#include "../v1model/skeleton.p4i"
