// Calls for which packets wait, in actions, controls, loops and egress, with two kinds of payload
// access.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

header head_t { bit<96> addresses; bit<16> type; bit<8> flow; bit<8> op; bit<32> number; }
header tail_t { bit<64> hash; bit<32> length; bit<8> status; bit<8> rounds; }
header varied_t { bit<8> length; varbit<64> data; }
struct headers_t { head_t head; varied_t varied; tail_t tail; }
struct meta_t { bit<200> wide; bit<32> seen; }

extern void scramble(payload_write p, in bit<32> by, inout bit<200> wide);

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.head);
        transition select(h.head.op) {
            4 &&& 4: varied;
            default: accept;
        }
    }
    state varied {
        bit<8> length = p.lookahead<bit<8>>();
        p.extract(h.varied, (bit<32>) (length & 7) * 8);
        transition accept;
    }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control Inner(inout headers_t h, inout meta_t m) {
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
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    payload_resize() body;
    payload_write() data;
    register<bit<32>>(256) counts;
    Inner() inner;
    action mark(bit<32> by) {
        @async(order=flow) { scramble(data, by, m.wide); }
    }
    table t { key = { h.head.op: ternary; } actions = { mark; NoAction; } const entries = { 2 &&& 2: mark(0x12345678); } }
    table late { key = { h.head.flow: exact; } actions = { NoAction; } default_action = NoAction(); }
    apply {
        s.egress_spec = 2;
        m.wide = 200w0x123456789abcdef0123456789abcdef;
        m.wide[31:0] = h.head.number;
        h.tail.setValid();
        h.tail.hash = 0;
        h.tail.status = 0;
        h.tail.rounds = 0;
        t.apply();
        inner.apply(h, m);
        extern_status_t status;
        bit<32> length = 0;
        if (h.head.op & 1 == 1) {
            @async(order=flow) { lz4_compress(body, length, status); }
            h.tail.status = h.tail.status + status;
        }
        h.tail.length = length + m.wide[31:0];
        for (bit<8> i in 8w1 .. 3) {
            @async(order=flow) { busy_cycles((bit<32>) i); }
            h.tail.rounds = h.tail.rounds + i;
        }
        late.apply();
        counts.read(m.seen, (bit<32>) h.head.flow);
        counts.write((bit<32>) h.head.flow, m.seen + 1);
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    payload_write() data;
    apply {
        if (h.head.op & 8 == 8) {
            bit<200> wide = m.wide;
            @async(order=flow) { scramble(data, h.head.number, wide); }
            h.tail.length = h.tail.length ^ wide[63:32];
        }
    }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.tail); p.emit(h.head); p.emit(h.varied); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
