// Two calls for which packets wait, the first of which changes what the flow is read from.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

struct headers_t { }
struct meta_t { bit<200> wide; }

extern void scramble(payload_write p, in bit<32> by, inout bit<200> wide);

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    payload_write() data;
    apply {
        s.egress_spec = 2;
        @async(order=flow) {
            scramble(data, s.packet_length, m.wide);
            scramble(data, 3, m.wide);
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
