// Messages to the control plane, of more than one kind.
#include "header.p4i"
struct learned_t { bit<8> index; PortId_t port; }
struct other_t { bit<16> value; }
struct meta_t { PortId_t port; }
#define OWN_INGRESS_DEPARSER
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        meta.port = intrinsic.ingress_port;
        for_deparser.digest_type = (DigestType_t)hdr.h.op;
        // A packet that is dropped may be learnt from.
        if (hdr.h.index == 9) { for_deparser.drop_ctl = 1; }
        if (hdr.h.index == 8) { invalidate(for_deparser.digest_type); }
    }
}
INGRESS_DEPARSER(ID) {
    Digest<learned_t>(1) learned;
    Digest<other_t>(2) other;
    apply {
        if (for_deparser.digest_type == 1) { learned.pack({ hdr.h.index, meta.port }); }
        else if (for_deparser.digest_type == 2) { other.pack({ hdr.h.value }); }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
