// The second chip says of each mirror whether it is of what came or of what leaves.
#define SECOND_CHIP
#include "header.p4i"
header mirror_t { bit<8> kind; }
struct meta_t { mirror_t mirror; MirrorId_t session; }
#define OWN_INGRESS_DEPARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
#define OWN_EGRESS_DEPARSER
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) {
            for_deparser.mirror_type = 1;
            meta.session = (MirrorId_t)hdr.h.index;
            for_deparser.mirror_io_select = hdr.h.value[0:0];
        }
        hdr.h.value = 0x1111;
    }
}
INGRESS_DEPARSER(ID) {
    Mirror(1) mirror;
    apply {
        if (for_deparser.mirror_type == 1) { mirror.emit<mirror_t>(meta.session, { 0xe0 }); }
        b.emit(hdr);
    }
}
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        transition select(b.lookahead<bit<4>>()) { 0xe: parse_mirror; default: parse_h; }
    }
    state parse_mirror { b.extract(meta.mirror); transition parse_h; }
    state parse_h { b.extract(hdr.h); transition accept; }
}
EGRESS(E) {
    apply {
        if (!meta.mirror.isValid() && hdr.h.op[3:1] == 1) {
            for_deparser.mirror_type = 2;
            for_deparser.mirror_io_select = hdr.h.op[0:0];
            meta.session = (MirrorId_t)hdr.h.index;
            hdr.h.value = 0x2222;
        }
    }
}
EGRESS_DEPARSER(ED) {
    Mirror(2) mirror;
    apply {
        if (for_deparser.mirror_type == 2) { mirror.emit<mirror_t>(meta.session, { 0xe1 }); }
        b.emit(meta.mirror);
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
