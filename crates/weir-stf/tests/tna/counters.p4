// Arrays of counters.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES) both;
    Counter<bit<32>, bit<8>>(4, CounterType_t.BYTES) bytes;
    apply {
        tm.ucast_egress_port = 1;
        both.count(hdr.h.index);
        // Less is more: the number may be negative.
        bytes.count(hdr.h.index, hdr.h.op == 0 ? 32w2 : -32w20);
    }
}
#include "skeleton.p4i"
