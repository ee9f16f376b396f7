// A packet that ingress asks for once more, with what it has found out in place of the port's metadata.
#include "header.p4i"
header again_t { bit<8> what; bit<8> index; bit<48> rest; }
struct meta_t { again_t again; bit<1> resubmit; }
#define OWN_INGRESS_PARSER
#define OWN_INGRESS_DEPARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        transition select(intrinsic.resubmit_flag) { 1: resubmitted; default: plain; }
    }
    state resubmitted { b.extract(meta.again); transition parse_h; }
    state plain { b.advance(PORT_METADATA_SIZE); transition parse_h; }
    state parse_h { b.extract(hdr.h); transition accept; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (meta.again.isValid()) {
            hdr.h.index = meta.again.what;
            hdr.h.value = (bit<16>)meta.again.index;
            // Op 3 never ends by itself.
            if (hdr.h.op == 3) { for_deparser.resubmit_type = 0; }
        } else {
            hdr.h.value = 0xffff;
            // Type 0 is a type as any other.
            if (hdr.h.op == 1) { for_deparser.resubmit_type = 0; }
            if (hdr.h.op == 2) { for_deparser.resubmit_type = 0; for_deparser.drop_ctl = 1; }
            if (hdr.h.op == 3) { for_deparser.resubmit_type = 0; }
            if (hdr.h.op == 4) { for_deparser.resubmit_type = 7; }
        }
    }
}
INGRESS_DEPARSER(ID) {
    Resubmit(0) resubmit;
    Resubmit(7) short;
    apply {
        if (for_deparser.resubmit_type == 0) { resubmit.emit<again_t>({ 0x5a, hdr.h.index, 0 }); }
        if (for_deparser.resubmit_type == 7) { short.emit(); }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
