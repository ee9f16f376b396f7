// Packets that never leave: straight through, by an egress that reads the length, and as copies.
#include "../tna/header.p4i"
struct meta_t { }
#define OWN_EGRESS
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 9;
        if (hdr.h.op == 2) { tm.mcast_grp_a = 1; invalidate(tm.ucast_egress_port); }
        hdr.h.value = hdr.h.value + 1;
    }
}
EGRESS(E) {
    Counter<bit<32>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) passed;
    apply { if (hdr.h.op == 1) { passed.count(intrinsic.egress_port); hdr.h.index = (bit<8>)intrinsic.pkt_length; } }
}
#include "../tna/skeleton.p4i"
