#include <v1model.p4>
header h0_t {
    bit<16> sum;
    bit<4> f0;
    bit<1> f1;
    bit<7> f2;
    bit<8> f3;
    bit<4> rest;
}
header h1_t {
    bit<8> f2;
}
struct headers_t {
    h0_t first;
    h1_t[1] h0;
    h0_t h1;
}
struct meta_t {
}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.first);
        transition select(b.lookahead<bit<1>>()) {
            1w0x1 .. 1w0x1: s2;
            default: s1;
        }
    }
    state s1 {
        b.extract(hdr.h1);
    }
    state s2 {
        b.extract(hdr.h0.next);
    }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(true, { hdr.first.f0, hdr.first.f1, hdr.first.f2, hdr.first.f3, hdr.first.rest }, hdr.first.sum, HashAlgorithm.csum16);
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error != error.NoError || sm.checksum_error == 1) { mark_to_drop(sm); return; }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.first.isValid(), { hdr.first.f0, hdr.first.f1, hdr.first.f2, hdr.h0[0].f2, hdr.first.rest }, hdr.first.sum, HashAlgorithm.csum16);
    }
}
control D(packet_out b, in headers_t hdr) {
    apply {
        b.emit(hdr);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
