// A parser that rejects packets without an error and fails with one for packets that are too short.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<48> value; }
struct headers_t { h_t h; }
struct meta_t { bit<3> sum; }
parser Part(packet_in b, out h_t h, in bit<3> given, inout bit<3> sum) {
    state start { b.extract(h); transition accept; }
}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Part() part;
    state start {
        part.apply(b, hdr.h, meta.sum, meta.sum);
        transition select(hdr.h.value) { _: reject; default: reject; }
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; if (sm.parser_error != error.NoError) { sm.egress_spec = 2; } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
