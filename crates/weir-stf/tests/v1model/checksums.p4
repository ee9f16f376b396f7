// Checksums, with and without payload, of headers that may be missing.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> flags; bit<16> sum; }
header opt_t { bit<16> x; bit<16> sum; }
struct headers_t { h_t h; opt_t opt; }
struct meta_t { bit<1> skip; }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.flags) {
            1: more;
            2: broken;
            default: accept;
        }
    }
    state more { b.extract(hdr.opt); transition accept; }
    state broken { verify(false, error.HeaderTooShort); transition more; }
}
#define OWN_VERIFY
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.h.op == 0, { hdr.h.op, hdr.h.flags, hdr.opt }, hdr.h.sum, HashAlgorithm.csum16);
        verify_checksum(hdr.h.op == 1, { hdr.h.op }, hdr.opt.sum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.h.op == 2, { hdr.h.op }, hdr.h.sum, HashAlgorithm.csum16);
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 2 + (bit<9>)sm.checksum_error; }
}
#define OWN_COMPUTE
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.h.op == 3, { hdr.h.op, hdr.h.flags, hdr.opt.x }, hdr.opt.sum, HashAlgorithm.csum16);
        update_checksum(hdr.h.op == 3, { hdr.h.op }, hdr.h.sum, HashAlgorithm.xor16);
        update_checksum_with_payload(hdr.h.op == 4, { hdr.h.op }, hdr.h.sum, HashAlgorithm.csum16);
    }
}
#include "skeleton.p4i"
