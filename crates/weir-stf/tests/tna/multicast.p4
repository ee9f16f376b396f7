// Two groups for a packet, besides its port, and copies that are not made.
#include "header.p4i"
struct meta_t { }
#define OWN_EGRESS
INGRESS(I) {
    apply {
        if (hdr.h.op == 0) { tm.mcast_grp_a = hdr.h.value; }
        if (hdr.h.op == 1) { tm.mcast_grp_a = hdr.h.value; tm.mcast_grp_b = 2; tm.ucast_egress_port = 9; }
        if (hdr.h.op == 2) { tm.mcast_grp_a = 1; tm.level1_exclusion_id = hdr.h.value; }
        if (hdr.h.op == 3) { tm.mcast_grp_a = 1; tm.rid = 0x11; tm.level2_exclusion_id = (L2ExclusionId_t)hdr.h.value; }
        if (hdr.h.op == 4) { tm.mcast_grp_a = 1; for_deparser.drop_ctl = 1; }
        if (hdr.h.op == 5) { tm.mcast_grp_a = 1; tm.bypass_egress = 1; }
        if (hdr.h.op == 6) { tm.mcast_grp_a = 1; invalidate(tm.mcast_grp_a); }
    }
}
EGRESS(E) { apply { hdr.h.value = intrinsic.egress_rid; hdr.h.index = (bit<8>)intrinsic.egress_rid_first; } }
#include "skeleton.p4i"
