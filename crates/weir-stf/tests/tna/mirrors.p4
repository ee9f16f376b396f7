// Copies from ingress and from egress, with headers of their own in front.
#include "header.p4i"
header mirror_t { bit<8> kind; bit<8> what; }
header mirror_kind_t { bit<8> kind; }
struct meta_t { mirror_t mirror; mirror_kind_t kind; MirrorId_t session; bit<8> what; }
#define OWN_INGRESS_DEPARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
#define OWN_EGRESS_DEPARSER
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { for_deparser.mirror_type = 1; meta.session = (MirrorId_t)hdr.h.index; meta.what = 0xaa; }
        // Dropped, and still mirrored; with bit 2 not mirrored either.
        if (hdr.h.op == 1) {
            for_deparser.mirror_type = 1; meta.session = (MirrorId_t)hdr.h.index; meta.what = 0xbb;
            for_deparser.drop_ctl = (bit<3>)hdr.h.value;
        }
        // No mirror was made for type 3.
        if (hdr.h.op == 3) { for_deparser.mirror_type = 3; }
        hdr.h.value = 0x1111;
    }
}
INGRESS_DEPARSER(ID) {
    Mirror(1) mirror;
    apply {
        if (for_deparser.mirror_type == 1) { mirror.emit<mirror_t>(meta.session, { 0xe0, meta.what }); }
        b.emit(hdr);
    }
}
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        transition select(b.lookahead<bit<4>>()) { 0xe: parse_mirror; default: parse_h; }
    }
    state parse_mirror {
        b.extract(meta.mirror);
        meta.kind.setValid();
        meta.kind.kind = meta.mirror.kind;
        transition parse_h;
    }
    state parse_h { b.extract(hdr.h); transition accept; }
}
EGRESS(E) {
    apply {
        if (!meta.mirror.isValid() && hdr.h.op == 2) {
            for_deparser.mirror_type = 2;
            meta.session = (MirrorId_t)hdr.h.index;
            hdr.h.value = 0x2222;
        }
    }
}
EGRESS_DEPARSER(ED) {
    Mirror(2) mirror;
    apply {
        if (for_deparser.mirror_type == 2) { mirror.emit<mirror_t>(meta.session, { 0xe1, 0 }); }
        b.emit(meta.kind);
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
