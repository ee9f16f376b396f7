// Calls for which packets wait, in the ingress and the egress of a Tofino.
#include <core.p4>
#include <tna.p4>
#include <weir/externs.p4>

header head_t { bit<96> addresses; bit<16> type; bit<8> flow; bit<8> op; bit<32> number; }
header tail_t { bit<64> hash; bit<32> length; bit<8> status; bit<8> rounds; }
struct headers_t { tail_t tail; head_t head; }
struct meta_t { bit<200> wide; }

extern void scramble(payload_write p, in bit<32> by, inout bit<200> wide);

parser IP(packet_in p, out headers_t h, out meta_t m, out ingress_intrinsic_metadata_t i) {
    state start {
        p.extract(i);
        p.advance(PORT_METADATA_SIZE);
        p.extract(h.head);
        transition accept;
    }
}
control Inner(inout headers_t h) {
    siphash(2) hashes;
    payload_read() bytes;
    apply {
        bit<64> hash;
        extern_status_t status;
        @async(order=flow) { hashes.compute_payload(bytes, 1, hash, status); }
        h.tail.hash = hash;
        h.tail.status = h.tail.status + status;
    }
}
control I(inout headers_t h, inout meta_t m, in ingress_intrinsic_metadata_t i,
          in ingress_intrinsic_metadata_from_parser_t from, inout ingress_intrinsic_metadata_for_deparser_t d,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    payload_resize() body;
    payload_write() data;
    Inner() inner;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) counts;
    action mark(bit<32> by) {
        @async(order=flow) { scramble(data, by, m.wide); }
    }
    table t {
        key = { h.head.op: ternary; }
        actions = { mark; NoAction; }
        const entries = { 2 &&& 2: mark(0x12345678); }
        const default_action = NoAction();
    }
    apply {
        tm.ucast_egress_port = 2;
        m.wide = 200w0x123456789abcdef0123456789abcdef;
        m.wide[31:0] = h.head.number;
        h.tail.setValid();
        h.tail.hash = 0;
        h.tail.status = 0;
        h.tail.rounds = 0;
        t.apply();
        inner.apply(h);
        bit<32> length = 0;
        extern_status_t status;
        if (h.head.op & 1 == 1) {
            @async(order=flow) { lz4_compress(body, length, status); }
            h.tail.status = h.tail.status + status;
        }
        h.tail.length = length + m.wide[31:0];
        for (bit<8> n in 8w1 .. 3) {
            @async(order=flow) { busy_cycles((bit<32>) n); }
            h.tail.rounds = h.tail.rounds + n;
        }
        counts.count(h.head.flow);
        if (h.head.op == 15) { d.drop_ctl = 1; }
    }
}
control ID(packet_out p, inout headers_t h, in meta_t m, in ingress_intrinsic_metadata_for_deparser_t d) {
    apply { p.emit(h); }
}
parser EP(packet_in p, out headers_t h, out meta_t m, out egress_intrinsic_metadata_t e) {
    state start {
        p.extract(e);
        p.extract(h.tail);
        p.extract(h.head);
        transition accept;
    }
}
control E(inout headers_t h, inout meta_t m, in egress_intrinsic_metadata_t e,
          in egress_intrinsic_metadata_from_parser_t from, inout egress_intrinsic_metadata_for_deparser_t d,
          inout egress_intrinsic_metadata_for_output_port_t o) {
    payload_write() data;
    apply {
        if (h.head.op & 8 == 8) {
            bit<200> wide = 200w77;
            @async(order=flow) { scramble(data, h.head.number, wide); }
            h.tail.length = h.tail.length ^ wide[63:32];
        }
    }
}
control ED(packet_out p, inout headers_t h, in meta_t m, in egress_intrinsic_metadata_for_deparser_t d) {
    apply { p.emit(h); }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
