// Where the packet begins is said by the packet's time.
#include "../header.p4i"
struct meta_t { }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance((bit<32>)intrinsic.ingress_mac_tstamp[6:0]);
        transition accept;
    }
}
INGRESS(I) { apply { tm.ucast_egress_port = 1; } }
#include "../skeleton.p4i"
