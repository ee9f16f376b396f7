// Packets that the parser does not get through, where ingress does not ask why.
#include "header.p4i"
struct meta_t { }
#define OWN_INGRESS_PARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        transition select(hdr.h.op) { 0: accept; 1: more; 2: reject; 5: accept; }
    }
    state more { b.extract(hdr.more); transition accept; }
}
INGRESS(I) { apply { tm.ucast_egress_port = 1; } }
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        b.extract(hdr.h);
        transition select(hdr.h.op) { 0 .. 1: more; }
    }
    state more { b.extract(hdr.more); transition accept; }
}
EGRESS(E) { apply { hdr.h.value = from_parser.parser_err; } }
#include "skeleton.p4i"
