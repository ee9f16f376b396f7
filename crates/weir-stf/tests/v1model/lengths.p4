// The length of a packet in egress: bytes that came, without headers that ingress took away, even where nobody emits them.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> length; }
header hidden_t { bit<32> data; }
struct headers_t { h_t h; hidden_t hidden; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); b.extract(hdr.hidden); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.op == 1) { hdr.hidden.setInvalid(); }
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { hdr.h.length = (bit<8>)sm.packet_length; }
}
#define OWN_DEPARSER
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.h); } }
#include "skeleton.p4i"
