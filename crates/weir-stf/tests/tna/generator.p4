// Packets that the generator makes: by a timer, when a port goes down, and when a packet recirculates that matches a pattern.
#define OWN_HEADERS
#include "header.p4i"
header tag_t { bit<8> mark; bit<24> value; }
struct headers_t {
    pktgen_timer_header_t timer;
    pktgen_port_down_header_t down;
    pktgen_recirc_header_t recirc;
    tag_t tag;
    h_t h;
}
struct meta_t { }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        transition select(intrinsic.ingress_port) {
            68 &&& 0x7f: by_generator_port;
            69: timer;
            70: timer;
            default: plain;
        }
    }
    // Application 1 has a timer, 2 hears of ports, 3 of packets. What recirculates begins with 0xff.
    state by_generator_port {
        transition select(b.lookahead<bit<8>>()) {
            0x01 &&& 0x07: timer;
            0x02 &&& 0x07: down;
            0x03 &&& 0x07: recirc;
            default: tag;
        }
    }
    state timer { b.extract(hdr.timer); transition plain; }
    state down { b.extract(hdr.down); transition plain; }
    state recirc { b.extract(hdr.recirc); transition plain; }
    state tag { b.extract(hdr.tag); transition plain; }
    state plain { b.extract(hdr.h); transition accept; }
}
INGRESS(I) {
    apply {
        tm.bypass_egress = 1;
        tm.ucast_egress_port = 2;
        if (hdr.timer.isValid()) {
            hdr.h.op = 6w0 ++ hdr.timer.pipe_id;
            hdr.h.value = hdr.timer.batch_id[7:0] ++ hdr.timer.packet_id[7:0];
            hdr.h.index = intrinsic.ingress_port[7:0];
            hdr.timer.setInvalid();
        } else if (hdr.down.isValid()) {
            hdr.h.value = 7w0 ++ hdr.down.port_num;
            hdr.h.index = hdr.down.packet_id[7:0];
            hdr.down.setInvalid();
        } else if (hdr.recirc.isValid()) {
            hdr.h.value = hdr.recirc.key[15:0];
            hdr.h.index = hdr.recirc.key[23:16];
            hdr.recirc.setInvalid();
        } else if (hdr.tag.isValid()) {
            hdr.tag.setInvalid();
            tm.ucast_egress_port = 3;
        } else {
            hdr.tag = { 0xff, 8w0x12 ++ hdr.h.value };
            hdr.tag.setValid();
            tm.ucast_egress_port = 68;
        }
    }
}
#include "skeleton.p4i"
