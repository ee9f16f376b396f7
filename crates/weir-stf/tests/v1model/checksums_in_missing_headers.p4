// update_checksum does nothing to a header that is missing, also where its field is among the data, and where
// only a part of it is written.
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
        transition select(hdr.h.index) { 0: accept; default: optional; }
    }
    state optional { b.extract(hdr.opt); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 2; }
}
#define OWN_COMPUTE
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.h.op == 0, { hdr.h.op, hdr.opt.sum, 16w1 }, hdr.opt.sum, HashAlgorithm.crc16);
        update_checksum(hdr.h.op == 1, { hdr.h.op, 16w2 }, hdr.opt.sum[7:0], HashAlgorithm.crc16);
    }
}
#define OWN_DEPARSER
control D(packet_out b, in headers_t hdr) {
    apply {
        b.emit(hdr.h);
        b.emit(hdr.opt);
        // What a missing header has, which is nothing else than the zeros in which it began.
        o_t seen = { hdr.opt.sum };
        seen.setValid();
        b.emit(seen);
    }
}
#include "skeleton.p4i"
