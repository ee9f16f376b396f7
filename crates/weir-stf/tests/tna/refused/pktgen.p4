// A deparser that asks for generated packets.
#define SECOND_CHIP
#include "../header.p4i"
struct meta_t { }
#define OWN_INGRESS_DEPARSER
INGRESS(I) { apply { tm.ucast_egress_port = 1; } }
INGRESS_DEPARSER(ID) {
    Pktgen() generate;
    apply {
        if (for_deparser.pktgen == 1) { generate.emit<h_t>({ 1, 2, 3 }); }
        b.emit(hdr);
    }
}
#include "../skeleton.p4i"
