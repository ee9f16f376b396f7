// Calls for which packets wait, in the ingress and the egress of PSA.
#include <core.p4>
#include <psa.p4>
#include <weir/externs.p4>

header head_t { bit<96> addresses; bit<16> type; bit<8> flow; bit<8> op; bit<32> number; }
header tail_t { bit<64> hash; bit<32> length; bit<8> status; bit<8> rounds; }
struct headers_t { head_t head; tail_t tail; }
struct meta_t { bit<200> wide; }
struct none_t { }

extern void scramble(payload_write p, in bit<32> by, inout bit<200> wide);

parser IP(packet_in p, out headers_t h, inout meta_t m, in psa_ingress_parser_input_metadata_t i,
          in none_t resubmitted, in none_t recirculated) {
    state start { p.extract(h.head); transition accept; }
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
control I(inout headers_t h, inout meta_t m, in psa_ingress_input_metadata_t i,
          inout psa_ingress_output_metadata_t o) {
    payload_resize() body;
    payload_write() data;
    Inner() inner;
    Counter<bit<32>, bit<8>>(256, PSA_CounterType_t.PACKETS) counts;
    action mark(bit<32> by) {
        @async(order=flow) { scramble(data, by, m.wide); }
    }
    table t {
        key = { h.head.op: ternary; }
        actions = { mark; NoAction; }
        const entries = { 2 &&& 2: mark(0x12345678); }
    }
    apply {
        send_to_port(o, (PortId_t) 2);
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
        if (h.head.op == 15) { ingress_drop(o); }
    }
}
control ID(packet_out p, out none_t cloned, out none_t resubmitted, out none_t normal, inout headers_t h,
           in meta_t m, in psa_ingress_output_metadata_t o) {
    apply { p.emit(h.tail); p.emit(h.head); }
}
parser EP(packet_in p, out headers_t h, inout meta_t m, in psa_egress_parser_input_metadata_t i, in none_t normal,
          in none_t cloned_i, in none_t cloned_e) {
    state start { p.extract(h.tail); p.extract(h.head); transition accept; }
}
control E(inout headers_t h, inout meta_t m, in psa_egress_input_metadata_t i,
          inout psa_egress_output_metadata_t o) {
    payload_write() data;
    apply {
        if (h.head.op & 8 == 8) {
            bit<200> wide = 200w77;
            @async(order=flow) { scramble(data, h.head.number, wide); }
            h.tail.length = h.tail.length ^ wide[63:32];
        }
    }
}
control ED(packet_out p, out none_t cloned, out none_t recirculated, inout headers_t h, in meta_t m,
           in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) {
    apply { p.emit(h.tail); p.emit(h.head); }
}
IngressPipeline(IP(), I(), ID()) ingress;
EgressPipeline(EP(), E(), ED()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
