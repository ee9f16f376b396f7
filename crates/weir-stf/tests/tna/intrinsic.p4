// What stands in front of packets, and what the parsers tell.
#include "header.p4i"
header stamp_t { bit<16> port; bit<48> mac; bit<48> parsed; }
header queue_t {
    bit<16> port; bit<8> qid; bit<8> cos; bit<16> depth; bit<32> waited; bit<16> length; bit<48> parsed; bit<32> enqueued;
}
struct meta_t { stamp_t stamp; queue_t queue; }
#define OWN_INGRESS_DEPARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
#define OWN_EGRESS_DEPARSER
INGRESS(I) {
    apply {
        meta.stamp = { (bit<16>)intrinsic.ingress_port, intrinsic.ingress_mac_tstamp, from_parser.global_tstamp };
        tm.ucast_egress_port = 2;
        tm.qid = (QueueId_t)hdr.h.index;
        tm.ingress_cos = 5;
        // Packets of op 1 are sent as ingress leaves them, with its stamp.
        tm.bypass_egress = hdr.h.op[0:0];
    }
}
INGRESS_DEPARSER(ID) { apply { b.emit(hdr); b.emit(meta.stamp); } }
EGRESS_PARSER(EP) {
    state start { b.extract(intrinsic); b.extract(hdr.h); b.extract(meta.stamp); transition accept; }
}
EGRESS(E) {
    apply {
        meta.queue.setValid();
        meta.queue.port = (bit<16>)intrinsic.egress_port;
        meta.queue.qid = (bit<8>)intrinsic.egress_qid;
        meta.queue.cos = (bit<8>)intrinsic.egress_cos;
        meta.queue.depth = (bit<16>)intrinsic.enq_qdepth;
        meta.queue.waited = (bit<32>)intrinsic.deq_timedelta;
        meta.queue.length = intrinsic.pkt_length;
        meta.queue.parsed = from_parser.global_tstamp;
        meta.queue.enqueued = (bit<32>)intrinsic.enq_tstamp;
    }
}
EGRESS_DEPARSER(ED) { apply { b.emit(hdr); b.emit(meta.queue); } }
#include "skeleton.p4i"
