// A counter of egress that counts packets as they are sent.
#define SECOND_CHIP
#include "header.p4i"
struct meta_t { }
#define OWN_EGRESS
INGRESS(I) { apply { tm.ucast_egress_port = 1; } }
EGRESS(E) {
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES, true) sent;
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES) came;
    apply {
        sent.count(hdr.h.index);
        came.count(hdr.h.index);
        hdr.more.setValid();
        if (hdr.h.op == 1) { for_deparser.drop_ctl = 1; }
    }
}
#include "skeleton.p4i"
