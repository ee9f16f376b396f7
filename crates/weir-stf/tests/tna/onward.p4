// Egress that needs the packet: its parser looks ahead, its control reads the length and counts bytes. Packets come there
// straight, by groups, and by ports that lead back to ingress as often as they say.
#define OWN_HEADERS
#include "header.p4i"
header seen_t { bit<16> length; bit<8> ahead; bit<8> rid; }
struct headers_t { h_t h; seen_t seen; }
struct meta_t { bit<8> ahead; }
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
INGRESS(I) {
    apply {
        if (hdr.h.index[3:0] == 0) {
            tm.ucast_egress_port = 2;
        } else {
            hdr.h.index = hdr.h.index - 1;
            if (hdr.h.index[7:7] == 1) { tm.mcast_grp_a = (MulticastGroupId_t)hdr.h.op; }
            else { tm.ucast_egress_port = (PortId_t)hdr.h.op; }
            tm.bypass_egress = hdr.h.index[6:6];
        }
    }
}
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        meta.ahead = b.lookahead<bit<8>>();
        b.extract(hdr.h);
        transition accept;
    }
}
EGRESS(E) {
    Counter<bit<32>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) passed;
    Register<bit<32>, bit<9>>(512) octets;
    RegisterAction<bit<32>, bit<9>, bit<32>>(octets) add = {
        void apply(inout bit<32> value) { value = value + (bit<32>)intrinsic.pkt_length; }
    };
    apply {
        hdr.seen.setValid();
        hdr.seen.length = intrinsic.pkt_length;
        hdr.seen.ahead = meta.ahead;
        hdr.seen.rid = (bit<8>)intrinsic.egress_rid;
        passed.count(intrinsic.egress_port);
        add.execute(intrinsic.egress_port);
    }
}
#include "skeleton.p4i"
