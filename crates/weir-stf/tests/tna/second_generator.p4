// The second chip's generator: deparsers ask it for packets, and bytes of whoever triggered it come along.
#define SECOND_CHIP
#define OWN_HEADERS
#include "header.p4i"
header context_t { bit<64> high; bit<64> low; }
struct headers_t { pktgen_recirc_header_t generated; pktgen_port_down_header_t down; context_t context; h_t h; }
struct meta_t { context_t context; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        transition select(intrinsic.ingress_port, b.lookahead<bit<8>>()) {
            (6, 0x02 &&& 0x0f): down;
            (6, 0x00 &&& 0xc0): generated;
            (6, _): again;
            default: plain;
        }
    }
    state generated { b.extract(hdr.generated); b.extract(hdr.context); transition plain; }
    state down { b.extract(hdr.down); transition plain; }
    state again { b.extract(hdr.context); transition plain; }
    state plain { b.extract(hdr.h); transition accept; }
}
INGRESS(I) {
    apply {
        tm.bypass_egress = 1;
        tm.ucast_egress_port = 9;
        if (hdr.generated.isValid()) {
            hdr.h.op = 4w0 ++ hdr.generated.app_id;
            hdr.h.index = hdr.generated.batch_id[3:0] ++ hdr.generated.packet_id[3:0];
            hdr.generated.setInvalid();
        } else if (hdr.down.isValid()) {
            hdr.h.value = 7w0 ++ hdr.down.port_num;
            hdr.down.setInvalid();
        } else if (hdr.context.isValid()) {
            hdr.context.setInvalid();
            tm.ucast_egress_port = 10;
        } else if (hdr.h.op == 1) {
            // The deparser asks: 6 bytes of the buffer from line 2 on.
            for_deparser.pktgen = 1;
            for_deparser.pktgen_address = 2;
            for_deparser.pktgen_length = 6;
            meta.context.setValid();
            meta.context.low = 48w0 ++ hdr.h.value;
            meta.context.high = 0x1122;
        } else if (hdr.h.op == 2) {
            hdr.context = { 0xff00000000000000, 48w0 ++ hdr.h.value };
            hdr.context.setValid();
            tm.ucast_egress_port = 6;
        }
    }
}
#define OWN_INGRESS_DEPARSER
INGRESS_DEPARSER(ID) {
    Pktgen() generator;
    apply {
        if (for_deparser.pktgen == 1) { generator.emit(meta.context); }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
