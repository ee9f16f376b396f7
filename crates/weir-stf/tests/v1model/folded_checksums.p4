// A checksum verified in a header that no packet has: its value is known to be 0, so that there is
// nothing to verify.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> index; }
header o_t { bit<16> sum; }
struct headers_t { h_t h; o_t opt; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        hdr.opt.sum = 0;
        transition accept;
    }
}
#define OWN_VERIFY
control V(inout headers_t hdr, inout meta_t meta) {
    apply { verify_checksum(true, { hdr.h.op, 8w1 }, hdr.opt.sum, HashAlgorithm.xor16); }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.h.index = (bit<8>) sm.checksum_error;
    }
}
#include "skeleton.p4i"
