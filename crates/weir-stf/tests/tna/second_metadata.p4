// The second chip has 24 bytes for each port; its egress header is longer, and has more bits for times and queues.
#define SECOND_CHIP
#include "header.p4i"
struct port_t { bit<128> first; bit<64> last; }
struct meta_t { port_t port; }
#define OWN_INGRESS_PARSER
#define OWN_EGRESS
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        meta.port = port_metadata_unpack<port_t>(b);
        b.extract(hdr.h);
        transition accept;
    }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.qid = 100;
        hdr.h.value = meta.port.last[15:0];
        hdr.h.index = meta.port.first[127:120];
        // Port 6 of a pipe leads back.
        if (hdr.h.op == 1) { hdr.h.op = 2; tm.ucast_egress_port = 6; }
        if (hdr.h.op == 3) { tm.copy_to_cpu = 1; for_deparser.drop_ctl = 1; }
    }
}
EGRESS(E) {
    apply {
        hdr.more.setValid();
        hdr.more = { (bit<8>)intrinsic.egress_qid, 0, (bit<16>)(intrinsic.enq_tstamp >> 16) };
    }
}
#include "skeleton.p4i"
