// A counter and a meter of egress that count packets as they are sent.
#define SECOND_CHIP
#include "header.p4i"
struct meta_t { }
#define OWN_EGRESS
INGRESS(I) { apply { tm.ucast_egress_port = 1; } }
EGRESS(E) {
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES, true) sent;
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES) came;
    Meter<bit<8>>(4, MeterType_t.BYTES, true) metered;
    apply {
        if (hdr.h.op == 2) { hdr.h.value = 8w0 ++ metered.execute(hdr.h.index); }
        sent.count(hdr.h.index);
        came.count(hdr.h.index);
        hdr.more.setValid();
        if (hdr.h.op == 1) { for_deparser.drop_ctl = 1; }
    }
}
#include "skeleton.p4i"
