// What egress is told of a generated packet's length: that with which it came, whatever ingress has made of it. Of any
// other packet it is the length at egress. A counter counts what there is.
#define OWN_HEADERS
#include "header.p4i"
header lengths_t { bit<16> told; }
struct headers_t { pktgen_timer_header_t timer; h_t h; lengths_t lengths; }
struct meta_t { }
#define OWN_INGRESS_PARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        transition select(intrinsic.ingress_port) { 68: timer; default: plain; }
    }
    state timer { b.extract(hdr.timer); transition plain; }
    state plain { b.extract(hdr.h); transition accept; }
}
INGRESS(I) { apply { tm.ucast_egress_port = 2; hdr.timer.setInvalid(); if (hdr.h.op == 9) { tm.ucast_egress_port = 69; } hdr.h.op = 0; } }
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); b.extract(hdr.h); transition accept; } }
EGRESS(E) {
    Counter<bit<32>, bit<1>>(2, CounterType_t.BYTES) octets;
    apply { octets.count(0); hdr.lengths.setValid(); hdr.lengths.told = intrinsic.pkt_length; }
}
#include "skeleton.p4i"
