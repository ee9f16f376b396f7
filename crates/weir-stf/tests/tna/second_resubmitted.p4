// The second chip has 16 bytes of data for a resubmitted packet, and 8 more before the packet.
#define SECOND_CHIP
#include "header.p4i"
header again_t { bit<8> what; bit<120> rest; }
struct meta_t { again_t again; }
#define OWN_INGRESS_PARSER
#define OWN_INGRESS_DEPARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        transition select(intrinsic.resubmit_flag) { 1: resubmitted; default: plain; }
    }
    state resubmitted { b.extract(meta.again); b.advance(64); transition parse_h; }
    state plain { b.advance(PORT_METADATA_SIZE); transition parse_h; }
    state parse_h { b.extract(hdr.h); transition accept; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (meta.again.isValid()) { hdr.h.value[15:8] = meta.again.what; hdr.h.value[7:0] = meta.again.rest[7:0]; }
        else if (hdr.h.op == 1) { for_deparser.resubmit_type = 2; }
    }
}
INGRESS_DEPARSER(ID) {
    Resubmit(2) resubmit;
    apply {
        if (for_deparser.resubmit_type == 2) { resubmit.emit<again_t>({ 0x5a, 0xa5 }); }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
