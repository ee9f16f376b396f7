// Where a packet goes that is for one port, or for none.
#include "header.p4i"
struct meta_t { }
#define OWN_EGRESS
INGRESS(I) {
    apply {
        if (hdr.h.op == 0) { tm.ucast_egress_port = (PortId_t)hdr.h.value; }
        if (hdr.h.op == 1) { tm.ucast_egress_port = (PortId_t)hdr.h.value; for_deparser.drop_ctl = 1; }
        // Nothing is said of op 2.
        if (hdr.h.op == 3) { tm.ucast_egress_port = (PortId_t)hdr.h.value; tm.bypass_egress = 1; }
        if (hdr.h.op == 4) { tm.ucast_egress_port = 0; }
        if (hdr.h.op == 5) { tm.ucast_egress_port = 3; invalidate(tm.ucast_egress_port); }
        if (hdr.h.op == 6) { tm.ucast_egress_port = 3; }
        if (hdr.h.op == 7) { tm.ucast_egress_port = 3; tm.copy_to_cpu = 1; for_deparser.drop_ctl = (bit<3>)hdr.h.index; }
        if (hdr.h.op == 8) { tm.copy_to_cpu = 1; }
    }
}
EGRESS(E) {
    apply {
        hdr.h.index = 0xee;
        if (hdr.h.op == 6) { for_deparser.drop_ctl = 1; }
    }
}
#include "skeleton.p4i"
