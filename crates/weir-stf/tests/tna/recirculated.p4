// Ports that lead back to ingress, and ports that the control plane has made so.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    apply {
        if (hdr.h.op == 0) { tm.ucast_egress_port = 2; }
        else { hdr.h.op = hdr.h.op - 1; tm.ucast_egress_port = (PortId_t)hdr.h.value; tm.bypass_egress = hdr.h.index[0:0]; }
        if (intrinsic.ingress_port == 68 || intrinsic.ingress_port == 196 || intrinsic.ingress_port == 9) {
            hdr.more.setValid();
            hdr.more.value = (bit<16>)intrinsic.ingress_port;
        }
    }
}
#include "skeleton.p4i"
