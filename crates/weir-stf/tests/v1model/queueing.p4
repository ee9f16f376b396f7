// Multicast, priorities, and what queues and clocks tell.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.op == 0) { sm.priority = hdr.h.index[2:0]; }
        if (hdr.h.op == 1) { sm.mcast_grp = (bit<16>)hdr.h.index; }
        if (hdr.h.op == 2) { sm.mcast_grp = 5; mark_to_drop(sm); }
        if (hdr.h.op == 3) { hdr.h.value = sm.ingress_global_timestamp[15:0]; }
        if (hdr.h.op == 5) { mark_to_drop(sm); sm.mcast_grp = 5; }
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 0) { hdr.h.value = sm.deq_timedelta[7:0] ++ sm.enq_qdepth[3:0] ++ sm.deq_qdepth[3:0]; }
        if (hdr.h.op == 1 || hdr.h.op == 5) { hdr.h.value = sm.egress_rid; hdr.h.op = sm.instance_type[7:0]; }
        if (hdr.h.op == 4) { hdr.h.value = sm.egress_global_timestamp[15:0]; hdr.h.index = sm.egress_port[7:0]; }
    }
}
#include "skeleton.p4i"
