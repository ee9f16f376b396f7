// All packets wait, in the order of a flow
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>
extern void fuzz_scramble(payload_write data, in bit<16> by, out bit<32> sum);
header h_t {
    bit<96> addresses;
    bit<16> kind;
    bit<32> number;
}
struct headers_t {
    h_t first;
}
struct meta_t {
}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.first);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    payload_write() data;
    bit<32> sum;
    apply {
        sm.egress_spec = 1;
        @async(order=flow) {
            fuzz_scramble(data, 7, sum);
        }
        @async(order=flow, full=inline) {
            fuzz_scramble(data, hdr.first.number[15:0], sum);
        }
        hdr.first.kind = sum[15:0];
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}
control D(packet_out b, in headers_t hdr) {
    apply {
        b.emit(hdr.first);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
