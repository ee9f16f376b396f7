// Deparsers that mirror without asking: a Mirror does nothing for packets of another type.
#include "header.p4i"
header mirror_t { bit<8> kind; bit<8> what; }
struct meta_t { mirror_t mirror; }
#define OWN_INGRESS_DEPARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
#define OWN_EGRESS_DEPARSER
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 1) { for_deparser.mirror_type = 1; }
        hdr.h.value = 0x1111;
    }
}
INGRESS_DEPARSER(ID) {
    Mirror(1) mirror;
    apply { mirror.emit<mirror_t>(5, { 0xe0, hdr.h.index }); b.emit(hdr); }
}
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        transition select(b.lookahead<bit<4>>()) { 0xe: parse_mirror; default: parse_h; }
    }
    state parse_mirror { b.extract(meta.mirror); transition parse_h; }
    state parse_h { b.extract(hdr.h); transition accept; }
}
EGRESS(E) { apply { if (hdr.h.op == 2 && !meta.mirror.isValid()) { for_deparser.mirror_type = 2; } } }
EGRESS_DEPARSER(ED) {
    Mirror(2) mirror;
    apply { mirror.emit<mirror_t>(6, { 0xe1, hdr.h.index }); b.emit(meta.mirror); b.emit(hdr); }
}
#include "skeleton.p4i"
