// Parsers that take what stands in front of packets only in part: the control is told of it all the same.
#include "header.p4i"
struct meta_t { bit<16> part; bit<8> pad; }
#define OWN_INGRESS_PARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
INGRESS_PARSER(IP) {
    state start {
        // The end of the time stamp and the beginning of the port's metadata.
        b.advance(56);
        meta.part = b.lookahead<bit<16>>();
        b.advance(8);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        transition accept;
    }
}
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); transition accept; } }
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 3;
        hdr.h.value = 7w0 ++ intrinsic.ingress_port;
        if (hdr.h.op == 1) { hdr.h.value = 8w0 ++ meta.part[7:0]; }
    }
}
EGRESS(E) { apply { hdr.more.setValid(); hdr.more = { 1, 2, 7w0 ++ intrinsic.egress_port }; } }
#include "skeleton.p4i"
