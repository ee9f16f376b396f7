// Loops of both parsers that take nothing from the packet, and need not end. A program that reads
// the errors gets such a packet.
#include "header.p4i"
struct meta_t { }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        transition select(hdr.h.op) { 2: again; 5: step; default: accept; }
    }
    // Two basic blocks each time, so that 32,768 times are too many.
    state step { hdr.h.value = hdr.h.value - 1; transition select(hdr.h.value) { 0: accept; default: back; } }
    state back { transition select(hdr.h.index) { 0: step; default: accept; } }
    state again { transition select(hdr.h.index) { 0 .. 127: again; default: accept; } }
}
#define OWN_EGRESS_PARSER
EGRESS_PARSER(EP) {
    state start { b.extract(intrinsic); b.extract(hdr.h); transition select(hdr.h.op) { 3: again; default: accept; } }
    state again { transition select(hdr.h.index) { 0 .. 127: again; default: accept; } }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (from_parser.parser_err != 0) { hdr.h.value[15:8] = 0xee; }
    }
}
#define OWN_EGRESS
EGRESS(E) { apply { if (from_parser.parser_err != 0) { hdr.h.value[7:0] = 0xdd; } } }
#include "skeleton.p4i"
