// Headers that end within a byte, in some packets.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> count; }
header half_t { bit<4> kind; }
header rest_t { bit<12> number; }
struct headers_t { h_t h; half_t half; rest_t rest; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.op) { 1: halves; default: accept; } }
    state halves { b.extract(hdr.half); b.extract(hdr.rest); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.count = hdr.h.count + 1;
        if (hdr.half.isValid()) { hdr.half.kind = hdr.half.kind + 1; }
        if (hdr.h.op == 2) { hdr.h.count = hdr.half.isValid() ? 8w1 : 8w2; }
    }
}
#include "skeleton.p4i"
