// As numbered.p4, but only egress counts, and by itself: its parser looks ahead.
#include "../tna/header.p4i"
struct meta_t { bit<8> ahead; }
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
INGRESS(I) {
    apply {
        if (hdr.h.op == 7) { tm.mcast_grp_a = 7; }
        else if (hdr.h.op == 0) { tm.ucast_egress_port = 2; }
        else { tm.ucast_egress_port = (PortId_t)hdr.h.op; }
        hdr.h.op = 0;
    }
}
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        meta.ahead = b.lookahead<bit<8>>();
        b.extract(hdr.h);
        transition accept;
    }
}
EGRESS(E) {
    Register<bit<8>, bit<1>>(1) passed;
    RegisterAction<bit<8>, bit<1>, bit<8>>(passed) next = {
        void apply(inout bit<8> value, out bit<8> number) { value = value + 1; number = value; }
    };
    apply { hdr.h.index = next.execute(0); hdr.h.value = (bit<16>)meta.ahead; }
}
#include "../tna/skeleton.p4i"
