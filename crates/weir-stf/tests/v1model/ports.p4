// A packet for a port that is down never gets to egress.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = (bit<9>)hdr.h.op; }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets) passed;
    apply { passed.count(1); }
}
#include "skeleton.p4i"
