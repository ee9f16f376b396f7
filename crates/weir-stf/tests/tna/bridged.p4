// Metadata that ingress emits in front of the packet, and egress takes off; what egress does not take is payload.
#define OWN_HEADERS
#include "header.p4i"
header bridge_t { bit<16> port; bit<8> flags; }
struct headers_t { bridge_t bridge; h_t h; h_t more; }
struct meta_t { }
#define OWN_INGRESS_PARSER
#define OWN_INGRESS_DEPARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        transition select(hdr.h.op[7:7]) { 1: parse_more; default: accept; }
    }
    state parse_more { b.extract(hdr.more); transition accept; }
}
INGRESS(I) {
    Register<bit<16>, bit<8>>(16) seen;
    RegisterAction<bit<16>, bit<8>, bit<16>>(seen) see = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    apply {
        tm.ucast_egress_port = 1;
        tm.qid = 2;
        tm.ingress_cos = 3;
        hdr.bridge.setValid();
        hdr.bridge.port = (bit<16>)intrinsic.ingress_port;
        hdr.bridge.flags = 7;
        if (hdr.h.op[0:0] == 1) { hdr.bridge.port = see.execute(hdr.h.index); }
        if (hdr.h.op[1:1] == 1) { hdr.bridge.setInvalid(); }
    }
}
INGRESS_DEPARSER(ID) {
    apply {
        b.emit(hdr.bridge);
        b.emit(hdr.h);
        if (hdr.h.op[6:6] == 0) { b.emit(hdr.more); }
    }
}
EGRESS_PARSER(EP) {
    state start {
        b.extract(intrinsic);
        b.extract(hdr.bridge);
        b.extract(hdr.h);
        transition select(hdr.h.op[5:5]) { 1: parse_more; default: accept; }
    }
    state parse_more { b.extract(hdr.more); transition accept; }
}
EGRESS(E) {
    Register<bit<16>, bit<8>>(16) sent;
    RegisterAction<bit<16>, bit<8>, bit<16>>(sent) send = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    Counter<bit<32>, bit<8>>(16, CounterType_t.PACKETS) packets;
    apply {
        hdr.h.value = hdr.bridge.port;
        hdr.h.index = hdr.bridge.flags + (bit<8>)intrinsic.egress_port + (bit<8>)intrinsic.egress_qid + (bit<8>)intrinsic.egress_cos;
        packets.count(hdr.bridge.flags);
        if (hdr.h.op[2:2] == 1) { hdr.h.value = send.execute(1); }
        if (hdr.h.op[3:3] == 1) { for_deparser.drop_ctl = 1; }
        hdr.bridge.setInvalid();
    }
}
#include "skeleton.p4i"
