// Mirrors of no type, which copy every packet, from ingress and from egress.
#include "../tna/header.p4i"
header mirror_t { bit<8> kind; }
struct meta_t { mirror_t mirror; }
#define OWN_INGRESS_DEPARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS_DEPARSER
INGRESS(I) {
    apply {
        tm.ucast_egress_port = hdr.h.op == 1 ? 9w9 : 9w1;
        if (hdr.h.op == 2) { for_deparser.drop_ctl = hdr.h.value[2:0]; }
        hdr.h.op = 0;
    }
}
INGRESS_DEPARSER(ID) {
    Mirror() mirror;
    apply { mirror.emit<mirror_t>(5, { 0xe0 }); b.emit(hdr); }
}
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        transition select(b.lookahead<bit<4>>()) { 0xe: parse_mirror; default: parse_h; }
    }
    state parse_mirror { b.extract(meta.mirror); transition parse_h; }
    state parse_h { b.extract(hdr.h); transition accept; }
}
EGRESS_DEPARSER(ED) {
    Mirror() mirror;
    apply {
        if (!meta.mirror.isValid()) { mirror.emit<mirror_t>(6, { 0xe1 }); }
        b.emit(hdr);
    }
}
#include "../tna/skeleton.p4i"
