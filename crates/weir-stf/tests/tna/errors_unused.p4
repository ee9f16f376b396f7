// Packets that the parser does not get through, where ingress reads why but makes nothing of it: they
// are dropped as where it does not read it.
#include "header.p4i"
struct meta_t { }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    ParserCounter() counter;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        transition select(hdr.h.op) { 0: accept; 1: more; }
    }
    state more { b.extract(hdr.more); transition accept; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        bool is_good = from_parser.parser_err == PARSER_ERROR_OK;
        if (is_good && false) { hdr.h.index = 0xee; }
    }
}
#include "skeleton.p4i"
