// A loop of the ingress parser that looks at the intrinsic metadata and does not get behind it.
#include "header.p4i"
struct meta_t { bit<8> seen; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        meta.seen = b.lookahead<bit<8>>();
        transition select(meta.seen) { 0xff: packet; default: other; }
    }
    state other {
        meta.seen = b.lookahead<bit<8>>();
        transition select(meta.seen) { 0xfe: packet; default: start; }
    }
    state packet {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        transition accept;
    }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (from_parser.parser_err != 0) { tm.ucast_egress_port = 15; }
    }
}
#include "skeleton.p4i"
