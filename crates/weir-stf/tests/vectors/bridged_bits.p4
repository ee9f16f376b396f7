// A bridged header that is not whole bytes: straight through code knows it, for copies the driver does egress.
#define OWN_HEADERS
#include "../tna/header.p4i"
header bits_t { bit<3> kind; bit<9> port; }
struct headers_t { bits_t bits; h_t h; }
struct meta_t { bits_t bits; }
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
#define OWN_EGRESS_DEPARSER
INGRESS(I) {
    apply {
        hdr.bits.setValid();
        hdr.bits.port = intrinsic.ingress_port;
        if (hdr.h.op == 1) { tm.mcast_grp_a = 7; } else { tm.ucast_egress_port = 3; }
    }
}
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); b.extract(meta.bits); b.extract(hdr.h); transition accept; } }
EGRESS(E) { apply { hdr.h.value = (bit<16>)meta.bits.port; } }
EGRESS_DEPARSER(ED) { apply { b.emit(hdr.h); } }
#include "../tna/skeleton.p4i"
