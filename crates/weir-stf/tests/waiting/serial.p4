// Packets that are cloned, then wait. Access to a register before and after makes it serial.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

header head_t { bit<96> addresses; bit<16> type; bit<8> flow; bit<8> op; bit<32> number; }
struct headers_t { head_t head; }
struct meta_t { }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.head); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(256) counts;
    apply {
        s.egress_spec = 2;
        bit<32> seen;
        counts.read(seen, (bit<32>) h.head.flow);
        if (h.head.op & 1 == 1) {
            clone(CloneType.I2E, (bit<32>) (h.head.op & 3));
        }
        @async(order=flow) { busy_cycles(1); }
        counts.write((bit<32>) h.head.flow, seen + 1);
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.head); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
